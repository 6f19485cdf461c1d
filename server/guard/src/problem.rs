//! An answer the guard gives by itself: RFC 9457 problem details with a code for machines.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request was not run, or what is not known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// For machines; never changes once released.
    pub code: &'static str,
    pub title: &'static str,
    pub detail: Cow<'static, str>,
    /// When to ask again with the same key; sent in whole seconds, rounded up.
    pub retry_after: Option<Duration>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds(wait)));
        }
        response
    }
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1)
}

/// Says a route's problems in the words its callers understand, e.g. a payment channel that reads only its own format.
pub trait Voice: std::fmt::Debug + Send + Sync {
    fn say(&self, problem: &Problem) -> Response;
}
