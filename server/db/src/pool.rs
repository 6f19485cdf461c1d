//! Opening pools: what every session must be like before it runs a statement.

use std::str::FromStr;
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlPool, MySqlPoolOptions};
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Database, query, query_scalar};

use crate::{DbError, Dialect, Options};

const SQLITE_IDLE: Duration = Duration::from_secs(30);

/// The pools of one database.
#[derive(Clone)]
pub(crate) enum Pools {
    Sqlite { reader: SqlitePool, writer: SqlitePool },
    Postgres(PgPool),
    Mysql(MySqlPool),
}

impl Pools {
    /// Pools that connect when first used.
    pub(crate) fn open(url: &str, options: &Options) -> Result<Pools, DbError> {
        match Dialect::of_url(url)? {
            Dialect::Sqlite => sqlite(url, options),
            Dialect::Postgres => postgres(url, options),
            Dialect::Mysql => mysql(url, options),
        }
    }
}

fn sizes<DB: Database>(options: &Options) -> PoolOptions<DB> {
    PoolOptions::new().max_connections(options.max_connections).acquire_timeout(options.connect_timeout)
}

fn sqlite(url: &str, options: &Options) -> Result<Pools, DbError> {
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(DbError::Invalid(
            "an in-memory SQLite database has one connection only; use a file".into(),
        ));
    }
    let base = SqliteConnectOptions::from_str(url)?
        .busy_timeout(options.lock_timeout)
        .foreign_keys(true)
        .disable_statement_logging();
    let mut writing = base.clone();
    if options.own_file {
        writing = writing
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
    }
    let keep = |pool: SqlitePoolOptions| pool.max_lifetime(None).test_before_acquire(false);
    Ok(Pools::Sqlite {
        // Every connection has a page cache of its own: what a crowd needed is closed when the crowd is gone.
        reader: keep(sizes(options)).idle_timeout(SQLITE_IDLE).connect_lazy_with(base.read_only(true)),
        // One writer at a time is all SQLite allows: queueing here is fair, inside SQLite it is luck.
        writer: keep(sizes(options)).idle_timeout(None).max_connections(1).connect_lazy_with(writing),
    })
}

fn postgres(url: &str, options: &Options) -> Result<Pools, DbError> {
    let connect = PgConnectOptions::from_str(url)?.application_name("amends").disable_statement_logging();
    let (statement, lock) = (options.statement_timeout, options.lock_timeout);
    let pool: PgPoolOptions = sizes(options).after_connect(move |conn: &mut PgConnection, _| {
        Box::pin(async move { prepare_postgres(conn, statement, lock).await })
    });
    Ok(Pools::Postgres(pool.connect_lazy_with(connect)))
}

async fn prepare_postgres(conn: &mut PgConnection, statement: Duration, lock: Duration) -> sqlx::Result<()> {
    query("SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)")
        .bind(statement.as_millis().to_string())
        .bind(lock.as_millis().to_string())
        .execute(conn)
        .await?;
    Ok(())
}

fn mysql(url: &str, options: &Options) -> Result<Pools, DbError> {
    let connect = MySqlConnectOptions::from_str(url)?
        // The user's SQL must mean here what it means in the user's own client.
        .pipes_as_concat(false)
        .disable_statement_logging();
    let (statement, lock) = (options.statement_timeout, options.lock_timeout);
    let pool: MySqlPoolOptions = sizes(options).after_connect(move |conn: &mut MySqlConnection, _| {
        Box::pin(async move { prepare_mysql(conn, statement, lock).await })
    });
    Ok(Pools::Mysql(pool.connect_lazy_with(connect)))
}

/// READ COMMITTED, because a check beside a compare-and-set must see what others committed, not an old snapshot.
async fn prepare_mysql(conn: &mut MySqlConnection, statement: Duration, lock: Duration) -> sqlx::Result<()> {
    query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").execute(&mut *conn).await?;
    query("SET SESSION innodb_lock_wait_timeout = ?").bind(lock.as_secs().max(1)).execute(&mut *conn).await?;
    let version: String = query_scalar("SELECT VERSION()").fetch_one(&mut *conn).await?;
    if version.contains("MariaDB") {
        query("SET SESSION max_statement_time = ?").bind(statement.as_secs_f64()).execute(conn).await?;
    } else {
        query("SET SESSION max_execution_time = ?").bind(statement.as_millis() as u64).execute(conn).await?;
    }
    Ok(())
}
