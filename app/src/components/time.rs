//! Times: relative where people scan, absolute on hover and focus; the browser keeps them moving.

use crate::context::Visit;
use crate::format;
use chrono::{DateTime, TimeDelta, Utc};
use leptos::prelude::*;

/// How long ago something was: `20 s ago`.
pub fn moment(visit: &Visit, at: DateTime<Utc>) -> AnyView {
    element(visit, at, format::ago(visit.locale(), at, visit.now()), Some("ago"))
}

/// How long something has lasted by its source's clock: `3 h 12 min`.
pub fn age(visit: &Visit, seconds: i64) -> AnyView {
    let since = visit.now() - TimeDelta::seconds(seconds);
    element(visit, since, format::age(visit.locale(), seconds), Some("age"))
}

/// The full time, for timelines, audit and details.
pub fn absolute(visit: &Visit, at: DateTime<Utc>) -> AnyView {
    element(visit, at, format::absolute(visit.zone(), at), None)
}

/// The time of day only, where the day is clear.
pub fn time_of_day(visit: &Visit, at: DateTime<Utc>) -> AnyView {
    element(visit, at, format::time_of_day(visit.zone(), at), None)
}

/// The zone beside a heading, where the top bar has no room to name it.
pub fn zone_here(text: impl Into<String>) -> AnyView {
    view! { <span class="zone-here">{text.into()}</span> }.into_any()
}

fn element(visit: &Visit, at: DateTime<Utc>, text: String, live: Option<&'static str>) -> AnyView {
    let full = format!("{} {}", format::absolute(visit.zone(), at), visit.zone().name());
    view! { <time datetime=format::machine(at) title=full data-live=live>{text}</time> }.into_any()
}
