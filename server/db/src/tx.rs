//! A transaction.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sea_query::{InsertStatement, QueryStatementBuilder};
use sqlx::{MySql, Postgres, Sqlite, Transaction};

use crate::db::{clock_query, clock_reading, inserted};
use crate::exec::Conn;
use crate::pool::Pools;
use crate::{DbError, Dialect, Query, Row};

/// How often a SQLite write transaction is asked for before its busy answer is passed on.
const BEGIN_ATTEMPTS: u32 = 3;

/// An open transaction; dropping it rolls it back.
pub struct Tx {
    inner: Inner,
    statement_timeout: Duration,
}

enum Inner {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
    Mysql(Transaction<'static, MySql>),
}

impl Tx {
    pub(crate) async fn begin(pools: &Pools, statement_timeout: Duration) -> Result<Tx, DbError> {
        let inner = match pools {
            Pools::Sqlite { writer, .. } => Inner::Sqlite(begin_immediate(writer).await?),
            Pools::Postgres(pool) => Inner::Postgres(pool.begin().await?),
            Pools::Mysql(pool) => Inner::Mysql(pool.begin().await?),
        };
        Ok(Tx { inner, statement_timeout })
    }

    pub(crate) async fn begin_read(pools: &Pools, statement_timeout: Duration) -> Result<Tx, DbError> {
        let inner = match pools {
            Pools::Sqlite { reader, .. } => Inner::Sqlite(reader.begin().await?),
            Pools::Postgres(pool) => Inner::Postgres(pool.begin_with("BEGIN READ ONLY").await?),
            Pools::Mysql(pool) => Inner::Mysql(pool.begin_with("START TRANSACTION READ ONLY").await?),
        };
        Ok(Tx { inner, statement_timeout })
    }

    pub fn dialect(&self) -> Dialect {
        match self.inner {
            Inner::Sqlite(_) => Dialect::Sqlite,
            Inner::Postgres(_) => Dialect::Postgres,
            Inner::Mysql(_) => Dialect::Mysql,
        }
    }

    /// The sea-query `statement` built for this database.
    pub fn query(&self, statement: &impl QueryStatementBuilder) -> Query {
        Query::build(self.dialect(), statement)
    }

    /// All rows of a reading statement.
    pub async fn fetch_all(&mut self, query: &Query) -> Result<Vec<Row>, DbError> {
        self.fetch_at_most(query, usize::MAX).await
    }

    /// The first row, if there is one.
    pub async fn fetch_optional(&mut self, query: &Query) -> Result<Option<Row>, DbError> {
        Ok(self.fetch_at_most(query, 1).await?.pop())
    }

    /// The first `limit` rows; the rest is never held in memory.
    pub async fn fetch_at_most(&mut self, query: &Query, limit: usize) -> Result<Vec<Row>, DbError> {
        let timeout = self.statement_timeout;
        self.conn().fetch(query, limit, timeout).await
    }

    /// Runs a writing statement; the answer is the number of rows it matched.
    pub async fn execute(&mut self, query: &Query) -> Result<u64, DbError> {
        let timeout = self.statement_timeout;
        self.conn().execute(query, timeout).await
    }

    /// Inserts unless a unique key is in the way, leaving the transaction usable; whether it inserted.
    pub async fn insert_if_absent(&mut self, insert: &InsertStatement) -> Result<bool, DbError> {
        let insert = self.query(&self.dialect().skip_conflicts(insert));
        inserted(self.execute(&insert).await)
    }

    /// The database's own clock, to the millisecond: real time, not the start of the transaction.
    pub async fn now(&mut self) -> Result<DateTime<Utc>, DbError> {
        let query = clock_query(self.dialect());
        clock_reading(self.fetch_optional(&query).await?)
    }

    /// Makes the changes lasting. After any error but [`DbError::Busy`] they may have taken effect or not.
    pub async fn commit(self) -> Result<(), DbError> {
        match self.inner {
            Inner::Sqlite(tx) => tx.commit().await?,
            Inner::Postgres(tx) => tx.commit().await?,
            Inner::Mysql(tx) => tx.commit().await?,
        }
        Ok(())
    }

    /// Undoes the changes.
    pub async fn rollback(self) -> Result<(), DbError> {
        match self.inner {
            Inner::Sqlite(tx) => tx.rollback().await?,
            Inner::Postgres(tx) => tx.rollback().await?,
            Inner::Mysql(tx) => tx.rollback().await?,
        }
        Ok(())
    }

    fn conn(&mut self) -> Conn<'_> {
        match &mut self.inner {
            Inner::Sqlite(tx) => Conn::Sqlite(tx),
            Inner::Postgres(tx) => Conn::Postgres(tx),
            Inner::Mysql(tx) => Conn::Mysql(tx),
        }
    }
}

/// A deferred transaction that turns to writing fails at once when another process wrote meanwhile; an immediate
/// one waits its turn. SQLite's own wait may still give up early, while another process recovers the log.
async fn begin_immediate(writer: &sqlx::SqlitePool) -> Result<Transaction<'static, Sqlite>, DbError> {
    let mut attempt = 1;
    loop {
        match writer.begin_with("BEGIN IMMEDIATE").await.map_err(DbError::from) {
            Err(busy) if busy.is_retryable() && attempt < BEGIN_ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}
