//! Answers the guard gives itself: stored responses and refusals.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::Happening;
use crate::policy::Policy;
use crate::problem::Problem;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
pub(crate) const BODY_NOT_STORED: HeaderName = HeaderName::from_static("idempotency-body");
const OUTCOME: HeaderName = HeaderName::from_static("idempotency-outcome");

/// What a failed answer means for its key; said in the header `Idempotency-Outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The answer stands: a duplicate gets it again.
    Final,
    /// Nothing happened: the same key may run again.
    Retryable,
    /// Nobody knows: keep the key, a new one could do it twice.
    Unknown,
}

impl Fate {
    pub(crate) fn mark(self, headers: &mut HeaderMap) {
        let word = match self {
            Fate::Final => "final",
            Fate::Retryable => "retryable",
            Fate::Unknown => "unknown",
        };
        headers.insert(OUTCOME, HeaderValue::from_static(word));
    }
}

/// A response as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// `None`: the body was not kept.
    pub body: Option<Bytes>,
    /// Kept without its body on purpose: too large, or a stream.
    pub tombstone: bool,
}

impl Stored {
    /// All that is known of a success whose record is gone.
    pub(crate) fn lost() -> Stored {
        Stored { status: StatusCode::OK, headers: HeaderMap::new(), body: None, tombstone: false }
    }

    pub(crate) fn happening(&self) -> Happening {
        match self.body.is_some() || self.tombstone {
            true => Happening::Hit,
            false => Happening::MissingResponse,
        }
    }

    pub(crate) fn is_failure(&self) -> bool {
        self.status.is_client_error() || self.status.is_server_error()
    }

    /// The response for a duplicate.
    pub(crate) fn replay(&self) -> Response {
        let mut response = match &self.body {
            Some(body) => {
                let mut response = Response::new(Body::from(body.clone()));
                response.headers_mut().clone_from(&self.headers);
                response
            }
            None => body_not_stored(),
        };
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
        if self.is_failure() && !headers.contains_key(OUTCOME) {
            Fate::Final.mark(headers);
        }
        response
    }
}

fn body_not_stored() -> Response {
    let mut response = axum::Json(json!({
        "code": "response_not_stored",
        "detail": "The request was done, with this status; its response is not stored. Do not send it again."
    }))
    .into_response();
    response.headers_mut().insert(BODY_NOT_STORED, HeaderValue::from_static("not-stored"));
    response
}

/// Why the guard answers by itself and runs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadKey(&'static str),
    NoTenant,
    TooLarge,
    UnreadableBody,
    Mismatch,
    InProgress {
        lease_left: Duration,
    },
    /// The outcome is unknown and an operator has to look.
    Held,
    /// The record was settled by somebody else while the handler ran.
    Late,
    /// The handler ended without an answer.
    Broke,
    /// The database is down: nothing was run.
    StoreDown,
    /// The handler ran; whether its transaction was committed is not known.
    NotRecorded,
    /// The lock of the work was lost, so its transaction was rolled back.
    LockLost,
    /// A mechanism of the route refused.
    Mechanism(Problem),
}

impl Refusal {
    pub(crate) fn happening(&self) -> Option<Happening> {
        match self {
            Refusal::Mismatch => Some(Happening::PayloadMismatch),
            Refusal::InProgress { .. } => Some(Happening::Hit),
            Refusal::Held => Some(Happening::StaleProcessing),
            Refusal::Late => Some(Happening::LateCompletion),
            Refusal::Broke | Refusal::NotRecorded => Some(Happening::InDoubt),
            Refusal::BadKey(_)
            | Refusal::NoTenant
            | Refusal::TooLarge
            | Refusal::UnreadableBody
            | Refusal::StoreDown
            | Refusal::LockLost
            | Refusal::Mechanism(_) => None,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.words().0
    }

    fn words(&self) -> (StatusCode, &'static str, &'static str, &'static str) {
        match self {
            Refusal::BadKey(detail) => {
                (StatusCode::BAD_REQUEST, "bad_key", "No usable idempotency key", detail)
            }
            Refusal::NoTenant => (
                StatusCode::BAD_REQUEST,
                "no_tenant",
                "Tenant missing",
                "The request does not say whose it is; keys are kept apart by tenant.",
            ),
            Refusal::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "Body too large",
                "The request body is larger than this route takes.",
            ),
            Refusal::UnreadableBody => (
                StatusCode::BAD_REQUEST,
                "unreadable_body",
                "Body not received",
                "The request body ended early; send the request again with the same key.",
            ),
            Refusal::Mismatch => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "key_reused",
                "Key used for another request",
                "This idempotency key belongs to a request with another content. Use a new key for a new request.",
            ),
            Refusal::InProgress { .. } => (
                StatusCode::CONFLICT,
                "in_progress",
                "Still processing",
                "The first request with this key is still processing. Ask again later with the same key.",
            ),
            Refusal::Held => (
                StatusCode::CONFLICT,
                "held",
                "Needs a manual check",
                "The outcome of the first request is not known and is being checked by hand. It will not be run again by itself.",
            ),
            Refusal::Late => (
                StatusCode::CONFLICT,
                "late",
                "Settled meanwhile",
                "This request took so long that its record was settled otherwise. Ask again with the same key.",
            ),
            Refusal::Broke => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "outcome_unknown",
                "Outcome unknown",
                "The request ended without an answer; it may have taken effect. Keep the key: a new one could do it twice.",
            ),
            Refusal::StoreDown => (
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "Try again later",
                "The idempotency table cannot be reached, so nothing was done. Send the request again with the same key.",
            ),
            Refusal::NotRecorded => (
                StatusCode::SERVICE_UNAVAILABLE,
                "not_recorded",
                "Outcome not recorded",
                "The outcome could not be recorded. Ask again with the same key to learn it.",
            ),
            Refusal::LockLost => (
                StatusCode::SERVICE_UNAVAILABLE,
                "lock_lost",
                "Try again later",
                "The lock of this work was lost while it went on, so it was undone. Send the request again with the same key.",
            ),
            Refusal::Mechanism(problem) => (problem.status, problem.code, problem.title, ""),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Refusal::InProgress { lease_left } => Some(*lease_left),
            Refusal::StoreDown | Refusal::NotRecorded | Refusal::LockLost => Some(Duration::from_secs(5)),
            _ => None,
        }
    }

    /// The answer in `policy`'s words.
    pub(crate) fn response(&self, policy: &Policy) -> Response {
        let problem = self.problem();
        let mut response = match &policy.voice {
            Some(voice) => voice.say(&problem),
            None => problem.into_response(),
        };
        if let Some(fate) = self.fate() {
            fate.mark(response.headers_mut());
        }
        response
    }

    fn fate(&self) -> Option<Fate> {
        match self {
            Refusal::Held | Refusal::Broke | Refusal::NotRecorded => Some(Fate::Unknown),
            Refusal::StoreDown => Some(Fate::Retryable),
            Refusal::Mismatch => Some(Fate::Final),
            _ => None,
        }
    }

    pub(crate) fn problem(&self) -> Problem {
        if let Refusal::Mechanism(problem) = self {
            return problem.clone();
        }
        let (status, code, title, detail) = self.words();
        Problem { status, code, title, detail: detail.into(), retry_after: self.retry_after() }
    }
}
