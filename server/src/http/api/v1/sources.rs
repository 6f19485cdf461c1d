//! Attached databases.

use super::Answer;
use crate::http::extract::SignedIn;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use domain::cache::CacheStatus;
use domain::source::SourceStatus;
use futures::future::join;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A source and the cache beside it.
#[derive(Serialize, ToSchema)]
struct SourceDocument {
    #[serde(flatten)]
    status: SourceStatus,
    /// Null when no cache is attached, or when what is known about it could not be read.
    cache: Option<CacheStatus>,
}

/// What each source says now; one that is down says so.
#[utoipa::path(
    get, path = "/sources", tag = "sources",
    responses((status = 200, body = [SourceDocument]), (status = 401, description = "sign in first"))
)]
async fn list(State(web): State<Web>, SignedIn(actor): SignedIn) -> Answer<Vec<SourceDocument>> {
    let console = &web.app.console;
    let (statuses, caches) =
        join(console.records.source_statuses(&actor), console.caches.statuses(&actor)).await;
    // The store may be down while every source answers.
    let mut caches = caches.unwrap_or_default();
    let with_cache = statuses?.into_iter().map(|status| {
        let cache = caches.iter().position(|cache| cache.source == status.name);
        SourceDocument { cache: cache.map(|at| caches.swap_remove(at)), status }
    });
    Ok(Json(with_cache.collect()))
}
