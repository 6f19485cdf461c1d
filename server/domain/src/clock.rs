//! Time and randomness as arguments: nothing in the domain reads them by itself.

use chrono::{DateTime, Utc};

/// Where "now" comes from. The one real clock lives in the composition root; tests bring their own.
pub trait Clock: Send + Sync {
    fn now(&self) -> DateTime<Utc>;
}

/// Where fresh identifiers come from: unguessable, URL-safe, at most 32 characters.
pub trait Ids: Send + Sync {
    fn next(&self) -> String;
}

/// Milliseconds since the epoch, the store's unit of time.
pub fn millis(at: DateTime<Utc>) -> i64 {
    at.timestamp_millis()
}

/// The instant of a stored millisecond count; out-of-range counts clamp to the epoch.
pub fn from_millis(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or(DateTime::UNIX_EPOCH)
}
