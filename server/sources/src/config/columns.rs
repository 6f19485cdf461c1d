//! Which column plays which part. The defaults are the native table's.

use super::body::optional_body;
pub use super::body::{BodyColumn, BodyFrom, Charset, DecodeBy, Decoder};
pub use super::key::{KeyColumns, KeyTransform};
pub use super::time::{AgeFrom, Sentinel, TimeColumn, TimeUnit};
use super::time::{optional_age, optional_time};
use super::value::{Pattern, Pointer};
use serde::{Deserialize, Deserializer};

/// Written in place of a column name when the table keeps no such thing.
pub(super) const NOT_STORED: &str = "not stored";

/// The parts and their columns; `None` = the table has no such column. A column of a joined table is written `join.column`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// What the service calls the record by: `key = "idempotent_id"` or `key = ["user_id", "idempotency_key"]`.
    pub key: KeyColumns,
    /// What finds the row for reading and changing: `locator = ["id"]`. By default the primary key, else the key.
    pub locator: Option<KeyColumns>,
    /// What was done to the key before it was stored: `key_transform = "sha256_hex"`; searches do the same.
    pub key_transform: Option<KeyTransform>,
    #[serde(deserialize_with = "optional")]
    pub biz_type: Option<String>,
    /// The one biz_type of every record, for tables without such a column: `biz_type_value = "ORDER"`.
    pub biz_type_value: Option<String>,
    /// `biz_no = "order_no"`, `{ from = "key", pattern = "pay:(\\d+):.*" }` or `{ from = "request", pointer = "/order/no" }`.
    #[serde(deserialize_with = "optional_biz_no")]
    pub biz_no: Option<BizNo>,
    /// `status = "not stored"` where the state rules look at other columns.
    #[serde(deserialize_with = "optional")]
    pub status: Option<String>,
    #[serde(deserialize_with = "optional_body")]
    pub request: Option<BodyColumn>,
    #[serde(deserialize_with = "optional_body")]
    pub response: Option<BodyColumn>,
    #[serde(deserialize_with = "optional_time")]
    pub created_at: Option<TimeColumn>,
    #[serde(deserialize_with = "optional_time")]
    pub updated_at: Option<TimeColumn>,
    /// Until when the worker that claimed the record may still be at it.
    #[serde(deserialize_with = "optional_time")]
    pub lease_until: Option<TimeColumn>,
    /// Where age is counted from, when not from the creation time: one column, or the latest of several.
    #[serde(deserialize_with = "optional_age")]
    pub age_from: Option<AgeFrom>,
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
    #[serde(deserialize_with = "optional")]
    pub response_headers: Option<String>,
    /// Further columns for the eye, and for reverse checks by their names: `facts = ["ref_id", "tenant_id"]`.
    pub facts: Vec<String>,
}

/// Where a record's business number comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BizNo {
    Column(String),
    /// The first group of a pattern on the key as shown.
    Key {
        pattern: Pattern,
    },
    /// A place in the decoded request.
    Request {
        pointer: Pointer,
    },
}

impl BizNo {
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::Column(name) => Some(name),
            Self::Key { .. } | Self::Request { .. } => None,
        }
    }
}

impl Default for Columns {
    fn default() -> Self {
        let column = |name: &str| Some(name.to_owned());
        let time = |name: &str| Some(TimeColumn::plain(name));
        Self {
            key: KeyColumns::one("idempotent_id"),
            locator: None,
            key_transform: None,
            biz_type: column("biz_type"),
            biz_type_value: None,
            biz_no: Some(BizNo::Column("biz_no".into())),
            status: column("status"),
            request: Some(BodyColumn::plain("request_body")),
            response: Some(BodyColumn::plain("response_body")),
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
            response_headers: None,
            facts: Vec::new(),
        }
    }
}

impl Columns {
    /// Every mapped column with its part, in a fixed order; a part of several columns is there several times.
    pub fn mapped(&self) -> Vec<(&'static str, &str)> {
        fn time(time: &Option<TimeColumn>) -> Vec<&str> {
            time.iter().map(|time| time.column.as_str()).collect()
        }
        fn body(body: &Option<BodyColumn>) -> Vec<&str> {
            body.as_ref().map(BodyColumn::columns).unwrap_or_default()
        }
        fn plain(column: Option<&str>) -> Vec<&str> {
            column.into_iter().collect()
        }
        fn many(columns: &[String]) -> Vec<&str> {
            columns.iter().map(String::as_str).collect()
        }
        let locator = self.locator.as_ref().map(|locator| many(locator.parts()));
        let age = self.age_from.iter().flat_map(|age| &age.0).map(|time| time.column.as_str());
        let parts = [
            ("key", many(self.key.parts())),
            ("locator", locator.unwrap_or_default()),
            ("biz_type", plain(self.effective_biz_type())),
            ("biz_no", plain(self.biz_no.as_ref().and_then(BizNo::column))),
            ("status", plain(self.status.as_deref())),
            ("request", body(&self.request)),
            ("response", body(&self.response)),
            ("created_at", time(&self.created_at)),
            ("updated_at", time(&self.updated_at)),
            ("lease_until", time(&self.lease_until)),
            ("age_from", age.collect()),
            ("deadline", time(&self.deadline)),
            ("version", plain(self.version.as_deref())),
            ("attempts", plain(self.attempts.as_deref())),
            ("hit_count", plain(self.hit_count.as_deref())),
            ("error", plain(self.error.as_deref())),
            ("owner", plain(self.owner.as_deref())),
            ("phase", plain(self.phase.as_deref())),
            ("response_status", plain(self.response_status.as_deref())),
            ("response_headers", plain(self.response_headers.as_deref())),
            ("facts", many(&self.facts)),
        ];
        parts.into_iter().flat_map(|(part, names)| names.into_iter().map(move |name| (part, name))).collect()
    }

    /// The biz_type column, unless one value stands for all.
    pub fn effective_biz_type(&self) -> Option<&str> {
        self.biz_type.as_deref().filter(|_| self.biz_type_value.is_none())
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
            &self.response_headers,
            &self.error,
        ];
        let named = facts.into_iter().filter_map(|column| column.as_deref());
        named.chain(self.facts.iter().map(String::as_str)).collect()
    }
}

fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok((name != NOT_STORED).then_some(name))
}

fn optional_biz_no<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BizNo>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a column name, { from = \"key\", pattern = \"…(…)…\" } or { from = \"request\", pointer = \"/…\" }"
    )]
    enum Raw {
        Name(String),
        From(From),
    }
    #[derive(Deserialize)]
    #[serde(tag = "from", rename_all = "snake_case", deny_unknown_fields)]
    enum From {
        Key { pattern: Pattern },
        Request { pointer: Pointer },
    }
    Ok(match Raw::deserialize(deserializer)? {
        Raw::Name(name) => (name != NOT_STORED).then_some(BizNo::Column(name)),
        Raw::From(From::Key { pattern }) => Some(BizNo::Key { pattern }),
        Raw::From(From::Request { pointer }) => Some(BizNo::Request { pointer }),
    })
}
