//! The audit trail.

use super::{Answer, limit, record_id};
use crate::http::extract::{ApiQuery, Instant, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::audit::{AuditFilter, Draft, Entry};
use domain::evidence::Verdict;
use domain::page::Page;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(list))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    actor: Option<String>,
    /// A dotted verb such as `mark_succeeded.succeeded`.
    action: Option<String>,
    /// A record's id.
    record: Option<String>,
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Instant>,
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Instant>,
    /// 1 to 200, 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
    cursor: Option<String>,
}

/// One entry. `hash` covers every field and the hash before it.
#[derive(Serialize, ToSchema)]
struct EntryDocument {
    seq: i64,
    at: DateTime<Utc>,
    actor: String,
    action: String,
    record: Option<String>,
    record_key: Option<String>,
    biz_type: Option<String>,
    biz_no: Option<String>,
    reason: Option<String>,
    verdict: Option<Verdict>,
    evidence_id: Option<String>,
    compensation_id: Option<String>,
    before: Option<String>,
    after: Option<String>,
    result: Option<String>,
    prev_hash: String,
    hash: String,
}

impl From<Entry> for EntryDocument {
    fn from(entry: Entry) -> Self {
        let Entry { seq, draft, prev_hash, hash } = entry;
        let Draft { at, actor, action, record, record_key, biz_type, biz_no, reason, verdict, .. } = draft;
        let Draft { evidence_id, compensation_id, before, after, result, .. } = draft;
        let record = record.map(|id| id.to_string());
        Self {
            seq,
            at,
            actor,
            action,
            record,
            record_key,
            biz_type,
            biz_no,
            reason,
            verdict,
            evidence_id,
            compensation_id,
            before,
            after,
            result,
            prev_hash,
            hash,
        }
    }
}

/// Entries, newest first.
#[utoipa::path(
    get, path = "/audit", tag = "audit", params(ListQuery),
    responses(
        (status = 200, body = Page<EntryDocument>),
        (status = "4XX", description = "a filter that cannot be read, or nobody signed in", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Answer<Page<EntryDocument>> {
    let filter = AuditFilter {
        actor: query.actor,
        action: query.action,
        record: query.record.as_deref().map(record_id).transpose()?,
        from: query.from.map(|at| at.0),
        to: query.to.map(|at| at.0),
    };
    let page =
        web.app.console.audit.list(&actor, &filter, query.cursor.as_deref(), limit(query.limit)?).await?;
    Ok(Json(page.map(EntryDocument::from)))
}
