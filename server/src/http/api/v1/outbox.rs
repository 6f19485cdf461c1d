//! Messages that services staged and that have not arrived.

use super::{Answer, limit};
use crate::http::extract::{ApiQuery, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use domain::outbox::Undelivered;
use domain::services::outbox::UndeliveredPage;
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
    source: Option<String>,
    /// 1 to 200, 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct OutboxPage {
    items: Vec<Undelivered>,
    next_cursor: Option<String>,
    /// Sources that could not be asked.
    down: Vec<DownOutbox>,
}

#[derive(Serialize, ToSchema)]
struct DownOutbox {
    source: String,
    detail: String,
}

impl From<UndeliveredPage> for OutboxPage {
    fn from(page: UndeliveredPage) -> Self {
        let down = page.down.into_iter().map(|(source, detail)| DownOutbox { source, detail }).collect();
        Self { items: page.items, next_cursor: page.next_cursor, down }
    }
}

/// Undelivered messages, source by source, oldest first: waiting, failing, or given up.
#[utoipa::path(
    get, path = "/outbox", tag = "sources", params(ListQuery),
    responses(
        (status = 200, body = OutboxPage),
        (status = "4XX", description = "a query that cannot be read, or nobody signed in", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "the one source asked for is down", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Answer<OutboxPage> {
    let (source, cursor) = (query.source.as_deref(), query.cursor.as_deref());
    let page = web.app.console.records.undelivered(&actor, source, cursor, limit(query.limit)?).await?;
    Ok(Json(page.into()))
}
