//! What the record is: the mapped columns, as stored.

use crate::components::copy::copyable;
use crate::components::panel::Panel;
use crate::components::tag::state_tag;
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::pages::record_row::limit;
use chrono::{DateTime, Utc};
use domain::record::RecordRow;
use domain::services::records::RecordView;
use leptos::prelude::*;

pub fn panel(visit: &Visit, view: &RecordView) -> AnyView {
    let t = &visit.texts().record;
    let row = &view.detail.row;
    let dash = || "–".into_any();
    let text = |value: &Option<String>| value.clone().map_or_else(dash, IntoAny::into_any);
    let mapped = [
        (t.key, copyable(visit, &row.key)),
        (t.biz_no, row.biz_no.as_ref().map_or_else(dash, |number| copyable(visit, number))),
        (t.biz_type, text(&row.biz_type)),
        (t.source, row.source.clone().into_any()),
        (t.state, state(visit, row)),
        (t.age_limit, limit(visit, row.stuck_after_seconds).into_any()),
        (t.created, moment(visit, row.created_at, row.age_seconds)),
        (t.updated, moment(visit, row.updated_at, None)),
        (t.attempts, row.attempts.map_or_else(dash, |attempts| attempts.to_string().into_any())),
    ];
    let mapped = mapped.into_iter().map(|(term, value)| view! { <div><dt>{term}</dt><dd>{value}</dd></div> });
    // The attempts have their own line already.
    let further = view.detail.facts.iter().filter(|(name, _)| row.attempts.is_none() || name != "attempts");
    let facts = further.map(|(name, value)| {
        view! { <div><dt><code>{name.clone()}</code></dt><dd><code>{value.clone()}</code></dd></div> }
    });
    let list = view! { <dl class="facts pad">{mapped.collect_view()}{facts.collect_view()}</dl> };
    Panel::new(t.identity).view(list)
}

/// The state with the source's own spelling of it, where that is another.
fn state(visit: &Visit, row: &RecordRow) -> AnyView {
    let t = visit.texts();
    let native = row.native_state.as_ref().filter(|native| *native != row.state.as_str());
    let native = native.map(|native| view! { <small>{t.record.stored_as(native)}</small> });
    view! { <span class="verdict">{state_tag(t, row.state)}{native}</span> }.into_any()
}

/// The absolute time with the relative one; `age` tells of a clock that runs ahead.
fn moment(visit: &Visit, at: Option<DateTime<Utc>>, age: Option<i64>) -> AnyView {
    let t = &visit.texts().records;
    let Some(at) = at else { return t.no_time.into_any() };
    let relative = match age.filter(|age| *age < 0) {
        Some(age) => {
            let text = t.future(format::age(visit.locale(), age.saturating_neg()));
            view! { <small class="warn">{text}</small> }.into_any()
        }
        None => view! { <small>{time::moment(visit, at)}</small> }.into_any(),
    };
    view! { <span class="verdict">{time::absolute(visit, at)}{relative}</span> }.into_any()
}
