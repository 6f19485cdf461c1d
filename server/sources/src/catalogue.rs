//! The live table: its columns and what their types mean for comparing and writing.

use crate::config::Table;
use crate::join::Joined;
use db::{Db, DbError, Dialect, Query, Row};
use sea_query::Expr;
use std::sync::Arc;

/// The columns of a table as the database declares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub(crate) columns: Vec<Declared>,
    folds_case: bool,
}

/// One declared column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    /// The declared type, for people.
    pub(crate) declared: String,
    pub(crate) class: Class,
    pub(crate) nullable: bool,
    /// MySQL and PostgreSQL: the collation, when the column has one of its own.
    pub(crate) collation: Option<String>,
    /// Computed by the database, so nobody can write it.
    pub(crate) generated: bool,
    /// The place in the primary key, counted from 1.
    pub(crate) primary: Option<i64>,
    /// The most bytes (MySQL) or characters (PostgreSQL) that a text or binary value can have.
    pub(crate) size: Option<u64>,
    /// A column of a table beside the record's own.
    pub(crate) joined: Option<Arc<Joined>>,
}

impl Declared {
    /// The column's value in a statement on the record's table.
    pub(crate) fn expr(&self) -> Expr {
        match &self.joined {
            Some(joined) => joined.value_of(&self.name),
            None => Expr::col(self.name.clone()),
        }
    }

    /// Only the record's own columns can be written, and not those that the database computes.
    pub(crate) fn is_writable(&self) -> bool {
        self.joined.is_none() && !self.generated
    }
}

/// What a type means for comparing with text and for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Class {
    Text,
    /// PostgreSQL `char(n)`: text that is filled up with blanks that do not count.
    Padded,
    Integer,
    /// MySQL `bit(n)`: a number that is no text.
    Bit,
    Binary,
    Uuid,
    Json,
    /// A calendar time; whether it is an instant or names no zone, and its fraction digits.
    Time {
        zoned: bool,
        digits: u32,
    },
    /// Anything else, by its PostgreSQL name (enums, domains, numerics); elsewhere the database converts.
    Other(String),
}

/// One row of the database's own catalogue as a column.
type ReadColumn = fn(&Row) -> Result<Declared, DbError>;

impl Catalogue {
    /// Reads the columns; empty when there is no such table.
    pub(crate) async fn read(db: &Db, table: &Table) -> Result<Self, DbError> {
        let (query, read): (Query, ReadColumn) = match db.dialect() {
            Dialect::Sqlite => (sqlite_query(table), sqlite_column),
            Dialect::Postgres => (postgres_query(table), postgres_column),
            Dialect::Mysql => (mysql_query(table), mysql_column),
        };
        let columns = db.fetch_all(&query).await?.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { columns, folds_case: db.dialect() != Dialect::Postgres })
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Declared> {
        let exact = self.columns.iter().find(|column| column.name == name);
        exact.or_else(|| {
            let folded = self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
            folded.filter(|_| self.folds_case)
        })
    }

    /// The columns of the primary key, in its order; none when there is no such key.
    pub(crate) fn primary_key(&self) -> Vec<&Declared> {
        let mut columns: Vec<&Declared> =
            self.columns.iter().filter(|column| column.primary.is_some()).collect();
        columns.sort_by_key(|column| column.primary);
        columns
    }

    /// The declared name that looks most like `name`, if any does.
    pub(crate) fn near(&self, name: &str) -> Option<&str> {
        let distance = |column: &Declared| edits(&plain(&column.name), &plain(name));
        let nearest = self.columns.iter().min_by_key(|column| distance(column))?;
        (distance(nearest) <= name.len() / 2).then_some(nearest.name.as_str())
    }
}

fn sqlite_query(table: &Table) -> Query {
    let schema = table.schema.clone().unwrap_or_else(|| "main".into());
    let sql = "SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?, ?)";
    Query::raw(sql, vec![table.name.clone().into(), schema.into()])
}

fn sqlite_column(row: &Row) -> Result<Declared, DbError> {
    let declared = row.opt_text(1)?.unwrap_or_default();
    let upper = declared.to_ascii_uppercase();
    let class = match upper.as_str() {
        // The affinity rules of SQLite: the first of these words in the type decides.
        _ if upper.contains("INT") => Class::Integer,
        _ if ["CHAR", "CLOB", "TEXT"].iter().any(|word| upper.contains(word)) => Class::Text,
        _ if upper.contains("BLOB") => Class::Binary,
        _ => Class::Other(declared.clone()),
    };
    let primary = Some(row.i64(3)?).filter(|place| *place > 0);
    Ok(Declared {
        name: row.text(0)?,
        declared,
        class,
        nullable: row.i64(2)? == 0 && primary.is_none(),
        collation: None,
        // 1 is a hidden column of a virtual table, 2 and 3 are computed ones.
        generated: row.i64(4)? != 0,
        primary,
        size: None,
        joined: None,
    })
}

fn postgres_query(table: &Table) -> Query {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let name = match &table.schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(&table.name)),
        None => quoted(&table.name),
    };
    let sql = "SELECT CAST(a.attname AS TEXT), format_type(a.atttypid, a.atttypmod), \
               CAST(COALESCE(base.typname, t.typname) AS TEXT), CAST(a.atttypmod AS BIGINT), a.attnotnull, \
               CAST(c.collname AS TEXT), a.attgenerated <> '', \
               (SELECT CAST(k.place AS BIGINT) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k(att, place) \
               WHERE i.indrelid = a.attrelid AND i.indisprimary AND k.att = a.attnum) \
               FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
               LEFT JOIN pg_type base ON base.oid = t.typbasetype \
               LEFT JOIN pg_collation c ON c.oid = a.attcollation \
               WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
    Query::raw(sql, vec![name.into()])
}

fn postgres_column(row: &Row) -> Result<Declared, DbError> {
    let (declared, base) = (row.text(1)?, row.text(2)?);
    let digits = match row.i64(3)? {
        set @ 0..=6 => u32::try_from(set).unwrap_or(6),
        _ => 6,
    };
    let class = match base.as_str() {
        "text" | "varchar" | "name" => Class::Text,
        "bpchar" => Class::Padded,
        "int2" | "int4" | "int8" => Class::Integer,
        "bytea" => Class::Binary,
        "uuid" => Class::Uuid,
        "json" | "jsonb" => Class::Json,
        "timestamptz" => Class::Time { zoned: true, digits },
        "timestamp" => Class::Time { zoned: false, digits },
        _ => Class::Other(declared.clone()),
    };
    // A varchar's modifier is its length and four more.
    let size = Some(row.i64(3)?).filter(|set| *set > 4 && matches!(class, Class::Text | Class::Padded));
    Ok(Declared {
        name: row.text(0)?,
        declared,
        class,
        nullable: !row.bool(4)?,
        collation: row.opt_text(5)?,
        generated: row.bool(6)?,
        primary: row.opt_i64(7)?,
        size: size.and_then(|set| u64::try_from(set - 4).ok()),
        joined: None,
    })
}

fn mysql_query(table: &Table) -> Query {
    let (schema, mut values) = match &table.schema {
        Some(schema) => ("?", vec![schema.clone().into()]),
        None => ("DATABASE()", vec![]),
    };
    values.push(table.name.clone().into());
    let sql = format!(
        "SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, CAST(COALESCE(DATETIME_PRECISION, 0) AS SIGNED), IS_NULLABLE, \
         COLLATION_NAME, EXTRA LIKE '%GENERATED%' AND EXTRA NOT LIKE '%DEFAULT_GENERATED%', \
         (SELECT CAST(s.SEQ_IN_INDEX AS SIGNED) FROM information_schema.STATISTICS s WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA \
         AND s.TABLE_NAME = c.TABLE_NAME AND s.COLUMN_NAME = c.COLUMN_NAME AND s.INDEX_NAME = 'PRIMARY'), \
         CAST(CHARACTER_OCTET_LENGTH AS SIGNED) \
         FROM information_schema.COLUMNS c WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION"
    );
    Query::raw(sql, values)
}

fn mysql_column(row: &Row) -> Result<Declared, DbError> {
    let (declared, kind) = (row.text(1)?, row.text(2)?.to_ascii_lowercase());
    let digits = u32::try_from(row.i64(3)?).unwrap_or(0);
    let class = match kind.as_str() {
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" => Class::Text,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Class::Integer,
        "bit" => Class::Bit,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Class::Binary,
        "json" => Class::Json,
        "timestamp" => Class::Time { zoned: true, digits },
        "datetime" => Class::Time { zoned: false, digits },
        _ => Class::Other(kind),
    };
    let nullable = row.text(4)?.eq_ignore_ascii_case("YES");
    Ok(Declared {
        name: row.text(0)?,
        declared,
        class,
        nullable,
        collation: row.opt_text(5)?,
        generated: row.i64(6)? != 0,
        primary: row.opt_i64(7)?,
        size: row.opt_i64(8)?.and_then(|bytes| u64::try_from(bytes).ok()),
        joined: None,
    })
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Single-character edits between two short names.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, r) in right.iter().enumerate() {
            let change = diagonal + usize::from(l != *r);
            diagonal = row[place + 1];
            row[place + 1] = change.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_offered_and_a_far_one_is_not() {
        let column = |name: &str| Declared {
            name: name.into(),
            declared: String::new(),
            class: Class::Text,
            nullable: true,
            collation: None,
            generated: false,
            primary: None,
            size: None,
            joined: None,
        };
        let columns = ["idempotent_key", "createTime", "status"].map(column).to_vec();
        let catalogue = Catalogue { columns, folds_case: false };
        assert_eq!(catalogue.near("create_time"), Some("createTime"));
        assert_eq!(catalogue.near("idempotent_id"), Some("idempotent_key"));
        assert_eq!(catalogue.near("zzz"), None);
        assert_eq!(catalogue.find("STATUS"), None);
    }
}
