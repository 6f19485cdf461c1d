//! Checking many at once: the button, and the progress of the run.

use super::queue::Queue;
use crate::components::field::hidden;
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live};
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::pages::record_row::denied;
use chrono::TimeDelta;
use domain::ports::Topic;
use domain::roles::{Actor, Permission};
use domain::services::stuck::{BoardScope, CheckRun};
use leptos::prelude::*;

/// How long the page goes on saying what the last run came to.
const REMEMBERED: TimeDelta = TimeDelta::minutes(2);

/// The page's own button: checks exactly the rows that the filters show.
pub fn check_shown(visit: &Visit, actor: &Actor, queue: &Queue) -> AnyView {
    let t = &visit.texts().stuck;
    let count = queue.shown().len() as u64;
    let whole = queue.scope == BoardScope::default();
    let label = if whole { t.check_all(count) } else { t.check_these(count) };
    check_form(visit, actor, &queue.scope, label, "btn")
}

/// A form that checks a scope; for roles that may not, the same button says why.
pub fn check_form(
    visit: &Visit,
    actor: &Actor,
    scope: &BoardScope,
    label: String,
    class: &'static str,
) -> AnyView {
    if !actor.role.may(Permission::ReverseCheck) {
        return denied(visit, actor, Permission::ReverseCheck, label, class);
    }
    let carried = [
        ("source", scope.source.clone()),
        ("biz_type", scope.biz_type.clone()),
        ("lane", scope.lane.map(|lane| lane.as_str().to_owned())),
        ("back", Some(visit.address())),
    ];
    let carried = carried.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    view! {
        <form method="post" action=visit.href("/api/fn/check_all")>
            {hidden(carried.collect::<Vec<_>>())}
            <button class=class type="submit">{Icon::Refresh.view()}{label}</button>
        </form>
    }
    .into_any()
}

/// The run in progress, or what the last one came to while that is news.
pub fn progress(visit: &Visit, run: Option<CheckRun>) -> AnyView {
    let news = run.filter(|run| run.finished_at.is_none_or(|at| visit.now() - at < REMEMBERED));
    live("check-run", &[Topic::Records], Refresh::Swap, news.map(|run| line(visit, &run)))
}

fn line(visit: &Visit, run: &CheckRun) -> AnyView {
    let t = &visit.texts().stuck;
    let by = t.started_by(&run.by);
    let seen = run.done + run.failed;
    match run.finished_at {
        None => {
            let text = t.checking(format::number(seen), format::number(run.total));
            view! {
                <div class="check-run" role="status" data-live-unfinished="">
                    <progress max=run.total value=seen aria-label=text.clone()></progress>
                    <p>{text}" "<small>{by}</small></p>
                    <a class="btn sm reload" href=visit.href_with(&[])>{t.reload}</a>
                </div>
            }
            .into_any()
        }
        Some(at) => {
            let failed = (run.failed > 0).then(|| format!(" · {}", t.checks_failed(run.failed)));
            view! {
                <div class="check-run done" role="status">
                    {Icon::Check.view()}
                    <p>{t.checks_done(run.done)}{failed}" "<small>{time::moment(visit, at)}" · "{by}</small></p>
                </div>
            }
            .into_any()
        }
    }
}
