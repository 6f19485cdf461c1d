//! A database that is down is asked once in a while, not by everybody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How long nobody asks after the database could not be reached.
const PAUSE: Duration = Duration::from_millis(500);

/// Closed: everybody may ask.
const CLOSED: u64 = 0;

pub(crate) struct Breaker {
    start: Instant,
    /// Milliseconds since `start` until which it is open, or `CLOSED`.
    open_until: AtomicU64,
}

impl Breaker {
    pub(crate) fn new(now: Instant) -> Breaker {
        Breaker { start: now, open_until: AtomicU64::new(CLOSED) }
    }

    /// Whether this request may ask; after a pause, one does for all.
    pub(crate) fn lets_through(&self, now: Instant) -> bool {
        let until = self.open_until.load(Ordering::Relaxed);
        if until == CLOSED {
            return true;
        }
        let swap = |next| self.open_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed);
        self.ms(now) >= until && swap(self.ms(now + PAUSE)).is_ok()
    }

    pub(crate) fn reached(&self) {
        self.open_until.store(CLOSED, Ordering::Relaxed);
    }

    pub(crate) fn unreachable(&self, now: Instant) {
        self.open_until.store(self.ms(now + PAUSE), Ordering::Relaxed);
    }

    fn ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c34_while_the_database_is_down_one_request_in_a_pause_asks_it() {
        let now = Instant::now();
        let breaker = Breaker::new(now);
        assert!(breaker.lets_through(now));
        breaker.unreachable(now);
        assert!(!breaker.lets_through(now));
        assert!(breaker.lets_through(now + PAUSE));
        assert!(!breaker.lets_through(now + PAUSE));
        breaker.reached();
        assert!(breaker.lets_through(now) && breaker.lets_through(now));
    }
}
