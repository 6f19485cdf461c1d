//! Time columns: what their types do not tell.

use super::columns::NOT_STORED;
use super::value::{Span, Zone};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A time column and how it keeps time: `"created_at"`, or
/// `{ column = "expire_time", kind = "epoch_ms", none = [0], minus = "10m" }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeColumn {
    pub column: String,
    /// `None` = as the column's own type says.
    #[serde(default)]
    pub kind: Option<TimeUnit>,
    /// With `kind = "text"`: how the text is written, like `"%Y/%m/%d %H:%M"`.
    #[serde(default)]
    pub format: Option<String>,
    /// `None` = the source's zone.
    #[serde(default)]
    pub zone: Option<Zone>,
    /// Values that mean "no time": `none = ["9999-12-31 23:59:59", "1970-01-01 00:00:00"]`, as the column spells them.
    #[serde(default)]
    pub none: Vec<Sentinel>,
    /// The time meant is so much earlier: a deadline minus its length is a beginning.
    #[serde(default)]
    pub minus: Option<Span>,
    /// The time meant is so much later.
    #[serde(default)]
    pub plus: Option<Span>,
    /// A column of whole milliseconds that is added row by row: `plus_ms = "timeout"`.
    #[serde(default)]
    pub plus_ms: Option<String>,
}

impl TimeColumn {
    pub fn plain(column: impl Into<String>) -> Self {
        Self {
            column: column.into(),
            kind: None,
            format: None,
            zone: None,
            none: Vec::new(),
            minus: None,
            plus: None,
            plus_ms: None,
        }
    }
}

/// A stored value that means "no time", as text or as the number of an epoch column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a time as the column spells it, or a whole number")]
pub enum Sentinel {
    Integer(i64),
    Text(String),
}

/// Ways of keeping time that a column's type does not tell. Units are declared, never guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    EpochS,
    EpochMs,
    EpochUs,
    EpochNs,
    /// Text like `2026-12-01T10:00:00Z`.
    IsoText,
    /// Text as `format` says.
    Text,
}

/// Where age is counted from: one time column, or the latest of several: `["publication_date", "last_resubmission_date"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgeFrom(pub Vec<TimeColumn>);

impl<'de> Deserialize<'de> for AgeFrom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Times).map(Self)
    }
}

pub(super) fn optional_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TimeColumn>, D::Error> {
    let mut times = deserializer.deserialize_any(Times)?;
    match times.len() {
        0 | 1 => Ok(times.pop()),
        _ => Err(D::Error::custom("several columns; only age_from takes a list")),
    }
}

pub(super) fn optional_age<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AgeFrom>, D::Error> {
    let times = deserializer.deserialize_any(Times)?;
    Ok((!times.is_empty()).then_some(AgeFrom(times)))
}

/// None, one or several time columns.
struct Times;

impl<'de> Visitor<'de> for Times {
    type Value = Vec<TimeColumn>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a column name, { column = \"…\", kind = \"epoch_ms\" } or \"not stored\"")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(if name == NOT_STORED { Vec::new() } else { vec![TimeColumn::plain(name)] })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let one = TimeColumn::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a column name or { column = \"…\", kind = \"epoch_ms\" }")]
        enum Each {
            Name(String),
            Full(Box<TimeColumn>),
        }
        let mut times = Vec::new();
        while let Some(each) = seq.next_element()? {
            times.push(match each {
                Each::Name(name) => TimeColumn::plain(name),
                Each::Full(time) => *time,
            });
        }
        Ok(times)
    }
}
