//! What every list of records shows the same way.

use crate::components::copy::copyable;
use crate::components::icon::Icon;
use crate::components::tag::verdict_tag;
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::words;
use domain::record::{RecordId, RecordRow};
use domain::roles::{Actor, Permission};
use leptos::prelude::*;

/// The address of a record's page.
pub fn href(visit: &Visit, id: &RecordId) -> String {
    visit.href(&format!("/records/{id}"))
}

/// The business number as the link to the record; records without one say so, and are links all the same.
pub fn biz_no(visit: &Visit, row: &RecordRow) -> AnyView {
    let text = match &row.biz_no {
        Some(number) => view! { <code>{number.clone()}</code> }.into_any(),
        None => visit.texts().records.no_number.into_any(),
    };
    view! { <a class="link row-link" href=href(visit, &row.id)>{text}</a> }.into_any()
}

pub fn key(visit: &Visit, row: &RecordRow) -> AnyView {
    copyable(visit, &row.key)
}

/// The verdict with the age of its evidence.
pub fn verdict(visit: &Visit, row: &RecordRow) -> AnyView {
    let at = row.verdict_at.map(|at| view! { <small>{time::moment(visit, at)}</small> });
    view! { <span class="verdict">{verdict_tag(visit.texts(), row.verdict)}{at}</span> }.into_any()
}

/// A count that the table may not keep.
pub fn attempts(row: &RecordRow) -> String {
    row.attempts.map_or_else(|| "–".to_owned(), |attempts| attempts.to_string())
}

/// A button that this role may not press: visible, disabled, and saying why.
pub fn denied(
    visit: &Visit,
    actor: &Actor,
    needs: Permission,
    label: impl Into<String>,
    class: &'static str,
) -> AnyView {
    let t = visit.texts();
    let why = t.error.forbidden(words::role(t, needs.least_role()), words::role(t, actor.role));
    view! { <button class=class type="button" disabled title=why>{label.into()}</button> }.into_any()
}

/// A source that could not be asked, named above the list that lacks its records.
pub fn source_down(text: String) -> AnyView {
    view! { <p class="note bad" role="alert">{Icon::Warning.view()}<span>{text}</span></p> }.into_any()
}

/// How long a limit is, in words.
pub fn limit(visit: &Visit, seconds: u64) -> String {
    format::age(visit.locale(), i64::try_from(seconds).unwrap_or(i64::MAX))
}
