//! Lists as files. Written page by page while they are read, so that memory stays flat however long the list is.

use super::api::v1::record_id;
use super::csv::{BOM, push_line};
use super::extract::{ApiQuery, Instant, SignedIn};
use super::problem::Problem;
use super::web::Web;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::SecondsFormat;
use chrono_tz::Tz;
use domain::audit::{AuditFilter, Entry};
use domain::page::{Limit, Page};
use domain::roles::Actor;
use futures::stream;
use serde::Deserialize;

/// Entries read at a time.
const CHUNK: i64 = Limit::MAX as i64;
const AUDIT_COLUMNS: [&str; 16] = [
    "seq",
    "at",
    "actor",
    "action",
    "record",
    "record_key",
    "biz_type",
    "biz_no",
    "reason",
    "verdict",
    "evidence_id",
    "compensation_id",
    "before",
    "after",
    "result",
    "hash",
];

pub fn router() -> Router<Web> {
    Router::new().route("/audit.csv", get(audit))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    actor: Option<String>,
    action: Option<String>,
    record: Option<String>,
    from: Option<Instant>,
    to: Option<Instant>,
    /// The zone that times are written in; the console's if absent.
    zone: Option<String>,
}

/// The audit trail under the page's filters, newest first. Everybody who may read the page may have the file.
async fn audit(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiQuery(query): ApiQuery<AuditQuery>,
) -> Result<Response, Problem> {
    let zone = match query.zone {
        Some(name) => name.parse().map_err(|_| {
            Problem::invalid(format!("{name:?} is no time zone; write one such as Asia/Shanghai."))
        })?,
        None => web.app.settings.display_zone,
    };
    let filter = AuditFilter {
        actor: query.actor,
        action: query.action,
        record: query.record.as_deref().map(record_id).transpose()?,
        from: query.from.map(|at| at.0),
        to: query.to.map(|at| at.0),
    };
    let reading = Reading { web, actor, filter, zone };
    // The first page is read before anything is answered, so that a refusal is a refusal and not half a file.
    let first = reading.page(None).await?;
    let mut text = BOM.to_owned();
    push_line(&mut text, AUDIT_COLUMNS);
    let lines = stream::try_unfold((reading, text, Some(first)), async |(reading, mut text, page)| {
        let Some(page) = page else { return Ok(None) };
        page.items.iter().for_each(|entry| push_entry(&mut text, entry, reading.zone));
        let next = match &page.next_cursor {
            Some(cursor) => Some(reading.page(Some(cursor)).await?),
            None => None,
        };
        Ok::<_, domain::Error>(Some((text, (reading, String::new(), next))))
    });
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"amends-audit.csv\""),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

struct Reading {
    web: Web,
    actor: Actor,
    filter: AuditFilter,
    zone: Tz,
}

impl Reading {
    async fn page(&self, cursor: Option<&str>) -> domain::Result<Page<Entry>> {
        self.web.app.console.audit.list(&self.actor, &self.filter, cursor, Limit::new(CHUNK)?).await
    }
}

fn push_entry(csv: &mut String, entry: &Entry, zone: Tz) {
    let draft = &entry.draft;
    let seq = entry.seq.to_string();
    let at = draft.at.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Millis, false);
    let record = draft.record.as_ref().map(ToString::to_string);
    let verdict = draft.verdict.map(|verdict| verdict.to_string());
    let text = |cell: &'_ Option<String>| cell.clone().unwrap_or_default();
    let cells = [
        seq,
        at,
        draft.actor.clone(),
        draft.action.clone(),
        text(&record),
        text(&draft.record_key),
        text(&draft.biz_type),
        text(&draft.biz_no),
        text(&draft.reason),
        text(&verdict),
        text(&draft.evidence_id),
        text(&draft.compensation_id),
        text(&draft.before),
        text(&draft.after),
        text(&draft.result),
        entry.hash.clone(),
    ];
    push_line(csv, cells.iter().map(String::as_str));
}
