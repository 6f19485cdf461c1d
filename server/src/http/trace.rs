//! One line and one id a request; counts and times by route. Never a query, a body or a credential.

use super::problem::Problem;
use super::web::Web;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::any::Any;
use std::time::Instant;
use tracing::Instrument;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_MAX: usize = 64;

/// Runs the request inside a span with its id, which the answer carries too, and counts it.
pub async fn observe(State(web): State<Web>, request: Request, next: Next) -> Response {
    let id = given_id(request.headers()).unwrap_or_else(|| web.app.ids.next());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", id, %method, path = request.uri().path());
    let started = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, seconds) = (response.status(), started.elapsed().as_secs_f64());
    span.in_scope(|| log(status, seconds));
    let labels = [("method", known(&method)), ("route", route), ("status", status.as_u16().to_string())];
    metrics::counter!("http_requests_total", &labels).increment(1);
    metrics::histogram!("http_request_duration_seconds", "route" => labels[1].1.clone()).record(seconds);
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The last net: a defect is logged and answered, and takes nothing else down.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let what = panic.downcast_ref::<String>().map(String::as_str);
    let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    tracing::error!(panic = what, "a handler panicked");
    let detail = "Something went wrong on this side; the log says what. Try again.";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).into_response()
}

fn log(status: StatusCode, seconds: f64) {
    let (status, elapsed_ms) = (status.as_u16(), (seconds * 1_000.0).round());
    if status >= 500 {
        tracing::warn!(status, elapsed_ms, "answered");
    } else {
        tracing::debug!(status, elapsed_ms, "answered");
    }
}

/// A caller's own id, when it is a plain word.
fn given_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    ((1..=REQUEST_ID_MAX).contains(&id.len()) && id.bytes().all(plain)).then(|| id.to_owned())
}

/// Methods are a label of the counters: made-up ones must not make the list grow.
fn known(method: &axum::http::Method) -> String {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "PATCH" | "OPTIONS") => known.to_owned(),
        _ => "other".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_id_is_kept_only_when_it_cannot_break_a_line() {
        let id = |text: &'static str| {
            given_id(&HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_static(text))]))
        };
        assert_eq!(id("abc-1.2_3"), Some("abc-1.2_3".into()));
        assert_eq!(id(""), None);
        assert_eq!(id("a b"), None);
        assert_eq!(id("a\"}{"), None);
    }
}
