//! Business data spread over tables and databases, and which of them a number lives in.

use super::value::{Secret, Span};
use crate::named::Param;
use serde::Deserialize;
use std::time::Duration;

/// More tables than this are a mistake in a range.
const MOST_SHARDS: usize = 4_096;
const CONCURRENCY: u8 = 8;
const TIMEOUT: Duration = Duration::from_secs(2);

/// One database of a shard set: `{ url = "${DS0}", table = "t_order_{0..15}" }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardSet {
    pub url: Secret,
    /// What people call the database; by default its host and name.
    #[serde(default)]
    pub name: Option<String>,
    /// The tables in it, `"t_order_{0..15}"`, `"t_order_{00..15}"` or a list; none when every database names it alike.
    #[serde(default)]
    pub table: Tables,
}

/// The tables of one database, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawTables")]
pub struct Tables(pub Vec<ShardTable>);

/// One table: its name, with the schema or database before it if need be, and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardTable {
    pub name: String,
    /// What stood for the range; empty without one.
    pub number: String,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a table, a range of tables like \"t_order_{0..15}\" or a list of these"
)]
enum RawTables {
    One(String),
    Many(Vec<String>),
}

impl TryFrom<RawTables> for Tables {
    type Error = String;

    fn try_from(raw: RawTables) -> Result<Self, String> {
        let patterns = match raw {
            RawTables::One(pattern) => vec![pattern],
            RawTables::Many(patterns) => patterns,
        };
        let mut tables = Vec::new();
        for pattern in &patterns {
            tables.extend(expanded(pattern)?);
        }
        Ok(Self(tables))
    }
}

/// The tables a pattern stands for.
fn expanded(pattern: &str) -> Result<Vec<ShardTable>, String> {
    let refused = || {
        format!(
            "{pattern:?} is no table or range of tables; write \"t_order\", \"t_order_{{0..15}}\" or \"t_order_{{00..15}}\""
        )
    };
    let Some((before, rest)) = pattern.split_once('{') else {
        let wrong = pattern.split('.').any(str::is_empty) || pattern.contains('}');
        return match wrong {
            true => Err(refused()),
            false => Ok(vec![ShardTable { name: pattern.to_owned(), number: String::new() }]),
        };
    };
    let (range, after) = rest.split_once('}').ok_or_else(refused)?;
    let (first, last) = range.split_once("..").ok_or_else(refused)?;
    let digits = |text: &str| !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(first) || !digits(last) || after.contains(['{', '}']) {
        return Err(refused());
    }
    let (from, to): (u32, u32) =
        (first.parse().map_err(|_| refused())?, last.parse().map_err(|_| refused())?);
    if from > to || (to - from) as usize >= MOST_SHARDS {
        return Err(format!("{pattern:?} counts up, through at most {MOST_SHARDS} tables"));
    }
    let width =
        if first.len() == last.len() || first.starts_with('0') && first.len() > 1 { first.len() } else { 0 };
    let table = |n: u32| {
        let number = format!("{n:0width$}");
        ShardTable { name: format!("{before}{number}{after}"), number }
    };
    Ok((from..=to).map(table).collect())
}

/// All shards of a check and how they are asked.
#[derive(Debug, Clone)]
pub struct Sharding {
    pub sets: Vec<ShardSet>,
    pub route: Option<Route>,
    /// How many are asked at once.
    pub concurrency: usize,
    /// Longest one shard may take.
    pub timeout: Duration,
}

impl Sharding {
    pub(super) fn new(
        sets: Vec<ShardSet>,
        route: Option<Route>,
        concurrency: Option<u8>,
        timeout: Option<Span>,
    ) -> Result<Self, String> {
        let concurrency = concurrency.unwrap_or(CONCURRENCY);
        if !(1..=64).contains(&concurrency) {
            return Err("concurrency is between 1 and 64".into());
        }
        let sharding = Self {
            sets,
            route,
            concurrency: concurrency.into(),
            timeout: timeout.map_or(TIMEOUT, Span::get),
        };
        match sharding.len() {
            1..=MOST_SHARDS => Ok(sharding),
            many => Err(format!("shards names {many} tables; at most {MOST_SHARDS} can be asked")),
        }
    }

    /// How many shards there are; a database without tables is one.
    pub fn len(&self) -> usize {
        self.sets.iter().map(|set| set.table.0.len().max(1)).sum()
    }

    /// Never: a shard set without shards is refused.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }
}

/// Which shard, counted from 0 in the order written, holds a number. Without rows there, the others are asked too.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawRoute")]
pub struct Route {
    pub by: RouteBy,
    /// Whether the other shards are asked when the routed one has no row.
    pub fallback: Fallback,
}

/// How the shard is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteBy {
    /// A SELECT of one number, asked of the source's own database.
    Sql(String),
    Hash {
        param: Param,
        last: Option<usize>,
        hash: Hash,
        modulo: Option<u32>,
    },
}

/// What is made of the text before the modulus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hash {
    /// The digits as a number.
    #[default]
    Number,
    /// Java's `Math.abs(text.hashCode())`, as ShardingSphere's algorithms use it for texts.
    JavaString,
    /// Java's `Math.abs(Long.hashCode(number))`.
    JavaLong,
    /// MySQL's `CRC32()`.
    Crc32,
}

/// What to do when the routed shard has no row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// Ask all others: a wrong route then finds the row all the same.
    #[default]
    All,
    /// Believe the route.
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRoute {
    /// `sql = "SELECT MOD(CRC32(:biz_no), 32)"`.
    #[serde(default)]
    sql: Option<String>,
    /// The parameter that is hashed; `"biz_no"` unless said otherwise.
    #[serde(default)]
    by: Option<Param>,
    /// Only so many characters from its end.
    #[serde(default)]
    last: Option<usize>,
    #[serde(default)]
    hash: Option<Hash>,
    /// The number of shards unless said otherwise.
    #[serde(default)]
    modulo: Option<u32>,
    #[serde(default)]
    fallback: Fallback,
}

impl TryFrom<RawRoute> for Route {
    type Error = String;

    fn try_from(raw: RawRoute) -> Result<Self, String> {
        let RawRoute { sql, by, last, hash, modulo, fallback } = raw;
        let hashed = by.is_some() || last.is_some() || hash.is_some() || modulo.is_some();
        if last == Some(0) || modulo == Some(0) {
            return Err("last and modulo are at least 1".into());
        }
        let by = match sql {
            Some(_) if hashed => return Err("a route is sql, or by, last, hash and modulo; not both".into()),
            Some(sql) => RouteBy::Sql(sql),
            None => RouteBy::Hash {
                param: by.unwrap_or(Param::BizNo),
                last,
                hash: hash.unwrap_or_default(),
                modulo,
            },
        };
        Ok(Self { by, fallback })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &str) -> Vec<String> {
        expanded(pattern).unwrap().into_iter().map(|table| table.name).collect()
    }

    #[test]
    fn ranges_stand_for_their_tables() {
        assert_eq!(names("t_order_{0..2}"), ["t_order_0", "t_order_1", "t_order_2"]);
        assert_eq!(names("t_{08..10}"), ["t_08", "t_09", "t_10"]);
        assert_eq!(names("t_{8..10}"), ["t_8", "t_9", "t_10"]);
        assert_eq!(names("shop_{1..2}.t_order"), ["shop_1.t_order", "shop_2.t_order"]);
        assert_eq!(names("t_order"), ["t_order"]);
        for wrong in [
            "",
            "a.",
            "t_{}",
            "t_{1}",
            "t_{2..1}",
            "t_{a..b}",
            "t_{0..9",
            "t_}",
            "t_{0..1}{0..1}",
            "t_{0..99999}",
        ] {
            assert!(expanded(wrong).is_err(), "{wrong}");
        }
    }
}
