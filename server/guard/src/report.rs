//! Counts on their way out: to a Prometheus recorder, and in batches to the console.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, DurationRound, SecondsFormat, TimeDelta, Utc};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};

use crate::error::GuardError;
use crate::happening::{Happening, Meter};

/// Counts for a Prometheus recorder, wherever the process has installed one:
/// `amends_guard_requests_total{biz_type, outcome}` and `amends_guard_bursts_total{biz_type}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrometheusMeter;

impl Meter for PrometheusMeter {
    fn count(&self, biz_type: &str, happening: Happening) {
        let labels = [("biz_type", biz_type.to_owned()), ("outcome", happening.as_str().to_owned())];
        metrics::counter!("amends_guard_requests_total", &labels).increment(1);
    }

    fn burst(&self, biz_type: &str) {
        metrics::counter!("amends_guard_bursts_total", "biz_type" => biz_type.to_owned()).increment(1);
    }
}

/// Each of several meters counts everything.
pub struct Meters(pub Vec<Arc<dyn Meter>>);

impl Meter for Meters {
    fn count(&self, biz_type: &str, happening: Happening) {
        self.0.iter().for_each(|meter| meter.count(biz_type, happening));
    }

    fn burst(&self, biz_type: &str) {
        self.0.iter().for_each(|meter| meter.burst(biz_type));
    }
}

/// Where a console takes counts.
#[derive(Clone)]
pub struct ConsoleRules {
    /// The console's address; counts go to `api/v1/events` under it.
    pub url: String,
    /// A token of the console, sent as a bearer token.
    pub token: String,
    /// Tells this process from all others that ever reported: the console takes each of its sequence numbers once.
    pub producer: String,
    /// The source's name in the console.
    pub source: String,
    pub every: Duration,
}

/// Most different counts of one batch, and most batches that wait for a console that is away.
const MAX_COUNTS: usize = 1_000;
const MAX_BATCHES: usize = 120;

/// Longest wait for the console's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

type Key = (String, Happening, DateTime<Utc>);

/// Counts for the console: added up by minute in bounded memory, sent in the background. What the console was away for
/// too long to get is dropped, and the drops are counted.
#[derive(Clone)]
pub struct ConsoleMeter(Arc<Inner>);

struct Inner {
    rules: ConsoleRules,
    events: Url,
    client: Client,
    clock: fn() -> DateTime<Utc>,
    counts: Mutex<HashMap<Key, u64>>,
    dropped: AtomicU64,
}

/// A batch keeps its number: sent again, it changes nothing.
struct Batch {
    sequence: i64,
    body: Value,
    requests: u64,
}

impl Meter for ConsoleMeter {
    fn count(&self, biz_type: &str, happening: Happening) {
        let now = (self.0.clock)();
        let minute = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
        let key = (biz_type.to_owned(), happening, minute);
        let mut counts = self.counts();
        if counts.len() < MAX_COUNTS || counts.contains_key(&key) {
            *counts.entry(key).or_default() += 1;
        } else {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl ConsoleMeter {
    /// A meter that reports when [`ConsoleMeter::keep_reporting`] runs. Errors: the address is none.
    pub fn new(rules: ConsoleRules, clock: fn() -> DateTime<Utc>) -> Result<ConsoleMeter, GuardError> {
        let wrong = |what: &str| GuardError::Report(format!("{:?} {what}", rules.url));
        let base = if rules.url.ends_with('/') { rules.url.clone() } else { format!("{}/", rules.url) };
        let events = Url::parse(&base)
            .and_then(|base| base.join("api/v1/events"))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| {
                wrong("is no address of a console; write one such as http://amends.internal:3000")
            })?;
        let client = Client::builder()
            .timeout(ANSWER_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|_| wrong("cannot be reached: the TLS setup of this machine is broken"))?;
        let (counts, dropped) = (Mutex::default(), AtomicU64::new(0));
        Ok(ConsoleMeter(Arc::new(Inner { rules, events, client, clock, counts, dropped })))
    }

    /// How many requests were counted and never reached the console.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Reports for ever; run it as a task of its own.
    pub async fn keep_reporting(self) {
        let mut waiting = VecDeque::new();
        let mut sequence = 0;
        loop {
            tokio::time::sleep(self.0.rules.every).await;
            // Growing across restarts too.
            sequence = (self.0.clock)().timestamp_millis().max(sequence + 1);
            waiting.extend(self.batch(sequence));
            while waiting.len() > MAX_BATCHES {
                self.drop_batch(waiting.pop_front());
            }
            while let Some(batch) = waiting.front() {
                match self.send(batch).await {
                    Sent::Taken => drop(waiting.pop_front()),
                    Sent::Refused => self.drop_batch(waiting.pop_front()),
                    Sent::Later => break,
                }
            }
        }
    }

    fn drop_batch(&self, batch: Option<Batch>) {
        let requests = batch.map_or(0, |batch| batch.requests);
        self.0.dropped.fetch_add(requests, Ordering::Relaxed);
        tracing::warn!(requests, "counts were dropped: the console did not take them");
    }

    fn batch(&self, sequence: i64) -> Option<Batch> {
        let counts = std::mem::take(&mut *self.counts());
        let Inner { rules, .. } = &*self.0;
        let requests = counts.values().sum();
        let counts: Vec<Value> = counts
            .into_iter()
            .map(|((biz_type, happening, at), count)| {
                json!({
                    "source": rules.source,
                    "biz_type": biz_type,
                    "at": at.to_rfc3339_opts(SecondsFormat::Secs, true),
                    "outcome": happening.as_str(),
                    "count": count,
                })
            })
            .collect();
        let body = json!({ "producer": rules.producer, "sequence": sequence, "counts": counts });
        (requests > 0).then_some(Batch { sequence, body, requests })
    }

    async fn send(&self, batch: &Batch) -> Sent {
        let Inner { rules, events, client, .. } = &*self.0;
        let post = client
            .post(events.clone())
            .bearer_auth(&rules.token)
            .header("content-type", "application/json")
            .body(batch.body.to_string());
        match post.send().await.map(|response| response.status()) {
            Ok(status) if status.is_success() => Sent::Taken,
            // It will never be taken as it is; a token or a console that comes later may help the others.
            Ok(
                status @ (StatusCode::BAD_REQUEST
                | StatusCode::UNPROCESSABLE_ENTITY
                | StatusCode::PAYLOAD_TOO_LARGE),
            ) => {
                tracing::warn!(%status, sequence = batch.sequence, "the console refuses counts");
                Sent::Refused
            }
            Ok(status) => {
                tracing::warn!(%status, sequence = batch.sequence, "the console does not take counts now");
                Sent::Later
            }
            Err(error) => {
                tracing::debug!(error = %error.without_url(), "the console is away; counts wait");
                Sent::Later
            }
        }
    }

    /// A count is whole after every step, so a panic elsewhere does not spoil it.
    fn counts(&self) -> MutexGuard<'_, HashMap<Key, u64>> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Sent {
    Taken,
    /// Never, as it is.
    Refused,
    Later,
}
