//! The one shape of every refusal: RFC 9457 problem details.

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::Error;
use domain::record::RecordRow;
use serde::Serialize;
use utoipa::ToSchema;

/// The content type of [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";
/// How long to wait before asking again something that is down, in seconds.
const DOWN_RETRY_SECONDS: u32 = 5;
/// A server function's error is short text; more is not read.
const ERROR_TEXT_MAX: usize = 64 * 1024;

/// Why a request was not carried out, and what to do next.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// A stable name of the kind of problem: `urn:amends:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    #[serde(serialize_with = "as_number")]
    #[schema(value_type = u16, example = 422)]
    pub status: StatusCode,
    /// One sentence for the reader; says what to do next.
    pub detail: String,
    /// A stable word for programs.
    pub code: String,
    /// The record as it is now, when it is not what the caller saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Box<RecordRow>>,
    #[serde(skip)]
    pub retry_after: Option<u32>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:amends:problem:{code}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            current: None,
            retry_after: None,
        }
    }

    /// 400: the request itself is malformed.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", detail)
    }

    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// What a bare status means here, for answers that were not made by a handler.
    fn of_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => {
                ("not_found", "There is nothing at this address; see /api/v1/openapi.json.")
            }
            StatusCode::METHOD_NOT_ALLOWED => (
                "method_not_allowed",
                "This address does not take this method; the Allow header names those it takes.",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => ("too_large", "The request is too large."),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("unsupported_media_type", "Send the body as application/json.")
            }
            status if status.is_client_error() => ("invalid", "The request cannot be read."),
            _ => ("internal", "Something went wrong on this side; the log says what. Try again."),
        };
        Self::new(status, code, detail)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let problem = Self::new(status, error.code(), error.to_string());
        match error {
            Error::Moved { current } | Error::StaleVersion { current } => {
                Self { current: Some(current), ..problem }
            }
            Error::Busy { retry_after_seconds, .. } | Error::TooMany { retry_after_seconds } => {
                Self { retry_after: Some(retry_after_seconds).filter(|seconds| *seconds > 0), ..problem }
            }
            Error::Unavailable { what, .. } => {
                tracing::warn!(what, "answered 503");
                problem.retry_after(DOWN_RETRY_SECONDS)
            }
            Error::Internal { message } => {
                tracing::error!(message, "answered 500");
                problem
            }
            _ => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status, self.retry_after);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"amends\""));
        }
        response
    }
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// Turns refusals that no handler worded (unknown method, broken framing, a library's own answer) into problems.
pub async fn word_refusals(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let worded = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM_JSON);
    if worded || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let status =
        if is_about_arguments(&parts.headers, body).await { StatusCode::BAD_REQUEST } else { status };
    let mut reworded = Problem::of_status(status).into_response();
    for name in [ALLOW, RETRY_AFTER, SET_COOKIE] {
        for value in parts.headers.get_all(&name) {
            reworded.headers_mut().append(&name, value.clone());
        }
    }
    reworded
}

/// Server functions answer 500 to arguments they cannot read; the text of their error says so.
async fn is_about_arguments(headers: &axum::http::HeaderMap, body: Body) -> bool {
    if !headers.contains_key("serverfnerror") {
        return false;
    }
    let text = axum::body::to_bytes(body, ERROR_TEXT_MAX).await.unwrap_or_default();
    ["Args|", "MissingArg|", "Deserialization|"].iter().any(|kind| text.starts_with(kind.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    async fn body(problem: Problem) -> (axum::http::HeaderMap, Value) {
        let response = problem.into_response();
        let headers = response.headers().clone();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (headers, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn a_refusal_names_its_kind_its_status_and_what_to_do() {
        let (headers, body) =
            body(Error::Busy { message: "Wait.".into(), retry_after_seconds: 2 }.into()).await;
        assert_eq!(headers[CONTENT_TYPE], PROBLEM_JSON);
        assert_eq!(headers[RETRY_AFTER], "2");
        let expected = serde_json::json!({
            "type": "urn:amends:problem:in_progress",
            "title": "Conflict",
            "status": 409,
            "detail": "Wait.",
            "code": "in_progress",
        });
        assert_eq!(body, expected);
    }

    #[tokio::test]
    async fn nobody_signed_in_is_told_how_to_authenticate() {
        let (headers, _) = body(Error::Unauthenticated.into()).await;
        assert!(headers.contains_key(WWW_AUTHENTICATE));
    }

    #[tokio::test]
    async fn what_is_down_says_when_to_try_again() {
        let (headers, body) = body(Error::unavailable("The store", "connection refused").into()).await;
        assert_eq!(headers[RETRY_AFTER], "5");
        assert_eq!(body["status"], 503);
    }
}
