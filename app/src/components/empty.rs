//! Places without rows, and why: nothing is wrong, nothing matches, not there yet, could not be read.

use super::icon::Icon;
use crate::context::Visit;
use crate::words;
use domain::Error;
use leptos::prelude::*;

/// There is nothing, and that is good; say what would show up here.
pub fn nothing_wrong(title: impl Into<String>, hint: impl Into<String>) -> AnyView {
    block(Icon::Check, "good", title.into(), hint.into(), ().into_any())
}

/// The filters exclude everything; offers to clear the ones named.
pub fn no_match(visit: &Visit, filters: &[&str]) -> AnyView {
    let t = visit.texts();
    let cleared: Vec<_> = filters.iter().map(|name| (*name, None)).chain([("cursor", None)]).collect();
    let clear = view! { <a class="btn" href=visit.href_with(&cleared)>{t.filter.clear}</a> };
    block(Icon::Search, "plain", t.empty.no_match.into(), t.empty.no_match_hint.into(), clear.into_any())
}

/// The data is on its way: the first round of a background task has not ended.
pub fn loading(visit: &Visit, hint: impl Into<String>) -> AnyView {
    block(Icon::Clock, "plain", visit.texts().empty.loading.into(), hint.into(), ().into_any())
}

/// The read failed: the cause, and the same address again; an address that itself was refused, from its first page.
pub fn failed(visit: &Visit, error: &Error) -> AnyView {
    let t = visit.texts();
    let (href, again) = match error {
        Error::Invalid(_) => (visit.href_with(&[("cursor", None)]), t.table.first),
        _ => (visit.href_with(&[]), t.common.retry),
    };
    let retry = view! { <a class="btn" href=href>{Icon::Refresh.view()}{again}</a> };
    let cause = t.empty.failed_hint(words::error(visit.locale(), error));
    block(Icon::Warning, "bad", t.empty.failed.into(), cause, retry.into_any())
}

/// Any other statement in place of content.
pub fn notice(title: impl Into<String>, hint: impl Into<String>, action: impl IntoView + 'static) -> AnyView {
    block(Icon::Empty, "plain", title.into(), hint.into(), action.into_any())
}

fn block(icon: Icon, tone: &'static str, title: String, hint: String, action: AnyView) -> AnyView {
    let role = (tone == "bad").then_some("alert");
    view! {
        <div class=format!("empty {tone}") role=role>
            {icon.view()}
            <strong>{title}</strong>
            <p>{hint}</p>
            {action}
        </div>
    }
    .into_any()
}
