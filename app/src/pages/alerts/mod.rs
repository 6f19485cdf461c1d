//! Alerts: what fires, what may fire soon, the rules and their editor, and what fired before.

mod editor;
mod episodes;
mod rules;

use super::{Sheet, page};
use crate::components::empty;
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live, live_inline};
use crate::components::panel::Panel;
use crate::context::Visit;
use crate::routes;
use domain::Result;
use domain::alert::{Alert, AlertState};
use domain::page::{Limit, Page};
use domain::ports::Topic;
use domain::roles::{Actor, Permission};
use leptos::prelude::*;

#[component]
pub fn Alerts() -> impl IntoView {
    page(&routes::ALERTS, |signed| async move {
        let (visit, actor, console) = (signed.visit, signed.actor, signed.console);
        let t = &visit.texts().alerts;
        let open = console.alerts.open_alerts(&actor).await;
        let history = console.alerts.alerts(&actor, visit.param("cursor"), Limit::default()).await;
        let rules = console.alerts.rules(&actor).await;
        let editor = editor::editor(&visit, &actor, &console, rules.as_deref().unwrap_or_default()).await;
        let lead = live_inline("alerts-lead", &[Topic::Alerts], lead(&visit, &open));
        let body = view! {
            {live("alerts-open", &[Topic::Alerts], Refresh::Swap, open_panel(&visit, &actor, open))}
            {editor}
            {live("alerts-rules", &[Topic::Alerts], Refresh::Swap, rules::panel(&visit, &actor, rules))}
            {live("alerts-history", &[Topic::Alerts], Refresh::Swap, history_panel(&visit, history))}
        };
        Ok(Sheet::new(t.title, body).lead(lead).actions(new_rule(&visit, &actor)))
    })
}

fn lead(visit: &Visit, open: &Result<Vec<Alert>>) -> String {
    let t = &visit.texts().overview;
    match open {
        Ok(open) => match open.iter().filter(|alert| alert.state == AlertState::Firing).count() {
            0 => t.lead_quiet.to_owned(),
            count => t.lead_firing(count as u64),
        },
        Err(_) => t.lead_alerts_unknown.to_owned(),
    }
}

fn new_rule(visit: &Visit, actor: &Actor) -> AnyView {
    let t = &visit.texts().alerts;
    if actor.role.may(Permission::EditAlertRules) {
        view! { <a class="btn" href=visit.href("/alerts?rule=new#editor")>{t.new_rule}</a> }.into_any()
    } else {
        view! { <small>{t.needs_admin}</small><button class="btn" type="button" disabled title=t.edit_denied>{t.new_rule}</button> }
            .into_any()
    }
}

fn open_panel(visit: &Visit, actor: &Actor, open: Result<Vec<Alert>>) -> AnyView {
    let t = &visit.texts().alerts;
    let panel = Panel::new(t.open).hint(t.open_hint);
    match open {
        Err(error) => panel.view(empty::failed(visit, &error)),
        Ok(open) if open.is_empty() => panel.view(empty::nothing_wrong(t.quiet, t.quiet_hint)),
        Ok(open) => panel.view(episodes::open(visit, actor, &open)),
    }
}

fn history_panel(visit: &Visit, history: Result<Page<Alert>>) -> AnyView {
    let t = &visit.texts().alerts;
    let panel = Panel::new(t.history);
    match history {
        Err(error) => panel.view(empty::failed(visit, &error)),
        Ok(history) if history.items.iter().all(|alert| alert.state != AlertState::Resolved) => {
            panel.view(empty::notice(t.no_history, t.no_history_hint, ()))
        }
        Ok(history) => panel.view(episodes::history(visit, &history)),
    }
}

/// An action that the role does not hold: visible, disabled, with the reason.
fn denied(label: &'static str, why: &'static str) -> AnyView {
    view! { <button class="btn sm" type="button" disabled title=why>{Icon::Lock.view()}{label}</button> }
        .into_any()
}
