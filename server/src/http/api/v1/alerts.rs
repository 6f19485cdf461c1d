//! Alert episodes.

use super::{Answer, limit};
use crate::http::extract::{ApiJson, ApiPath, ApiQuery, NoBody, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use domain::alert::Alert;
use domain::page::Page;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(acknowledge)).routes(routes!(silence))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only pending and firing ones, firing and critical first, all on one page.
    #[serde(default)]
    open: bool,
    /// 1 to 200, 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
    cursor: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Silence {
    /// 1 to 168.
    hours: u32,
}

/// Episodes, newest first.
#[utoipa::path(
    get, path = "/alerts", tag = "alerts", params(ListQuery),
    responses(
        (status = 200, body = Page<Alert>),
        (status = "4XX", description = "a filter that cannot be read, or nobody signed in", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Answer<Page<Alert>> {
    let alerts = &web.app.console.alerts;
    if query.open {
        return Ok(Json(Page { items: alerts.open_alerts(&actor).await?, next_cursor: None }));
    }
    Ok(Json(alerts.alerts(&actor, query.cursor.as_deref(), limit(query.limit)?).await?))
}

/// Says that somebody is on it.
#[utoipa::path(
    post, path = "/alerts/{id}/acknowledge", tag = "alerts", params(("id" = String, Path)),
    responses(
        (status = 200, body = Alert),
        (status = "4XX", description = "unknown, already resolved, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn acknowledge(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiPath(id): ApiPath,
    _: NoBody,
) -> Answer<Alert> {
    Ok(Json(web.app.console.alerts.acknowledge(&actor, &id).await?))
}

/// Keeps an open alert quiet for some hours.
#[utoipa::path(
    post, path = "/alerts/{id}/silence", tag = "alerts", params(("id" = String, Path)), request_body = Silence,
    responses(
        (status = 200, body = Alert),
        (status = "4XX", description = "unknown, already resolved, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn silence(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiPath(id): ApiPath,
    ApiJson(silence): ApiJson<Silence>,
) -> Answer<Alert> {
    Ok(Json(web.app.console.alerts.silence(&actor, &id, silence.hours).await?))
}
