//! What differs between the three databases in the SQL itself.

use std::fmt;

use sea_query::{
    Expr, ExprTrait, InsertStatement, LockType, MysqlQueryBuilder, OnConflict, PostgresQueryBuilder,
    QueryStatementBuilder, SelectStatement, SqliteQueryBuilder, Values,
};

use crate::DbError;

/// One of the three databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    Sqlite,
    Postgres,
    Mysql,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Sqlite => "sqlite",
            Dialect::Postgres => "postgres",
            Dialect::Mysql => "mysql",
        })
    }
}

impl Dialect {
    /// The dialect a database URL speaks, by its scheme.
    pub fn of_url(url: &str) -> Result<Dialect, DbError> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            "sqlite" => Ok(Dialect::Sqlite),
            "postgres" | "postgresql" => Ok(Dialect::Postgres),
            "mysql" | "mariadb" => Ok(Dialect::Mysql),
            _ => Err(DbError::Invalid("a database URL starts with sqlite:, postgres: or mysql:".into())),
        }
    }

    pub(crate) fn build(self, statement: &impl QueryStatementBuilder) -> (String, Values) {
        match self {
            Dialect::Sqlite => statement.build_any(&SqliteQueryBuilder),
            Dialect::Postgres => statement.build_any(&PostgresQueryBuilder),
            Dialect::Mysql => statement.build_any(&MysqlQueryBuilder),
        }
    }

    /// The database's clock as whole milliseconds since 1970 UTC: real time, not the start of the transaction.
    pub fn now_ms(self) -> Expr {
        Expr::cust(match self {
            Dialect::Sqlite => "CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER)",
            Dialect::Postgres => "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)",
            Dialect::Mysql => "CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(3)) * 1000) AS SIGNED)",
        })
    }

    /// A name with its schema or database before it, quoted whatever it holds, for hand-written SQL.
    pub fn quoted<'n>(self, parts: impl IntoIterator<Item = &'n str>) -> String {
        let quote = if self == Dialect::Mysql { "`" } else { "\"" };
        let each = parts.into_iter().map(|part| {
            let doubled = part.replace(quote, &quote.repeat(2));
            format!("{quote}{doubled}{quote}")
        });
        each.collect::<Vec<_>>().join(".")
    }

    /// `expr` as text.
    pub fn as_text(self, expr: impl Into<Expr>) -> Expr {
        expr.into().cast_as(match self {
            Dialect::Mysql => "CHAR",
            _ => "TEXT",
        })
    }

    /// Locks the selected rows until the transaction ends; SQLite's write transaction holds the whole file already.
    pub fn lock_rows(self, select: &mut SelectStatement) {
        if self != Dialect::Sqlite {
            select.lock(LockType::Update);
        }
    }

    /// Makes an insert that meets an existing unique key insert nothing, without an error that would abort the
    /// transaction. MySQL does not abort on it and `INSERT IGNORE` would hide other faults, so nothing changes there.
    pub(crate) fn skip_conflicts(self, insert: &InsertStatement) -> InsertStatement {
        let mut insert = insert.clone();
        if self != Dialect::Mysql {
            insert.on_conflict(OnConflict::new().do_nothing().to_owned());
        }
        insert
    }
}
