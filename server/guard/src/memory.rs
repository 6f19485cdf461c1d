//! Final answers in the memory of this process. Only SUCCESS is remembered: nothing changes it any more, so a
//! remembered answer cannot contradict the record.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Method;
use tokio::time::Instant;

use crate::answer::Stored;
use crate::generations::Generations;
use crate::settings::Cache;
use crate::ticket::{Known, Ticket};

/// Longer requests are compared by their fingerprint instead of being kept.
const MAX_KEPT_REQUEST: usize = 16 << 10;

/// What an entry costs besides its bytes.
const OVERHEAD: usize = 512;

/// A share of the memory: requests of different keys rarely meet at one lock.
const SHARDS: usize = 16;

struct Entry {
    method: Method,
    path_and_query: Box<str>,
    request: Option<Bytes>,
    fingerprint: Box<str>,
    answer: Arc<Stored>,
    until: Instant,
    weight: usize,
}

/// What memory knows about a request.
pub(crate) enum Recalled {
    Nothing,
    Answer(Arc<Stored>),
    /// The key belongs to another request.
    Mismatch,
}

type Shard = Generations<Box<str>, Entry>;

/// `None`: nothing is remembered here.
pub(crate) struct Memory(Option<[Mutex<Shard>; SHARDS]>);

impl Memory {
    pub(crate) fn new(cache: &Cache) -> Memory {
        let local = match cache {
            Cache::None => return Memory(None),
            Cache::InProcess(local) | Cache::Redis(local, _) => local,
        };
        Memory(Some(std::array::from_fn(|_| Mutex::new(Generations::new(local.max_bytes / SHARDS)))))
    }

    pub(crate) fn recall(&self, known: &Known) -> Recalled {
        let Some(mut shard) = self.shard(&known.scoped) else { return Recalled::Nothing };
        let Some(entry) = shard.get(known.scoped.as_str(), |entry| entry.weight) else {
            return Recalled::Nothing;
        };
        if entry.until <= Instant::now() {
            shard.remove(known.scoped.as_str());
            return Recalled::Nothing;
        }
        let answer = entry.answer.clone();
        if entry.has_bytes_of(known) {
            return Recalled::Answer(answer);
        }
        let fingerprint = entry.fingerprint.clone();
        // Hashing a long body must not keep others waiting.
        drop(shard);
        match *fingerprint == known.fingerprint() {
            true => Recalled::Answer(answer),
            false => Recalled::Mismatch,
        }
    }

    pub(crate) fn remember(&self, ticket: &Ticket, answer: &Arc<Stored>, life: Duration) {
        if life.is_zero() {
            return;
        }
        let Some(mut shard) = self.shard(&ticket.scoped) else { return };
        let request = Some(&ticket.asked.body).filter(|body| body.len() <= MAX_KEPT_REQUEST).cloned();
        let weight = OVERHEAD
            + ticket.scoped.len()
            + request.as_ref().map_or(0, Bytes::len)
            + answer.body.as_ref().map_or(0, Bytes::len);
        let entry = Entry {
            method: ticket.asked.method.clone(),
            path_and_query: ticket.asked.path_and_query().into(),
            request,
            fingerprint: ticket.fingerprint.as_str().into(),
            answer: answer.clone(),
            until: Instant::now() + life,
            weight,
        };
        shard.insert(ticket.scoped.as_str().into(), entry, weight);
    }

    /// The maps are whole after every step, so a panic elsewhere does not spoil them.
    fn shard(&self, key: &str) -> Option<MutexGuard<'_, Shard>> {
        let sum = key.bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let shards = self.0.as_ref()?;
        Some(shards[sum % SHARDS].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entry {
    fn has_bytes_of(&self, known: &Known) -> bool {
        known.counts_by_bytes()
            && self.request.as_ref() == Some(&known.asked.body)
            && self.method == known.asked.method
            && *self.path_and_query == *known.asked.path_and_query()
    }
}
