//! Reverse-check SQL: finds the named parameters where SQL reads them, never inside strings or comments.

use crate::config::{Pointer, ShardTable};
use db::{Dialect, Query, Value};
use serde::Deserialize;
use std::fmt;

/// A value that a check takes from the record, as written after the colon in SQL and between braces in templates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum Param {
    /// `biz_no`
    BizNo,
    /// `key`
    Key,
    /// `biz_type`
    BizType,
    /// `id`: what finds the record in its table, when that is one column.
    Id,
    /// `id.2`: one of several such columns, counted from 1.
    IdPart(usize),
    /// `column.user_id`: another mapped column of the record.
    Column(String),
    /// `/pointer` into the request; in SQL between double quotes.
    Request(Pointer),
}

impl TryFrom<String> for Param {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name.starts_with('/') {
            return Pointer::try_from(name).map(Self::Request);
        }
        let part = |text: &str| text.parse().ok().filter(|part| (1..=9).contains(part)).map(Self::IdPart);
        let param = match name.as_str() {
            "biz_no" => Some(Self::BizNo),
            "key" => Some(Self::Key),
            "biz_type" => Some(Self::BizType),
            "id" => Some(Self::Id),
            other => match other.split_once('.') {
                Some(("id", number)) => part(number),
                Some(("column", column)) if !column.is_empty() => Some(Self::Column(column.to_owned())),
                _ => None,
            },
        };
        param.ok_or_else(|| {
            format!(
                "unknown parameter {name}; write biz_no, key, biz_type, id, column.user_id or a JSON pointer like /user/id into the request"
            )
        })
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BizNo => f.write_str("biz_no"),
            Self::Key => f.write_str("key"),
            Self::BizType => f.write_str("biz_type"),
            Self::Id => f.write_str("id"),
            Self::IdPart(part) => write!(f, "id.{part}"),
            Self::Column(column) => write!(f, "column.{column}"),
            Self::Request(pointer) => f.write_str(pointer.as_str()),
        }
    }
}

/// A checked SELECT with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    /// With `?` for each parameter.
    sql: String,
    pub(crate) params: Vec<Param>,
}

impl Statement {
    /// Refuses anything but one reading statement with known parameters; the message says what to write.
    pub(crate) fn parse(sql: &str, dialect: Dialect) -> Result<Self, String> {
        Reader { dialect, shard: None }.statement(sql)
    }

    /// The same for one table of a shard set, which takes the place of `{table}` and `{n}`.
    pub(crate) fn parse_for(sql: &str, dialect: Dialect, shard: &ShardTable) -> Result<Self, String> {
        Reader { dialect, shard: Some(shard) }.statement(sql)
    }

    /// The statement with its values.
    pub(crate) fn bind<E>(&self, value: impl FnMut(&Param) -> Result<Value, E>) -> Result<Query, E> {
        let values = self.params.iter().map(value).collect::<Result<_, E>>()?;
        Ok(Query::raw(self.sql.clone(), values))
    }

    /// The same question with at least one row in its answer, so that its columns can be seen.
    pub(crate) fn probe(&self) -> Self {
        let sql = format!("SELECT q.* FROM (SELECT 1 AS one) o LEFT JOIN (\n{}\n) q ON 1 = 1", self.sql);
        Self { sql, params: self.params.clone() }
    }
}

/// What the text of a statement is read with.
struct Reader<'a> {
    dialect: Dialect,
    shard: Option<&'a ShardTable>,
}

impl Reader<'_> {
    fn statement(&self, sql: &str) -> Result<Statement, String> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let first: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
        if !["SELECT", "WITH"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
            return Err("sql must be one SELECT (or WITH … SELECT)".into());
        }
        let mut statement = Statement { sql: String::with_capacity(sql.len()), params: Vec::new() };
        let mut rest = sql;
        while !rest.is_empty() {
            rest = self.take(rest, &mut statement)?;
        }
        Ok(statement)
    }

    /// Moves one piece over and gives what is left.
    fn take<'s>(&self, sql: &'s str, statement: &mut Statement) -> Result<&'s str, String> {
        let opaque = opaque_length(sql, self.dialect);
        if opaque > 0 {
            statement.sql.push_str(&sql[..opaque]);
            return Ok(&sql[opaque..]);
        }
        if let Some(rest) = sql.strip_prefix("::") {
            statement.sql.push_str("::");
            return Ok(rest);
        }
        if let Some(name) = sql.strip_prefix(':') {
            let (param, rest) = param(name)?;
            return Ok(match param {
                Some(param) => {
                    statement.sql.push('?');
                    statement.params.push(param);
                    rest
                }
                None => {
                    statement.sql.push(':');
                    name
                }
            });
        }
        for (placeholder, is_table) in [("{table}", true), ("{n}", false)] {
            if let Some(rest) = sql.strip_prefix(placeholder) {
                statement.sql.push_str(&self.of_shard(placeholder, is_table)?);
                return Ok(rest);
            }
        }
        let mut chars = sql.chars();
        match chars.next() {
            Some(';') => return Err("sql must be one statement; drop everything after the first ;".into()),
            // A question mark of the operator's own (an operator of PostgreSQL) is doubled to stay one.
            Some('?') => statement.sql.push_str("??"),
            Some(other) => statement.sql.push(other),
            None => {}
        }
        Ok(chars.as_str())
    }

    fn of_shard(&self, placeholder: &str, is_table: bool) -> Result<String, String> {
        let shard = self.shard.ok_or_else(|| {
            format!("{placeholder} stands for a table of shards = [{{ url = \"…\", table = \"t_order_{{0..15}}\" }}]; write that, or the table's name")
        })?;
        match is_table {
            true => Ok(self.dialect.quoted(shard.name.split('.'))),
            false if shard.number.is_empty() => {
                Err(format!("{{n}} needs a range in the table's name; {:?} has none", shard.name))
            }
            false => Ok(shard.number.clone()),
        }
    }
}

/// The parameter that starts after a colon; `None` when the colon is something else (a slice, a time).
fn param(text: &str) -> Result<(Option<Param>, &str), String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find('"').ok_or("a parameter :\"/…\" is not closed")?;
        let pointer = Pointer::try_from(quoted[..end].to_owned())?;
        return Ok((Some(Param::Request(pointer)), &quoted[end + 1..]));
    }
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok((None, text));
    }
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut end = word(text);
    // Only these two have a second part; after any other name the dot is SQL's.
    if matches!(&text[..end], "id" | "column") && text[end..].starts_with('.') {
        end += 1 + word(&text[end + 1..]);
    }
    let param = Param::try_from(text[..end].to_owned()).map_err(|_| {
        format!(
            "unknown parameter :{}; write :biz_no, :key, :biz_type, :id, :column.user_id or :\"/json/pointer\" into the request",
            &text[..end]
        )
    })?;
    Ok((Some(param), &text[end..]))
}

/// The length of a string, a quoted name or a comment that starts here; 0 when none does.
fn opaque_length(sql: &str, dialect: Dialect) -> usize {
    let mysql = dialect == Dialect::Mysql;
    let escaped = sql.strip_prefix("E'").or_else(|| sql.strip_prefix("e'"));
    if let Some(after) = escaped.filter(|_| dialect == Dialect::Postgres) {
        return 2 + quoted_length(after, '\'', true);
    }
    if sql.starts_with("--") || (mysql && sql.starts_with('#')) {
        return sql.find('\n').unwrap_or(sql.len());
    }
    if let Some(after) = sql.strip_prefix("/*") {
        return after.find("*/").map_or(sql.len(), |at| at + 4);
    }
    match sql.chars().next() {
        Some(quote @ ('\'' | '"')) => 1 + quoted_length(&sql[1..], quote, mysql),
        Some('`') => 1 + quoted_length(&sql[1..], '`', false),
        Some('$') if dialect == Dialect::Postgres => dollar_length(sql),
        _ => 0,
    }
}

/// The length up to and including the closing quote; a doubled quote stays inside.
fn quoted_length(text: &str, quote: char, backslash: bool) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && backslash {
            chars.next();
        } else if c == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                }
                _ => return at + 1,
            }
        }
    }
    text.len()
}

/// The length of a `$tag$ … $tag$` string that starts here; 0 when none does.
fn dollar_length(sql: &str) -> usize {
    let Some(close) = sql[1..].find('$') else { return 0 };
    let tag = &sql[..close + 2];
    if !tag[1..=close].chars().all(|c| c.is_alphabetic() || c == '_') {
        return 0;
    }
    sql[tag.len()..].find(tag).map_or(sql.len(), |at| at + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(sql: &str) -> Statement {
        Statement::parse(sql, Dialect::Postgres).unwrap()
    }

    #[test]
    fn parameters_are_found_only_where_sql_reads_them() {
        let pointer = Param::Request(Pointer::try_from("/a/b".to_owned()).unwrap());
        for (sql, bound, params) in [
            ("SELECT a FROM t WHERE n = :biz_no;", "SELECT a FROM t WHERE n = ?", vec![Param::BizNo]),
            (
                "SELECT a::text, ':key' FROM t WHERE k=:key",
                "SELECT a::text, ':key' FROM t WHERE k=?",
                vec![Param::Key],
            ),
            ("SELECT 1 -- :nope\n, :biz_type", "SELECT 1 -- :nope\n, ?", vec![Param::BizType]),
            ("SELECT \":odd\" /* :x; */ = :\"/a/b\"", "SELECT \":odd\" /* :x; */ = ?", vec![pointer]),
            (
                "SELECT :id, :id.2, :column.user_id, b.id FROM b",
                "SELECT ?, ?, ?, b.id FROM b",
                vec![Param::Id, Param::IdPart(2), Param::Column("user_id".into())],
            ),
            ("SELECT d ? 'k', x[1:2], $q$ :key ; $q$", "SELECT d ?? 'k', x[1:2], $q$ :key ; $q$", vec![]),
        ] {
            let statement = parse(sql);
            assert_eq!((statement.sql.as_str(), &statement.params), (bound, &params), "{sql}");
        }
    }

    #[test]
    fn anything_but_one_reading_statement_is_refused() {
        for sql in [
            "",
            "DELETE FROM t",
            "SELECT 1; DELETE FROM t",
            "SELECT :order_no",
            "SELECT :column.",
            "SELECT :id.0",
            "SELECT a FROM {table}",
            "SELECT :\"amount\"",
            "SELECT :\"/amount",
            "UPDATE t SET a = 1",
        ] {
            assert!(Statement::parse(sql, Dialect::Sqlite).is_err(), "{sql}");
        }
    }
    #[test]
    fn a_shard_takes_its_place_outside_strings_only() {
        let shard = ShardTable { name: "ds`0.t_order_07".into(), number: "07".into() };
        let sql =
            "SELECT '{table}', i.a FROM {table} o JOIN t_item_{n} i ON i.no = o.no WHERE o.no = :biz_no";
        let statement = Statement::parse_for(sql, Dialect::Mysql, &shard).unwrap();
        assert_eq!(
            statement.sql,
            "SELECT '{table}', i.a FROM `ds``0`.`t_order_07` o JOIN t_item_07 i ON i.no = o.no WHERE o.no = ?"
        );
        let whole = ShardTable { name: "t_order".into(), number: String::new() };
        assert!(Statement::parse_for("SELECT 1 FROM t_{n}", Dialect::Mysql, &whole).is_err());
    }
}
