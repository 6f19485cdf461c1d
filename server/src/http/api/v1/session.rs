//! Signing in and out with a cookie.

use crate::http::extract::{ApiJson, NoBody};
use crate::http::problem::Problem;
use crate::http::sign_in;
use crate::http::visitor::Visitor;
use crate::http::web::Web;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use domain::Error;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(open, close))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Credentials {
    username: String,
    #[schema(format = Password)]
    password: String,
}

/// Opens a session; the answer carries its cookie.
#[utoipa::path(
    post, path = "/session", tag = "session", security(()), request_body = Credentials,
    responses(
        (status = 204, description = "signed in; the cookie is set"),
        (status = 401, description = "name or password is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "too many attempts; Retry-After says when", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn open(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    ApiJson(given): ApiJson<Credentials>,
) -> Result<StatusCode, Problem> {
    sign_in::sign_in(&web, &visitor, given.username.trim(), &given.password).await.map_err(|error| {
        match error {
            Error::Unauthenticated => {
                let detail = "The name or the password is wrong.";
                Problem::new(StatusCode::UNAUTHORIZED, "wrong_credentials", detail)
            }
            other => other.into(),
        }
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the session; none is no error.
#[utoipa::path(
    delete, path = "/session", tag = "session", security(()),
    responses((status = 204, description = "signed out"))
)]
async fn close(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    sign_in::sign_out(&web, &visitor).await?;
    Ok(StatusCode::NO_CONTENT)
}
