//! The demo shop's switches; these addresses exist only in the demo.

use super::Answer;
use crate::http::extract::{ApiJson, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use domain::Error;
use domain::console::DemoControl;
use domain::roles::Permission;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(read, switch))
}

/// Whether payment callbacks are redelivered far more often than normal.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Storm {
    on: bool,
}

/// Whether the retry storm is on.
#[utoipa::path(get, path = "/demo/storm", tag = "demo", responses((status = 200, body = Storm)))]
async fn read(State(web): State<Web>, SignedIn(actor): SignedIn) -> Answer<Storm> {
    actor.require(Permission::Read)?;
    Ok(Json(Storm { on: demo(&web)?.storm_is_on() }))
}

/// Starts or stops the retry storm.
#[utoipa::path(
    post, path = "/demo/storm", tag = "demo", request_body = Storm,
    responses(
        (status = 200, body = Storm),
        (status = "4XX", description = "malformed, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn switch(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiJson(storm): ApiJson<Storm>,
) -> Answer<Storm> {
    actor.require(Permission::DriveDemo)?;
    let demo = demo(&web)?;
    demo.set_storm(storm.on).await;
    Ok(Json(Storm { on: demo.storm_is_on() }))
}

fn demo(web: &Web) -> Result<&Arc<dyn DemoControl>, Problem> {
    web.app.console.demo.as_ref().ok_or_else(|| Error::not_found("The demo").into())
}
