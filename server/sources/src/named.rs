//! Reverse-check SQL: finds the named parameters where SQL reads them, never inside strings or comments.

use crate::config::Pointer;
use db::{Dialect, Query, Value};

/// A value that a check takes from the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Param {
    BizNo,
    Key,
    BizType,
    Request(Pointer),
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
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let first: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
        if !["SELECT", "WITH"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
            return Err("sql must be one SELECT (or WITH … SELECT)".into());
        }
        let mut statement = Self { sql: String::with_capacity(sql.len()), params: Vec::new() };
        let mut rest = sql;
        while !rest.is_empty() {
            rest = statement.take(rest, dialect)?;
        }
        Ok(statement)
    }

    /// The statement with its values, every one bound as text.
    pub(crate) fn bind(&self, value: impl Fn(&Param) -> Option<String>) -> Result<Query, Param> {
        let values = self.params.iter().map(|param| match value(param) {
            Some(text) => Ok(Value::from(text)),
            None => Err(param.clone()),
        });
        Ok(Query::raw(self.sql.clone(), values.collect::<Result<_, _>>()?))
    }

    /// The same question with at least one row in its answer, so that its columns can be seen.
    pub(crate) fn probe(&self) -> Self {
        let sql = format!("SELECT q.* FROM (SELECT 1 AS one) o LEFT JOIN (\n{}\n) q ON 1 = 1", self.sql);
        Self { sql, params: self.params.clone() }
    }

    /// Moves one piece over and gives what is left.
    fn take<'s>(&mut self, sql: &'s str, dialect: Dialect) -> Result<&'s str, String> {
        let opaque = opaque_length(sql, dialect);
        if opaque > 0 {
            self.sql.push_str(&sql[..opaque]);
            return Ok(&sql[opaque..]);
        }
        if let Some(rest) = sql.strip_prefix("::") {
            self.sql.push_str("::");
            return Ok(rest);
        }
        if let Some(name) = sql.strip_prefix(':') {
            let (param, rest) = param(name)?;
            return Ok(match param {
                Some(param) => {
                    self.sql.push('?');
                    self.params.push(param);
                    rest
                }
                None => {
                    self.sql.push(':');
                    name
                }
            });
        }
        let mut chars = sql.chars();
        match chars.next() {
            Some(';') => return Err("sql must be one statement; drop everything after the first ;".into()),
            // A question mark of the operator's own (an operator of PostgreSQL) is doubled to stay one.
            Some('?') => self.sql.push_str("??"),
            Some(other) => self.sql.push(other),
            None => {}
        }
        Ok(chars.as_str())
    }
}

/// The parameter that starts after a colon; `None` when the colon is something else (a slice, a time).
fn param(text: &str) -> Result<(Option<Param>, &str), String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find('"').ok_or("a parameter :\"/…\" is not closed")?;
        let pointer = Pointer::try_from(quoted[..end].to_owned())?;
        return Ok((Some(Param::Request(pointer)), &quoted[end + 1..]));
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let param = match name {
        "biz_no" => Param::BizNo,
        "key" => Param::Key,
        "biz_type" => Param::BizType,
        _ if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            return Err(format!(
                "unknown parameter :{name}; write :biz_no, :key, :biz_type or :\"/json/pointer\" into the request"
            ));
        }
        _ => return Ok((None, text)),
    };
    Ok((Some(param), rest))
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
            "SELECT :\"amount\"",
            "SELECT :\"/amount",
            "UPDATE t SET a = 1",
        ] {
            assert!(Statement::parse(sql, Dialect::Sqlite).is_err(), "{sql}");
        }
    }
}
