//! Fresh databases for tests: SQLite always, PostgreSQL and MySQL on servers named by the environment.

use std::thread;

use tempfile::TempDir;

use crate::{Db, DbError, Dialect, Options, Query};

/// A database made for one test; it is removed when dropped.
pub struct TestDb {
    pub db: Db,
    pub url: String,
    name: String,
    server: Option<String>,
    /// The SQLite file lives here; the others take their unique name from it.
    _dir: TempDir,
}

/// One fresh database of every kind at hand. `AMENDS_TEST_POSTGRES` and `AMENDS_TEST_MYSQL` are URLs of users who may
/// create databases; without one, that kind is left out with a line on standard error, or refused under `AMENDS_TEST_ALL=1`.
pub async fn each_database() -> Vec<TestDb> {
    let (sqlite, postgres, mysql) = futures::join!(
        sqlite(),
        at_hand("AMENDS_TEST_POSTGRES", Dialect::Postgres),
        at_hand("AMENDS_TEST_MYSQL", Dialect::Mysql)
    );
    [Some(sqlite), postgres, mysql].into_iter().flatten().collect()
}

async fn at_hand(variable: &str, dialect: Dialect) -> Option<TestDb> {
    match std::env::var(variable) {
        Ok(server) if !server.is_empty() => Some(on_server(&server, dialect).await),
        _ if std::env::var("AMENDS_TEST_ALL").is_ok_and(|all| all == "1") => panic!("{variable} is not set"),
        _ => {
            eprintln!("skipped on {dialect}: {variable} is not set");
            None
        }
    }
}

/// A fresh SQLite database.
pub async fn sqlite() -> TestDb {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let url = format!("sqlite://{}/test.db", dir.path().display());
    let db = Db::connect(&url, &Options::own()).await.expect("a fresh SQLite file");
    TestDb { db, url, name: String::new(), server: None, _dir: dir }
}

async fn on_server(server: &str, dialect: Dialect) -> TestDb {
    let dir =
        tempfile::Builder::new().prefix("amends_").rand_bytes(12).tempdir().expect("a temporary folder");
    let name = dir.path().file_name().expect("a folder has a name").to_string_lossy().to_ascii_lowercase();
    run_on(server, &create(dialect, &name))
        .await
        .expect("a server on which the test user may create databases");
    let mut url = url::Url::parse(server).expect("a server URL");
    url.set_path(&name);
    let db = Db::connect(url.as_str(), &Options::own()).await.expect("the database just created");
    TestDb { db, url: url.into(), name, server: Some(server.to_owned()), _dir: dir }
}

fn create(dialect: Dialect, name: &str) -> String {
    match dialect {
        Dialect::Mysql => format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4"),
        _ => format!("CREATE DATABASE \"{name}\""),
    }
}

async fn remove(server: &str, dialect: Dialect, name: &str) -> Result<(), DbError> {
    if dialect == Dialect::Mysql {
        end_sessions(server, name).await?;
        return run_on(server, &format!("DROP DATABASE IF EXISTS `{name}`")).await;
    }
    run_on(server, &format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)")).await
}

/// A session left in a transaction would hold up the removal for as long as locks may wait.
async fn end_sessions(server: &str, name: &str) -> Result<(), DbError> {
    let admin = Db::open(server, &Options { max_connections: 1, ..Options::default() })?;
    let sessions = "SELECT id FROM information_schema.processlist WHERE db = ?";
    for row in admin.fetch_all(&Query::raw(sessions, vec![name.into()])).await? {
        // A session that ended by itself meanwhile is fine.
        let _ = admin.execute(&Query::raw(format!("KILL {}", row.i64(0)?), vec![])).await;
    }
    admin.close().await;
    Ok(())
}

async fn run_on(server: &str, sql: &str) -> Result<(), DbError> {
    let admin = Db::open(server, &Options { max_connections: 1, ..Options::default() })?;
    let outcome = admin.execute(&Query::raw(sql, vec![])).await;
    admin.close().await;
    outcome.map(drop)
}

impl TestDb {
    /// Opens the same database once more, as another process would.
    pub async fn reopen(&self) -> Db {
        Db::connect(&self.url, &Options::own()).await.expect("the same database")
    }

    /// Runs statements as they are, for setting up tables; panics with the statement on an error.
    pub async fn run(&self, statements: &[&str]) {
        for sql in statements {
            if let Err(e) = self.db.execute(&Query::raw(*sql, vec![])).await {
                panic!("{}: {e}: {sql}", self.db.dialect());
            }
        }
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let Some(server) = self.server.take() else { return };
        let (dialect, name) = (self.db.dialect(), self.name.clone());
        // Dropping happens inside the test's runtime, which must not be blocked on: a thread of its own may wait.
        let removal = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(remove(&server, dialect, &name)).map_err(std::io::Error::other)
        });
        if !matches!(removal.join(), Ok(Ok(()))) {
            eprintln!("the test database {} was left behind", self.name);
        }
    }
}
