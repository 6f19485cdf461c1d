//! `[source.biz.reverse_check.http]`: a query endpoint that knows whether the effect happened.

use super::list::one_or_many;
use super::value::{Pointer, Rate, Secret, Span, ValueTest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A query endpoint, and what its answers mean. An answer that no rule covers proves nothing.
///
/// Every template may hold `{biz_no}`, `{key}`, `{biz_type}`, `{id}`, `{column.user_id}`, `{/pointer}` into the request,
/// `{timestamp}` (seconds), `{timestamp_ms}` and `{nonce}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawHttp")]
pub struct HttpCheck {
    pub method: String,
    pub url: Secret,
    pub headers: BTreeMap<String, Secret>,
    pub body: Option<Secret>,
    pub content_type: String,
    pub timeout: Duration,
    pub rate: Rate,
    pub sign: Option<Sign>,
    pub found: Vec<AnswerRule>,
    pub absent: Vec<AnswerRule>,
    pub mismatch: Vec<AnswerRule>,
    pub row: BTreeMap<String, AnswerField>,
}

/// The keys as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHttp {
    #[serde(default)]
    method: Option<String>,
    /// `url = "https://pay.example.com/v3/out-trade-no/{biz_no}?mchid={/mch_id}"`; values are encoded for it and
    /// never lead to another host or another path.
    url: Secret,
    /// `headers = { Authorization = "Bearer ${CHANNEL_TOKEN}" }`.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
    /// `body = '{"out_trade_no":"{biz_no}"}'`; values are encoded as `content_type` says.
    #[serde(default)]
    body: Option<Secret>,
    /// `"application/json"` unless said otherwise.
    #[serde(default)]
    content_type: Option<String>,
    /// Longest one query may take: `timeout = "5s"`.
    #[serde(default)]
    timeout: Option<Span>,
    /// Most queries of this check: `rate = "10/s"`. More are `unavailable`.
    #[serde(default)]
    rate: Option<Rate>,
    #[serde(default)]
    sign: Option<Sign>,
    /// `found = { status = [200], when = { "/trade_state" = "SUCCESS" } }`; several rules are a list.
    #[serde(default, deserialize_with = "one_or_many")]
    found: Vec<AnswerRule>,
    /// `absent = { status = [404], when = { "/code" = "ORDER_NOT_EXIST" } }`.
    #[serde(default, deserialize_with = "one_or_many")]
    absent: Vec<AnswerRule>,
    /// `mismatch = { when = { "/trade_state" = ["CLOSED", "REFUND"] } }`.
    #[serde(default, deserialize_with = "one_or_many")]
    mismatch: Vec<AnswerRule>,
    /// What the answer says of the effect, to be compared like a business row: `row = { amount = "/amount/total" }`.
    #[serde(default)]
    row: BTreeMap<String, AnswerField>,
}

impl TryFrom<RawHttp> for HttpCheck {
    type Error = String;

    fn try_from(raw: RawHttp) -> Result<Self, String> {
        if raw.found.is_empty() {
            return Err("http needs found = { when = { \"/pointer\" = \"value\" } }: what the answer says when the effect happened".into());
        }
        let method = raw.method.unwrap_or_else(|| if raw.body.is_some() { "POST" } else { "GET" }.into());
        Ok(Self {
            method,
            url: raw.url,
            headers: raw.headers,
            body: raw.body,
            content_type: raw.content_type.unwrap_or_else(|| "application/json".into()),
            timeout: raw.timeout.map_or(Duration::from_secs(5), Span::get),
            rate: raw.rate.unwrap_or(Rate { count: 10, per: Duration::from_secs(1) }),
            sign: raw.sign,
            found: raw.found,
            absent: raw.absent,
            mismatch: raw.mismatch,
            row: raw.row,
        })
    }
}

/// An answer: one of some statuses (200 unless said otherwise), and every pointer into it with one of its values.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawRule")]
pub struct AnswerRule {
    pub status: Vec<u16>,
    pub when: BTreeMap<Pointer, ValueTest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    #[serde(default)]
    status: Option<Statuses>,
    #[serde(default)]
    when: BTreeMap<Pointer, ValueTest>,
    /// The status alone says it, whatever stands in the answer.
    #[serde(default)]
    any_body: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a status like 404, or a list of them")]
enum Statuses {
    One(u16),
    Many(Vec<u16>),
}

impl TryFrom<RawRule> for AnswerRule {
    type Error = String;

    fn try_from(raw: RawRule) -> Result<Self, String> {
        let status = match raw.status {
            None => vec![200],
            Some(Statuses::One(status)) => vec![status],
            Some(Statuses::Many(statuses)) => statuses,
        };
        if let Some(wrong) = status.iter().find(|status| !is_telling(**status)) {
            return Err(format!(
                "an answer {wrong} proves nothing, so no rule can name it; 2xx, 400, 404, 409, 410 and 422 can be named"
            ));
        }
        if status.is_empty() || raw.when.is_empty() != raw.any_body {
            return Err(
                "write when = { \"/pointer\" = \"value\" }, because any gateway can answer with a status; \
                        or any_body = true if the status alone really says it"
                    .into(),
            );
        }
        Ok(Self { status, when: raw.when })
    }
}

/// Redirects, refusals, rate limits, timeouts and server errors say nothing about the effect.
fn is_telling(status: u16) -> bool {
    matches!(status, 200..=299 | 400 | 404 | 409 | 410 | 422)
}

/// A value of the answer: `"/amount/total"`, or `{ pointer = "/amount/total", shift = -2 }` to read cents as units.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawField")]
pub struct AnswerField {
    pub pointer: Pointer,
    /// Places the decimal point moves to the right.
    pub shift: i8,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a JSON pointer, or { pointer = \"/amount/total\", shift = -2 }")]
enum RawField {
    Plain(Pointer),
    Shifted(Shifted),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shifted {
    pointer: Pointer,
    shift: i8,
}

impl TryFrom<RawField> for AnswerField {
    type Error = String;

    fn try_from(raw: RawField) -> Result<Self, String> {
        match raw {
            RawField::Plain(pointer) => Ok(Self { pointer, shift: 0 }),
            RawField::Shifted(Shifted { pointer, shift: shift @ -12..=12 }) => Ok(Self { pointer, shift }),
            RawField::Shifted(_) => Err("shift is between -12 and 12; -2 reads cents as units".into()),
        }
    }
}

/// A keyed hash over a template: `sign = { header = "X-Sign", secret = "${KEY}", template = "{method}\n{path}\n{timestamp}\n{body}" }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sign {
    /// The header that carries the signature; without one, `{signature}` in a header, the url or the body does.
    #[serde(default)]
    pub header: Option<String>,
    pub secret: Secret,
    /// How the secret is written: `"text"` (default), `"hex"` or `"base64"`.
    #[serde(default)]
    pub secret_encoding: SecretEncoding,
    /// What is signed; besides the usual placeholders `{method}`, `{url}`, `{host}`, `{path}` (with the query), `{body}`
    /// and `{body_sha256}`.
    pub template: Secret,
    #[serde(default)]
    pub algorithm: Algorithm,
    /// `"hex"` (default) or `"base64"`.
    #[serde(default)]
    pub encoding: Encoding,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretEncoding {
    #[default]
    Text,
    Hex,
    Base64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    #[default]
    HmacSha256,
    HmacSha512,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    #[default]
    Hex,
    Base64,
}
