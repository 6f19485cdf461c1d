//! The one place where SQL text meets a connection.

use std::time::{Duration, Instant};

use futures::TryStreamExt;
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, query_with};

use crate::decode::Decoder;
use crate::{DbError, Dialect, Query, Row, args};

/// How long a network may stay silent beyond what the server itself allows a statement.
const GRACE: Duration = Duration::from_secs(2);

/// SQLite looks at the clock once in so many steps of its machine.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// A borrowed connection to one of the databases.
pub(crate) enum Conn<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
    Mysql(&'c mut MySqlConnection),
}

/// `query` with its text and values in the connection's own terms.
macro_rules! prepared {
    ($query:expr, $dialect:ident, $bind:path) => {
        query_with(AssertSqlSafe($query.sql(Dialect::$dialect)), $bind($query.values())?)
            .persistent($query.persistent(Dialect::$dialect))
    };
}

/// A function that reads at most `limit` rows from one kind of connection.
macro_rules! reader {
    ($name:ident, $conn:ty, $dialect:ident) => {
        async fn $name(conn: &mut $conn, query: &Query, limit: usize) -> Result<Vec<Row>, DbError> {
            let mut decoder = Decoder::default();
            let mut rows = Vec::new();
            let mut stream = prepared!(query, $dialect, args::$name).fetch(conn);
            while rows.len() < limit {
                match stream.try_next().await? {
                    Some(row) => rows.push(decoder.$name(&row)),
                    None => break,
                }
            }
            Ok(rows)
        }
    };
}

reader!(sqlite, SqliteConnection, Sqlite);
reader!(postgres, PgConnection, Postgres);
reader!(mysql, MySqlConnection, Mysql);

impl Conn<'_> {
    /// Reads at most `limit` rows within `timeout`.
    pub(crate) async fn fetch(
        self,
        query: &Query,
        limit: usize,
        timeout: Duration,
    ) -> Result<Vec<Row>, DbError> {
        bounded(timeout, async move {
            match self {
                Conn::Sqlite(conn) => {
                    interrupt_after(conn, timeout).await?;
                    if !query.persistent(Dialect::Sqlite) {
                        learn_schema(conn).await?;
                    }
                    let outcome = sqlite(conn, query, limit).await;
                    // A driver thread that died ends the rows as if there were no more: never report absence on its word.
                    conn.ping().await?;
                    outcome
                }
                Conn::Postgres(conn) => {
                    let outcome = postgres(conn, query, limit).await;
                    if outcome.as_ref().is_err_and(DbError::is_retryable) {
                        // A table that was altered spoils the plans this session keeps.
                        conn.clear_cached_statements().await?;
                    }
                    outcome
                }
                Conn::Mysql(conn) => mysql(conn, query, limit).await,
            }
        })
        .await
    }

    /// Runs a statement within `timeout`; the answer is the number of rows it matched.
    pub(crate) async fn execute(self, query: &Query, timeout: Duration) -> Result<u64, DbError> {
        bounded(timeout, async move {
            Ok(match self {
                Conn::Sqlite(conn) => {
                    interrupt_after(conn, timeout).await?;
                    prepared!(query, Sqlite, args::sqlite).execute(conn).await?.rows_affected()
                }
                Conn::Postgres(conn) => {
                    prepared!(query, Postgres, args::postgres).execute(conn).await?.rows_affected()
                }
                Conn::Mysql(conn) => {
                    prepared!(query, Mysql, args::mysql).execute(conn).await?.rows_affected()
                }
            })
        })
        .await
    }
}

/// The server enforces the timeout itself; this one is for a server that no longer answers.
async fn bounded<T>(timeout: Duration, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    match tokio::time::timeout(timeout + GRACE, work).await {
        Ok(done) => done,
        Err(_) => Err(DbError::Timeout("the server did not answer".into())),
    }
}

/// SQLite runs in our own process and has no server to stop a statement.
async fn interrupt_after(conn: &mut SqliteConnection, timeout: Duration) -> Result<(), DbError> {
    let deadline = Instant::now() + timeout;
    conn.lock_handle().await?.set_progress_handler(STEPS_BETWEEN_LOOKS, move || Instant::now() < deadline);
    Ok(())
}

/// A `SELECT *` prepared under the schema this connection remembers breaks the driver when the table was altered by
/// another; reading anything makes SQLite look first.
async fn learn_schema(conn: &mut SqliteConnection) -> Result<(), DbError> {
    sqlx::query("SELECT 1 FROM sqlite_schema LIMIT 1").execute(conn).await?;
    Ok(())
}
