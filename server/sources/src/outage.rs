//! Remembers for a moment that a source did not answer, so that not every reader waits for it again.

use chrono::{DateTime, TimeDelta, Utc};
use std::sync::{Mutex, PoisonError};

/// How long one failed connection speaks for the next reads; the status watch asks all the same.
const REMEMBERED: TimeDelta = TimeDelta::seconds(10);

/// The last failed connection, if none succeeded since.
#[derive(Default)]
pub(crate) struct Outage(Mutex<Option<(DateTime<Utc>, String)>>);

impl Outage {
    pub(crate) fn began(&self, now: DateTime<Utc>, message: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, message.to_owned()));
    }

    pub(crate) fn is_over(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Why the source cannot be read right now, while that is fresh knowledge.
    pub(crate) fn known(&self, now: DateTime<Utc>) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.filter(|(since, _)| now - *since < REMEMBERED).map(|(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_speaks_for_a_moment_and_a_success_ends_it() {
        let (outage, at) = (Outage::default(), DateTime::UNIX_EPOCH);
        outage.began(at, "refused");
        assert_eq!(outage.known(at + TimeDelta::seconds(9)).as_deref(), Some("refused"));
        assert_eq!(outage.known(at + TimeDelta::seconds(10)), None);
        outage.is_over();
        assert_eq!(outage.known(at), None);
    }
}
