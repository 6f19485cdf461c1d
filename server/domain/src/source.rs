//! An attached database, as the Sources page and the API show it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Whether a source answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Up,
    Down,
    /// Answers, but something is wrong; the detail says what.
    Degraded,
}

/// What a source said when it was last asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SourceStatus {
    pub name: String,
    /// `sqlite`, `postgres` or `mysql`.
    pub kind: String,
    pub status: Health,
    pub detail: String,
    pub table: String,
    pub checked_at: DateTime<Utc>,
    /// Source clock minus console clock, in milliseconds, when it answered.
    pub clock_offset_ms: Option<i64>,
    pub biz_types: Vec<BizType>,
    /// The mapping in words: (role, column or rule).
    pub mapping: Vec<(String, String)>,
}

/// A business type that the source's configuration names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BizType {
    pub name: String,
    pub stuck_after_seconds: u64,
    /// `hold` or `re_execute`.
    pub on_unknown: String,
    pub reverse_check: bool,
    pub replay: bool,
}
