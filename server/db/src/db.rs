//! An opened database.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sea_query::{InsertStatement, QueryStatementBuilder};
use sqlx::pool::PoolConnection;
use sqlx::{MySql, Postgres, Sqlite};

use crate::exec::Conn;
use crate::pool::Pools;
use crate::{DbError, Dialect, Options, Query, Row, Tx, redact_url};

/// One database and its connections; cloning shares them.
#[derive(Clone)]
pub struct Db {
    pools: Pools,
    shown_url: Arc<str>,
    statement_timeout: Duration,
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Db({})", self.shown_url)
    }
}

/// A connection taken from a pool.
enum Pooled {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
    Mysql(PoolConnection<MySql>),
}

impl Pooled {
    fn conn(&mut self) -> Conn<'_> {
        match self {
            Pooled::Sqlite(conn) => Conn::Sqlite(conn),
            Pooled::Postgres(conn) => Conn::Postgres(conn),
            Pooled::Mysql(conn) => Conn::Mysql(conn),
        }
    }
}

impl Db {
    /// Opens the database without touching it: connections are made when first needed, so that a database that is
    /// down now may come up later. Fails only when the URL is not understood.
    pub fn open(url: &str, options: &Options) -> Result<Db, DbError> {
        Ok(Db {
            pools: Pools::open(url, options)?,
            shown_url: redact_url(url).into(),
            statement_timeout: options.statement_timeout,
        })
    }

    /// Opens the database and makes sure that it answers.
    pub async fn connect(url: &str, options: &Options) -> Result<Db, DbError> {
        let db = Db::open(url, options)?;
        // SQLite's writer goes first: it may have to create the file that readers open.
        if options.own_file {
            db.writer().await?;
        }
        db.ping().await?;
        Ok(db)
    }

    pub fn dialect(&self) -> Dialect {
        match self.pools {
            Pools::Sqlite { .. } => Dialect::Sqlite,
            Pools::Postgres(_) => Dialect::Postgres,
            Pools::Mysql(_) => Dialect::Mysql,
        }
    }

    /// The URL without its secrets, for logs and pages.
    pub fn shown_url(&self) -> &str {
        &self.shown_url
    }

    /// Whether both share their connections: one is a clone of the other.
    pub fn is_same(&self, other: &Db) -> bool {
        Arc::ptr_eq(&self.shown_url, &other.shown_url)
    }

    /// The sea-query `statement` built for this database.
    pub fn query(&self, statement: &impl QueryStatementBuilder) -> Query {
        Query::build(self.dialect(), statement)
    }

    /// All rows of a reading statement. On SQLite it runs on a read-only connection.
    pub async fn fetch_all(&self, query: &Query) -> Result<Vec<Row>, DbError> {
        self.fetch_at_most(query, usize::MAX).await
    }

    /// The first row, if there is one.
    pub async fn fetch_optional(&self, query: &Query) -> Result<Option<Row>, DbError> {
        Ok(self.fetch_at_most(query, 1).await?.pop())
    }

    /// The first `limit` rows; the rest is never held in memory.
    pub async fn fetch_at_most(&self, query: &Query, limit: usize) -> Result<Vec<Row>, DbError> {
        let mut reader = self.reader().await?;
        match reader.conn().fetch(query, limit, self.statement_timeout).await {
            // Reading twice changes nothing.
            Err(busy) if busy.is_retryable() => {
                reader.conn().fetch(query, limit, self.statement_timeout).await
            }
            outcome => outcome,
        }
    }

    /// Runs one writing statement by itself; the answer is the number of rows it matched, on every database.
    /// After [`DbError::Timeout`] or [`DbError::Unavailable`] it may have taken effect or not.
    pub async fn execute(&self, query: &Query) -> Result<u64, DbError> {
        self.writer().await?.conn().execute(query, self.statement_timeout).await
    }

    /// Inserts unless a unique key is in the way; whether it inserted.
    pub async fn insert_if_absent(&self, insert: &InsertStatement) -> Result<bool, DbError> {
        let insert = self.query(&self.dialect().skip_conflicts(insert));
        inserted(self.execute(&insert).await)
    }

    /// Starts a writing transaction: immediate on SQLite, READ COMMITTED on the others. SQLite has one writer:
    /// while the transaction is open, nothing else of this process writes, not even by [`Db::execute`].
    pub async fn begin(&self) -> Result<Tx, DbError> {
        Tx::begin(&self.pools, self.statement_timeout).await
    }

    /// Starts a transaction in which the database refuses every write.
    pub async fn begin_read(&self) -> Result<Tx, DbError> {
        Tx::begin_read(&self.pools, self.statement_timeout).await
    }

    /// The database's own clock, to the millisecond.
    pub async fn now(&self) -> Result<DateTime<Utc>, DbError> {
        clock_reading(self.fetch_optional(&clock_query(self.dialect())).await?)
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), DbError> {
        self.fetch_optional(&Query::raw("SELECT 1", vec![])).await.map(drop)
    }

    /// Closes all connections, waiting for those in use.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { reader, writer } => {
                reader.close().await;
                writer.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
            Pools::Mysql(pool) => pool.close().await,
        }
    }

    async fn reader(&self) -> Result<Pooled, DbError> {
        Ok(match &self.pools {
            Pools::Sqlite { reader, .. } => Pooled::Sqlite(reader.acquire().await?),
            Pools::Postgres(pool) => Pooled::Postgres(pool.acquire().await?),
            Pools::Mysql(pool) => Pooled::Mysql(pool.acquire().await?),
        })
    }

    async fn writer(&self) -> Result<Pooled, DbError> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => Ok(Pooled::Sqlite(writer.acquire().await?)),
            _ => self.reader().await,
        }
    }
}

/// MySQL reports the key that was in the way where the others insert nothing.
pub(crate) fn inserted(outcome: Result<u64, DbError>) -> Result<bool, DbError> {
    match outcome {
        Ok(rows) => Ok(rows == 1),
        Err(DbError::UniqueViolation(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

pub(crate) fn clock_query(dialect: Dialect) -> Query {
    Query::build(dialect, sea_query::Query::select().expr(dialect.now_ms()))
}

pub(crate) fn clock_reading(row: Option<Row>) -> Result<DateTime<Utc>, DbError> {
    let row = row.ok_or_else(|| DbError::Other("the clock gave no row".into()))?;
    DateTime::from_timestamp_millis(row.i64(0)?)
        .ok_or_else(|| DbError::Decode("the clock is out of range".into()))
}
