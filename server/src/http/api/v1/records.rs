//! Records: the list, one in full, and the reverse check.

use super::documents::{EvidenceDocument, RecordDocument};
use super::{Answer, limit, record_id};
use crate::http::extract::{ApiPath, ApiQuery, Instant, NoBody, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use domain::record::{RecordFilter, RecordRow, State as RecordState};
use domain::services::records::RecordPage;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(read)).routes(routes!(reverse_check))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    source: Option<String>,
    state: Option<RecordState>,
    stuck: Option<bool>,
    biz_type: Option<String>,
    biz_no: Option<String>,
    key: Option<String>,
    #[param(value_type = Option<String>, format = DateTime)]
    created_from: Option<Instant>,
    #[param(value_type = Option<String>, format = DateTime)]
    created_to: Option<Instant>,
    /// 1 to 200, 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
    cursor: Option<String>,
}

impl ListQuery {
    fn filter(&self) -> RecordFilter {
        RecordFilter {
            source: self.source.clone(),
            state: self.state,
            stuck: self.stuck,
            biz_type: self.biz_type.clone(),
            biz_no: self.biz_no.clone(),
            key: self.key.clone(),
            search: None,
            created_from: self.created_from.map(|at| at.0),
            created_to: self.created_to.map(|at| at.0),
        }
    }
}

/// One page of records, and the sources whose records are missing from it.
#[derive(Serialize, ToSchema)]
struct ListPage {
    items: Vec<RecordRow>,
    next_cursor: Option<String>,
    down: Vec<DownSource>,
}

/// A source that could not be asked.
#[derive(Serialize, ToSchema)]
struct DownSource {
    source: String,
    detail: String,
}

impl From<RecordPage> for ListPage {
    fn from(page: RecordPage) -> Self {
        let down = page.down.into_iter().map(|(source, detail)| DownSource { source, detail }).collect();
        Self { items: page.items, next_cursor: page.next_cursor, down }
    }
}

/// Lists records: stuck ones oldest first, others newest first.
#[utoipa::path(
    get, path = "/records", tag = "records", params(ListQuery),
    responses(
        (status = 200, body = ListPage),
        (status = "4XX", description = "a filter that cannot be read, or nobody signed in", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "the one source asked for is down", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Answer<ListPage> {
    let records = &web.app.console.records;
    let page = records.list(&actor, &query.filter(), query.cursor.as_deref(), limit(query.limit)?).await?;
    Ok(Json(page.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReadQuery {
    /// Shows the bodies and the business rows unmasked. Needs approver or higher, and is audited.
    #[serde(default)]
    reveal: bool,
}

/// One record with its bodies, its evidence, what may be done about it and what happened to it.
#[utoipa::path(
    get, path = "/records/{id}", tag = "records", params(("id" = String, Path), ReadQuery),
    responses(
        (status = 200, body = RecordDocument),
        (status = "4XX", description = "no such record, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn read(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiPath(id): ApiPath,
    ApiQuery(query): ApiQuery<ReadQuery>,
) -> Answer<RecordDocument> {
    let (records, id) = (&web.app.console.records, record_id(&id)?);
    if query.reveal {
        let revealed = records.reveal(&actor, &id).await?;
        let view = records.view(&actor, &id).await?;
        return Ok(Json(RecordDocument::revealed(view, &revealed)));
    }
    Ok(Json(RecordDocument::masked(records.view(&actor, &id).await?)))
}

/// Reads the business tables for one record and keeps what was seen as evidence.
#[utoipa::path(
    post, path = "/records/{id}/reverse-check", tag = "records", params(("id" = String, Path)),
    responses(
        (status = 200, body = EvidenceDocument),
        (status = "4XX", description = "no such record, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn reverse_check(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiPath(id): ApiPath,
    _: NoBody,
) -> Answer<EvidenceDocument> {
    let checked = web.app.console.records.reverse_check(&actor, &record_id(&id)?).await?;
    Ok(Json(EvidenceDocument::masked(checked.evidence)))
}
