//! "Needs you": stuck records by business type and verdict, the most first.

use crate::components::empty;
use crate::components::icon::Icon;
use crate::components::panel::Panel;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::verdict_tag;
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::words;
use domain::stuck::{Board, Group, Lane};
use domain::{Error, Result};
use leptos::prelude::*;

/// Groups shown; the stuck page has all.
const GROUPS: usize = 8;

pub fn needs(visit: &Visit, board: Result<&Board, &Error>) -> AnyView {
    let t = &visit.texts().overview;
    let panel = Panel::new(t.needs_you).hint(t.needs_you_hint);
    let board = match board {
        Ok(board) => board,
        Err(error) => return panel.view(empty::failed(visit, error)),
    };
    let down = board.down.iter().map(|(source, cause)| {
        let sentence = visit.texts().stuck.source_down(cause, source);
        view! { <p class="note bad" role="status">{Icon::Warning.view()}{sentence}</p> }
    });
    let down = down.collect_view();
    let groups = board.groups();
    if groups.is_empty() {
        let empty = board
            .down
            .is_empty()
            .then(|| empty::nothing_wrong(t.nothing_needs_you, t.nothing_needs_you_hint));
        return panel.view(view! { {down}{empty} });
    }
    let columns = vec![
        Column::text(t.biz_type),
        Column::text(t.verdict),
        Column::number(t.records),
        Column::text(t.oldest_column),
        Column::text(t.recommended),
        Column::actions(t.review_column),
    ];
    let rows = groups.iter().take(GROUPS).map(|group| row(visit, group)).collect();
    panel.view(view! { {down}<div class="needs">{table(t.needs_you, columns, rows)}</div> })
}

fn row(visit: &Visit, group: &Group) -> Row {
    let texts = visit.texts();
    let t = &texts.overview;
    let oldest = i64::try_from(group.oldest_seconds).unwrap_or(i64::MAX);
    let name = group.biz_type.clone().unwrap_or_else(|| t.no_type.to_owned());
    let review = view! { <a class="btn sm" href=link(visit, group)>{t.review(group.records)}</a> };
    Row::new(vec![
        Cell::new(name),
        Cell::new(verdict_tag(texts, group.verdict)),
        Cell::new(format::number(group.records)),
        Cell::new(time::age(visit, oldest)),
        Cell::new(words::recommendation(texts, Lane::of(group.verdict))).quiet().wraps(),
        Cell::new(review),
    ])
}

/// The stuck page with this group's filter.
fn link(visit: &Visit, group: &Group) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("lane", Lane::of(group.verdict).as_str()).append_pair("source", &group.source);
    if let Some(biz_type) = &group.biz_type {
        query.append_pair("biz_type", biz_type);
    }
    visit.href(&format!("/stuck?{}", query.finish()))
}
