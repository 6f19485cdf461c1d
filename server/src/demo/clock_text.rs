//! Times as the shop's tables keep them.

use chrono::{DateTime, Utc};

/// UTC to the millisecond, the native table's spelling on SQLite.
pub(super) fn text(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.3f").to_string()
}
