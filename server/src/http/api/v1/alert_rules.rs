//! Alert rules, and what they would have done.

use super::{Answer, Items};
use crate::http::extract::{ApiJson, ApiPath, NoBody, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderName, StatusCode};
use chrono::{DateTime, Utc};
use domain::Error;
use domain::alert::{Preview, Rule, RuleSpec};
use domain::roles::{Actor, Permission};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(change, delete))
        .routes(routes!(preview))
}

/// A stored rule.
#[derive(Serialize, ToSchema)]
struct RuleDocument {
    id: String,
    version: String,
    #[serde(flatten)]
    spec: RuleSpec,
    updated_at: DateTime<Utc>,
    updated_by: String,
}

impl From<Rule> for RuleDocument {
    fn from(rule: Rule) -> Self {
        let Rule { id, version, spec, updated_at, updated_by } = rule;
        Self { id, version: version.to_string(), spec, updated_at, updated_by }
    }
}

/// A rule as it should be; what `GET` answered can be sent back changed.
#[derive(Deserialize, ToSchema)]
struct Change {
    /// The version you changed. Absent, the rule is replaced whatever it is now.
    version: Option<String>,
    #[serde(flatten)]
    spec: RuleSpec,
}

/// What a rule would have done over the last seven days.
#[derive(Serialize, ToSchema)]
struct PreviewDocument {
    would_have_fired: u32,
    fired_at: Vec<DateTime<Utc>>,
    points: Vec<PreviewPoint>,
}

/// The metric at one time; null = nothing to say.
#[derive(Serialize, ToSchema)]
struct PreviewPoint {
    at: DateTime<Utc>,
    value: Option<f64>,
}

impl From<Preview> for PreviewDocument {
    fn from(preview: Preview) -> Self {
        let points = preview.points.into_iter().map(|(at, value)| PreviewPoint { at, value }).collect();
        Self { would_have_fired: preview.would_have_fired, fired_at: preview.fired_at, points }
    }
}

/// All rules.
#[utoipa::path(get, path = "/alert-rules", tag = "alerts", responses((status = 200, body = Items<RuleDocument>)))]
async fn list(State(web): State<Web>, SignedIn(actor): SignedIn) -> Answer<Items<RuleDocument>> {
    let rules = web.app.console.alerts.rules(&actor).await?;
    Ok(Json(Items { items: rules.into_iter().map(RuleDocument::from).collect() }))
}

/// Adds a rule.
#[utoipa::path(
    post, path = "/alert-rules", tag = "alerts", request_body = RuleSpec,
    responses(
        (status = 201, body = RuleDocument),
        (status = "4XX", description = "malformed, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn create(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiJson(spec): ApiJson<RuleSpec>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<RuleDocument>), Problem> {
    let rule = web.app.console.alerts.create_rule(&actor, spec).await?;
    let location = format!("{}/api/v1/alert-rules/{}", web.base_path(), rule.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(rule.into())))
}

/// Changes a rule.
#[utoipa::path(
    put, path = "/alert-rules/{id}", tag = "alerts", params(("id" = String, Path)), request_body = Change,
    responses(
        (status = 200, body = RuleDocument),
        (status = 409, description = "somebody changed it meanwhile", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "malformed, unknown, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn change(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiPath(id): ApiPath,
    ApiJson(change): ApiJson<Change>,
) -> Answer<RuleDocument> {
    actor.require(Permission::EditAlertRules)?;
    let version = match &change.version {
        Some(version) => {
            version.parse().map_err(|_| Problem::invalid("version is none that this server gave."))?
        }
        None => current_version(&web, &actor, &id).await?,
    };
    Ok(Json(web.app.console.alerts.update_rule(&actor, &id, version, change.spec).await?.into()))
}

async fn current_version(web: &Web, actor: &Actor, id: &str) -> Result<i64, Problem> {
    let rules = web.app.console.alerts.rules(actor).await?;
    let rule = rules.into_iter().find(|rule| rule.id == id);
    Ok(rule.ok_or_else(|| Error::not_found("That alert rule"))?.version)
}

/// Deletes a rule and resolves its open alert.
#[utoipa::path(
    delete, path = "/alert-rules/{id}", tag = "alerts", params(("id" = String, Path)),
    responses(
        (status = 204, description = "deleted"),
        (status = "4XX", description = "unknown, or not for this role", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn delete(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiPath(id): ApiPath,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    web.app.console.alerts.delete_rule(&actor, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs a rule over the last seven days without storing it.
#[utoipa::path(
    post, path = "/alert-rules/preview", tag = "alerts", request_body = RuleSpec,
    responses(
        (status = 200, body = PreviewDocument),
        (status = "4XX", description = "malformed", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn preview(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiJson(spec): ApiJson<RuleSpec>,
) -> Answer<PreviewDocument> {
    Ok(Json(web.app.console.alerts.preview(&actor, spec).await?.into()))
}
