//! Messages that a service staged with its business writes and that have not arrived.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Not tried yet: it is new, or an older one about the same business number goes first.
    Waiting,
    /// Tried in vain; it will be tried again.
    Failing,
    /// Given up: it holds back those behind it until a person decides.
    GivenUp,
}

/// One message that has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Undelivered {
    pub source: String,
    /// Its number in the source's outbox; later ones are higher.
    pub number: i64,
    /// What the receiver gets as `Idempotency-Key`.
    pub key: String,
    pub biz_type: String,
    pub biz_no: Option<String>,
    pub kind: String,
    pub target: String,
    pub delivery: Delivery,
    pub attempts: u32,
    pub staged_at: DateTime<Utc>,
    /// By the source's clock.
    pub age_seconds: i64,
    pub last_error: Option<String>,
}
