//! One request at a time about one business number.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures::future::BoxFuture;

use super::{Lease, LockError, LockRules, Locks};
use crate::mechanism::{Ended, Entry, Mechanism, Pass};
use crate::problem::Problem;

/// The mechanism that has requests about one business number run one after the other; a request without one stands
/// for itself, by its key. The handler's transaction ends only while the lock is held.
#[derive(Debug, Clone)]
pub struct Serial {
    locks: Locks,
    rules: LockRules,
    /// Requests of other business types under the same name take turns too.
    name: Option<String>,
}

impl Serial {
    /// Requests of one business type take turns.
    pub fn new(locks: Locks, rules: LockRules) -> Serial {
        Serial { locks, rules, name: None }
    }

    /// Requests of all routes that give the same `name` take turns, e.g. payment and refund of one order.
    pub fn under(mut self, name: impl Into<String>) -> Serial {
        self.name = Some(name.into());
        self
    }

    async fn acquire(&self, entry: Entry<'_>) -> Result<Box<dyn Pass>, Problem> {
        let claim = entry.claim;
        let scope = self.name.as_deref().unwrap_or(claim.biz_type());
        let name = match claim.biz_no() {
            Some(number) => format!("{scope}:{number}"),
            None => format!("{scope}/{}", claim.key()),
        };
        match self.locks.acquire(&name, self.rules).await {
            Ok(Some(lease)) => {
                let lease = Arc::new(lease);
                claim.work_under(lease.clone());
                Ok(Box::new(Held(lease)))
            }
            Ok(None) => Err(busy()),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl Mechanism for Serial {
    fn enter<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<Box<dyn Pass>, Problem>> {
        Box::pin(self.acquire(entry))
    }
}

struct Held(Arc<Lease>);

impl Pass for Held {
    fn leave(self: Box<Self>, _: Ended) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Err(error) = self.0.release().await {
                tracing::warn!(%error, "a lock was not given back and ends with its lease");
            }
        })
    }
}

fn busy() -> Problem {
    Problem {
        status: StatusCode::CONFLICT,
        code: "in_turn",
        title: "Another request goes first",
        detail: "Another request about the same business number is still processing. Ask again later with the same key.".into(),
        retry_after: Some(Duration::from_secs(1)),
    }
}

fn unavailable(error: &LockError) -> Problem {
    tracing::warn!(%error, "a lock could not be asked for");
    Problem {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "locks_unavailable",
        title: "Try again later",
        detail: "The lock of this business number cannot be asked for now, so nothing was done. Send the request again with the same key.".into(),
        retry_after: Some(Duration::from_secs(5)),
    }
}
