//! For supervisors: is the process there, can it work, and what has it counted.

use super::metrics;
use super::problem::Problem;
use super::web::Web;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::time::Duration;

/// A store that has not answered by then is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn router() -> Router<Web> {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(counted))
}

/// 200 when the store answers, else 503: the balancer should send people elsewhere.
async fn ready(State(web): State<Web>) -> Response {
    match tokio::time::timeout(PATIENCE, web.app.store.ping()).await {
        Ok(Ok(())) => "ready\n".into_response(),
        _ => {
            let detail = "The console's store does not answer.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail).retry_after(5).into_response()
        }
    }
}

async fn counted(State(web): State<Web>) -> Response {
    let text = metrics::render(&web).await;
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
