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
use crate::format;
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
        let filter = filter(&visit);
        let export = filter.as_ref().ok().map(|filter| export(&visit, filter));
        let entries = match filter {
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
        Ok(Sheet::new(t.title, body).lead(t.lead).actions(export))
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

/// The same entries as a file, with times in the reader's zone.
fn export(visit: &Visit, filter: &AuditFilter) -> AnyView {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let record = filter.record.as_ref().map(ToString::to_string);
    let moment = |at: Option<DateTime<Utc>>| at.map(format::machine);
    let given = [
        ("actor", filter.actor.clone()),
        ("action", filter.action.clone()),
        ("record", record),
        ("from", moment(filter.from)),
        ("to", moment(filter.to)),
        ("zone", Some(visit.zone().name().to_owned())),
    ];
    query.extend_pairs(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let href = visit.href(&format!("/audit.csv?{}", query.finish()));
    view! { <a class="btn" href=href download="">{Icon::Download.view()}{visit.texts().audit.export}</a> }
        .into_any()
}

/// How far the chain reaches, and how anybody can check it.
fn chain(visit: &Visit, head: Result<Option<(i64, String)>>) -> AnyView {
    let t = &visit.texts().audit;
    let sentence = match head {
        Ok(Some((seq, hash))) => {
            let short: String = hash.chars().take(12).collect();
            view! { {t.chain(seq)}<code title=hash>{short}</code>{t.chain_verify}<code>"amends audit verify"</code> }.into_any()
        }
        Ok(None) => t.chain_empty.into_any(),
        Err(error) => words::error(visit.locale(), &error).into_any(),
    };
    view! { <p class="note">{Icon::Lock.view()}<span>{sentence}</span></p> }.into_any()
}

fn list(visit: &Visit, entries: Result<Page<Entry>>) -> AnyView {
    let t = &visit.texts().audit;
    let panel = Panel::new(t.entries).hint(time::zone_here(t.zone(visit.zone().name())));
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
    Row::new(vec![
        Cell::new(time::absolute(visit, draft.at)),
        Cell::new(draft.actor.clone()),
        Cell::new(
            view! { <span title=draft.action.clone()>{words::audit_action(texts, &draft.action)}</span> },
        ),
        Cell::or_none(about(visit, draft)),
        Cell::or_none(change(draft)).wraps(),
        Cell::or_none(draft.verdict.map(|verdict| verdict_tag(texts, Some(verdict)))),
        Cell::or_none(why(visit, draft)).wraps(),
    ])
    .id(entry.seq.to_string())
}

fn about(visit: &Visit, draft: &Draft) -> Option<AnyView> {
    let name = draft.biz_no.as_ref().or(draft.record_key.as_ref());
    let kind = draft.biz_type.clone().unwrap_or_default();
    match (&draft.record, name) {
        (Some(record), Some(name)) => {
            let href = visit.href(&format!("/records/{record}"));
            let link = view! { <a class="link mono" href=href title=name.clone()>{cut(name)}</a>" "<small>{kind}</small> };
            Some(link.into_any())
        }
        (_, Some(name)) => Some(cut(name).into_any()),
        _ => Some(kind).filter(|kind| !kind.is_empty()).map(IntoAny::into_any),
    }
}

/// Before → after in short; long values (rules) show what differs when opened.
fn change(draft: &Draft) -> Option<AnyView> {
    /// Longer than this is folded away.
    const SHORT: usize = 40;
    let (before, after) = (draft.before.clone(), draft.after.clone());
    let long = [&before, &after].into_iter().flatten().any(|text| text.chars().count() > SHORT);
    let view = match (before, after) {
        (None, None) => return None,
        (before, after) if long => view! {
            <details class="values">
                <summary>"{ … }"</summary>
                {before.map(|text| view! { <code class="before">{text}</code> })}
                {after.map(|text| view! { <code class="after">{text}</code> })}
            </details>
        }
        .into_any(),
        (None, Some(after)) => view! { <code>{after}</code> }.into_any(),
        (Some(before), after) => {
            let after = after.unwrap_or_else(|| "–".to_owned());
            view! { <code>{before}</code>" → "<code>{after}</code> }.into_any()
        }
    };
    Some(view)
}

fn why(visit: &Visit, draft: &Draft) -> Option<AnyView> {
    let reason = draft.reason.clone().map(|reason| view! { <span>{reason}</span> });
    let result = words::audit_result(visit.texts(), draft).map(|result| view! { <small>{result}</small> });
    (reason.is_some() || result.is_some()).then(|| view! { {reason}" "{result} }.into_any())
}
