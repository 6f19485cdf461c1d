//! Ways a message travels.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use futures::future::BoxFuture;
use kv::{KvError, Redis};
use reqwest::{Client, Url, redirect};

use super::Parcel;
use crate::ticket::KEY_HEADER;

/// A receiver may ask for no longer pause than this, in seconds.
const LONGEST_RETRY_AFTER: u64 = 3600;

/// Why a message did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may arrive later; `after` is the receiver's own wish.
    Later { reason: String, after: Option<Duration> },
    /// The receiver will never take it.
    Never { reason: String },
}

impl Failure {
    fn later(reason: impl Into<String>) -> Failure {
        Failure::Later { reason: reason.into(), after: None }
    }
}

/// A way to a receiver. Reasons of failures are stored and shown: they hold no secret.
pub trait Carrier: Send + Sync {
    /// Delivers once. An error may also mean that the message arrived and its receipt was lost.
    fn carry<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), Failure>>;
}

/// Posts each message to one address, with its key as `Idempotency-Key`. Redirects are not followed.
pub struct HttpCarrier {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

impl HttpCarrier {
    /// Errors say what is wrong with the address.
    pub fn new(url: &str, headers: HeaderMap, timeout: Duration) -> Result<HttpCarrier, String> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or("the receiver's address is no http:// or https:// URL")?;
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            // The environment must not decide where messages go.
            .no_proxy()
            .retry(reqwest::retry::never())
            .timeout(timeout)
            .build()
            .map_err(|_| "the HTTP client does not start")?;
        Ok(HttpCarrier { client, url, headers })
    }

    async fn post(&self, parcel: &Parcel) -> Result<(), Failure> {
        let value = |text: &str| {
            let reason = || Failure::Never { reason: "its key or content type fits no header".into() };
            HeaderValue::from_bytes(text.as_bytes()).map_err(|_| reason())
        };
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, value(&parcel.content_type)?);
        headers.insert(HeaderName::from_static(KEY_HEADER), value(&parcel.key)?);
        let request = self.client.post(self.url.clone()).headers(headers).body(parcel.body.clone());
        let answer = request.send().await.map_err(|error| match () {
            () if error.is_timeout() => Failure::later("no answer in time"),
            () if error.is_connect() => Failure::later("the receiver cannot be reached"),
            () => Failure::later("the connection was lost"),
        })?;
        judge(answer.status(), answer.headers())
    }
}

impl Carrier for HttpCarrier {
    fn carry<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.post(parcel))
    }
}

/// What an HTTP status says about a message.
fn judge(status: StatusCode, headers: &HeaderMap) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    let reason = format!("answered {}", status.as_u16());
    match status {
        // The content is at fault, and stays so.
        StatusCode::BAD_REQUEST
        | StatusCode::GONE
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::UNPROCESSABLE_ENTITY => Err(Failure::Never { reason }),
        _ => {
            let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
            let after = seconds.map(|seconds| Duration::from_secs(seconds.min(LONGEST_RETRY_AFTER)));
            Err(Failure::Later { reason, after })
        }
    }
}

/// Appends each message to a Redis stream: fields `key`, `biz_type`, `biz_no`, `kind`, `content_type`, `body`.
pub struct StreamCarrier {
    redis: Redis,
    stream: String,
    keep: u64,
}

impl StreamCarrier {
    /// The stream keeps about `keep` entries.
    pub fn new(redis: Redis, stream: impl Into<String>, keep: u64) -> StreamCarrier {
        StreamCarrier { redis, stream: stream.into(), keep }
    }

    async fn append(&self, parcel: &Parcel) -> Result<(), KvError> {
        let fields = [
            ("key", parcel.key.as_bytes()),
            ("biz_type", parcel.biz_type.as_bytes()),
            ("biz_no", parcel.biz_no.as_deref().unwrap_or_default().as_bytes()),
            ("kind", parcel.kind.as_bytes()),
            ("content_type", parcel.content_type.as_bytes()),
            ("body", parcel.body.as_bytes()),
        ];
        self.redis.append(&self.stream, self.keep, &fields).await.map(drop)
    }
}

impl Carrier for StreamCarrier {
    fn carry<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { self.append(parcel).await.map_err(|error| Failure::later(error.to_string())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fault_of_the_content_is_for_ever() {
        let none = HeaderMap::new();
        for status in [200, 201, 202, 204] {
            assert_eq!(judge(StatusCode::from_u16(status).unwrap(), &none), Ok(()));
        }
        for (status, never) in
            [(400, true), (422, true), (302, false), (401, false), (404, false), (409, false)]
        {
            let failure = judge(StatusCode::from_u16(status).unwrap(), &none).unwrap_err();
            assert_eq!(matches!(failure, Failure::Never { .. }), never, "{status}");
        }
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
        let failure = judge(StatusCode::SERVICE_UNAVAILABLE, &headers).unwrap_err();
        let after = Some(Duration::from_secs(7));
        assert_eq!(failure, Failure::Later { reason: "answered 503".into(), after });
    }
}
