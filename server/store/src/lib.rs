//! The console's own tables: every port that remembers something, written once for three databases.
//!
//! Each method is one transaction; what an action changes and its audit entry are in the same one. The audit chain's
//! head is always the last lock taken, so that appending orders everybody and deadlocks nobody.

mod alerts;
mod audit;
mod caches;
mod codec;
mod compensations;
mod evidence;
mod migrate;
mod rates;
pub mod sessions;
mod users;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use db::{Attempts, Db, DbError};

pub use migrate::{MigrateError, migrate};

/// How often a transaction that met another is tried.
const ATTEMPTS: u32 = 12;

/// The console's store; cloning shares its connections.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    seeds: Arc<AtomicU64>,
}

impl Store {
    /// A store over a migrated database; `seed` is this process's randomness for spreading out retries.
    pub fn new(db: Db, seed: u64) -> Self {
        Store { db, seeds: Arc::new(AtomicU64::new(seed)) }
    }

    /// The database underneath.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Whether the store answers.
    pub async fn ping(&self) -> domain::Result<()> {
        self.db.ping().await.map_err(told)
    }

    fn attempts(&self) -> Attempts {
        Attempts::new(ATTEMPTS, self.seeds.fetch_add(1, Ordering::Relaxed))
    }
}

/// Runs a transaction again while others are in its way, and tells the services how it ended.
macro_rules! retrying {
    ($store:expr, $work:expr) => {{
        let mut attempts = $store.attempts();
        loop {
            match $work {
                Err(e) if attempts.again(&e).await => {}
                outcome => break outcome.map_err($crate::told),
            }
        }
    }};
}
pub(crate) use retrying;

/// A store's failure in the services' words; details that help only us go to the log.
fn told(error: DbError) -> domain::Error {
    match error {
        DbError::Unavailable(_) | DbError::Busy(_) | DbError::Timeout(_) => {
            domain::Error::unavailable("The console's store", error.to_string())
        }
        DbError::RefusedValue(_) => domain::Error::invalid(
            "a value is longer than the store takes, or holds characters it cannot keep",
        ),
        other => {
            tracing::error!(error = %other, "the store failed");
            domain::Error::internal("The console's store failed; the server's log says why.")
        }
    }
}
