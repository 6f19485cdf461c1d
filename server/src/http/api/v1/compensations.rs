//! Settling one record.

use super::{Answer, record_id};
use crate::http::extract::{ApiJson, ApiPath, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use domain::Error;
use domain::actions::Action;
use domain::compensation::{Command, Settled};
use domain::record::RecordId;
use domain::roles::{Actor, Permission};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const COMMAND_KEY: &str = "Idempotency-Key";

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(settle))
}

/// What to do to the record, and on what grounds.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    action: Action,
    /// Why this is right, in a few words.
    reason: String,
    /// The record's version as you read it.
    if_version: String,
    /// The reverse check that this rests on.
    evidence_id: Option<String>,
    /// For mark_succeeded: what later duplicates are answered with, instead of the configured rendering.
    response_body: Option<String>,
}

/// Carries out one action on one record, once per Idempotency-Key: the same key and body give the same answer for ever.
#[utoipa::path(
    post, path = "/records/{id}/compensations", tag = "records", request_body = Order,
    params(
        ("id" = String, Path),
        ("Idempotency-Key" = String, Header, description = "minted per command: 1 to 255 visible ASCII characters")
    ),
    responses(
        (status = 200, description = "how it ended", body = Settled),
        (status = 400, description = "malformed, or without Idempotency-Key", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "not for this role", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "no such record", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "the record moved (`current` is its new row), or somebody is settling it", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "not the record's version (`current` is its row)", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "the evidence, the state or the mapping forbids it, or the key was used for another command", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn settle(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiPath(id): ApiPath,
    headers: HeaderMap,
    ApiJson(order): ApiJson<Order>,
) -> Answer<Settled> {
    actor.require(Permission::Compensate)?;
    let (record, key) = (record_id(&id)?, command_key(&headers)?);
    let Ok(if_version) = order.if_version.parse() else {
        return Err(stale(&web, &actor, &record).await.into());
    };
    let Order { action, reason, evidence_id, response_body, .. } = order;
    let command = Command { key, record, action, reason, if_version, evidence_id, response_body };
    Ok(Json(web.app.console.compensations.settle(&actor, command).await?))
}

fn command_key(headers: &HeaderMap) -> Result<String, Problem> {
    let mut given = headers.get_all(COMMAND_KEY).iter();
    match (given.next().map(|key| key.to_str()), given.next()) {
        (Some(Ok(key)), None) => Ok(key.to_owned()),
        _ => Err(Problem::invalid("Send one Idempotency-Key header with a fresh UUID per command.")),
    }
}

/// What was never a version of this record is no version it has now.
async fn stale(web: &Web, actor: &Actor, record: &RecordId) -> Error {
    match web.app.console.records.view(actor, record).await {
        Ok(view) => Error::StaleVersion { current: Box::new(view.detail.row) },
        Err(error) => error,
    }
}
