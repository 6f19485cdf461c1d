//! Attached databases.

use super::Answer;
use crate::http::extract::SignedIn;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use domain::source::SourceStatus;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(list))
}

/// What each source says now; one that is down says so.
#[utoipa::path(
    get, path = "/sources", tag = "sources",
    responses((status = 200, body = [SourceStatus]), (status = 401, description = "sign in first"))
)]
async fn list(State(web): State<Web>, SignedIn(actor): SignedIn) -> Answer<Vec<SourceStatus>> {
    Ok(Json(web.app.console.records.source_statuses(&actor).await?))
}
