//! The outbox: messages that exist exactly when the business write does, and reach their receivers at least once.
//!
//! A message is a row staged in the transaction of the claim. Any number of processes deliver: each row is taken by a
//! conditional update for a bounded time, sent with a key made of its record, and marked. A sender that dies between
//! sending and marking leaves a row that is sent again with the same key. Messages about one business number go in the
//! order in which they were staged: one that was given up holds back those behind it until a person decides.

mod carrier;
mod message;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use db::{Db, DbError};
use futures::{StreamExt, stream};
use tokio::sync::Notify;

pub use carrier::{Carrier, Failure, HttpCarrier, StreamCarrier};
pub use message::{Message, StageError};
pub(crate) use message::{Origin, stage};
pub use rows::{Decision, Parcel, Undelivered, decide, purge, undelivered};

use rows::Rows;

const TABLE: &str = "idempotency_outbox";
const PENDING: &str = "PENDING";
const SENT: &str = "SENT";
const DEAD: &str = "DEAD";
const DISCARDED: &str = "DISCARDED";

/// How messages are delivered.
#[derive(Debug, Clone)]
pub struct OutboxRules {
    /// How long a sender has for one message; longer than its carrier's own timeout.
    pub lease: Duration,
    /// The pause after the first failure; it doubles with every further one.
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// After so many tries a message is given up.
    pub max_attempts: i64,
    /// How often the table is looked at when nothing is heard.
    pub interval: Duration,
    /// How many messages are sent at once.
    pub at_once: usize,
}

impl Default for OutboxRules {
    /// A minute for a message, pauses from one second to ten minutes, given up after 20 tries (about two hours).
    fn default() -> Self {
        OutboxRules {
            lease: Duration::from_secs(60),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(10 * 60),
            max_attempts: 20,
            interval: Duration::from_secs(1),
            at_once: 8,
        }
    }
}

/// Delivers what is staged in one database; cheap to clone.
#[derive(Clone)]
pub struct Outbox {
    rows: Rows,
    carriers: BTreeMap<String, Arc<dyn Carrier>>,
    rules: OutboxRules,
    bell: Arc<Notify>,
}

/// What one round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    pub sent: u64,
    /// To be tried again.
    pub failed: u64,
    pub given_up: u64,
}

impl Outbox {
    /// The outbox in the table `idempotency_outbox` of `db`; see [`crate::schema::mechanisms`]. `instance` tells this
    /// process from all others.
    pub fn new(db: Db, instance: impl Into<String>, rules: OutboxRules) -> Outbox {
        let rows = Rows { db, owner: instance.into() };
        Outbox { rows, carriers: BTreeMap::new(), rules, bell: Arc::default() }
    }

    /// The same with a way to `target`. Messages to targets without a way here are left to other processes.
    pub fn with(mut self, target: impl Into<String>, carrier: impl Carrier + 'static) -> Outbox {
        self.carriers.insert(target.into(), Arc::new(carrier));
        self
    }

    /// Says that something was staged, so that the next round begins at once.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// Delivers until `stop` is ready; what is being sent then is finished.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            let busy = match self.round().await {
                Ok(round) => round.sent > 0,
                Err(error) => {
                    tracing::warn!(%error, "the outbox cannot be read");
                    false
                }
            };
            let pause = if busy { Duration::ZERO } else { self.rules.interval };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = self.bell.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Sends what is due now, at most one message of each business number.
    pub async fn round(&self) -> Result<Round, DbError> {
        let targets: Vec<String> = self.carriers.keys().cloned().collect();
        if targets.is_empty() {
            return Ok(Round::default());
        }
        let due = self.rows.due(&targets, 4 * self.rules.at_once as u64).await?;
        let ends = stream::iter(due).map(|parcel| self.deliver(parcel)).buffer_unordered(self.rules.at_once);
        let ends: Vec<Result<End, DbError>> = ends.collect().await;
        ends.into_iter().try_fold(Round::default(), |round, end| Ok(round.and(end?)))
    }

    async fn deliver(&self, mut parcel: Parcel) -> Result<End, DbError> {
        let Some(carrier) = self.carriers.get(&parcel.target) else { return Ok(End::Taken) };
        if !self.rows.take(&mut parcel, self.rules.lease).await? {
            return Ok(End::Taken);
        }
        let outcome = tokio::time::timeout(self.rules.lease, carrier.carry(&parcel)).await;
        let late = || Err(Failure::Later { reason: "no answer in time".into(), after: None });
        match outcome.unwrap_or_else(|_| late()) {
            Ok(()) => self.rows.sent(&parcel).await.map(|_| End::Sent),
            Err(Failure::Later { reason, after }) if parcel.attempts < self.rules.max_attempts => {
                let pause = after.unwrap_or_else(|| self.pause(&parcel));
                self.rows.postpone(&parcel, &reason, pause).await.map(|_| End::Failed)
            }
            Err(Failure::Later { reason, .. } | Failure::Never { reason }) => {
                tracing::warn!(key = parcel.key, target = parcel.target, reason, "a message was given up");
                self.rows.give_up(&parcel, &reason).await.map(|_| End::GivenUp)
            }
        }
    }

    /// Doubles from try to try, and differs from message to message, so that a receiver that comes back is not met by
    /// all at once.
    fn pause(&self, parcel: &Parcel) -> Duration {
        let doublings = u32::try_from(parcel.attempts - 1).unwrap_or(u32::MAX).min(20);
        let pause = self.rules.first_pause.saturating_mul(1 << doublings).min(self.rules.longest_pause);
        let spread = (parcel.id.unsigned_abs() * 7 + parcel.attempts.unsigned_abs() * 13) % 50;
        pause.mul_f64(0.75 + spread as f64 / 100.0)
    }
}

enum End {
    Sent,
    Failed,
    GivenUp,
    /// Another process has it.
    Taken,
}

impl Round {
    fn and(mut self, end: End) -> Round {
        match end {
            End::Sent => self.sent += 1,
            End::Failed => self.failed += 1,
            End::GivenUp => self.given_up += 1,
            End::Taken => {}
        }
        self
    }
}
