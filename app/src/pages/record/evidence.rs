//! The evidence card: what the business tables said, field by field, from where, and for how long that counts.

use super::timeline::who;
use crate::components::field::hidden;
use crate::components::icon::Icon;
use crate::components::tag::verdict_tag;
use crate::components::time;
use crate::context::Visit;
use crate::pages::record_row::denied;
use crate::words;
use domain::evidence::{CheckRows, Evidence, Finding, Reason};
use domain::record::State;
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

/// The button that looks again; it is the primary one while a record waits and there is nothing to act on.
fn check(visit: &Visit, actor: &Actor, view: &RecordView) -> AnyView {
    let t = &visit.texts().record;
    let label = if view.evidence.is_some() { t.check_again } else { t.check_now };
    let waits = matches!(view.detail.row.state, State::Processing | State::Failed | State::Timeout);
    let class = if view.evidence_is_fresh || !waits { "btn sm" } else { "btn sm primary" };
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
            [row] => view! { {place_of(visit, rows)}{compared(visit, finding, rows, row)} }.into_any(),
            _ => several(visit, rows),
        });
    view! { {reasons}{tables.collect_view()} }.into_any()
}

/// Which shard or endpoint the only row is from, where there are several to look in.
fn place_of(visit: &Visit, rows: &CheckRows) -> Option<AnyView> {
    let seen = visit.texts().record.row_seen_in(&rows.check, rows.places.first()?);
    Some(view! { <p class="no-rows">{seen}</p> }.into_any())
}

/// One business row against the request. What nobody compares is folded while something else is compared.
fn compared(visit: &Visit, finding: &Finding, rows: &CheckRows, row: &[Option<String>]) -> AnyView {
    let fields = rows.columns.iter().zip(row).map(|(column, value)| {
        let standing = standing(visit, finding, &rows.check, column);
        Field { column, value, standing }
    });
    let (judged, others): (Vec<_>, Vec<_>) = fields.partition(|field| field.standing.is_some());
    if judged.is_empty() {
        return fields_table(visit, &rows.check, &others);
    }
    let more = (!others.is_empty()).then(|| {
        let summary = visit.texts().record.more_fields(others.len() as u64);
        let table = fields_table(visit, &rows.check, &others);
        view! { <details class="more-fields"><summary>{summary}</summary>{table}</details> }
    });
    view! { {fields_table(visit, &rows.check, &judged)}{more} }.into_any()
}

/// One column of the business row, and how it stands against the request if anything says so.
struct Field<'a> {
    column: &'a str,
    value: &'a Option<String>,
    standing: Option<Standing<'a>>,
}

struct Standing<'a> {
    /// The request's value, where it is compared.
    request: Option<&'a Option<String>>,
    class: &'static str,
    word: &'static str,
}

fn fields_table(visit: &Visit, check: &str, fields: &[Field<'_>]) -> AnyView {
    let t = &visit.texts().record;
    let lines = fields.iter().map(|Field { column, value, standing }| {
        let request = standing.as_ref().and_then(|standing| standing.request);
        let request = request.map_or_else(|| "–".into_any(), |request| cell(visit, column, request));
        let (class, word) =
            standing.as_ref().map_or(("quiet", ""), |standing| (standing.class, standing.word));
        view! {
            <tr>
                <th scope="row"><code>{column.to_string()}</code></th>
                <td>{request}</td>
                <td>{cell(visit, column, value)}</td>
                <td class=class>{word}</td>
            </tr>
        }
    });
    let lines = lines.collect_view();
    view! {
        <div class="scroll">
            <table class="grid compare pairs">
                <caption class="hidden">{check.to_owned()}</caption>
                <thead><tr>
                    <th scope="col">{t.field}</th><th scope="col">{t.in_request}</th>
                    <th scope="col" title=check.to_owned()>{t.in_business}</th><td></td>
                </tr></thead>
                <tbody>{lines}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// How one field stands against the request or against what is expected of it.
fn standing<'a>(visit: &Visit, finding: &'a Finding, check: &str, column: &str) -> Option<Standing<'a>> {
    let t = &visit.texts().record;
    let outside = finding.reasons.iter().any(|reason| {
        matches!(reason, Reason::OutsideExpected { check: in_check, field, .. } if in_check == check && field == column)
    });
    let comparison = finding.comparisons.iter().find(|c| c.check == check && c.field == column);
    let (class, word) = match comparison {
        _ if outside => ("bad", t.unexpected),
        Some(comparison) if comparison.agrees => ("good", t.same),
        Some(_) => ("bad", t.differs),
        None => return None,
    };
    Some(Standing { request: comparison.map(|comparison| &comparison.request), class, word })
}

/// More rows than one: as they are.
fn several(visit: &Visit, rows: &CheckRows) -> AnyView {
    let t = &visit.texts().record;
    let heads =
        rows.columns.iter().map(|column| view! { <th scope="col"><code>{column.clone()}</code></th> });
    let heads = heads.collect_view();
    let lines = rows.rows.iter().enumerate().map(|(at, row)| {
        let cells = rows.columns.iter().zip(row);
        let cells = cells.map(|(column, value)| view! { <td>{cell(visit, column, value)}</td> });
        let place = rows.places.get(at).map(|place| view! { <td><code>{place.clone()}</code></td> });
        view! { <tr>{cells.collect_view()}{place}</tr> }
    });
    let places = (!rows.places.is_empty()).then(|| view! { <th scope="col">{t.seen_in}</th> });
    let lines = lines.collect_view();
    let cut = rows.truncated.then(|| view! { <p class="no-rows">{t.rows_cut}</p> });
    view! {
        <p class="no-rows">{t.rows_of(&rows.check, rows.rows.len())}</p>
        <div class="scroll"><table class="grid compare"><thead><tr>{heads}{places}</tr></thead><tbody>{lines}</tbody></table></div>
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
            {line(t.cache, super::cache::line(visit, view))}
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
            view! { {word}{time::moment(visit, until)} }.into_any()
        }
    }
}
