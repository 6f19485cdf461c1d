//! Each business type: its course, its shares, and how many requests arrive per business run.

use super::range::Range;
use crate::components::chart::spark;
use crate::components::empty;
use crate::components::panel::Panel;
use crate::components::table::{Cell, Column, Row, table};
use crate::context::Visit;
use crate::format;
use domain::console::Console;
use domain::rates::{RateScope, Span};
use domain::roles::Actor;
use domain::services::rates::BizTypeRates;
use leptos::prelude::*;
use std::collections::HashMap;

/// Points of a sparkline.
const SPARKS: i64 = 24;

pub async fn types(
    visit: &Visit,
    actor: &Actor,
    console: &Console,
    scope: &RateScope,
    range: Range,
) -> AnyView {
    let t = &visit.texts().overview;
    let span = range.span(visit.now());
    let minutes = (span.to - span.from).num_minutes() / SPARKS;
    let span = Span { step_minutes: u32::try_from(minutes).unwrap_or(1).max(1), ..span };
    let panel = Panel::new(t.types).hint(range.label(visit));
    let rates = match console.rates.by_biz_type(actor, scope, span).await {
        Ok(rates) => rates,
        Err(error) => return panel.view(empty::failed(visit, &error)),
    };
    if rates.is_empty() {
        return panel.view(empty::notice(t.no_counts, t.no_counts_hint, ()));
    }
    let columns = vec![
        Column::text(t.biz_type),
        Column::text(t.source),
        Column::number(t.requests_column),
        Column::number(t.hit_rate),
        Column::text(t.course),
        Column::number(t.execute_rate),
        Column::number(t.anomaly_rate),
        Column::number(t.amplification),
    ];
    let rows = rates.iter().map(|rates| row(visit, rates, span)).collect();
    panel.view(table(t.types, columns, rows))
}

fn row(visit: &Visit, rates: &BizTypeRates, span: Span) -> Row {
    let t = &visit.texts().overview;
    let locale = visit.locale();
    let share =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format::percent(locale, value));
    let totals = rates.totals;
    let amplification = totals.amplification().map_or_else(|| "–".to_owned(), |times| format!("{times:.2}×"));
    let link = visit.href_with(&[("biz_type", Some(&rates.biz_type)), ("source", Some(&rates.source))]);
    Row::new(vec![
        Cell::new(view! { <a class="link" href=link>{rates.biz_type.clone()}</a> }),
        Cell::new(rates.source.clone()).quiet(),
        Cell::new(format::compact(locale, totals.requests())),
        Cell::new(share(totals.hit_rate())),
        Cell::new(spark(t.course_of(&rates.biz_type), &course(rates, span))),
        Cell::new(share(totals.execute_rate())),
        Cell::new(share(totals.anomaly_rate())),
        Cell::new(amplification),
    ])
}

/// Hit rate per step, gaps kept.
fn course(rates: &BizTypeRates, span: Span) -> Vec<Option<f64>> {
    let known: HashMap<i64, Option<f64>> =
        rates.points.iter().map(|point| (point.at.timestamp_millis(), point.hit_rate)).collect();
    let step = i64::from(span.step_minutes) * 60_000;
    let (from, to) = (span.from.timestamp_millis(), span.to.timestamp_millis());
    (0..)
        .map(|n| from + n * step)
        .take_while(|at| *at < to)
        .map(|at| known.get(&at).copied().flatten())
        .collect()
}
