//! No request is larger than the console needs.

use super::problem::Problem;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::time::Duration;

/// The largest body, in bytes.
pub const BODY_MAX: usize = 1024 * 1024;

/// How long a body may take: whoever needs longer for a mebibyte is not sending one.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Reads the body before anything else looks at it: one place that refuses what is too large (413), too slow (408) or
/// broken (400).
pub async fn bounded_body(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    if request.body().size_hint().lower() > BODY_MAX as u64 {
        return too_large();
    }
    let (parts, body) = request.into_parts();
    let Ok(read) = tokio::time::timeout(BODY_WITHIN, Limited::new(body, BODY_MAX).collect()).await else {
        let detail = format!("The body did not arrive within {} s; send it again.", BODY_WITHIN.as_secs());
        return Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail).into_response();
    };
    match read {
        Ok(collected) => next.run(Request::from_parts(parts, Body::from(collected.to_bytes()))).await,
        Err(error) if error.is::<LengthLimitError>() => too_large(),
        Err(_) => Problem::invalid("The body broke off before its end; send it again.").into_response(),
    }
}

fn too_large() -> Response {
    let detail = format!("The body is larger than {BODY_MAX} bytes; send less at once.");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::post;
    use futures::StreamExt;
    use tower::ServiceExt;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_not_waited_for() {
        let app = Router::new().route("/", post(async || "taken")).layer(from_fn(bounded_body));
        let drip = futures::stream::iter([Ok::<_, std::io::Error>("{")]).chain(futures::stream::pending());
        let answer = app.oneshot(Request::post("/").body(Body::from_stream(drip)).unwrap()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
    }
}
