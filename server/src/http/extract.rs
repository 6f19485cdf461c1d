//! Extractors that refuse with a problem: what a handler needs is in its signature.

use super::json;
use super::problem::Problem;
use super::visitor::Visitor;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, Datelike, Utc};
use domain::roles::Actor;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The signed-in person or token; strangers get 401.
pub struct SignedIn(pub Actor);

impl<S: Send + Sync> FromRequestParts<S> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let visitor = parts.extensions.get::<Visitor>().ok_or(domain::Error::Unauthenticated)?;
        Ok(Self(visitor.actor()?))
    }
}

/// The query string as `T`. `T` denies unknown fields, so a misspelt filter is refused and never ignored.
pub struct ApiQuery<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        check_query(parts.uri.query().unwrap_or_default())?;
        let Query(query) =
            Query::try_from_uri(&parts.uri).map_err(|error| Problem::invalid(error.body_text()))?;
        Ok(Self(query))
    }
}

/// The one segment of the path that is not fixed.
pub struct ApiPath(pub String);

impl<S: Send + Sync> FromRequestParts<S> for ApiPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(segment) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::invalid(error.body_text()))?;
        if segment.contains('\0') {
            return Err(domain::Error::not_found("That").into());
        }
        Ok(Self(segment))
    }
}

/// A JSON body as `T`.
pub struct ApiJson<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for ApiJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "Send the body as JSON, with Content-Type: application/json.";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
        }
        let bytes = bytes(request, state).await?;
        json::read(&bytes).map(Self)
    }
}

/// For calls that take nothing: no body, or an empty JSON object.
pub struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match bytes(request, state).await?.trim_ascii() {
            b"" => Ok(Self),
            other => match serde_json::from_slice::<Value>(other) {
                Ok(Value::Object(fields)) if fields.is_empty() => Ok(Self),
                _ => Err(Problem::invalid("This call takes no body; leave it out or send {}.")),
            },
        }
    }
}

/// A time in a query: RFC 3339, from 1970 to 9999.
#[derive(Debug, Clone, Copy)]
pub struct Instant(pub DateTime<Utc>);

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        DateTime::parse_from_rfc3339(&text)
            .map(|at| at.to_utc())
            .ok()
            .filter(|at| (1970..=9999).contains(&at.year()))
            .map(Self)
            .ok_or_else(|| {
                D::Error::custom(format!(
                    "{text:?} is no time; write RFC 3339 such as 2026-12-01T08:30:00Z (a plus sign as %2B)"
                ))
            })
    }
}

async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|error| Problem::invalid(error.body_text()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Refuses percent-encoding that is no UTF-8, which would otherwise be read as something the caller never wrote.
fn check_query(query: &str) -> Result<(), Problem> {
    let mut decoded = Vec::with_capacity(query.len());
    let mut rest = query.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = [ahead.next(), ahead.next()];
        match (byte, digits.map(|digit| digit.and_then(|digit| char::from(digit).to_digit(16)))) {
            (b'%', [Some(high), Some(low)]) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = ahead;
            }
            _ => decoded.push(byte),
        }
    }
    match std::str::from_utf8(&decoded) {
        Ok(text) if !text.contains('\0') => Ok(()),
        _ => Err(Problem::invalid("The query is not UTF-8 text; percent-encode it as UTF-8, without NUL.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_query_is_utf8_or_refused() {
        assert!(check_query("key=%E4%B8%AD%E6%96%87&q=100%25&x=%zz").is_ok());
        for bad in ["cursor=%00", "cursor=%ff", "key=%e4%b8"] {
            assert_eq!(check_query(bad).unwrap_err().status, StatusCode::BAD_REQUEST, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_query_makes_reading_panic(query in ".*") {
            let _ = check_query(&query);
        }
    }
}
