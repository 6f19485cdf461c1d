//! The rate chart: hit and anomaly over time, thresholds drawn, last week as a faint line when asked for.

use super::range::Range;
use crate::components::chart::{Chart, Level, Line, Unit};
use crate::components::empty;
use crate::components::field::{choices, hidden};
use crate::components::panel::Panel;
use crate::context::Visit;
use crate::format;
use chrono::{DateTime, Duration, Utc};
use domain::alert::{Alert, Metric, RuleSpec};
use domain::console::Console;
use domain::rates::{Point, RateScope, Span};
use domain::roles::Actor;
use domain::{Error, Result};
use leptos::prelude::*;
use std::collections::BTreeMap;

/// One value of a point.
type Of = fn(&Point) -> Option<f64>;

pub async fn rates(
    visit: &Visit,
    actor: &Actor,
    console: &Console,
    scope: &RateScope,
    range: Range,
    open: Result<&[Alert], &Error>,
) -> AnyView {
    let t = &visit.texts().overview;
    let span = range.span(visit.now());
    let (points, thresholds, types) = (
        console.rates.series(actor, scope, span).await,
        console.alerts.rules(actor).await.unwrap_or_default(),
        console.rates.biz_types(actor).await.unwrap_or_default(),
    );
    let points = match points {
        Ok(points) => points,
        Err(error) => return Panel::new(t.rates).view(empty::failed(visit, &error)),
    };
    let panel = Panel::new(t.rates).hint(per_step(visit, range));
    if points.is_empty() {
        let nothing = empty::notice(t.no_counts, t.no_counts_hint, ());
        return panel.actions(controls(visit, range, &types)).view(nothing);
    }
    let mut chart =
        Chart::new(t.rates, span.from.timestamp_millis(), span.to.timestamp_millis(), Unit::Share)
            .series(Line::Accent, t.hit, moments(span, &points, |point| point.hit_rate))
            .series(Line::Bad, t.anomaly, moments(span, &points, |point| point.anomaly_rate));
    if compares(visit) {
        let week = Duration::days(7);
        let before = Span { from: span.from - week, to: span.to - week, ..span };
        let then = console.rates.series(actor, scope, before).await.unwrap_or_default();
        let then: Vec<Point> = then.into_iter().map(|point| Point { at: point.at + week, ..point }).collect();
        chart = chart.series(Line::Faint, t.hit_last_week, moments(span, &then, |point| point.hit_rate));
    }
    for rule in thresholds.iter().filter(|rule| rule.spec.enabled && is_drawn(&rule.spec, scope)) {
        chart = with_thresholds(visit, chart, &rule.spec);
    }
    for alert in open.unwrap_or_default() {
        let began = alert.pending_since;
        if span.from <= began && began < span.to {
            chart = chart.marker(began.timestamp_millis(), alert.rule.name.clone());
        }
    }
    let legend = chart.legend();
    panel.aside(legend).actions(controls(visit, range, &types)).view(chart.view(visit))
}

fn per_step(visit: &Visit, range: Range) -> String {
    let t = &visit.texts().overview;
    match range.step_minutes() {
        60 => t.per_hour.to_owned(),
        minutes => t.per_step(minutes.into()),
    }
}

/// Hit-rate rules of the business types shown; when all are shown together, the rules of single ones help too.
fn is_drawn(spec: &RuleSpec, scope: &RateScope) -> bool {
    spec.metric == Metric::HitRate
        && (scope.biz_type.is_none() || spec.biz_type.is_none() || spec.biz_type == scope.biz_type)
}

fn with_thresholds(visit: &Visit, chart: Chart, spec: &RuleSpec) -> Chart {
    let t = &visit.texts().overview;
    let scope = spec.biz_type.as_deref().unwrap_or(t.all_types);
    let at = |value| t.threshold(scope, format::short_percent(visit.locale(), value));
    let chart = match spec.warn {
        Some(warn) => chart.threshold(Level::Warn, warn, at(warn)),
        None => chart,
    };
    match spec.critical {
        Some(critical) => chart.threshold(Level::Critical, critical, at(critical)),
        None => chart,
    }
}

/// One value per step of the span: a step without traffic is a gap, not a zero.
fn moments(span: Span, points: &[Point], of: Of) -> Vec<(i64, Option<f64>)> {
    let known: BTreeMap<DateTime<Utc>, &Point> = points.iter().map(|point| (point.at, point)).collect();
    let step = Duration::minutes(span.step_minutes.into());
    let mut at = span.from;
    let mut moments = Vec::new();
    while at < span.to {
        moments.push((at.timestamp_millis(), known.get(&at).copied().and_then(of)));
        at += step;
    }
    moments
}

fn compares(visit: &Visit) -> bool {
    visit.param("compare") == Some("last_week")
}

/// Range, business type and comparison: links and a small form, all in the URL.
fn controls(visit: &Visit, range: Range, types: &[(String, String)]) -> AnyView {
    let t = &visit.texts().overview;
    let ranges = Range::ALL.map(|choice| {
        let current = (choice == range).then_some("true");
        view! { <a href=visit.href_with(&[("range", Some(choice.word()))]) aria-current=current>{choice.label(visit)}</a> }
    });
    let compare = if compares(visit) { None } else { Some("last_week") };
    let pressed = if compares(visit) { "true" } else { "false" };
    view! {
        <span class="segments" role="group" aria-label=t.range>{ranges}</span>
        {type_choice(visit, types)}
        <a class="btn sm toggle" href=visit.href_with(&[("compare", compare)]) role="button" aria-pressed=pressed>{t.compare}</a>
    }
    .into_any()
}

fn type_choice(visit: &Visit, types: &[(String, String)]) -> AnyView {
    let t = &visit.texts().overview;
    let mut names: Vec<&String> = types.iter().map(|(_, biz_type)| biz_type).collect();
    names.sort();
    names.dedup();
    let all = (String::new(), t.all_types.to_owned());
    let options: Vec<_> =
        [all].into_iter().chain(names.into_iter().map(|name| (name.clone(), name.clone()))).collect();
    let kept = visit.query().iter().filter(|(name, _)| name != "biz_type").cloned().collect::<Vec<_>>();
    view! {
        <form class="inline" method="get" action=visit.href(visit.path())>
            {hidden(kept)}
            <select name="biz_type" aria-label=t.biz_type data-autosubmit="">
                {choices(&options, visit.param("biz_type").unwrap_or_default())}
            </select>
            <button class="btn sm" type="submit">{visit.texts().common.apply}</button>
        </form>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::rates::{Bucket, Totals};

    #[test]
    fn a_step_without_traffic_is_a_gap() {
        let minute = |n| DateTime::UNIX_EPOCH + Duration::minutes(n);
        let totals = Totals { executed: 9, hit: 1, anomaly: 0 };
        let points =
            [Point::from(Bucket { at: minute(0), totals }), Point::from(Bucket { at: minute(2), totals })];
        let span = Span { from: minute(0), to: minute(4), step_minutes: 1 };
        let values: Vec<_> =
            moments(span, &points, |point| point.hit_rate).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, [Some(0.1), None, Some(0.1), None]);
    }
}
