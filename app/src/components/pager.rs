//! Keyset paging: back to the first page, on to the next. Links, so that Back works and a page can be shared.

use super::icon::Icon;
use crate::context::Visit;
use leptos::prelude::*;

/// The line under a list: how many rows this page holds, and the way on. The cursor travels in `cursor`.
pub fn pager(visit: &Visit, rows: usize, next_cursor: Option<&str>) -> AnyView {
    let t = &visit.texts().table;
    let first = visit.param("cursor").map(|_| {
        let href = visit.href_with(&[("cursor", None)]);
        view! { <a class="btn sm" href=href rel="first">{t.first}</a> }
    });
    let next = next_cursor.map(|cursor| {
        let href = visit.href_with(&[("cursor", Some(cursor))]);
        view! { <a class="btn sm" href=href rel="next">{t.next}{Icon::Right.view()}</a> }
    });
    view! {
        <nav class="pager" aria-label=t.pager>
            <small>{t.rows(rows as u64)}</small>
            <span class="acts">{first}{next}</span>
        </nav>
    }
    .into_any()
}
