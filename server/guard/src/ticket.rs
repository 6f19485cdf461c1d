//! A request as the guard sees it: its key, its business number, its fingerprint.

use axum::body::Bytes;
use axum::http::request::Parts;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::answer::Refusal;
use crate::fingerprint::fingerprint;
use crate::policy::{Compute, KeySource, Pick, Policy, scalar};

/// The header that carries the caller's key.
pub(crate) const KEY_HEADER: &str = "idempotency-key";

/// Key and business number fit columns of this many characters.
const MAX_CHARS: usize = 255;

#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub key: String,
    pub tenant: Option<String>,
    pub biz_no: Option<String>,
    pub fingerprint: String,
    pub method: String,
    pub path_and_query: String,
    pub body: Bytes,
}

impl Ticket {
    /// Reads the request; refuses one without a usable key.
    pub(crate) fn read(policy: &Policy, parts: &Parts, body: Bytes) -> Result<Ticket, Refusal> {
        let json: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let key = match &policy.key {
            KeySource::Header => header_key(parts)?,
            KeySource::Template(template) => template
                .fill(&json)
                .ok_or(Refusal::BadKey("the body lacks the numbers its key is made of"))?,
            KeySource::Computed(compute) => compute
                .find(parts, &body)
                .ok_or(Refusal::BadKey("the request lacks what its key is made of"))?,
        };
        check_key(&key)?;
        let tenant = match &policy.tenant {
            Some(from) => Some(pick(from, parts, &body, &json).ok_or(Refusal::NoTenant)?),
            None => None,
        };
        let biz_no = policy.biz_no.as_ref().and_then(|from| pick(from, parts, &body, &json));
        if biz_no
            .as_ref()
            .is_some_and(|no| no.chars().count() > MAX_CHARS || no.chars().any(char::is_control))
        {
            return Err(Refusal::BadKey("the business number is longer than 255 characters or malformed"));
        }
        let method = parts.method.as_str().to_owned();
        let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let fingerprint = match &policy.same {
            Some(same) => shared(same, parts, &body)?,
            None => fingerprint(&method, &path_and_query, &body),
        };
        Ok(Ticket { key, tenant, biz_no, fingerprint, method, path_and_query, body })
    }

    /// Whether a stored request without a fingerprint is this request.
    pub(crate) fn same_as(&self, stored_request: &[u8]) -> bool {
        fingerprint(&self.method, &self.path_and_query, stored_request) == self.fingerprint
    }
}

/// The digest of what the same requests share.
fn shared(same: &Compute, parts: &Parts, body: &[u8]) -> Result<String, Refusal> {
    let text =
        same.find(parts, body).ok_or(Refusal::BadKey("the request lacks what tells it from others"))?;
    Ok(hex::encode(Sha256::digest(text)))
}

fn header_key(parts: &Parts) -> Result<String, Refusal> {
    let mut values = parts.headers.get_all(KEY_HEADER).iter();
    let first = values.next().ok_or(Refusal::BadKey("the Idempotency-Key header is missing"))?;
    if values.next().is_some() {
        return Err(Refusal::BadKey("the Idempotency-Key header is there more than once"));
    }
    std::str::from_utf8(first.as_bytes())
        .map(str::to_owned)
        .map_err(|_| Refusal::BadKey("the idempotency key is not UTF-8"))
}

fn check_key(key: &str) -> Result<(), Refusal> {
    if key.is_empty() {
        return Err(Refusal::BadKey("the idempotency key is empty"));
    }
    if key.chars().count() > MAX_CHARS {
        return Err(Refusal::BadKey("the idempotency key is longer than 255 characters"));
    }
    if key.chars().any(char::is_control) {
        return Err(Refusal::BadKey("the idempotency key has control characters"));
    }
    // Databases that pad with spaces would take "a" and "a " for one key.
    if key.trim() != key {
        return Err(Refusal::BadKey("the idempotency key begins or ends with a space"));
    }
    Ok(())
}

fn pick(from: &Pick, parts: &Parts, body: &[u8], json: &Value) -> Option<String> {
    match from {
        Pick::Pointer(pointer) => scalar(json.pointer(pointer)?),
        Pick::Header(name) => parts.headers.get(name)?.to_str().ok().map(str::to_owned),
        Pick::Computed(compute) => compute.find(parts, body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c17_keys_are_counted_in_characters_and_bad_ones_refused() {
        for good in ["a", "a b", &"a".repeat(255), &"😂".repeat(64)] {
            assert!(check_key(good).is_ok(), "{good:?}");
        }
        for bad in ["", " ", "a ", " a", "a\u{0}b", "a\tb", &"a".repeat(256), &"😂".repeat(256)] {
            assert!(check_key(bad).is_err(), "{bad:?}");
        }
    }
}
