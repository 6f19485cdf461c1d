//! The row of figures.

use crate::components::figure::{Figure, Trend, figures as row, trend};
use crate::context::Visit;
use crate::format;
use chrono::{DateTime, TimeZone, Utc};
use domain::alert::{Alert, AlertState};
use domain::console::Console;
use domain::rates::{RateScope, Totals};
use domain::roles::Actor;
use domain::services::rates::{NOW_MINUTES, NowAndThen};
use domain::stuck::Board;
use domain::{Error, Result};
use leptos::prelude::*;

/// Differences smaller than this are noise, in shares.
const NOISE: f64 = 0.005;

pub async fn figures(
    visit: &Visit,
    actor: &Actor,
    console: &Console,
    scope: &RateScope,
    board: Result<&Board, &Error>,
    open: Result<&[Alert], &Error>,
) -> AnyView {
    let t = &visit.texts().overview;
    let both = console.rates.now_and_then(actor, scope).await;
    let settled = console.compensations.settled_since(actor, midnight(visit)).await;
    let rate =
        |label, of: fn(Totals) -> Option<f64>, more_is_worse| rate(visit, label, &both, of, more_is_worse);
    row(
        t.figures(NOW_MINUTES),
        vec![
            rate(t.hit_rate, Totals::hit_rate, true),
            rate(t.execute_rate, Totals::execute_rate, false).more(requests(visit, &both)),
            rate(t.anomaly_rate, Totals::anomaly_rate, true),
            stuck(visit, board),
            alerts(visit, open),
            match settled {
                Ok(settled) => Figure::new(t.settled_today, format::number(settled), t.settled_note)
                    .href(visit.href("/audit")),
                Err(_) => Figure::new(t.settled_today, "–", t.unreadable),
            },
        ],
    )
}

/// A rate now, and how far it is from the same time last week.
fn rate(
    visit: &Visit,
    label: &'static str,
    both: &Result<NowAndThen>,
    of: fn(Totals) -> Option<f64>,
    more_is_worse: bool,
) -> Figure {
    let t = &visit.texts().overview;
    let Ok(both) = both else { return Figure::new(label, "–", t.unreadable) };
    let Some(now) = of(both.now) else { return Figure::new(label, "–", t.no_traffic) };
    let note = match of(both.last_week) {
        Some(then) => against(now - then, more_is_worse, t.against_last_week).into_any(),
        None => t.no_traffic_last_week.into_any(),
    };
    Figure::new(label, format::percent(visit.locale(), now), note)
}

/// How many requests the rates are over.
fn requests(visit: &Visit, both: &Result<NowAndThen>) -> Option<String> {
    let requests = both.as_ref().ok()?.now.requests();
    Some(visit.texts().overview.requests(requests))
}

fn against(difference: f64, more_is_worse: bool, words: &'static str) -> impl IntoView {
    let kind = if difference.abs() < NOISE {
        Trend::Same
    } else if (difference > 0.0) == more_is_worse {
        Trend::Worse
    } else {
        Trend::Better
    };
    view! { {trend(kind, format::points(difference))}" "{words} }
}

fn stuck(visit: &Visit, board: Result<&Board, &Error>) -> Figure {
    let t = &visit.texts().overview;
    let Ok(board) = board else { return Figure::new(t.stuck_now, "–", t.unreadable) };
    if board.rows.is_empty() && !board.down.is_empty() {
        return Figure::new(t.stuck_now, "–", t.source_down);
    }
    let more = if board.more { "+" } else { "" };
    let note = board
        .oldest_seconds()
        .map_or_else(|| t.none_stuck.to_owned(), |oldest| t.oldest(format::age(visit.locale(), oldest)));
    let value = format!("{}{more}", format::number(board.rows.len() as u64));
    Figure::new(t.stuck_now, value, note).href(visit.href("/stuck"))
}

fn alerts(visit: &Visit, open: Result<&[Alert], &Error>) -> Figure {
    let t = &visit.texts().overview;
    let Ok(open) = open else { return Figure::new(t.alerts_firing, "–", t.unreadable) };
    let firing = open.iter().filter(|alert| alert.state == AlertState::Firing).count() as u64;
    let pending = open.len() as u64 - firing;
    Figure::new(t.alerts_firing, format::number(firing), t.pending(pending)).href(visit.href("/alerts"))
}

/// The start of the reader's day.
fn midnight(visit: &Visit) -> DateTime<Utc> {
    let (zone, now) = (visit.zone(), visit.now());
    let day = zone.from_utc_datetime(&now.naive_utc()).date_naive();
    let start = day.and_time(chrono::NaiveTime::MIN);
    // A zone whose day starts later than midnight that day: count from the same instant in UTC.
    zone.from_local_datetime(&start).earliest().map_or_else(|| start.and_utc(), |at| at.with_timezone(&Utc))
}
