//! A statement with its values, ready for one database.

use std::borrow::Cow;
use std::sync::Arc;

use sea_query::{QueryStatementBuilder, Value};

use crate::Dialect;

/// SQL text and the values bound to it.
#[derive(Clone)]
pub struct Query {
    text: Text,
    values: Vec<Value>,
}

#[derive(Clone)]
enum Text {
    /// Built for one dialect.
    Built(Arc<str>),
    /// Written by hand with `?` placeholders, whatever the dialect.
    Raw(Arc<str>),
}

impl Query {
    /// The sea-query `statement` in `dialect`'s spelling.
    pub fn build(dialect: Dialect, statement: &impl QueryStatementBuilder) -> Query {
        let (sql, values) = dialect.build(statement);
        Query { text: Text::Built(sql.into()), values: values.0 }
    }

    /// Hand-written SQL: every `?` outside strings, quoted names and comments takes one value; `??` is a literal `?`.
    pub fn raw(sql: impl Into<String>, values: Vec<Value>) -> Query {
        Query { text: Text::Raw(sql.into().into()), values }
    }

    pub(crate) fn sql(&self, dialect: Dialect) -> Arc<str> {
        match &self.text {
            Text::Built(sql) => sql.clone(),
            Text::Raw(sql) => match placeholders(sql, dialect) {
                Cow::Borrowed(_) => sql.clone(),
                Cow::Owned(rewritten) => rewritten.into(),
            },
        }
    }

    /// Whether the connection may keep the prepared statement. Hand-written text may say `SELECT *`, which a kept
    /// statement answers wrongly after the table was altered; only PostgreSQL notices by itself, and its driver
    /// needs a kept statement to look up the types of its columns.
    pub(crate) fn persistent(&self, dialect: Dialect) -> bool {
        matches!(self.text, Text::Built(_)) || dialect == Dialect::Postgres
    }

    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }
}

impl std::fmt::Debug for Query {
    /// Values are data that may be secret: only their number is shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Text::Built(sql) | Text::Raw(sql)) = &self.text;
        write!(f, "{sql} [{} values]", self.values.len())
    }
}

/// SQL text that is bound to values again and again, so that connections keep it prepared. It names its columns:
/// a kept `SELECT *` would be answered wrongly after the table was altered.
#[derive(Debug, Clone)]
pub struct Statement(Arc<str>);

impl Statement {
    /// Hand-written SQL with placeholders as in [`Query::raw`], in `dialect`'s spelling.
    pub fn new(dialect: Dialect, sql: &str) -> Statement {
        Statement(placeholders(sql, dialect).into())
    }

    /// The statement with the values of one run.
    pub fn bind(&self, values: Vec<Value>) -> Query {
        Query { text: Text::Built(self.0.clone()), values }
    }
}

/// Rewrites `?` into the dialect's placeholder and `??` into `?`.
fn placeholders(sql: &str, dialect: Dialect) -> Cow<'_, str> {
    if !sql.contains('?') {
        return Cow::Borrowed(sql);
    }
    let mut out = String::with_capacity(sql.len() + 16);
    let mut rest = sql;
    let mut number = 0;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(span(rest, dialect));
        match piece {
            "??" => out.push('?'),
            "?" if dialect == Dialect::Postgres => {
                number += 1;
                out.push_str(&format!("${number}"));
            }
            other => out.push_str(other),
        }
        rest = tail;
    }
    Cow::Owned(out)
}

/// The length of the next piece of SQL: a placeholder, a string, a quoted name, a comment, or one character.
fn span(sql: &str, dialect: Dialect) -> usize {
    let backslash = dialect == Dialect::Mysql;
    let first = sql.chars().next().map_or(0, char::len_utf8);
    if sql.starts_with("??") {
        return 2;
    }
    if let Some(after) =
        sql.strip_prefix("E'").or_else(|| sql.strip_prefix("e'")).filter(|_| dialect == Dialect::Postgres)
    {
        return 2 + quoted(after, '\'', true);
    }
    if sql.starts_with("--") || (sql.starts_with('#') && dialect == Dialect::Mysql) {
        return sql.find('\n').unwrap_or(sql.len());
    }
    if let Some(after) = sql.strip_prefix("/*") {
        return after.find("*/").map_or(sql.len(), |at| at + 4);
    }
    match sql.as_bytes()[0] {
        quote @ (b'\'' | b'"') => 1 + quoted(&sql[1..], quote as char, backslash),
        b'`' => 1 + quoted(&sql[1..], '`', false),
        b'$' if dialect == Dialect::Postgres => dollar_quoted(sql).unwrap_or(first),
        _ => first,
    }
}

/// The length up to and including the closing quote; a doubled quote stays inside.
fn quoted(text: &str, quote: char, backslash: bool) -> usize {
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

/// The length of a `$tag$ … $tag$` string, if one starts here.
fn dollar_quoted(sql: &str) -> Option<usize> {
    let end = sql[1..].find('$')? + 2;
    let tag = &sql[..end];
    let named = tag[1..end - 1].chars().all(|c| c.is_alphanumeric() || c == '_');
    if !named || tag[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some(sql[end..].find(tag).map_or(sql.len(), |at| at + 2 * end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_only_where_sql_reads_them() {
        for (sql, postgres) in [
            ("SELECT ?, ?", "SELECT $1, $2"),
            ("a = '?' AND b = ?", "a = '?' AND b = $1"),
            ("a = 'it''s ?' AND \"odd ? name\" = ?", "a = 'it''s ?' AND \"odd ? name\" = $1"),
            ("E'\\'?' = ?", "E'\\'?' = $1"),
            ("-- why?\nSELECT ?", "-- why?\nSELECT $1"),
            ("/* why? */ SELECT ?", "/* why? */ SELECT $1"),
            ("$q$ ? $q$ = ?", "$q$ ? $q$ = $1"),
            ("doc ?? 'k' AND a = ?", "doc ? 'k' AND a = $1"),
            ("名 = '問?' AND 字 = ?", "名 = '問?' AND 字 = $1"),
            ("unfinished '?", "unfinished '?"),
        ] {
            assert_eq!(placeholders(sql, Dialect::Postgres), postgres);
        }
        assert_eq!(placeholders("a = 'it\\'s ?' AND b = ?", Dialect::Mysql), "a = 'it\\'s ?' AND b = ?");
    }

    #[test]
    fn debug_output_shows_no_values() {
        let query = Query::raw("SELECT ?", vec!["secret".into()]);
        assert_eq!(format!("{query:?}"), "SELECT ? [1 values]");
    }
}
