//! Checking everything that is stuck, as one run with progress.

use super::Answer;
use crate::http::extract::{ApiJson, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::Error;
use domain::services::stuck::{BoardScope, CheckRun};
use domain::stuck::Lane;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(latest))
}

/// Which stuck records to check; absent fields hold everything.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Scope {
    source: Option<String>,
    biz_type: Option<String>,
    #[schema(value_type = Option<String>, example = "not_checked")]
    lane: Option<Lane>,
}

/// A run and how far it has got.
#[derive(Serialize, ToSchema)]
struct Run {
    id: String,
    by: String,
    total: u64,
    done: u64,
    failed: u64,
    started_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

impl From<CheckRun> for Run {
    fn from(run: CheckRun) -> Self {
        let CheckRun { id, by, total, done, failed, started_at, finished_at } = run;
        Self { id, by, total, done, failed, started_at, finished_at }
    }
}

/// Starts a run; while one is running, answers with that one.
#[utoipa::path(
    post, path = "/checks", tag = "checks", request_body = Scope,
    responses(
        (status = 202, body = Run),
        (status = "4XX", description = "malformed, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn start(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiJson(scope): ApiJson<Scope>,
) -> Result<(StatusCode, Json<Run>), Problem> {
    let scope = BoardScope { source: scope.source, biz_type: scope.biz_type, lane: scope.lane };
    let run = web.app.console.stuck.check_all(&actor, &scope).await?;
    Ok((StatusCode::ACCEPTED, Json(run.into())))
}

/// The run in progress, or the last one.
#[utoipa::path(
    get, path = "/checks/latest", tag = "checks",
    responses(
        (status = 200, body = Run),
        (status = 404, description = "none since the console started", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn latest(State(web): State<Web>, SignedIn(actor): SignedIn) -> Answer<Run> {
    let run = web.app.console.stuck.check_run(&actor)?;
    Ok(Json(run.ok_or_else(|| Error::not_found("A check run"))?.into()))
}
