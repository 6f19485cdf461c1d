//! The indexes of a live table.

use crate::config::Table;
use db::{Db, DbError, Dialect, Query};

/// One index without conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    /// In index order; an expression has no name.
    columns: Vec<String>,
    /// SQLite: how its first column is compared.
    pub(super) collation: Option<String>,
}

impl Index {
    pub(super) fn is_on(&self, columns: &[&str]) -> bool {
        self.columns.len() == columns.len() && self.starts_with(columns)
    }

    pub(super) fn starts_with(&self, columns: &[&str]) -> bool {
        let own = self.columns.iter().map(String::as_str);
        self.columns.len() >= columns.len()
            && own.zip(columns).all(|(own, column)| own.eq_ignore_ascii_case(column))
    }
}

/// Reads name, uniqueness, column and collation, one row a column.
pub(super) async fn read(db: &Db, table: &Table) -> Result<Vec<Index>, DbError> {
    let query = match db.dialect() {
        Dialect::Sqlite => sqlite(table),
        Dialect::Postgres => postgres(table),
        Dialect::Mysql => mysql(table),
    };
    let mut indexes: Vec<Index> = Vec::new();
    for row in db.fetch_all(&query).await? {
        let (name, column) = (row.text(0)?, row.opt_text(2)?.unwrap_or_default());
        match indexes.last_mut().filter(|index| index.name == name) {
            Some(index) => index.columns.push(column),
            None => indexes.push(Index {
                unique: row.i64(1)? == 1,
                columns: vec![column],
                collation: row.opt_text(3)?,
                name,
            }),
        }
    }
    Ok(indexes)
}

fn sqlite(table: &Table) -> Query {
    let schema = table.schema.clone().unwrap_or_else(|| "main".into());
    let sql = "SELECT l.name, l.\"unique\", i.name, i.coll FROM pragma_index_list(?, ?) l \
               JOIN pragma_index_xinfo(l.name, ?) i ON i.key = 1 WHERE l.partial = 0 ORDER BY l.seq, i.seqno";
    Query::raw(sql, vec![table.name.clone().into(), schema.clone().into(), schema.into()])
}

fn postgres(table: &Table) -> Query {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let name = match &table.schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(&table.name)),
        None => quoted(&table.name),
    };
    let sql = "SELECT CAST(c.relname AS TEXT), CAST(CASE WHEN x.indisunique THEN 1 ELSE 0 END AS BIGINT), \
               CAST(a.attname AS TEXT), CAST(NULL AS TEXT) \
               FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid \
               CROSS JOIN LATERAL unnest(CAST(x.indkey AS int2[])) WITH ORDINALITY AS k(attnum, place) \
               LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum AND k.attnum > 0 \
               WHERE x.indrelid = to_regclass(?) AND x.indpred IS NULL AND x.indisvalid AND k.place <= x.indnkeyatts \
               ORDER BY c.relname, k.place";
    Query::raw(sql, vec![name.into()])
}

fn mysql(table: &Table) -> Query {
    let (schema, mut values) = match &table.schema {
        Some(schema) => ("?", vec![schema.clone().into()]),
        None => ("DATABASE()", vec![]),
    };
    values.push(table.name.clone().into());
    let sql = format!(
        "SELECT INDEX_NAME, CAST(1 - NON_UNIQUE AS SIGNED), COLUMN_NAME, NULL FROM information_schema.STATISTICS \
         WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = ? ORDER BY INDEX_NAME, SEQ_IN_INDEX"
    );
    Query::raw(sql, values)
}
