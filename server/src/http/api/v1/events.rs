//! Counters from producers: guards, gateways, anything that sees requests.

use crate::http::extract::{ApiJson, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use domain::rates::Report;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(report))
}

#[derive(Serialize, ToSchema)]
struct Taken {
    /// False when this producer's sequence was already there; nothing was added.
    applied: bool,
}

/// Adds a producer's counts; the same sequence again changes nothing. Late counts are welcome.
#[utoipa::path(
    post, path = "/events", tag = "rates", request_body = Report,
    responses(
        (status = 202, body = Taken),
        (status = "4XX", description = "malformed, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn report(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiJson(report): ApiJson<Report>,
) -> Result<(StatusCode, Json<Taken>), Problem> {
    let applied = web.app.console.rates.report(&actor, &report).await?;
    Ok((StatusCode::ACCEPTED, Json(Taken { applied })))
}
