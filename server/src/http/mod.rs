//! Everything that speaks HTTP: pages, API, live events, health, and the layers around them.

mod api;
pub mod assets;
mod csrf;
mod csv;
pub mod events;
mod exports;
mod extract;
mod headers;
mod health;
mod json;
mod limits;
pub mod metrics;
mod pages;
pub mod password;
mod problem;
mod sign_in;
mod throttle;
mod trace;
mod visitor;
mod web;

use crate::state::AppState;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use web::Web;

/// Smaller answers are not worth compressing.
const COMPRESS_ABOVE: u16 = 1024;
/// Answers are compressed while a person waits: a fast level; files were packed beforehand at the best one.
const COMPRESS_LEVEL: CompressionLevel = CompressionLevel::Precise(4);

/// The whole console under its base path.
pub fn router(state: AppState) -> Router {
    let web = Web::new(state);
    let inner = protected(inner(&web), &web);
    match web.base_path() {
        "" => inner,
        base_path => Router::new().nest_service(base_path, inner),
    }
}

/// What has an address, with who-is-asking resolved where it matters.
fn inner(web: &Web) -> Router {
    let personal = Router::new()
        .merge(api::router(web))
        .merge(exports::router())
        .route("/live", get(events::live))
        .with_state(web.clone())
        .merge(pages::router(web))
        .layer(from_fn_with_state(web.clone(), visitor::identify))
        .layer(sign_in::session_layer(web));
    Router::new().merge(health::router()).merge(assets::router()).with_state(web.clone()).merge(personal)
}

/// The layers around everything, outermost last.
fn protected(routes: Router, web: &Web) -> Router {
    let compressible =
        SizeAbove::new(COMPRESS_ABOVE).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
    routes
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(limits::bounded_body))
        .layer(from_fn_with_state(web.clone(), csrf::refuse_cross_site))
        .layer(CatchPanicLayer::custom(trace::panicked))
        .layer(from_fn(word_api_refusals))
        .layer(CompressionLayer::new().quality(COMPRESS_LEVEL).compress_when(compressible))
        .layer(from_fn_with_state(web.clone(), headers::secure))
        .layer(from_fn_with_state(web.clone(), trace::observe))
}

/// Pages word their own refusals, in the reader's language.
async fn word_api_refusals(request: Request, next: Next) -> Response {
    if request.uri().path().starts_with("/api/") {
        return problem::word_refusals(request, next).await;
    }
    next.run(request).await
}
