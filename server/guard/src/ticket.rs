//! A request as the guard sees it: its key and whose it is; then its fingerprint and business number.

use std::cell::OnceCell;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::answer::Refusal;
use crate::canonical;
use crate::fingerprint;
use crate::policy::{Compute, KeySource, Pick, Policy, scalar};
use crate::table::Columns;

/// The header that carries the caller's key.
pub(crate) const KEY_HEADER: &str = "idempotency-key";

/// No key or business number is longer than this many characters, whatever the columns hold.
const MAX_CHARS: usize = 255;

/// What was asked, enough to look it up in memory.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub method: Method,
    pub uri: Uri,
    pub is_form: bool,
    pub body: Bytes,
}

/// A request with its identity.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    /// The key as the caller gave it: the record's id, unless that belongs to another scope.
    pub key: String,
    /// The key with its scope, unlike any other scope's: the record's id then, and the key's name in this process.
    pub scoped: String,
    pub tenant: Option<String>,
    /// Found when the table has to be asked.
    pub biz_no: Option<String>,
    pub fingerprint: String,
    pub asked: Asked,
}

/// A request whose key is known and nothing else.
#[derive(Debug)]
pub(crate) struct Known {
    pub key: String,
    pub scoped: String,
    pub tenant: Option<String>,
    pub asked: Asked,
    /// What the route says makes requests the same, instead of all that was asked.
    same: Option<String>,
}

impl Asked {
    pub(crate) fn new(parts: &Parts, body: Bytes) -> Asked {
        let form = |kind: &[u8]| kind.starts_with(b"application/x-www-form-urlencoded");
        Asked {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            is_form: parts.headers.get(CONTENT_TYPE).is_some_and(|kind| form(kind.as_bytes())),
            body,
        }
    }

    pub(crate) fn path_and_query(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }

    fn fingerprint_of(&self, body: &[u8]) -> String {
        fingerprint::of(self.method.as_str(), self.path_and_query(), self.is_form, body)
    }

    /// The body as JSON; a form's pairs become fields.
    fn json(&self) -> Value {
        if !self.is_form {
            return serde_json::from_slice(&self.body).unwrap_or(Value::Null);
        }
        let pairs = canonical::form(&self.body).into_iter();
        let text = |bytes| String::from_utf8(bytes).ok();
        let fields = pairs.filter_map(|(name, value)| Some((text(name)?, Value::String(text(value)?))));
        Value::Object(fields.collect())
    }
}

/// What a request is searched for its values in; its JSON is read once, and only if it is needed.
struct Source<'a> {
    parts: &'a Parts,
    asked: &'a Asked,
    json: OnceCell<Value>,
}

impl Source<'_> {
    fn json(&self) -> &Value {
        self.json.get_or_init(|| self.asked.json())
    }

    fn pick(&self, from: &Pick) -> Option<String> {
        match from {
            Pick::Pointer(pointer) => scalar(self.json().pointer(pointer)?),
            Pick::Header(name) => self.parts.headers.get(name)?.to_str().ok().map(str::to_owned),
            Pick::Computed(compute) => compute.find(self.parts, &self.asked.body),
        }
    }

    fn key(&self, from: &KeySource) -> Result<String, Refusal> {
        match from {
            KeySource::Header => header_key(self.parts),
            KeySource::Template(template) => template
                .fill(self.json())
                .ok_or(Refusal::BadKey("the body lacks the numbers its key is made of")),
            KeySource::Computed(compute) => compute
                .find(self.parts, &self.asked.body)
                .ok_or(Refusal::BadKey("the request lacks what its key is made of")),
        }
    }
}

impl Known {
    /// Reads the key; refuses a request without a usable one.
    pub(crate) fn read(
        policy: &Policy,
        columns: &Columns,
        parts: &Parts,
        asked: Asked,
    ) -> Result<Known, Refusal> {
        let source = Source { parts, asked: &asked, json: OnceCell::new() };
        let tenant = match &policy.tenant {
            Some(from) => {
                Some(source.pick(from).filter(|tenant| columns.tenant.fits(tenant) && is_plain(tenant)))
                    .map(|tenant| tenant.ok_or(Refusal::NoTenant))
                    .transpose()?
            }
            None => None,
        };
        let tag = tag(&policy.biz_type, tenant.as_deref());
        let given = source.key(&policy.key)?;
        // What the table calls the key comes back when an operator sends a stored request again.
        let key = given.strip_suffix(&tag).filter(|key| !key.is_empty()).unwrap_or(&given).to_owned();
        check_key(&key, columns)?;
        let scoped = scoped(&key, &tag, columns);
        let same = policy.same.as_ref().map(|same| digest(same, parts, &asked.body)).transpose()?;
        Ok(Known { key, scoped, tenant, asked, same })
    }

    /// Whether equal bytes make an equal request.
    pub(crate) fn counts_by_bytes(&self) -> bool {
        self.same.is_none()
    }

    pub(crate) fn fingerprint(&self) -> String {
        self.same.clone().unwrap_or_else(|| self.asked.fingerprint_of(&self.asked.body))
    }

    /// A key given by code instead of a request.
    pub(crate) fn direct(
        policy: &Policy,
        columns: &Columns,
        key: &str,
        tenant: Option<String>,
        asked: Asked,
    ) -> Result<Known, Refusal> {
        check_key(key, columns)?;
        let scoped = scoped(key, &tag(&policy.biz_type, tenant.as_deref()), columns);
        Ok(Known { key: key.to_owned(), scoped, tenant, asked, same: None })
    }

    /// The whole ticket; refuses a business number that no record could carry.
    pub(crate) fn ticket(self, policy: &Policy, columns: &Columns, parts: &Parts) -> Result<Ticket, Refusal> {
        let source = Source { parts, asked: &self.asked, json: OnceCell::new() };
        let biz_no = policy.biz_no.as_ref().and_then(|from| source.pick(from));
        self.ticket_with(columns, biz_no)
    }

    pub(crate) fn ticket_with(self, columns: &Columns, biz_no: Option<String>) -> Result<Ticket, Refusal> {
        let fits = |no: &String| no.chars().count() <= MAX_CHARS && columns.biz_no.fits(no) && is_plain(no);
        if biz_no.as_ref().is_some_and(|no| !fits(no)) {
            return Err(Refusal::BadKey("the business number is too long for its column or malformed"));
        }
        let fingerprint = self.fingerprint();
        let Known { key, scoped, tenant, asked, .. } = self;
        Ok(Ticket { key, scoped, tenant, biz_no, fingerprint, asked })
    }
}

impl Ticket {
    /// Whether a stored request without a fingerprint is this request.
    pub(crate) fn same_as(&self, stored_request: &[u8]) -> bool {
        self.asked.fingerprint_of(stored_request) == self.fingerprint
    }
}

/// The digest of what the same requests share.
fn digest(same: &Compute, parts: &Parts, body: &[u8]) -> Result<String, Refusal> {
    let text =
        same.find(parts, body).ok_or(Refusal::BadKey("the request lacks what tells it from others"))?;
    Ok(hex::encode(Sha256::digest(text)))
}

/// What sets a scope's keys apart where the plain key is taken.
fn tag(biz_type: &str, tenant: Option<&str>) -> String {
    match tenant {
        Some(tenant) => format!("@{biz_type}@{tenant}"),
        None => format!("@{biz_type}"),
    }
}

/// A key too long to carry its tag is named by its hash.
fn scoped(key: &str, tag: &str, columns: &Columns) -> String {
    let scoped = format!("{key}{tag}");
    let short = scoped.len() <= MAX_CHARS || scoped.chars().count() <= MAX_CHARS;
    if short && columns.key.fits(&scoped) {
        return scoped;
    }
    let room = columns.key.room().min(MAX_CHARS);
    let name = hex::encode(Sha256::digest(scoped.as_bytes()));
    let short_tag = if tag.is_ascii() && name.len() + tag.len() <= room { tag } else { "" };
    format!("{}{short_tag}", &name[..name.len().min(room)])
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

fn check_key(key: &str, columns: &Columns) -> Result<(), Refusal> {
    if key.is_empty() {
        return Err(Refusal::BadKey("the idempotency key is empty"));
    }
    if key.len() > MAX_CHARS && key.chars().count() > MAX_CHARS {
        return Err(Refusal::BadKey("the idempotency key is longer than 255 characters"));
    }
    if !is_plain(key) {
        return Err(Refusal::BadKey("the idempotency key has control characters"));
    }
    // Databases that pad with spaces would take "a" and "a " for one key.
    if key.trim() != key {
        return Err(Refusal::BadKey("the idempotency key begins or ends with a space"));
    }
    if !columns.key.fits(key) {
        return Err(Refusal::BadKey(
            "the idempotency key is longer than its column, or has characters it cannot hold",
        ));
    }
    Ok(())
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c17_keys_are_counted_in_characters_and_bad_ones_refused() {
        let columns = Columns::unlimited();
        for good in ["a", "a b", &"a".repeat(255), &"😂".repeat(64)] {
            assert!(check_key(good, &columns).is_ok(), "{good:?}");
        }
        for bad in ["", " ", "a ", " a", "a\u{0}b", "a\tb", &"a".repeat(256), &"😂".repeat(256)] {
            assert!(check_key(bad, &columns).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a6_every_scope_has_its_own_name_for_a_key_and_none_is_too_long() {
        let columns = Columns::unlimited();
        assert_eq!(scoped("k", &tag("PAY", None), &columns), "k@PAY");
        assert_eq!(scoped("k", &tag("PAY", Some("t1")), &columns), "k@PAY@t1");
        let long = "a".repeat(255);
        let [pay, order] = ["PAY", "ORDER"].map(|biz_type| scoped(&long, &tag(biz_type, None), &columns));
        assert!(pay.len() <= 255 && pay.ends_with("@PAY") && order.ends_with("@ORDER"));
        assert_ne!(pay, scoped(&"b".repeat(255), "@PAY", &columns));
    }
}
