//! Audit: who did what, why, on what evidence, and how it ended. The chain is checked as it is read.

use super::{Sheet, page};
use crate::components::copy::cut;
use crate::components::empty;
use crate::components::filter_bar::{Filter, filter_bar};
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live};
use crate::components::pager::pager;
use crate::components::panel::Panel;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::verdict_tag;
use crate::components::time;
use crate::context::Visit;
use crate::routes;
use crate::words;
use chrono::{DateTime, NaiveDateTime, TimeZone, Utc};
use domain::audit::{AuditFilter, Break, Draft, Entry, Verifier};
use domain::page::{Limit, Page};
use domain::ports::Topic;
use domain::{Error, Result};
use leptos::prelude::*;

const FILTERS: [&str; 5] = ["actor", "action", "record", "from", "to"];
/// Verbs that the filter offers; any other can be typed into the URL.
const VERBS: [&str; 13] = [
    "mark_succeeded.succeeded",
    "mark_timed_out.succeeded",
    "replay.succeeded",
    "replay.in_doubt",
    "late_effect.found",
    "bodies.revealed",
    "alert_rule.created",
    "alert_rule.changed",
    "alert_rule.deleted",
    "alert.acknowledged",
    "alert.silenced",
    "session.signed_in",
    "session.refused",
];

#[component]
pub fn Audit() -> impl IntoView {
    page(&routes::AUDIT, |signed| async move {
        let (visit, actor, console) = (signed.visit, signed.actor, signed.console);
        let t = &visit.texts().audit;
        let entries = match filter(&visit) {
            Ok(filter) => console.audit.list(&actor, &filter, visit.param("cursor"), Limit::default()).await,
            Err(error) => Err(error),
        };
        let verbs = VERBS.map(|verb| (verb.to_owned(), words::audit_action(visit.texts(), verb))).to_vec();
        let filters = [
            Filter::text("actor", t.actor, ""),
            Filter::choice("action", t.action, verbs),
            Filter::moment("from", t.from).rare(),
            Filter::moment("to", t.to).rare(),
        ];
        let head = console.audit.head(&actor).await;
        let body = view! {
            {filter_bar(&visit, &filters, &["record", "source"])}
            {live("audit-chain", &[Topic::Audit], Refresh::Swap, chain(&visit, head))}
            {live("audit-entries", &[Topic::Audit], Refresh::Announce, list(&visit, entries))}
        };
        Ok(Sheet::new(t.title, body).lead(t.lead))
    })
}

/// The filter of the URL; moments are in the reader's zone.
fn filter(visit: &Visit) -> Result<AuditFilter> {
    let text = |name| visit.param(name).map(str::to_owned);
    Ok(AuditFilter {
        actor: text("actor"),
        action: text("action"),
        record: visit.param("record").map(str::parse).transpose()?,
        from: moment(visit, "from")?,
        to: moment(visit, "to")?,
    })
}

fn moment(visit: &Visit, name: &str) -> Result<Option<DateTime<Utc>>> {
    let Some(text) = visit.param(name) else { return Ok(None) };
    let local = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"]
        .into_iter()
        .find_map(|pattern| NaiveDateTime::parse_from_str(text, pattern).ok())
        .and_then(|local| visit.zone().from_local_datetime(&local).earliest());
    match local {
        Some(at) => Ok(Some(at.with_timezone(&Utc))),
        None => Err(Error::invalid(visit.texts().audit.bad_moment(text))),
    }
}

/// How far the chain reaches, and how anybody can check it.
fn chain(visit: &Visit, head: Result<Option<(i64, String)>>) -> AnyView {
    let t = &visit.texts().audit;
    let sentence = match head {
        Ok(Some((seq, hash))) => {
            let short: String = hash.chars().take(12).collect();
            view! { {t.chain(seq)}" "<code title=hash>{short}</code>" "{t.chain_verify}" "<code>"amends audit verify"</code> }.into_any()
        }
        Ok(None) => t.chain_empty.into_any(),
        Err(error) => words::error(visit.locale(), &error).into_any(),
    };
    view! { <p class="note">{Icon::Lock.view()}<span>{sentence}</span></p> }.into_any()
}

fn list(visit: &Visit, entries: Result<Page<Entry>>) -> AnyView {
    let t = &visit.texts().audit;
    let panel = Panel::new(t.entries).hint(t.zone(visit.zone().name()));
    match entries {
        Err(error) => panel.view(empty::failed(visit, &error)),
        Ok(page) if page.items.is_empty() && FILTERS.iter().any(|name| visit.param(name).is_some()) => {
            panel.view(empty::no_match(visit, &FILTERS))
        }
        Ok(page) if page.items.is_empty() => panel.view(empty::notice(t.none, t.none_hint, ())),
        Ok(page) => {
            let broken = first_break(&page.items);
            let warning = broken.map(|broken| {
                view! { <p class="note bad" role="alert">{Icon::Warning.view()}{t.broken(broken)}</p> }
            });
            let rows = page.items.iter().map(|entry| row(visit, entry)).collect();
            let columns = vec![
                Column::text(t.at),
                Column::text(t.actor),
                Column::text(t.action),
                Column::text(t.about),
                Column::text(t.change),
                Column::text(t.evidence),
                Column::text(t.why),
            ];
            let table = table(t.entries, columns, rows);
            let pager = pager(visit, page.items.len(), page.next_cursor.as_deref());
            panel.view(view! { {warning}{table}{pager} })
        }
    }
}

/// Checks the entries of an unfiltered run against each other; a filtered page has gaps by its nature.
fn first_break(newest_first: &[Entry]) -> Option<Break> {
    let mut entries = newest_first.iter().rev();
    let mut verifier = Verifier::behind(entries.next()?);
    entries.find_map(|entry| match verifier.check(entry) {
        Err(Break::Gap { .. }) => {
            verifier = Verifier::behind(entry);
            None
        }
        checked => checked.err(),
    })
}

fn row(visit: &Visit, entry: &Entry) -> Row {
    let texts = visit.texts();
    let draft = &entry.draft;
    let evidence = match draft.verdict {
        Some(verdict) => verdict_tag(texts, Some(verdict)),
        None => "–".into_any(),
    };
    Row::new(vec![
        Cell::new(time::absolute(visit, draft.at)),
        Cell::new(draft.actor.clone()),
        Cell::new(
            view! { <span title=draft.action.clone()>{words::audit_action(texts, &draft.action)}</span> },
        ),
        Cell::new(about(visit, draft)),
        Cell::new(change(draft)).wraps(),
        Cell::new(evidence),
        Cell::new(why(draft)).wraps(),
    ])
    .id(entry.seq.to_string())
}

fn about(visit: &Visit, draft: &Draft) -> AnyView {
    let name = draft.biz_no.as_ref().or(draft.record_key.as_ref());
    let kind = draft.biz_type.clone().unwrap_or_default();
    match (&draft.record, name) {
        (Some(record), Some(name)) => {
            let href = visit.href(&format!("/records/{record}"));
            view! { <a class="link mono" href=href title=name.clone()>{cut(name)}</a>" "<small>{kind}</small> }.into_any()
        }
        (_, Some(name)) => cut(name).into_any(),
        _ if kind.is_empty() => "–".into_any(),
        _ => kind.into_any(),
    }
}

/// Before → after in short; long values (rules) show what differs when opened.
fn change(draft: &Draft) -> AnyView {
    /// Longer than this is folded away.
    const SHORT: usize = 40;
    let (before, after) = (draft.before.clone(), draft.after.clone());
    let long = [&before, &after].into_iter().flatten().any(|text| text.chars().count() > SHORT);
    match (before, after) {
        (None, None) => "–".into_any(),
        (before, after) if long => view! {
            <details class="values">
                <summary>"{ … }"</summary>
                {before.map(|text| view! { <code class="before">{text}</code> })}
                {after.map(|text| view! { <code class="after">{text}</code> })}
            </details>
        }
        .into_any(),
        (before, after) => {
            let text = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
            view! { <code>{text(before)}</code>" → "<code>{text(after)}</code> }.into_any()
        }
    }
}

fn why(draft: &Draft) -> AnyView {
    let reason = draft.reason.clone().map(|reason| view! { <span>{reason}</span> });
    let result = draft.result.clone().map(|result| view! { <small>{result}</small> });
    match (reason, result) {
        (None, None) => "–".into_any(),
        (reason, result) => view! { {reason}" "{result} }.into_any(),
    }
}
