//! Where tokens meet requests: the endpoint that issues them and the gate that takes them.

use std::time::Duration;

use axum::extract::{Extension, Request};
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use futures::future::BoxFuture;
use serde_json::json;

use super::{TOKEN_HEADER, Taken, Tokens, belongs};
use crate::mechanism::{Entry, Mechanism, Pass};
use crate::policy::{Compute, KeySource};
use crate::problem::Problem;
use crate::ticket::KEY_HEADER;

impl Tokens {
    /// The endpoint that issues tokens for `biz_type`: `{"token": …, "expires_in": seconds}`.
    pub fn issuer<S: Clone + Send + Sync + 'static>(&self, biz_type: impl Into<String>) -> MethodRouter<S> {
        let issuer = Issuer { tokens: self.clone(), biz_type: biz_type.into() };
        post(issue).layer(Extension(issuer))
    }
}

/// The gate of a route that takes tokens: [`crate::Presets`] puts it there, or [`crate::Policy::with`].
#[derive(Clone)]
pub struct TokenGate {
    tokens: Tokens,
    biz_type: String,
}

impl TokenGate {
    /// Lets through who presents a token issued for `biz_type`; the route's key is [`TokenGate::key`].
    pub fn new(tokens: Tokens, biz_type: impl Into<String>) -> TokenGate {
        TokenGate { tokens, biz_type: biz_type.into() }
    }

    /// The token as the key of the record.
    pub fn key() -> KeySource {
        KeySource::Computed(Compute::new(|parts, _| presented(parts).map(str::to_owned)))
    }

    async fn take(&self, entry: Entry<'_>) -> Result<(), Problem> {
        let taken = self.tokens.take(entry.claim.key()).await.map_err(|error| {
            tracing::warn!(%error, "a token could not be looked up");
            unavailable()
        })?;
        match taken {
            Taken::First | Taken::Again => Ok(()),
            // The record was there before and may run again: the token has done its part.
            Taken::Spent if entry.claim.fence() > 1 => Ok(()),
            Taken::Expired => Err(expired()),
            Taken::Spent | Taken::Unknown => Err(unknown()),
        }
    }
}

impl std::fmt::Debug for TokenGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenGate").field("biz_type", &self.biz_type).finish_non_exhaustive()
    }
}

impl Mechanism for TokenGate {
    fn inspect(&self, parts: &Parts) -> Result<(), Problem> {
        let token = presented(parts).ok_or_else(missing)?;
        let subject = self.tokens.subject(parts).ok_or_else(nobody)?;
        if belongs(token, &self.biz_type, &subject) { Ok(()) } else { Err(unknown()) }
    }

    fn enter<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<Box<dyn Pass>, Problem>> {
        Box::pin(async move { self.take(entry).await.map(|()| Box::new(()) as Box<dyn Pass>) })
    }
}

fn presented(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(TOKEN_HEADER).or_else(|| parts.headers.get(KEY_HEADER))?;
    value.to_str().ok()
}

fn problem(status: StatusCode, code: &'static str, title: &'static str, detail: &'static str) -> Problem {
    Problem { status, code, title, detail: detail.into(), retry_after: None }
}

fn missing() -> Problem {
    problem(
        StatusCode::BAD_REQUEST,
        "token_missing",
        "Token missing",
        "This request needs a one-time token in the Idempotency-Token header; ask the issue endpoint for one.",
    )
}

fn nobody() -> Problem {
    problem(
        StatusCode::UNAUTHORIZED,
        "who_are_you",
        "Sign in first",
        "A token belongs to somebody; this request does not say to whom.",
    )
}

/// Whether it is somebody else's or nobody's is not for the caller to know.
fn unknown() -> Problem {
    problem(
        StatusCode::FORBIDDEN,
        "token_refused",
        "Token refused",
        "This token was not issued to you for this request, or was used long ago. If you submitted it before, look whether that request was done before you ask for a new one.",
    )
}

fn expired() -> Problem {
    problem(
        StatusCode::GONE,
        "token_expired",
        "Token expired",
        "This token was not submitted in time, so nothing was done. Ask for a new one.",
    )
}

fn unavailable() -> Problem {
    let retry_after = Some(Duration::from_secs(5));
    let detail = "The token cannot be looked up now, so nothing was done. Send the request again.";
    let problem = problem(StatusCode::SERVICE_UNAVAILABLE, "tokens_unavailable", "Try again later", detail);
    Problem { retry_after, ..problem }
}

#[derive(Clone)]
struct Issuer {
    tokens: Tokens,
    biz_type: String,
}

async fn issue(Extension(Issuer { tokens, biz_type }): Extension<Issuer>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let Some(subject) = tokens.subject(&parts) else {
        return nobody().into_response();
    };
    match tokens.issue(&biz_type, &subject).await {
        Ok(token) => {
            let body = json!({ "token": token, "expires_in": tokens.0.rules.life.as_secs() });
            ([(CACHE_CONTROL, HeaderValue::from_static("no-store"))], axum::Json(body)).into_response()
        }
        Err(error) => {
            tracing::warn!(%error, biz_type, "no token could be issued");
            unavailable().into_response()
        }
    }
}
