//! Bodies and headers as the record keeps them: text where the column can hold it, else base64, else nothing.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use db::Value;

use super::{Columns, status_word};
use crate::answer::Stored;

/// Stands among the headers of a body that is kept in base64; no header can be called so.
const BASE64_MARK: &str = ":base64";

/// How a kept body is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Base64,
}

impl Encoding {
    pub(crate) fn decode(self, kept: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Encoding::Plain => Some(kept),
            Encoding::Base64 => BASE64_STANDARD.decode(kept).ok(),
        }
    }
}

/// A response in the record's columns.
pub(super) struct Kept {
    body: Option<String>,
    headers: String,
    pub tombstone: bool,
}

impl Kept {
    /// In the order of the outcome statements.
    pub(super) fn values(self, stored: &Stored, phase: &str) -> Vec<Value> {
        vec![
            status_word(stored.status).into(),
            phase.into(),
            i64::from(stored.status.as_u16()).into(),
            self.headers.into(),
            self.body.into(),
        ]
    }
}

pub(super) fn keep(stored: &Stored, columns: &Columns) -> Kept {
    let (body, encoding) = match stored.body.as_deref().map(|body| spell(body, columns)) {
        Some(Some((text, encoding))) => (Some(text), encoding),
        Some(None) | None => (None, Encoding::Plain),
    };
    let tombstone = body.is_none();
    let all = headers_json(&stored.headers, encoding);
    let headers = if columns.response_headers.fits(&all) {
        all
    } else {
        let kind = stored.headers.get(CONTENT_TYPE).cloned();
        headers_json(&kind.into_iter().map(|kind| (CONTENT_TYPE, kind)).collect(), encoding)
    };
    Kept { body, headers, tombstone }
}

fn spell(body: &[u8], columns: &Columns) -> Option<(String, Encoding)> {
    if let Some(text) = text_of(body).filter(|text| columns.response.fits(text)) {
        return Some((text.to_owned(), Encoding::Plain));
    }
    // A third longer, so not even tried when it cannot fit.
    let digits = columns.response.holds_bytes(body.len() / 3 * 4).then(|| BASE64_STANDARD.encode(body))?;
    columns.response.fits(&digits).then_some((digits, Encoding::Base64))
}

/// A request that the column cannot hold as it is, is not kept: sending it again could not give the same bytes.
pub(super) fn request(body: &[u8], columns: &Columns) -> Option<String> {
    text_of(body).filter(|text| columns.request.fits(text)).map(str::to_owned)
}

fn text_of(body: &[u8]) -> Option<&str> {
    std::str::from_utf8(body).ok().filter(|text| !text.contains('\0'))
}

/// `[["name","value"],…]`, in order, names repeated as they were.
pub(crate) fn headers_json(headers: &HeaderMap, encoding: Encoding) -> String {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        Some([name.as_str().to_owned(), std::str::from_utf8(value.as_bytes()).ok()?.to_owned()])
    };
    let mark = (encoding == Encoding::Base64).then(|| [BASE64_MARK.to_owned(), String::new()]);
    let all: Vec<[String; 2]> = headers.iter().filter_map(text).chain(mark).collect();
    serde_json::json!(all).to_string()
}

pub(crate) fn parse_headers(json: &str) -> (HeaderMap, Encoding) {
    let all: Vec<(String, String)> = serde_json::from_str(json).unwrap_or_default();
    let encoding = match all.iter().any(|(name, _)| name == BASE64_MARK) {
        true => Encoding::Base64,
        false => Encoding::Plain,
    };
    let parsed = all.iter().filter_map(|(name, value)| {
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    let mut headers = HeaderMap::new();
    for (name, value) in parsed {
        headers.append(name, value);
    }
    (headers, encoding)
}

pub(super) fn json_content() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_in_order_and_repeated() {
        let mut headers = json_content();
        headers.append("x-order", "a".parse().unwrap());
        headers.append("x-order", "b".parse().unwrap());
        for encoding in [Encoding::Plain, Encoding::Base64] {
            assert_eq!(parse_headers(&headers_json(&headers, encoding)), (headers.clone(), encoding));
        }
        assert_eq!(parse_headers("no json"), (HeaderMap::new(), Encoding::Plain));
    }
}
