//! `[source.biz.reverse_check]`: one question to the business data, where it is asked and what its answer means.

use super::http_check::HttpCheck;
use super::list::one_or_many;
use super::shards::{Route, ShardSet, Sharding};
use super::steps::Steps;
use super::value::{Pointer, Secret, Span, ValueTest};
use crate::named::Param;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One question to the business data.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawCheck")]
pub struct ReverseCheck {
    /// What people call it; by default its place in the list.
    pub name: Option<String>,
    pub ask: Ask,
    /// What is done to a parameter's value before it is bound.
    pub params: BTreeMap<Param, Steps>,
    /// A row outside it is a mismatch.
    pub found_when: BTreeMap<String, ValueTest>,
    /// A row inside it is there and marked deleted: a mismatch, never absence.
    pub deleted_when: BTreeMap<String, ValueTest>,
    /// Business column ↔ place in the request.
    pub compare: BTreeMap<String, Pointer>,
    /// How many rows make the effect complete.
    pub rows: Option<RowsExpected>,
}

/// How a check asks.
#[derive(Debug, Clone)]
pub enum Ask {
    Sql { sql: String, home: Home },
    Http(Box<HttpCheck>),
}

/// Which database an SQL check asks.
#[derive(Debug, Clone)]
pub enum Home {
    /// The one that holds the records.
    Source,
    Elsewhere {
        url: Secret,
        timeout: Option<Span>,
    },
    Shards(Sharding),
}

/// How many rows make the effect complete: a number, or the length of a list in the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a number of rows or { pointer = \"/items\" }")]
pub enum RowsExpected {
    Exactly(u32),
    Counted { pointer: Pointer },
}

/// The keys as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCheck {
    #[serde(default)]
    name: Option<String>,
    /// One SELECT with `:biz_no`, `:key`, `:biz_type`, `:id`, `:column.user_id` and `:"/json/pointer"`; in a sharded
    /// check also `{table}` and `{n}`.
    #[serde(default)]
    sql: Option<String>,
    /// Another database than the source's: `url = "${LEDGER_DB_URL}"`.
    #[serde(default)]
    url: Option<Secret>,
    /// Business data in several tables or databases: `shards = [{ url = "${DS0}", table = "t_order_{0..15}" }]`.
    #[serde(default, deserialize_with = "one_or_many")]
    shards: Vec<ShardSet>,
    /// Which shard to ask first: `route = { last = 6, hash = "java_string" }`.
    #[serde(default)]
    route: Option<Route>,
    /// How many shards are asked at once; 8 unless said otherwise.
    #[serde(default)]
    concurrency: Option<u8>,
    /// Longest one database outside the source, or one shard, may take: `timeout = "2s"`.
    #[serde(default)]
    timeout: Option<Span>,
    /// A query endpoint instead of SQL.
    #[serde(default)]
    http: Option<Box<HttpCheck>>,
    /// `params = { biz_no = "integer" }`: what is done to a parameter's value before it is bound.
    #[serde(default)]
    params: BTreeMap<Param, Steps>,
    #[serde(default)]
    found_when: BTreeMap<String, ValueTest>,
    #[serde(default)]
    deleted_when: BTreeMap<String, ValueTest>,
    #[serde(default)]
    compare: BTreeMap<String, Pointer>,
    #[serde(default)]
    rows: Option<RowsExpected>,
}

impl TryFrom<RawCheck> for ReverseCheck {
    type Error = String;

    fn try_from(mut raw: RawCheck) -> Result<Self, String> {
        let ask = match (raw.sql.take(), raw.http.take()) {
            (Some(sql), None) => Ask::Sql { sql, home: home(&mut raw)? },
            (None, Some(http)) => Ask::Http(http_alone(&raw, http)?),
            (Some(_), Some(_)) => {
                return Err("a check asks by sql or by http; write two checks for both".into());
            }
            (None, None) => {
                return Err("a check needs sql = \"SELECT …\" or [source.biz.reverse_check.http]".into());
            }
        };
        let RawCheck { name, params, found_when, deleted_when, compare, rows, .. } = raw;
        Ok(Self { name, ask, params, found_when, deleted_when, compare, rows })
    }
}

fn home(raw: &mut RawCheck) -> Result<Home, String> {
    let shards = std::mem::take(&mut raw.shards);
    match (raw.url.take(), shards.is_empty()) {
        (Some(_), false) => Err("write url or shards, not both".into()),
        (None, false) => {
            Sharding::new(shards, raw.route.take(), raw.concurrency, raw.timeout).map(Home::Shards)
        }
        _ if raw.route.is_some() || raw.concurrency.is_some() => {
            Err("route and concurrency are for shards; write shards = [{ url = \"…\", table = \"…\" }]"
                .into())
        }
        (Some(url), true) => Ok(Home::Elsewhere { url, timeout: raw.timeout }),
        (None, true) if raw.timeout.is_some() => {
            Err("timeout is for url and shards; on the source's own database statement_timeout counts".into())
        }
        (None, true) => Ok(Home::Source),
    }
}

fn http_alone(raw: &RawCheck, http: Box<HttpCheck>) -> Result<Box<HttpCheck>, String> {
    let of_sql = [
        ("url", raw.url.is_some()),
        ("shards", !raw.shards.is_empty()),
        ("route", raw.route.is_some()),
        ("concurrency", raw.concurrency.is_some()),
        ("timeout", raw.timeout.is_some()),
        ("rows", raw.rows.is_some()),
    ];
    if let Some((key, _)) = of_sql.iter().find(|(_, written)| *written) {
        return Err(format!(
            "{key} belongs to sql; what http needs stands inside [source.biz.reverse_check.http]"
        ));
    }
    if let Some(column) = [&raw.found_when, &raw.deleted_when]
        .iter()
        .flat_map(|tests| tests.keys())
        .chain(raw.compare.keys())
        .find(|column| !http.row.contains_key(*column))
    {
        return Err(format!(
            "http.row has no {column}; write row = {{ {column} = \"/pointer/into/the/answer\" }}"
        ));
    }
    Ok(http)
}

impl ReverseCheck {
    /// The name, or the place in the list counted from 1.
    pub fn label(&self, place: usize) -> String {
        self.name.clone().unwrap_or_else(|| format!("check {}", place + 1))
    }
}
