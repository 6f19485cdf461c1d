//! Final answers in Redis. Written by the process that was granted the claim, after its commit: one command for a
//! request that is soon done. Read only for keys this process has met before, so that a first request asks nothing.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kv::{KvError, Redis, Script};
use serde::{Deserialize, Serialize};

use crate::answer::Stored;
use crate::settings::{Cache, Shared};
use crate::table::{Encoding, Hold, STATUS_PROCESSING, STATUS_SUCCESS, headers_json, parse_headers};
use crate::ticket::Ticket;

/// Longer bodies are read from the table.
const MAX_BODY: usize = 256 << 10;

/// PROCESSING never takes the place of what is final or newer.
static ANNOUNCE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local old = redis.call('GET', KEYS[1]) \
         if old then \
           local readable, entry = pcall(cjson.decode, old) \
           if not readable or type(entry) ~= 'table' or entry.status ~= 'PROCESSING' \
             or (tonumber(entry.fence) or 0) > tonumber(ARGV[2]) then return 0 end \
         end \
         redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3]) return 1",
    )
});

/// Removes the announcement of one claim and nothing else.
static RECALL: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local old = redis.call('GET', KEYS[1]) \
         if not old then return 0 end \
         local readable, entry = pcall(cjson.decode, old) \
         if not readable or type(entry) ~= 'table' or entry.status ~= 'PROCESSING' \
           or tonumber(entry.fence) ~= tonumber(ARGV[1]) then return 0 end \
         return redis.call('DEL', KEYS[1])",
    )
});

/// An entry: the record's words, versioned by its fence.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    status: String,
    fence: i64,
    biz_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_headers: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_body: Option<String>,
}

/// What Redis knows about a request.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    Answer(Stored),
    /// Done, and the answer is in the table only.
    Done,
    /// The key belongs to another request, and that one is done.
    Mismatch,
}

#[derive(Clone)]
pub(crate) struct SharedCache(Arc<Shared>);

impl SharedCache {
    pub(crate) fn of(cache: &Cache) -> Option<SharedCache> {
        match cache {
            Cache::Redis(_, shared) => Some(SharedCache(Arc::new(shared.clone()))),
            Cache::None | Cache::InProcess(_) => None,
        }
    }

    /// What is known about the ticket; a Redis that does not answer knows nothing.
    pub(crate) async fn find(&self, ticket: &Ticket, biz_type: &str) -> Found {
        match self.redis().get(&self.key(&ticket.key)).await {
            Ok(Some(value)) => read(&value, ticket, biz_type),
            Ok(None) => Found::Nothing,
            Err(e) => lost(&e, Found::Nothing),
        }
    }

    /// Keeps a final answer for `life`.
    pub(crate) async fn keep(
        &self,
        hold: &Hold,
        ticket: &Ticket,
        biz_type: &str,
        stored: &Stored,
        life: Duration,
    ) {
        let (body, encoding) = match stored.body.as_ref().filter(|body| body.len() <= MAX_BODY) {
            Some(body) => match std::str::from_utf8(body) {
                Ok(text) => (Some(text.to_owned()), Encoding::Plain),
                Err(_) => (Some(BASE64_STANDARD.encode(body)), Encoding::Base64),
            },
            None => (None, Encoding::Plain),
        };
        let entry = Entry {
            response_status: Some(stored.status.as_u16()),
            response_headers: Some(headers_json(&stored.headers, encoding)),
            response_body: body,
            ..entry(STATUS_SUCCESS, hold, ticket, biz_type)
        };
        let kept = self.redis().set(&self.key(&hold.id), &bytes(&entry), life).await;
        kept.unwrap_or_else(|e| lost(&e, ()));
    }

    /// Says that the claim is being worked on, for as long as its lease lasts and no longer.
    pub(crate) async fn announce(&self, hold: &Hold, ticket: &Ticket, biz_type: &str, lease: Duration) {
        let value = bytes(&entry(STATUS_PROCESSING, hold, ticket, biz_type));
        let ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let announced =
            self.redis().call(&ANNOUNCE, &[&self.key(&hold.id)], &[&value, &hold.fence, &ms]).await;
        announced.unwrap_or_else(|e| lost(&e, false));
    }

    /// Takes an announcement back.
    pub(crate) async fn recall(&self, hold: &Hold) {
        let recalled = self.redis().call(&RECALL, &[&self.key(&hold.id)], &[&hold.fence]).await;
        recalled.unwrap_or_else(|e| lost(&e, false));
    }

    /// Lets an entry live for `life` from now.
    pub(crate) async fn extend(&self, key: &str, life: Duration) {
        self.redis().extend(&self.key(key), life).await.unwrap_or_else(|e| lost(&e, false));
    }

    fn redis(&self) -> &Redis {
        &self.0.redis
    }

    fn key(&self, id: &str) -> String {
        format!("{}{id}", self.0.prefix)
    }
}

fn entry(status: &str, hold: &Hold, ticket: &Ticket, biz_type: &str) -> Entry {
    Entry {
        status: status.to_owned(),
        fence: hold.fence,
        biz_type: biz_type.to_owned(),
        tenant: ticket.tenant.clone(),
        fingerprint: ticket.fingerprint.clone(),
        response_status: None,
        response_headers: None,
        response_body: None,
    }
}

fn bytes(entry: &Entry) -> Vec<u8> {
    serde_json::to_vec(entry).expect("texts and numbers are JSON")
}

/// Only success is believed; everything else is for the table to say.
fn read(value: &[u8], ticket: &Ticket, biz_type: &str) -> Found {
    let Ok(entry) = serde_json::from_slice::<Entry>(value) else {
        // The bare word, as other writers keep it.
        return if value == STATUS_SUCCESS.as_bytes() { Found::Done } else { Found::Nothing };
    };
    if entry.status != STATUS_SUCCESS || entry.biz_type != biz_type || entry.tenant != ticket.tenant {
        return Found::Nothing;
    }
    if entry.fingerprint != ticket.fingerprint {
        return Found::Mismatch;
    }
    let (headers, encoding) = parse_headers(entry.response_headers.as_deref().unwrap_or_default());
    let status = entry.response_status.and_then(|code| StatusCode::from_u16(code).ok());
    match (status, entry.response_body.and_then(|body| encoding.decode(body.into_bytes()))) {
        (Some(status), Some(body)) => {
            Found::Answer(Stored { status, headers, body: Some(Bytes::from(body)), tombstone: false })
        }
        _ => Found::Done,
    }
}

/// The table decides without Redis as it does with it.
fn lost<T>(error: &KvError, instead: T) -> T {
    tracing::debug!(%error, "Redis was not asked; the table decides");
    instead
}
