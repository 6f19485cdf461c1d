//! Stuck: the work queue. What is stuck, what the business tables say about it, what to do next.

mod lanes;
mod queue;
mod rows;
mod run;

use super::record_row::{limit, source_down};
use super::{Sheet, Signed, page};
use crate::components::empty;
use crate::components::icon::Icon;
use crate::components::live::live_inline;
use crate::context::Visit;
use crate::format;
use crate::routes;
use domain::ports::Topic;
use domain::roles::Actor;
use domain::services::stuck::CheckRun;
use domain::stuck::Board;
use leptos::prelude::*;
use queue::Queue;

#[component]
pub fn Stuck() -> impl IntoView {
    page(&routes::STUCK, |Signed { visit, actor, console }| async move {
        let board = console.stuck.board(&actor).await?;
        let run = console.stuck.check_run(&actor)?;
        sheet(&visit, &actor, &board, run)
    })
}

fn sheet(visit: &Visit, actor: &Actor, board: &Board, run: Option<CheckRun>) -> domain::Result<Sheet> {
    let queue = Queue::read(visit, board);
    let content = if board.rows.is_empty() {
        nothing(visit, board)
    } else {
        let rows = rows::list(visit, actor, &queue)?;
        view! { {lanes::lanes(visit, actor, &queue)}{rows} }.into_any()
    };
    let body = view! { {warnings(visit, &queue)}{run::progress(visit, run)}{content} };
    let lead = live_inline("stuck-lead", &[Topic::Records], lead(visit, board));
    let checks = (!board.rows.is_empty()).then(|| run::check_shown(visit, actor, &queue));
    Ok(Sheet::new(visit.texts().stuck.title, body).lead(lead).actions(checks))
}

fn lead(visit: &Visit, board: &Board) -> String {
    let t = &visit.texts().stuck;
    let count = board.rows.len() as u64;
    let oldest = format::age(visit.locale(), board.oldest_seconds().unwrap_or(0));
    let Some(first) = board.rows.first() else { return t.lead_none.to_owned() };
    let seconds = first.stuck_after_seconds;
    if board.rows.iter().all(|row| row.stuck_after_seconds == seconds) {
        t.lead_same(count, limit(visit, seconds), oldest)
    } else {
        t.lead_mixed(count, oldest)
    }
}

/// What is missing from the numbers below, or was not understood.
fn warnings(visit: &Visit, queue: &Queue) -> impl IntoView + use<> {
    let t = &visit.texts().stuck;
    let down = queue.board.down.iter().map(|(source, cause)| source_down(t.source_down(cause, source)));
    let notes = queue
        .bad_lane
        .iter()
        .map(|lane| t.bad_lane(lane))
        .chain(queue.board.more.then(|| t.more.to_owned()))
        .map(|text| view! { <p class="note">{Icon::Warning.view()}<span>{text}</span></p> }.into_any());
    down.chain(notes).collect_view()
}

/// Nothing is stuck, which is good, unless nobody could be asked.
fn nothing(visit: &Visit, board: &Board) -> AnyView {
    let t = &visit.texts().stuck;
    if board.down.is_empty() {
        return empty::nothing_wrong(t.none_title, t.none_hint);
    }
    let retry = view! { <a class="btn" href=visit.href_with(&[])>{visit.texts().common.retry}</a> };
    empty::notice(t.unreadable_title, t.unreadable_hint, retry)
}

#[cfg(test)]
mod tests;
