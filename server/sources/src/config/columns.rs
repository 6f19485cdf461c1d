//! Which column plays which part. The defaults are the native table's.

use super::value::Zone;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Written in place of a column name when the table keeps no such thing.
const NOT_STORED: &str = "not stored";

/// The parts and their columns; `None` = the table has no such column.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    pub key: String,
    #[serde(deserialize_with = "optional")]
    pub biz_type: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub biz_no: Option<String>,
    pub status: String,
    #[serde(deserialize_with = "optional")]
    pub request: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub response: Option<String>,
    #[serde(deserialize_with = "optional_time")]
    pub created_at: Option<TimeColumn>,
    #[serde(deserialize_with = "optional_time")]
    pub updated_at: Option<TimeColumn>,
    /// Until when the worker that claimed the record may still be at it.
    #[serde(deserialize_with = "optional_time")]
    pub lease_until: Option<TimeColumn>,
    /// Where age is counted from, when not from the creation time.
    #[serde(deserialize_with = "optional_time")]
    pub age_from: Option<TimeColumn>,
    /// A record's own deadline, used instead of `stuck_after`.
    #[serde(deserialize_with = "optional_time")]
    pub deadline: Option<TimeColumn>,
    /// A number that grows with every change of ownership.
    #[serde(deserialize_with = "optional")]
    pub version: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub attempts: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub hit_count: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub error: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub owner: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub phase: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub response_status: Option<String>,
}

impl Default for Columns {
    fn default() -> Self {
        let column = |name: &str| Some(name.to_owned());
        let time = |name: &str| Some(TimeColumn::plain(name));
        Self {
            key: "idempotent_id".into(),
            biz_type: column("biz_type"),
            biz_no: column("biz_no"),
            status: "status".into(),
            request: column("request_body"),
            response: column("response_body"),
            created_at: time("create_time"),
            updated_at: time("update_time"),
            lease_until: None,
            age_from: None,
            deadline: None,
            version: None,
            attempts: None,
            hit_count: None,
            error: None,
            owner: None,
            phase: None,
            response_status: None,
        }
    }
}

impl Columns {
    /// Every mapped column with its part, in a fixed order.
    pub fn mapped(&self) -> Vec<(&'static str, &str)> {
        fn time(column: &Option<TimeColumn>) -> Option<&str> {
            column.as_ref().map(|time| time.column.as_str())
        }
        let parts = [
            ("key", Some(self.key.as_str())),
            ("biz_type", self.biz_type.as_deref()),
            ("biz_no", self.biz_no.as_deref()),
            ("status", Some(self.status.as_str())),
            ("request", self.request.as_deref()),
            ("response", self.response.as_deref()),
            ("created_at", time(&self.created_at)),
            ("updated_at", time(&self.updated_at)),
            ("lease_until", time(&self.lease_until)),
            ("age_from", time(&self.age_from)),
            ("deadline", time(&self.deadline)),
            ("version", self.version.as_deref()),
            ("attempts", self.attempts.as_deref()),
            ("hit_count", self.hit_count.as_deref()),
            ("error", self.error.as_deref()),
            ("owner", self.owner.as_deref()),
            ("phase", self.phase.as_deref()),
            ("response_status", self.response_status.as_deref()),
        ];
        parts.into_iter().filter_map(|(part, column)| Some((part, column?))).collect()
    }

    /// Columns that are only shown, in this order.
    pub fn facts(&self) -> Vec<&str> {
        let facts = [
            &self.version,
            &self.owner,
            &self.phase,
            &self.attempts,
            &self.hit_count,
            &self.response_status,
            &self.error,
        ];
        facts.into_iter().filter_map(|column| column.as_deref()).collect()
    }
}

/// A time column and how it keeps time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeColumn {
    pub column: String,
    /// `None` = as the column's own type says.
    pub kind: Option<TimeUnit>,
    /// `None` = the source's zone.
    pub zone: Option<Zone>,
}

impl TimeColumn {
    pub fn plain(column: impl Into<String>) -> Self {
        Self { column: column.into(), kind: None, zone: None }
    }
}

/// Ways of keeping time that a column's type does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    EpochS,
    EpochMs,
    EpochUs,
    /// SQLite text like `2026-12-01T10:00:00Z`.
    IsoText,
}

fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok((name != NOT_STORED).then_some(name))
}

fn optional_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TimeColumn>, D::Error> {
    deserializer.deserialize_any(TimeVisitor)
}

struct TimeVisitor;

impl<'de> Visitor<'de> for TimeVisitor {
    type Value = Option<TimeColumn>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a column name, { column = \"…\", kind = \"epoch_ms\" } or \"not stored\"")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok((name != NOT_STORED).then(|| TimeColumn::plain(name)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            column: String,
            #[serde(default)]
            kind: Option<TimeUnit>,
            #[serde(default)]
            zone: Option<Zone>,
        }
        let full = Full::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(Some(TimeColumn { column: full.column, kind: full.kind, zone: full.zone }))
    }
}
