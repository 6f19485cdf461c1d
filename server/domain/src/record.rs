//! The idempotency record as the console sees it, whatever table it lives in.

use crate::error::{Error, Result};
use crate::evidence::Verdict;
use crate::unable::Unable;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a record says about its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    Processing,
    Success,
    Failed,
    Timeout,
    /// A state of the service's own that is neither stuck nor failed; shown and counted, never acted on.
    Ignored,
    /// The source's own value maps onto none of the others; shown and counted, never acted on.
    Unknown,
}

impl State {
    pub const ALL: [State; 6] =
        [State::Processing, State::Success, State::Failed, State::Timeout, State::Ignored, State::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            State::Processing => "PROCESSING",
            State::Success => "SUCCESS",
            State::Failed => "FAILED",
            State::Timeout => "TIMEOUT",
            State::Ignored => "IGNORED",
            State::Unknown => "UNKNOWN",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        State::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is no state; write PROCESSING, SUCCESS, FAILED, TIMEOUT, IGNORED or UNKNOWN"
            ))
        })
    }
}

/// Where a record is: its source and the locator that finds it there. Opaque outside (one URL-safe word).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    pub source: String,
    /// The parts of the physical locator, in the mapping's order (the key itself in the native table).
    pub locator: Vec<String>,
}

impl RecordId {
    pub fn new(source: impl Into<String>, locator: Vec<String>) -> Self {
        Self { source: source.into(), locator }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = (&self.source, &self.locator);
        // Strings always serialise.
        f.write_str(&URL_SAFE_NO_PAD.encode(serde_json::to_vec(&parts).unwrap_or_default()))
    }
}

impl FromStr for RecordId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::not_found("That record");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| unknown())?;
        let (source, locator) = serde_json::from_slice(&bytes).map_err(|_| unknown())?;
        Ok(Self { source, locator })
    }
}

impl Serialize for RecordId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What the operator saw: the state and whatever else the source compares (version column or update time).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    pub state: State,
    /// The source's own comparison value; opaque here.
    pub token: String,
}

impl Version {
    pub fn new(state: State, token: impl Into<String>) -> Self {
        Self { state, token: token.into() }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.state, URL_SAFE_NO_PAD.encode(&self.token))
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || Error::invalid("That is no version of a record; send the one you read.");
        let (state, token) = text.split_once('.').ok_or_else(refused)?;
        let token = URL_SAFE_NO_PAD.decode(token).map_err(|_| refused())?;
        Ok(Self {
            state: state.parse().map_err(|_| refused())?,
            token: String::from_utf8(token).map_err(|_| refused())?,
        })
    }
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// One record as a list shows it: never a body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecordRow {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: RecordId,
    pub source: String,
    pub key: String,
    pub biz_type: Option<String>,
    pub biz_no: Option<String>,
    pub state: State,
    /// The source's own spelling of the state, as stored.
    pub native_state: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
    pub updated_at: Option<DateTime<Utc>>,
    /// Seconds since the age column, by the source's clock; negative = in the future.
    pub age_seconds: Option<i64>,
    /// How old a record of its biz_type may get before it counts as stuck.
    pub stuck_after_seconds: u64,
    pub stuck: bool,
    pub lease_until: Option<DateTime<Utc>>,
    pub attempts: Option<i64>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// Latest verdict, if the record was ever checked in this version.
    pub verdict: Option<Verdict>,
    pub verdict_at: Option<DateTime<Utc>>,
}

/// A stored request or response, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Stored(Vec<u8>),
    /// Stored in another form than people read; what is sent again is still what is stored.
    Decoded(Box<Decoded>),
    /// The column is there and empty, or NULL.
    Empty,
    /// The mapping says that this table keeps no such body.
    NotStored,
    /// The cell could not be decoded; the reason is for the operator.
    Unreadable(String),
}

/// A body with what was made of it for the eye.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The stored bytes; nothing when the body was put together for the eye from several columns.
    pub original: Option<Vec<u8>>,
    /// What people and JSON pointers read; nothing when it is no text.
    pub text: Option<String>,
    /// The steps from one to the other, and which failed: `base64, gzip`; empty when there are none.
    pub how: String,
    /// Where the text ends although it goes on: the size of its column, or the most that is decoded.
    pub truncated_at: Option<u64>,
}

impl Decoded {
    /// How the text came about, and where it ends too early, in English; nothing when it is as stored.
    pub fn note(&self) -> Option<String> {
        let how = (!self.how.is_empty()).then(|| format!("decoded: {}", self.how));
        let cut = self.truncated_at.map(|size| format!("cut off at {size}"));
        let notes: Vec<String> = how.into_iter().chain(cut).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

impl Body {
    /// The stored bytes: what is sent again.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Body::Stored(bytes) => Some(bytes),
            Body::Decoded(decoded) => decoded.original.as_deref(),
            Body::Empty | Body::NotStored | Body::Unreadable(_) => None,
        }
    }

    /// What people read: the decoded text, or the stored bytes as they are.
    pub fn readable(&self) -> Option<&[u8]> {
        match self {
            Body::Stored(bytes) => Some(bytes),
            Body::Decoded(decoded) => {
                decoded.text.as_deref().map(str::as_bytes).or(decoded.original.as_deref())
            }
            Body::Empty | Body::NotStored | Body::Unreadable(_) => None,
        }
    }

    /// The scalar at a JSON pointer into what people read.
    pub fn scalar_at(&self, pointer: &str) -> Option<String> {
        let text = std::str::from_utf8(self.readable()?).ok()?;
        crate::json::scalar_at(&crate::json::parse(text)?, pointer)
    }
}

/// One record with everything the mapping can say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordDetail {
    pub row: RecordRow,
    pub request: Body,
    pub response: Body,
    /// Further mapped columns for the eye (owner, fence, phase, error …), in mapping order.
    pub facts: Vec<(String, String)>,
    /// What the columns of the locator hold, as text; nothing for NULL and for bytes.
    pub located: Vec<Option<String>>,
    /// The instants (epoch milliseconds) in which a change of ours may have left its marker.
    pub marks: Vec<i64>,
    /// What the mapping and the biz_type's configuration can express for this record.
    pub abilities: Abilities,
    /// The source's clock when this was read.
    pub read_at: DateTime<Utc>,
}

/// For each action: `Ok` when this table can express it, else the reason shown to the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    pub mark_succeeded: Result<(), Unable>,
    pub mark_timed_out: Result<(), Unable>,
    pub replay: Result<(), Unable>,
}

/// Which records a list, a count or a bulk is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFilter {
    pub source: Option<String>,
    pub state: Option<State>,
    pub stuck: Option<bool>,
    pub biz_type: Option<String>,
    pub biz_no: Option<String>,
    pub key: Option<String>,
    /// Exact key or exact biz_no, whichever matches.
    pub search: Option<String>,
    pub created_from: Option<DateTime<Utc>>,
    pub created_to: Option<DateTime<Utc>>,
}

impl RecordFilter {
    /// Everything stuck.
    pub fn stuck() -> Self {
        Self { stuck: Some(true), ..Self::default() }
    }

    /// Stuck records come oldest first (a work queue); everything else newest first (a log).
    pub fn oldest_first(&self) -> bool {
        self.stuck == Some(true)
    }
}

/// Where a page of records ends: creation time, then source and locator to break ties.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Epoch milliseconds; records without a creation time sort last.
    pub created_ms: Option<i64>,
    pub source: String,
    pub locator: Vec<String>,
}

impl Place {
    pub fn of(row: &RecordRow) -> Self {
        Self {
            created_ms: row.created_at.map(|at| at.timestamp_millis()),
            source: row.id.source.clone(),
            locator: row.id.locator.clone(),
        }
    }
}

/// Sorts rows as lists show them: by creation time, then source and locator; undated ones last either way.
pub fn sort(rows: &mut [RecordRow], oldest_first: bool) {
    rows.sort_by(|left, right| {
        let (left, right) = (Place::of(left), Place::of(right));
        let undated = left.created_ms.is_none().cmp(&right.created_ms.is_none());
        let along = if oldest_first { left.cmp(&right) } else { right.cmp(&left) };
        undated.then(along)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn record_id_survives_its_opaque_form(source in ".*", locator in prop::collection::vec(".*", 0..5)) {
            let id = RecordId::new(source, locator);
            prop_assert_eq!(id.to_string().parse::<RecordId>().unwrap(), id);
        }

        #[test]
        fn version_survives_its_opaque_form(token in ".*") {
            let version = Version::new(State::Processing, token);
            prop_assert_eq!(version.to_string().parse::<Version>().unwrap(), version);
        }

        #[test]
        fn no_text_makes_parsing_panic(text in ".*") {
            let _ = text.parse::<RecordId>();
            let _ = text.parse::<Version>();
        }
    }
}
