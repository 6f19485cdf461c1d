//! Which shard a number lives in, as the application that wrote it decided.

use super::sql::Question;
use super::subject::lacks;
use crate::config::{Fallback, Hash, Route, RouteBy};
use crate::named::{Param, Statement};
use db::{Db, Dialect};
use domain::evidence::Reason;

/// A route, ready to be asked.
pub(super) struct Routing {
    by: By,
    shards: usize,
    pub(super) fallback: Fallback,
}

enum By {
    Sql(Statement),
    Hash { param: Param, last: Option<usize>, hash: Hash, modulo: u64 },
}

impl Routing {
    pub(super) fn new(route: &Route, own: Dialect, shards: usize) -> Result<Self, String> {
        let by = match &route.by {
            RouteBy::Sql(sql) => {
                By::Sql(Statement::parse(sql, own).map_err(|message| format!("route: {message}"))?)
            }
            RouteBy::Hash { param, last, hash, modulo } => {
                let modulo = modulo.map_or(shards as u64, u64::from);
                if modulo > shards as u64 {
                    return Err(format!(
                        "route: modulo {modulo} leads to more than the {shards} shards there are"
                    ));
                }
                By::Hash { param: param.clone(), last: *last, hash: *hash, modulo }
            }
        };
        Ok(Self { by, shards, fallback: route.fallback })
    }

    /// The shard's place in the order written.
    pub(super) async fn shard(&self, own: &Db, question: &Question<'_>) -> Result<usize, Reason> {
        match &self.by {
            By::Sql(statement) => self.asked(statement, own, question).await,
            By::Hash { param, last, hash, modulo } => {
                let value = question.subject.value(param).ok_or_else(|| lacks(param))?;
                let hashed = hashed(ending(&value, *last), *hash).ok_or_else(|| Reason::NotANumber {
                    check: question.label.to_owned(),
                    param: param.to_string(),
                })?;
                // Smaller than the number of shards.
                Ok((hashed % modulo) as usize)
            }
        }
    }

    async fn asked(&self, statement: &Statement, own: &Db, question: &Question<'_>) -> Result<usize, Reason> {
        let failed = |message| Reason::QueryFailed { check: question.label.to_owned(), message };
        let answer = question.answer(&question.query(statement)?, own).await;
        let answer = answer.map_err(|error| failed(format!("route: {error}")))?;
        let said =
            answer.rows.rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or_default();
        let at = said.parse().ok().filter(|at| *at < self.shards);
        at.ok_or_else(|| failed(format!("route: the answer is no shard from 0 to {}", self.shards - 1)))
    }
}

/// The last characters.
fn ending(value: &str, last: Option<usize>) -> &str {
    let Some(last) = last else { return value };
    let start = value.char_indices().rev().take(last).last();
    start.map_or(value, |(start, _)| &value[start..])
}

/// `None` when the digits of a number are needed and there are others.
fn hashed(value: &str, hash: Hash) -> Option<u64> {
    match hash {
        Hash::Number => value.parse::<u64>().ok(),
        Hash::JavaString => {
            let code = value
                .encode_utf16()
                .fold(0_i32, |code, unit| code.wrapping_mul(31).wrapping_add(unit.into()));
            Some(u64::from(code.unsigned_abs()))
        }
        Hash::JavaLong => {
            let number = value.parse::<i64>().ok()?;
            let code = (number ^ (number as u64 >> 32) as i64) as i32;
            Some(u64::from(code.unsigned_abs()))
        }
        Hash::Crc32 => Some(u64::from(crc32fast::hash(value.as_bytes()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s61_text_and_number_of_the_same_suffix_route_apart() {
        let suffix = ending("1674355207000123", Some(6));
        assert_eq!(suffix, "000123");
        // "000123".hashCode() and Long.valueOf(123).hashCode() in Java.
        assert_eq!(hashed(suffix, Hash::JavaString), Some(1_420_006_914));
        assert_eq!(hashed(suffix, Hash::JavaLong), Some(123));
        assert_eq!(hashed(suffix, Hash::Number), Some(123));
    }

    #[test]
    fn hashes_are_those_of_java_and_mysql() {
        assert_eq!(hashed("polygenelubricants", Hash::JavaString), Some(2_147_483_648));
        assert_eq!(hashed("4294967297", Hash::JavaLong), Some(0));
        assert_eq!(hashed("MySQL", Hash::Crc32), Some(3_259_397_556));
        assert_eq!(hashed("12a", Hash::Number), None);
        assert_eq!(ending("键abc", Some(2)), "bc");
        assert_eq!(ending("键", Some(5)), "键");
        assert_eq!(ending("abc", None), "abc");
    }
}
