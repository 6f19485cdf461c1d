//! The API's routes and the document that describes them, made from one list.

use super::v1;
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::server::Server;
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

/// Where version 1 lives.
const V1: &str = "/api/v1";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Amends",
        description = "The console for requests that must take effect exactly once. `id`, `version` and `cursor` are \
                       opaque; times are RFC 3339 in UTC; every refusal is problem+json (RFC 9457)."
    ),
    components(schemas(Problem)),
    modifiers(&Credentials),
    security(("token" = []), ("session" = [])),
    paths(document)
)]
struct Document;

/// The two ways to say who is asking.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let session = ApiKeyValue::new(crate::http::sign_in::COOKIE);
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
        components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// All API routes, and the document at `/api/v1/openapi.json`.
pub fn router(web: &Web) -> Router<Web> {
    let (routes, mut document) = described(web).split_for_parts();
    if !web.base_path().is_empty() {
        document.servers = Some(vec![Server::new(web.base_path())]);
    }
    // The document is made of strings and maps, which always serialise.
    let text: Arc<str> = document.to_json().unwrap_or_default().into();
    routes.route(&format!("{V1}/openapi.json"), get(async move || json(text.to_string())))
}

/// The routes with their descriptions; the demo's switches exist only in the demo.
pub fn described(web: &Web) -> OpenApiRouter<Web> {
    let groups = OpenApiRouter::new()
        .merge(v1::session::routes())
        .merge(v1::sources::routes())
        .merge(v1::records::routes())
        .merge(v1::compensations::routes())
        .merge(v1::checks::routes())
        .merge(v1::audit::routes())
        .merge(v1::rates::routes())
        .merge(v1::events::routes())
        .merge(v1::outbox::routes())
        .merge(v1::alert_rules::routes())
        .merge(v1::alerts::routes());
    let groups = if web.app.console.demo.is_some() { groups.merge(v1::demo::routes()) } else { groups };
    OpenApiRouter::with_openapi(Document::openapi()).nest(V1, groups)
}

fn json(text: String) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text)
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "meta", security(()), responses((status = 200, description = "OpenAPI 3.1")))]
#[expect(dead_code, reason = "only its description is used: the document cannot contain itself")]
fn document() {}
