//! Sending a stored request again: same key, same bytes, once, to the configured address only.

use crate::config::{Biz, Rate, Replay, Secret};
use crate::reverse::Subject;
use crate::template::Template;
use chrono::{DateTime, Utc};
use domain::compensation::ReplayAnswer;
use domain::record::{Body, RecordDetail};
use domain::unable::Unable;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Url, redirect};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Answers are read this far, so that the service is not cut off in mid-sentence, and dropped.
const READ_AT_MOST: usize = 64 * 1024;

/// How replays reach the services.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    pub user_agent: String,
    /// Longest to wait for a connection.
    pub connect_timeout: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { user_agent: "amends".into(), connect_timeout: Duration::from_secs(3) }
    }
}

/// The replay of one biz_type.
pub(crate) struct Sender {
    method: Method,
    url: Url,
    headers: Vec<(HeaderName, Template)>,
    content_type: HeaderValue,
    timeout: Duration,
    bucket: Mutex<Bucket>,
}

/// A client that sends exactly what it is told to, where it is told to.
pub(crate) fn client(settings: &HttpSettings) -> Result<Client, String> {
    Client::builder()
        .user_agent(&settings.user_agent)
        .redirect(redirect::Policy::none())
        // The environment must not decide where a payment request goes.
        .no_proxy()
        .retry(reqwest::retry::never())
        .http1_only()
        // A kept connection may be dead already; a fresh one tells "not sent" from "no answer".
        .pool_max_idle_per_host(0)
        .connect_timeout(settings.connect_timeout)
        .build()
        .map_err(|error| format!("the HTTP client does not start: {error}"))
}

impl Sender {
    pub(crate) fn new(replay: &Replay, now: DateTime<Utc>) -> Result<Self, String> {
        let header = |(name, value): (&String, &Secret)| {
            let name = name.parse().map_err(|_| format!("{name:?} is no header name"))?;
            Ok::<_, String>((name, Template::parse(value.expose())?))
        };
        Ok(Self {
            method: Method::from_bytes(replay.method.as_bytes()).map_err(|_| "method is no HTTP method")?,
            url: Url::parse(&replay.url).map_err(|_| "url is no address")?,
            headers: replay.headers.iter().map(header).collect::<Result<_, _>>()?,
            content_type: replay.content_type.parse().map_err(|_| "content_type is no header value")?,
            timeout: replay.timeout.get(),
            bucket: Mutex::new(Bucket::full(replay.rate, now)),
        })
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends once. Whatever goes wrong after sending began is `Unanswered`: the service may have acted.
    pub(crate) async fn send(
        &self,
        client: &Client,
        record: &RecordDetail,
        now: DateTime<Utc>,
    ) -> ReplayAnswer {
        let (headers, body) = match self.prepared(record, now) {
            Ok(prepared) => prepared,
            Err(message) => return ReplayAnswer::NotSent { message },
        };
        let request = client.request(self.method.clone(), self.url.clone()).headers(headers);
        match request.timeout(self.timeout).body(body).send().await {
            Ok(response) => {
                let status = response.status().as_u16();
                drain(response).await;
                ReplayAnswer::Answered { status }
            }
            Err(error) if error.is_connect() || error.is_builder() => {
                ReplayAnswer::NotSent { message: format!("{} cannot be reached", self.shown()) }
            }
            Err(error) if error.is_timeout() => ReplayAnswer::Unanswered {
                message: format!("{} did not answer within {} ms", self.shown(), self.timeout.as_millis()),
            },
            Err(_) => {
                ReplayAnswer::Unanswered { message: format!("the connection to {} was lost", self.shown()) }
            }
        }
    }

    fn prepared(&self, record: &RecordDetail, now: DateTime<Utc>) -> Result<(HeaderMap, Vec<u8>), String> {
        let body = match (&record.request, record.request.bytes()) {
            (_, Some(bytes)) => bytes.to_vec(),
            (Body::Unreadable(reason), None) => {
                return Err(format!("the stored request cannot be read: {reason}"));
            }
            (_, None) => return Err("the record keeps no request to send".into()),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        let subject = Subject::of(record);
        for (name, template) in &self.headers {
            let value = template.render(|placeholder| subject.named(placeholder))?;
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| format!("the value of header {name} cannot be sent in a header"))?;
            headers.insert(name.clone(), value);
        }
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if !bucket.take(now) {
            return Err(format!("more than {} replays of this kind; try again in a moment", bucket.rate));
        }
        Ok((headers, body))
    }

    /// The address without anything that may be a credential.
    fn shown(&self) -> String {
        let mut url = self.url.clone();
        // A base URL of http always takes an empty user and password.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        url.set_query(None);
        url.into()
    }
}

/// Why this record's request cannot be sent again; `Ok` when it can.
pub(crate) fn can_send(biz: Option<&Biz>, sender: Option<&Sender>, request: &Body) -> Result<(), Unable> {
    let Some(biz) = biz else {
        return Err(Unable::NotConfigured);
    };
    if sender.is_none() {
        return Err(Unable::NoReplayTarget { biz_type: biz.name.clone() });
    }
    match (request, request.bytes()) {
        (_, Some(_)) => Ok(()),
        (Body::Decoded(_), None) => Err(Unable::RequestInColumns),
        (Body::Unreadable(reason), None) => Err(Unable::RequestUnreadable { reason: reason.to_string() }),
        (_, None) => Err(Unable::NoRequest),
    }
}

async fn drain(mut response: reqwest::Response) {
    let mut read = 0;
    while read < READ_AT_MOST {
        match response.chunk().await {
            Ok(Some(chunk)) => read += chunk.len(),
            // The status has been heard; the rest does not matter.
            Ok(None) | Err(_) => break,
        }
    }
}

/// Tokens that come back with time.
pub(crate) struct Bucket {
    pub(crate) rate: Rate,
    tokens: f64,
    filled_at: DateTime<Utc>,
}

impl Bucket {
    pub(crate) fn full(rate: Rate, now: DateTime<Utc>) -> Self {
        Self { rate, tokens: f64::from(rate.count), filled_at: now }
    }

    pub(crate) fn take(&mut self, now: DateTime<Utc>) -> bool {
        // A clock that went back gives nothing.
        let passed = (now - self.filled_at).to_std().unwrap_or_default();
        self.filled_at = self.filled_at.max(now);
        let count = f64::from(self.rate.count);
        self.tokens = (self.tokens + passed.as_secs_f64() / self.rate.per.as_secs_f64() * count).min(count);
        let has = self.tokens >= 1.0;
        if has {
            self.tokens -= 1.0;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn a_rate_is_kept_and_comes_back_with_time() {
        let start = DateTime::UNIX_EPOCH;
        let mut bucket = Bucket::full(Rate { count: 2, per: Duration::from_secs(1) }, start);
        assert_eq!([bucket.take(start), bucket.take(start), bucket.take(start)], [true, true, false]);
        assert!(!bucket.take(start - TimeDelta::hours(1)));
        assert!(bucket.take(start + TimeDelta::milliseconds(500)));
        assert!(!bucket.take(start + TimeDelta::milliseconds(600)));
    }
}
