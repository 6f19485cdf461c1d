//! Episodes of alerts: those open now, and those of the past.

use super::denied;
use crate::components::pager::pager;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::{Tone, tag};
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::words;
use domain::alert::{Alert, AlertState, Severity};
use domain::page::Page;
use domain::roles::{Actor, Permission};
use leptos::prelude::*;

/// Hours that "Silence" keeps an alert quiet.
const SILENCE_HOURS: &str = "4";

pub fn open(visit: &Visit, actor: &Actor, alerts: &[Alert]) -> AnyView {
    let t = &visit.texts().alerts;
    let columns = vec![
        Column::text(t.state),
        Column::text(t.what),
        Column::text(t.since),
        Column::text(t.handled),
        Column::actions(t.actions),
    ];
    let rows = alerts.iter().map(|alert| {
        Row::new(vec![
            Cell::new(state(visit, alert)),
            Cell::new(what(visit, alert)).wraps(),
            Cell::new(time::moment(visit, alert.fired_at.unwrap_or(alert.pending_since))),
            Cell::or_none(handled(visit, alert)).quiet().wraps(),
            Cell::new(actions(visit, actor, alert)),
        ])
        .id(alert.id.clone())
    });
    table(t.open, columns, rows.collect())
}

pub fn history(visit: &Visit, page: &Page<Alert>) -> AnyView {
    let t = &visit.texts().alerts;
    let columns = vec![
        Column::text(t.began),
        Column::text(t.state),
        Column::text(t.what),
        Column::text(t.lasted),
        Column::text(t.handled),
    ];
    // Open ones stand above.
    let past: Vec<&Alert> = page.items.iter().filter(|alert| alert.state == AlertState::Resolved).collect();
    let rows = past.iter().map(|alert| {
        let end = alert.resolved_at.unwrap_or(visit.now());
        let lasted = (end - alert.fired_at.unwrap_or(alert.pending_since)).num_seconds();
        Row::new(vec![
            Cell::new(time::absolute(visit, alert.pending_since)),
            Cell::new(state(visit, alert)),
            Cell::new(what(visit, alert)).wraps(),
            Cell::new(format::age(visit.locale(), lasted)),
            Cell::or_none(handled(visit, alert)).quiet().wraps(),
        ])
    });
    let table = table(t.history, columns, rows.collect());
    view! { {table}{pager(visit, past.len(), page.next_cursor.as_deref())} }.into_any()
}

fn state(visit: &Visit, alert: &Alert) -> AnyView {
    let t = &visit.texts().alerts;
    match (alert.state, alert.severity) {
        (AlertState::Pending, _) => tag(Tone::Processing, t.pending),
        (AlertState::Firing, Severity::Critical) => tag(Tone::Bad, t.firing_critical),
        (AlertState::Firing, Severity::Warn) => tag(Tone::Processing, t.firing_warn),
        (AlertState::Resolved, _) => tag(Tone::Good, t.resolved),
    }
}

fn what(visit: &Visit, alert: &Alert) -> AnyView {
    let sentence = words::alert_sentence(visit.locale(), alert);
    view! { <span class="rule-name">{words::rule_name(visit.texts(), &alert.rule.name)}</span><br/><small>{sentence}</small> }
        .into_any()
}

/// Who took it, or until when it is quiet.
fn handled(visit: &Visit, alert: &Alert) -> Option<String> {
    let t = &visit.texts().alerts;
    let taken = alert.acknowledged_by.as_ref().map(|by| t.acknowledged_by(by));
    let quiet = alert
        .silenced_until
        .filter(|until| *until > visit.now())
        .map(|until| t.silenced_until(format::date_time(visit.zone(), until)));
    let parts: Vec<String> = [taken, quiet].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn actions(visit: &Visit, actor: &Actor, alert: &Alert) -> AnyView {
    let t = &visit.texts().alerts;
    if !actor.role.may(Permission::AcknowledgeAlert) {
        return view! { {denied(t.acknowledge, t.act_denied)}{denied(t.silence, t.act_denied)} }.into_any();
    }
    let acknowledge = alert.acknowledged_by.is_none().then(|| {
        view! {
            <form class="inline" method="post" action=visit.href("/api/fn/acknowledge_alert")>
                <input type="hidden" name="id" value=alert.id.clone()/>
                <input type="hidden" name="back" value=visit.address()/>
                <button class="btn sm" type="submit">{t.acknowledge}</button>
            </form>
        }
    });
    let is_quiet = alert.silenced_until.is_some_and(|until| until > visit.now());
    let silence = (!is_quiet).then(|| {
        view! {
            <form class="inline" method="post" action=visit.href("/api/fn/silence_alert")>
                <input type="hidden" name="id" value=alert.id.clone()/>
                <input type="hidden" name="hours" value=SILENCE_HOURS/>
                <input type="hidden" name="back" value=visit.address()/>
                <button class="btn sm" type="submit">{t.silence}</button>
            </form>
        }
    });
    view! { {acknowledge}{silence} }.into_any()
}
