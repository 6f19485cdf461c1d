//! Trying the same transaction again when another was in the way.

use std::time::Duration;

use crate::DbError;

/// An error that may be the database's wish to try again.
pub trait Transient {
    /// Whether the same work may be tried again as it is.
    fn is_transient(&self) -> bool;
}

impl Transient for DbError {
    fn is_transient(&self) -> bool {
        self.is_retryable()
    }
}

/// How often the same transaction is tried, and how spread out in time.
///
/// The work must leave nothing behind but what it does through its transaction:
///
/// ```
/// # use db::{Attempts, Db, DbError};
/// # async fn settle_once(db: &Db) -> Result<(), DbError> { db.begin().await?.commit().await }
/// async fn settle(db: &Db, seed: u64) -> Result<(), DbError> {
///     let mut attempts = Attempts::new(5, seed);
///     loop {
///         match settle_once(db).await {
///             Err(e) if attempts.again(&e).await => {}
///             outcome => return outcome,
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Attempts {
    left: u32,
    pause: Duration,
    seed: u64,
}

impl Attempts {
    /// At most `times` runs; `seed` is the caller's randomness, so that rivals do not meet again.
    pub fn new(times: u32, seed: u64) -> Self {
        Attempts { left: times.max(1), pause: Duration::from_millis(5), seed }
    }

    /// Whether `error` is worth another attempt and one is left; pauses before saying yes, for somewhere between
    /// nothing and a bound that doubles.
    pub async fn again(&mut self, error: &impl Transient) -> bool {
        self.left -= 1;
        if self.left == 0 || !error.is_transient() {
            return false;
        }
        self.pause = (self.pause * 2).min(Duration::from_millis(500));
        tokio::time::sleep(self.pause.mul_f64(self.next_share())).await;
        true
    }

    /// A number from 0 to 1 (splitmix64).
    fn next_share(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
