//! Tables beside the record's own: joined ones, archives, shards.

use super::value::{Predicate, Secret, Table};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Another table of the same database, whose columns are then written `name.column` wherever a column of the record is expected.
///
/// ```toml
/// [[source.join]]
/// name = "queue"
/// table = "jobqueue"
/// on = { jobid = "id" }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// What its columns are called by: `queue.fetchedat`.
    pub name: String,
    pub table: Table,
    /// Its column → the record's column.
    pub on: BTreeMap<String, String>,
    /// A constant condition on its rows.
    #[serde(default, rename = "where")]
    pub predicate: Option<Predicate>,
    /// Where several rows fit, the one that is greatest here: `newest = "created_at"`.
    #[serde(default)]
    pub newest: Option<String>,
}

/// A table that finished rows are moved to: read, counted and searched with the live one, never changed.
///
/// ```toml
/// [[source.archive]]
/// table = "bus_events_history"
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    pub table: Table,
    /// Columns that are called otherwise there: live name → archive name.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
}

/// Tables that share the records between them: `table` with `{n}` for every number of `range`.
///
/// ```toml
/// [[source.shard]]
/// table = "t_idem_{n}"
/// range = "0..15"
/// url = "${ORDERS_DB_1}"
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// `{n}` stands for the number; `{n:02}` for a number of two digits.
    pub table: Table,
    pub range: ShardRange,
    /// Another database than the source's.
    #[serde(default)]
    pub url: Option<Secret>,
}

/// First and last number of a shard set, both included: `0..15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ShardRange {
    pub first: u32,
    pub last: u32,
}

/// More shards than this are a mistake in the range.
const MOST_SHARDS: u32 = 1_024;

impl TryFrom<String> for ShardRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let range =
            text.split_once("..").and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        match range {
            Some((first, last)) if first <= last && last - first < MOST_SHARDS => Ok(Self { first, last }),
            _ => Err(format!("{text:?} is no range of shards; write first and last, like \"0..15\"")),
        }
    }
}

impl Shard {
    /// Every table of the set.
    pub fn tables(&self) -> impl Iterator<Item = Table> {
        (self.range.first..=self.range.last).map(|number| Table {
            schema: self.table.schema.clone(),
            name: numbered(&self.table.name, number),
        })
    }

    /// Whether the name has a place for the number.
    pub fn is_numbered(&self) -> bool {
        numbered(&self.table.name, 0) != self.table.name
    }
}

fn numbered(name: &str, number: u32) -> String {
    let widths = (1..=6).map(|width| (format!("{{n:0{width}}}"), width as usize));
    widths.fold(name.replace("{n}", &number.to_string()), |name, (place, width)| {
        name.replace(&place, &format!("{number:0width$}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_names_take_their_number_in_its_width() {
        assert_eq!(numbered("t_{n}", 7), "t_7");
        assert_eq!(numbered("t_{n:03}", 7), "t_007");
        let range = ShardRange::try_from("16..31".to_owned()).unwrap();
        assert_eq!((range.first, range.last), (16, 31));
        for wrong in ["", "3", "3..1", "a..b", "0..99999"] {
            assert!(ShardRange::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
