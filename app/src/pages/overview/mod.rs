//! Overview: how the traffic stands against last week, what fires, and which stuck records need somebody.

mod figures;
mod needs;
mod range;
mod rates;
mod storm;
mod types;

use super::{Sheet, page};
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live, live_inline};
use crate::context::Visit;
use crate::format;
use crate::routes;
use crate::words;
use domain::Result;
use domain::alert::{Alert, AlertState};
use domain::ports::Topic;
use domain::rates::RateScope;
use domain::stuck::Board;
use leptos::prelude::*;

#[component]
pub fn Overview() -> impl IntoView {
    page(&routes::OVERVIEW, |signed| async move {
        let (visit, actor, console) = (signed.visit, signed.actor, signed.console);
        let range = range::Range::read(&visit);
        let scope = RateScope {
            source: visit.param("source").map(str::to_owned),
            biz_type: visit.param("biz_type").map(str::to_owned),
        };
        // Each part fails on its own, where its data would be.
        let board = console.stuck.board(&actor).await;
        let open = console.alerts.open_alerts(&actor).await;
        let lead = lead(&visit, board.as_deref(), open.as_deref());
        let figures =
            figures::figures(&visit, &actor, &console, &scope, board.as_deref(), open.as_deref()).await;
        let rates = rates::rates(&visit, &actor, &console, &scope, range, open.as_deref()).await;
        let types = types::types(&visit, &actor, &console, &scope, range).await;
        let needs = needs::needs(&visit, board.as_deref());
        let storm = console.demo.as_ref().map(|demo| storm::strip(&visit, &actor, demo.storm_is_on()));
        let body = view! {
            {storm}
            {live("overview-firing", &[Topic::Alerts], Refresh::Swap, firing(&visit, open.as_deref()))}
            {live("overview-figures", &[Topic::Rates, Topic::Records, Topic::Alerts], Refresh::Swap, figures)}
            {live("overview-rates", &[Topic::Rates], Refresh::Swap, rates)}
            {live("overview-needs", &[Topic::Records], Refresh::Swap, needs)}
            {live("overview-types", &[Topic::Rates], Refresh::Swap, types)}
        };
        let title = visit.texts().overview.title;
        let lead = live_inline("overview-lead", &[Topic::Records, Topic::Alerts], lead);
        Ok(Sheet::new(title, body).lead(lead))
    })
}

fn lead(
    visit: &Visit,
    board: Result<&Board, &domain::Error>,
    open: Result<&[Alert], &domain::Error>,
) -> String {
    let t = &visit.texts().overview;
    let alerts = open.map(|open| open.iter().filter(|alert| alert.state == AlertState::Firing).count());
    let alerts = match alerts {
        Ok(0) => t.lead_quiet.to_owned(),
        Ok(count) => t.lead_firing(count as u64),
        Err(_) => t.lead_alerts_unknown.to_owned(),
    };
    let stuck = match board {
        Ok(board) => match board.oldest_seconds() {
            Some(oldest) => t.lead_stuck(board.rows.len() as u64, format::age(visit.locale(), oldest)),
            None => t.lead_nothing_stuck.to_owned(),
        },
        Err(_) => t.lead_stuck_unknown.to_owned(),
    };
    format!("{alerts} · {stuck}")
}

/// What fires now, each with the way to its rule.
fn firing(visit: &Visit, open: Result<&[Alert], &domain::Error>) -> AnyView {
    let t = &visit.texts().overview;
    let firing = open.unwrap_or_default().iter().filter(|alert| alert.state == AlertState::Firing);
    let banners = firing.map(|alert| {
        let sentence = words::alert_sentence(visit.locale(), alert);
        view! {
            <p class="note bad firing" role="status">
                {Icon::Bell.view()}
                <span><b>{t.firing}</b>" "{sentence}</span>
                <a class="link" href=visit.href("/alerts")>{t.see_alert}</a>
            </p>
        }
    });
    banners.collect_view().into_any()
}
