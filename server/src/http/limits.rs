//! No request is larger than the console needs.

use super::problem::Problem;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// The largest body, in bytes.
pub const BODY_MAX: usize = 1024 * 1024;

/// Reads the body before anything else looks at it: one place that refuses what is too large (413) or broken (400).
pub async fn bounded_body(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    if request.body().size_hint().lower() > BODY_MAX as u64 {
        return too_large();
    }
    let (parts, body) = request.into_parts();
    match Limited::new(body, BODY_MAX).collect().await {
        Ok(collected) => next.run(Request::from_parts(parts, Body::from(collected.to_bytes()))).await,
        Err(error) if error.is::<LengthLimitError>() => too_large(),
        Err(_) => Problem::invalid("The body broke off before its end; send it again.").into_response(),
    }
}

fn too_large() -> Response {
    let detail = format!("The body is larger than {BODY_MAX} bytes; send less at once.");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail).into_response()
}
