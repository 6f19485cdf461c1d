//! Records: all of them, newest first, filtered by the address. A search with one match opens it.

mod filter;

use super::record_row::{self, limit, source_down};
use super::{Sheet, Signed, page, set_status};
use crate::components::empty;
use crate::components::filter_bar::{Filter, filter_bar};
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live};
use crate::components::pager::pager;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::state_tag;
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::routes;
use crate::words;
use domain::Error;
use domain::page::Limit;
use domain::ports::Topic;
use domain::record::{RecordRow, State};
use domain::services::records::RecordPage;
use filter::Asked;
use leptos::prelude::*;
use leptos_axum::ResponseOptions;

#[component]
pub fn Records() -> impl IntoView {
    page(&routes::RECORDS, |Signed { visit, actor, console }| async move {
        let t = &visit.texts().records;
        let asked = filter::read(&visit);
        // Without the list of business types the filter is a free text; nothing else depends on it.
        let types = console.rates.biz_types(&actor).await.unwrap_or_default();
        let bar = filters(&visit, &types);
        let content = if asked.problems.is_empty() {
            let cursor = visit.param("cursor");
            match console.records.list(&actor, &asked.filter, cursor, Limit::default()).await {
                Ok(found) => match only_match(&asked, &found) {
                    Some(only) => {
                        leptos_axum::redirect(&record_row::href(&visit, &only.id));
                        ().into_any()
                    }
                    None => listed(&visit, &asked, found),
                },
                Err(Error::NotFound { .. }) => {
                    let named = asked.filter.source.as_deref().unwrap_or_default();
                    problems(&[t.bad_source(named)])
                }
                Err(error) => {
                    set_status(use_context::<ResponseOptions>().as_ref(), error.status());
                    empty::failed(&visit, &error)
                }
            }
        } else {
            problems(&asked.problems)
        };
        let body = view! { {bar}{content} };
        Ok(Sheet::new(t.title, body).lead(lead(&visit, &asked)))
    })
}

/// The one record that a search found. Not while a source is down: it may hold another.
fn only_match<'a>(asked: &Asked, found: &'a RecordPage) -> Option<&'a RecordRow> {
    match found.items.as_slice() {
        [only] if asked.only_search && found.down.is_empty() => Some(only),
        _ => None,
    }
}

fn lead(visit: &Visit, asked: &Asked) -> String {
    let t = &visit.texts().records;
    match &asked.filter.search {
        Some(text) => t.lead_search(text),
        None if asked.filter.oldest_first() => t.lead_oldest.to_owned(),
        None => t.lead.to_owned(),
    }
}

fn filters(visit: &Visit, types: &[(String, String)]) -> AnyView {
    let texts = visit.texts();
    let t = &texts.records;
    let states = State::ALL.map(|state| (state.as_str().to_owned(), words::state(texts, state).to_owned()));
    let yes_no =
        [("true", texts.common.yes), ("false", texts.common.no)].map(|(v, word)| (v.into(), word.into()));
    let pair = |name: &str| (name.to_owned(), name.to_owned());
    let mut biz_types: Vec<&str> = types.iter().map(|(_, name)| name.as_str()).collect();
    biz_types.extend(visit.param("biz_type"));
    biz_types.sort_unstable();
    biz_types.dedup();
    let biz_type = if types.is_empty() {
        Filter::text("biz_type", t.biz_type, t.exact)
    } else {
        Filter::choice("biz_type", t.biz_type, biz_types.into_iter().map(pair).collect())
    };
    let bar = vec![
        Filter::text("q", t.search, t.exact),
        Filter::choice("state", t.state, states.to_vec()),
        Filter::choice("stuck", t.stuck, yes_no.to_vec()).rare(),
        biz_type,
        Filter::text("biz_no", t.biz_no, t.exact).rare(),
        Filter::text("key", t.key, t.exact).rare(),
        Filter::moment("created_from", t.created_from).rare(),
        Filter::moment("created_to", t.created_to).rare(),
    ];
    // The source has its switch in the top bar.
    filter_bar(visit, &bar, &["source"])
}

fn problems(problems: &[String]) -> AnyView {
    let lines = problems.iter().map(|problem| view! { <li>{problem.clone()}</li> }).collect_view();
    view! { <div class="note bad" role="alert">{Icon::Warning.view()}<ul>{lines}</ul></div> }.into_any()
}

fn listed(visit: &Visit, asked: &Asked, found: RecordPage) -> AnyView {
    let t = &visit.texts().records;
    let down = found.down.iter().map(|(source, cause)| source_down(t.source_down(cause, source)));
    let down = down.collect_view();
    let narrowed = asked.filter != Default::default() || visit.param("cursor").is_some();
    let content = if !found.items.is_empty() {
        let lines = found.items.iter().map(|row| line(visit, row)).collect();
        let table = table(t.title, columns(visit), lines);
        view! { {table}{pager(visit, found.items.len(), found.next_cursor.as_deref())} }.into_any()
    } else if narrowed {
        empty::no_match(visit, &filter::NAMES)
    } else if found.down.is_empty() {
        empty::nothing_wrong(t.none_title, t.none_hint)
    } else {
        let t = &visit.texts().stuck;
        let retry = view! { <a class="btn" href=visit.href_with(&[])>{visit.texts().common.retry}</a> };
        empty::notice(t.unreadable_title, t.unreadable_hint, retry)
    };
    let panel = view! { <div class="panel">{content}</div> };
    let list = live("records-list", &[Topic::Records], Refresh::Announce, panel);
    view! { {down}{list} }.into_any()
}

fn columns(visit: &Visit) -> Vec<Column> {
    let t = &visit.texts().records;
    vec![
        Column::text(t.created),
        Column::text(t.state),
        Column::text(t.biz_type),
        Column::text(t.biz_no),
        Column::text(t.key),
        Column::text(t.source),
        Column::text(t.verdict),
        Column::text(t.updated),
    ]
}

fn line(visit: &Visit, row: &RecordRow) -> Row {
    Row::new(vec![
        Cell::new(created(visit, row)),
        Cell::new(state(visit, row)),
        Cell::or_none(row.biz_type.clone()),
        Cell::new(record_row::biz_no(visit, row)),
        Cell::new(record_row::key(visit, row)),
        Cell::new(row.source.clone()),
        Cell::or_none(row.verdict.map(|_| record_row::verdict(visit, row))),
        Cell::or_none(row.updated_at.map(|at| time::moment(visit, at))),
    ])
    .id(row.id.to_string())
}

fn state(visit: &Visit, row: &RecordRow) -> AnyView {
    let t = visit.texts();
    let age = row.age_seconds.filter(|_| row.stuck).map(|seconds| {
        let limit = limit(visit, row.stuck_after_seconds);
        view! { <small title=limit>{t.records.stuck_for(format::age(visit.locale(), seconds))}</small> }
    });
    view! { <span class="verdict">{state_tag(t, row.state)}{age}</span> }.into_any()
}

/// When it was created; clocks that run ahead and tables that keep no time say so instead of inventing one.
fn created(visit: &Visit, row: &RecordRow) -> AnyView {
    let t = &visit.texts().records;
    match (row.created_at, row.age_seconds) {
        (None, _) => view! { <span class="quiet">{t.no_time}</span> }.into_any(),
        (Some(at), Some(age)) if age < 0 => {
            let text = t.future(format::age(visit.locale(), age.saturating_neg()));
            view! { <span class="warn" title=format::absolute(visit.zone(), at)>{text}</span> }.into_any()
        }
        (Some(at), _) => time::moment(visit, at),
    }
}
