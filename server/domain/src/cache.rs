//! The cache beside a record: what it holds, what that means, and how it stands against the table.

use crate::record::{RecordId, RecordRow, State};
use crate::source::Health;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What was found under a record's key in its source's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The key there; empty when this record has none.
    pub key: String,
    pub held: Held,
}

/// What a key held when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// No entry: the table decides.
    Nothing,
    Entry(CacheEntry),
    /// Something is there that the configuration does not describe; it is never changed. The reason is for the operator.
    Unreadable(String),
    /// The cache was not asked, or did not answer.
    Unknown(String),
}

/// A cache entry as the configuration reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// The value byte for byte; the fields of a hash as a JSON object.
    pub value: Vec<u8>,
    /// How long it will still be there; `None` = for ever.
    pub ttl: Option<Duration>,
    /// The cache's own spelling of the state, when it has one.
    pub native: Option<String>,
    /// Every state that spelling can mean; empty = the configuration names none.
    pub means: Vec<State>,
}

/// How a cache entry stands against its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// No entry: nothing contradicts the table.
    Empty,
    Agrees,
    /// Duplicates that are answered from the cache hear something else than the table says.
    Disagrees,
    /// Nobody can tell: not readable, not reachable, or a value that no state is mapped to.
    Unclear,
}

impl Cached {
    pub fn standing(&self, record: State) -> Standing {
        match &self.held {
            Held::Nothing => Standing::Empty,
            Held::Entry(entry) if entry.means.contains(&record) => Standing::Agrees,
            Held::Entry(entry) if !entry.means.is_empty() && is_settled_or_running(record) => {
                Standing::Disagrees
            }
            Held::Entry(_) | Held::Unreadable(_) | Held::Unknown(_) => Standing::Unclear,
        }
    }

    /// The state that the entry means first of all.
    pub fn state(&self) -> Option<State> {
        match &self.held {
            Held::Entry(entry) => entry.means.first().copied(),
            _ => None,
        }
    }
}

/// Whether the record says something that an entry could contradict.
fn is_settled_or_running(record: State) -> bool {
    !matches!(record, State::Ignored | State::Unknown)
}

/// One step towards a cache entry that agrees with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It does, and nothing was changed.
    Agrees,
    /// Exactly the entry that was read was changed, or it was gone before that: look again.
    Changed,
    /// Nothing was changed; the reason is for the operator.
    Kept(String),
}

/// Where the cache stands after a compensation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CacheEnd {
    /// Record and cache entry were read back and agree.
    Confirmed,
    /// The record is changed and its entry not yet; it is tried again until it is.
    Pending { why: String },
}

/// A cache change that could not be confirmed with its compensation, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheChange {
    pub compensation_id: String,
    pub record: RecordId,
    pub since: DateTime<Utc>,
    /// Tries after the first.
    pub attempts: u32,
    /// Why the last try did not confirm it.
    pub why: String,
    /// When it is tried again; `None` = it is confirmed.
    pub next_at: Option<DateTime<Utc>>,
    /// When record and entry were read back and agreed.
    pub confirmed_at: Option<DateTime<Utc>>,
}

/// A record whose cache entry said something else, twice in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Disagreement {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub record: RecordId,
    pub key: String,
    pub biz_type: Option<String>,
    pub biz_no: Option<String>,
    pub record_state: State,
    pub cached_state: State,
    pub seen_at: DateTime<Utc>,
}

impl Disagreement {
    /// Of a record and what its cache holds; `None` when they do not disagree.
    pub fn of(row: &RecordRow, cached: &Cached, seen_at: DateTime<Utc>) -> Option<Self> {
        let cached_state = cached.state().filter(|_| cached.standing(row.state) == Standing::Disagrees)?;
        Some(Self {
            record: row.id.clone(),
            key: row.key.clone(),
            biz_type: row.biz_type.clone(),
            biz_no: row.biz_no.clone(),
            record_state: row.state,
            cached_state,
            seen_at,
        })
    }
}

/// How records are compared with their entries in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Records created longer ago than this are left out.
    pub window: Duration,
    pub records_per_second: u32,
}

/// What is known about a source's cache without asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheAbout {
    /// Where it is, without its password.
    pub address: String,
    /// The key as configured, with its placeholders.
    pub key: String,
    /// `None` = not compared in the background.
    pub pace: Option<Pace>,
}

/// A source's cache, as the Sources page and the API show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CacheStatus {
    pub source: String,
    pub address: String,
    pub key: String,
    pub status: Health,
    pub detail: String,
    /// Whether records are compared with their entries in the background.
    pub compared: bool,
    /// Cache changes that are still tried.
    pub pending: u64,
    pub oldest_pending: Option<DateTime<Utc>>,
    /// Records whose entry says something else.
    pub disagreements: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(means: &[State]) -> Cached {
        let entry = CacheEntry { value: vec![], ttl: None, native: None, means: means.to_vec() };
        Cached { key: "k".into(), held: Held::Entry(entry) }
    }

    #[test]
    fn only_a_named_state_can_disagree() {
        use State::{Failed, Processing, Success, Timeout, Unknown};
        assert_eq!(entry(&[Processing]).standing(Success), Standing::Disagrees);
        assert_eq!(entry(&[Success]).standing(Processing), Standing::Disagrees);
        assert_eq!(entry(&[Failed, Timeout]).standing(Timeout), Standing::Agrees);
        assert_eq!(entry(&[]).standing(Success), Standing::Unclear);
        assert_eq!(entry(&[Success]).standing(Unknown), Standing::Unclear);
        let held = |held| Cached { key: "k".into(), held };
        assert_eq!(held(Held::Nothing).standing(Success), Standing::Empty);
        assert_eq!(held(Held::Unknown("down".into())).standing(Success), Standing::Unclear);
        assert_eq!(held(Held::Unreadable("a list".into())).standing(Success), Standing::Unclear);
    }
}
