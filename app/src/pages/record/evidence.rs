//! The evidence card: what the business tables said, field by field, from where, and for how long that counts.

use super::timeline::who;
use crate::components::field::hidden;
use crate::components::icon::Icon;
use crate::components::tag::verdict_tag;
use crate::components::time;
use crate::context::Visit;
use crate::pages::record_row::denied;
use crate::words;
use domain::evidence::{CheckRows, Comparison, Evidence, Finding, Reason};
use domain::redact;
use domain::roles::{Actor, Permission};
use domain::services::records::RecordView;
use leptos::prelude::*;

pub fn card(visit: &Visit, actor: &Actor, view: &RecordView) -> AnyView {
    let t = visit.texts();
    let found = view.evidence.as_ref();
    let verdict = found.map(|evidence| verdict_tag(t, Some(evidence.finding.verdict)));
    let content = match found {
        Some(evidence) => findings(visit, &evidence.finding),
        None => view! { <p class="pad quiet">{t.record.no_evidence}</p> }.into_any(),
    };
    let stale = found.filter(|_| !view.evidence_is_fresh).map(
        |_| view! { <p class="note stale">{Icon::Clock.view()}<span>{t.record.expired_note}</span></p> },
    );
    view! {
        <section class="evidence" aria-labelledby="evidence-title">
            <header>
                <h2 id="evidence-title">{t.record.evidence}</h2>{verdict}
                <span class="acts">{check(visit, actor, view)}</span>
            </header>
            {stale}
            {content}
            {around(visit, view)}
        </section>
    }
    .into_any()
}

/// The button that looks again; it is the primary one while there is nothing to act on.
fn check(visit: &Visit, actor: &Actor, view: &RecordView) -> AnyView {
    let t = &visit.texts().record;
    let label = if view.evidence.is_some() { t.check_again } else { t.check_now };
    let class = if view.evidence_is_fresh { "btn sm" } else { "btn sm primary" };
    if !actor.role.may(Permission::ReverseCheck) {
        return denied(visit, actor, Permission::ReverseCheck, label, "btn sm");
    }
    let carried = [
        ("id".to_owned(), view.detail.row.id.to_string()),
        ("back".to_owned(), visit.address_with(&[("confirm", None)])),
    ];
    view! {
        <form method="post" action=visit.href("/api/fn/reverse_check")>
            {hidden(carried)}
            <button class=class type="submit" data-check-page="">{Icon::Refresh.view()}{label}</button>
        </form>
    }
    .into_any()
}

fn findings(visit: &Visit, finding: &Finding) -> AnyView {
    let t = visit.texts();
    let reasons = finding.reasons.iter().map(|reason| view! { <li>{words::reason(t, reason)}</li> });
    let reasons = view! { <ul class="reasons">{reasons.collect_view()}</ul> };
    // A check without rows has said so as a reason.
    let tables =
        finding.rows.iter().filter(|rows| !rows.rows.is_empty()).map(|rows| match rows.rows.as_slice() {
            [row] => compared(visit, finding, rows, row),
            _ => several(visit, rows),
        });
    view! { {reasons}{tables.collect_view()} }.into_any()
}

/// One business row against the request: every column, the compared ones with what the request says.
fn compared(visit: &Visit, finding: &Finding, rows: &CheckRows, row: &[Option<String>]) -> AnyView {
    let t = &visit.texts().record;
    let lines = rows.columns.iter().zip(row).map(|(column, value)| {
        let comparison = finding.comparisons.iter().find(|c| c.check == rows.check && c.field == *column);
        let request = comparison.map_or_else(|| "–".into_any(), |c| cell(visit, column, &c.request));
        let (class, mark) = judged(visit, finding, &rows.check, column, comparison);
        view! {
            <tr>
                <th scope="row"><code>{column.clone()}</code></th>
                <td>{request}</td>
                <td>{cell(visit, column, value)}</td>
                <td class=class>{mark}</td>
            </tr>
        }
    });
    let lines = lines.collect_view();
    view! {
        <div class="scroll">
            <table class="grid compare">
                <caption class="hidden">{rows.check.clone()}</caption>
                <thead><tr>
                    <th scope="col">{t.field}</th><th scope="col">{t.in_request}</th>
                    <th scope="col" title=rows.check.clone()>{t.in_business}</th><td></td>
                </tr></thead>
                <tbody>{lines}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// How one field stands: class and word.
fn judged(
    visit: &Visit,
    finding: &Finding,
    check: &str,
    column: &str,
    comparison: Option<&Comparison>,
) -> (&'static str, &'static str) {
    let t = &visit.texts().record;
    let outside = finding.reasons.iter().any(|reason| {
        matches!(reason, Reason::OutsideExpected { check: in_check, field, .. } if in_check == check && field == column)
    });
    match comparison {
        _ if outside => ("bad", t.unexpected),
        Some(comparison) if comparison.agrees => ("good", t.same),
        Some(_) => ("bad", t.differs),
        None => ("quiet", ""),
    }
}

/// More rows than one: as they are.
fn several(visit: &Visit, rows: &CheckRows) -> AnyView {
    let t = &visit.texts().record;
    let heads =
        rows.columns.iter().map(|column| view! { <th scope="col"><code>{column.clone()}</code></th> });
    let heads = heads.collect_view();
    let lines = rows.rows.iter().map(|row| {
        let cells = rows.columns.iter().zip(row);
        let cells = cells.map(|(column, value)| view! { <td>{cell(visit, column, value)}</td> });
        view! { <tr>{cells.collect_view()}</tr> }
    });
    let lines = lines.collect_view();
    let cut = rows.truncated.then(|| view! { <p class="no-rows">{t.rows_cut}</p> });
    view! {
        <p class="no-rows">{t.rows_of(&rows.check, rows.rows.len())}</p>
        <div class="scroll"><table class="grid compare"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>
        {cut}
    }
    .into_any()
}

/// A business value; sensitive columns are masked like the bodies are.
fn cell(visit: &Visit, column: &str, value: &Option<String>) -> AnyView {
    match value {
        None => view! { <span class="quiet">{visit.texts().record.null}</span> }.into_any(),
        Some(value) if redact::is_sensitive(column) => {
            view! { <code>{redact::mask(value)}</code> }.into_any()
        }
        Some(value) => view! { <code title=value.clone()>{value.clone()}</code> }.into_any(),
    }
}

/// What stands around the evidence: cache, lease, where and when it was read, until when it counts.
fn around(visit: &Visit, view: &RecordView) -> AnyView {
    let t = &visit.texts().record;
    let line = |term: &'static str, value: AnyView| view! { <dt>{term}</dt><dd>{value}</dd> };
    let evidence = view.evidence.as_ref().map(|evidence| {
        view! {
            {line(t.read_from, view! { <code>{evidence.finding.read_from.clone()}</code> }.into_any())}
            {line(t.checked_by, checked(visit, evidence))}
            {line(
                if view.evidence_is_fresh { t.counts_until } else { t.counted_until },
                time::moment(visit, evidence.expires_at),
            )}
        }
    });
    view! {
        <dl class="kv pad">
            {line(t.cache, t.no_cache.into_any())}
            {line(t.lease, lease(visit, view))}
            {evidence}
        </dl>
    }
    .into_any()
}

fn checked(visit: &Visit, evidence: &Evidence) -> AnyView {
    let by = visit.texts().record.by(who(visit, &evidence.checked_by));
    view! { {time::moment(visit, evidence.checked_at)}" "<small>{by}</small> }.into_any()
}

/// Held or free by the source's clock, which wrote the lease.
fn lease(visit: &Visit, view: &RecordView) -> AnyView {
    let t = &visit.texts().record;
    match view.detail.row.lease_until {
        None => t.no_lease.into_any(),
        Some(until) => {
            let word = if until <= view.detail.read_at { t.lease_free } else { t.lease_held };
            view! { {word}" "{time::moment(visit, until)} }.into_any()
        }
    }
}
