//! Memory in place of a record: for traffic that needs no more than one run at a time and a short memory.
//!
//! Nothing is written anywhere, so nothing survives this process and nothing is shared with others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, COOKIE, RANGE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::answer::{Refusal, Stored};
use crate::capture::capture;
use crate::flight::{Flights, Heard, Join, Lead, Told};
use crate::guard::Guard;
use crate::happening::Happening;
use crate::layer::Handler;
use crate::policy::{Compute, KeySource, Policy};
use crate::ticket::{KEY_HEADER, Ticket};
use crate::tokens::Subject;

/// What an entry costs beside its bytes.
const OVERHEAD: usize = 256;

/// Most duplicates that wait at once for one route's runs.
const MAX_WAITERS: usize = 20_000;

/// What tells one caller's view from another's, besides the address.
const VIEW: [HeaderName; 6] = [AUTHORIZATION, COOKIE, ACCEPT, ACCEPT_LANGUAGE, ACCEPT_ENCODING, RANGE];

/// How long answers are remembered, and for which requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRules {
    /// How long after a good answer duplicates get it.
    pub span: Duration,
    /// Most memory for answers; the oldest go first.
    pub max_bytes: usize,
    pub covers: Covers,
}

/// Which requests a window covers; others pass through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// GET and HEAD: their effect is an answer.
    Reads,
    /// Those with an `Idempotency-Key`. Without one, two equal requests may both be meant.
    Keyed,
}

impl WindowRules {
    /// Sixteen MiB of answers.
    pub fn new(span: Duration, covers: Covers) -> WindowRules {
        WindowRules { span, max_bytes: 16 << 20, covers }
    }
}

/// The memory of one route.
#[derive(Clone)]
pub struct Window {
    rules: WindowRules,
    flights: Flights,
    kept: Arc<Mutex<Kept>>,
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// All entries live equally long, so the order of arrival is the order of leaving.
#[derive(Default)]
struct Kept {
    entries: HashMap<String, Entry>,
    arrivals: VecDeque<(Instant, String)>,
    bytes: usize,
}

struct Entry {
    fingerprint: String,
    stored: Arc<Stored>,
    until: Instant,
    bytes: usize,
}

/// What is remembered of a request.
enum Remembered {
    Answer(Arc<Stored>),
    /// The key was used for another request.
    Other,
}

impl Window {
    pub fn new(rules: WindowRules) -> Window {
        Window { rules, flights: Flights::new(MAX_WAITERS), kept: Arc::default() }
    }

    pub(crate) fn covers(&self, parts: &Parts) -> bool {
        match self.rules.covers {
            Covers::Reads => parts.method.is_safe(),
            Covers::Keyed => parts.headers.contains_key(KEY_HEADER),
        }
    }

    fn recall(&self, ticket: &Ticket) -> Option<Remembered> {
        let kept = self.lock();
        let entry = kept.entries.get(&ticket.key).filter(|entry| Instant::now() < entry.until)?;
        Some(match entry.fingerprint == ticket.fingerprint {
            true => Remembered::Answer(entry.stored.clone()),
            false => Remembered::Other,
        })
    }

    fn keep(&self, ticket: &Ticket, stored: &Arc<Stored>) {
        let size = stored.body.as_ref().map_or(0, Bytes::len);
        let headers: usize =
            stored.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        let bytes = OVERHEAD + 2 * ticket.key.len() + ticket.fingerprint.len() + size + headers;
        if bytes > self.rules.max_bytes {
            return;
        }
        let until = Instant::now() + self.rules.span;
        let entry = Entry { fingerprint: ticket.fingerprint.clone(), stored: stored.clone(), until, bytes };
        let mut kept = self.lock();
        kept.remove_old(self.rules.max_bytes - bytes);
        kept.bytes += bytes;
        kept.arrivals.push_back((until, ticket.key.clone()));
        if let Some(before) = kept.entries.insert(ticket.key.clone(), entry) {
            kept.bytes -= before.bytes;
        }
    }

    /// Nothing is left half-changed under this lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Drops what is over, and more until at most `room` bytes are in use.
    fn remove_old(&mut self, room: usize) {
        let now = Instant::now();
        while let Some((until, _)) = self.arrivals.front() {
            if *until > now && self.bytes <= room {
                return;
            }
            let Some((until, key)) = self.arrivals.pop_front() else { return };
            // A key that came again lives until its last arrival.
            if self.entries.get(&key).is_some_and(|entry| entry.until == until)
                && let Some(entry) = self.entries.remove(&key)
            {
                self.bytes -= entry.bytes;
            }
        }
    }
}

/// The key of a read: everything that makes its answer, the caller included.
pub(crate) fn view_of_caller() -> KeySource {
    KeySource::Computed(Compute::new(|parts, body| {
        let mut hash = Sha256::new();
        let mut put = |part: &[u8]| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        put(parts.method.as_str().as_bytes());
        put(parts.uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes());
        put(body);
        put(parts.extensions.get::<Subject>().map_or("", |subject| &subject.0).as_bytes());
        for name in &VIEW {
            for value in parts.headers.get_all(name) {
                put(name.as_str().as_bytes());
                put(value.as_bytes());
            }
        }
        Some(hex::encode(hash.finalize()))
    }))
}

impl Guard {
    /// Answers from memory, from the run that goes on, or by running the handler.
    pub(crate) async fn answer_from_window<S: Handler>(
        &self,
        window: Window,
        policy: Arc<Policy>,
        ticket: Ticket,
        parts: Parts,
        inner: S,
    ) -> Response {
        let deadline = Instant::now() + policy.max_wait;
        loop {
            match window.flights.join(&ticket.key, &ticket.fingerprint, policy.lease) {
                Join::Mismatch => return self.refuse(&policy, &Refusal::Mismatch),
                Join::Crowded { lease_left } => {
                    return self.refuse(&policy, &Refusal::InProgress { lease_left });
                }
                Join::Follow(follow) => match follow.until(deadline).await {
                    Heard::Told(Told::Stored(stored)) => return self.replay(&policy, &stored),
                    Heard::Told(Told::Refused(refusal)) => return self.refuse(&policy, &refusal),
                    Heard::Told(Told::Again) if Instant::now() < deadline => {}
                    _ => return self.refuse(&policy, &Refusal::InProgress { lease_left: policy.lease }),
                },
                Join::Lead(lead) => {
                    return match window.recall(&ticket) {
                        Some(Remembered::Answer(stored)) => {
                            lead.tell(Told::Stored(stored.clone()));
                            self.replay(&policy, &stored)
                        }
                        Some(Remembered::Other) => {
                            lead.tell(Told::Refused(Refusal::Mismatch));
                            self.refuse(&policy, &Refusal::Mismatch)
                        }
                        None => {
                            // Detached: those who wait get their answer when the first client goes away.
                            let work = self.clone().run_in_window(
                                window,
                                lead,
                                policy.clone(),
                                ticket,
                                parts,
                                inner,
                            );
                            tokio::spawn(work).await.unwrap_or_else(|_| Refusal::Broke.response(&policy))
                        }
                    };
                }
            }
        }
    }

    async fn run_in_window<S: Handler>(
        self,
        window: Window,
        lead: Lead,
        policy: Arc<Policy>,
        ticket: Ticket,
        parts: Parts,
        inner: S,
    ) -> Response {
        let request = Request::from_parts(parts, Body::from(ticket.asked.body.clone()));
        let response = match inner.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (stored, response) = capture(&policy, response).await;
        self.count(&policy, Happening::Executed);
        if stored.body.is_none() {
            // Too large to share: whoever waited asks anew.
            return response;
        }
        let stored = Arc::new(stored);
        if stored.status.is_success() && may_be_kept(response.headers()) {
            window.keep(&ticket, &stored);
        }
        lead.tell(Told::Stored(stored));
        response
    }
}

fn may_be_kept(headers: &HeaderMap) -> bool {
    let mut directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    !directives.any(|value| value.to_ascii_lowercase().contains("no-store"))
}
