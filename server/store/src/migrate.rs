//! Bringing the store's tables up to this build, safely from several processes at once.

use db::{Attempts, Db, DbError, Dialect, Query, Tx, Value};
use sha2::{Digest, Sha256};

/// How often a process waits for another that is migrating.
const ATTEMPTS: u32 = 10;
/// Longest one wait for the lock on MySQL, in seconds.
const LOCK_SECONDS: i64 = 5;
/// Any number of our own: names the lock among PostgreSQL's advisory locks.
const LOCK_NUMBER: i64 = 0x616d_656e_6473;

/// One numbered step in the three dialects.
struct Migration {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
    mysql: &'static str,
}

/// The files of one step; the build fails when one of the three is missing.
macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
            mysql: include_str!(concat!("../../../migrations/mysql/", $name, ".sql")),
        }
    };
}

const MIGRATIONS: &[Migration] = &[migration!(1, "0001_console"), migration!(2, "0002_cache")];

impl Migration {
    fn text(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
            Dialect::Mysql => self.mysql,
        }
    }

    fn checksum(&self, dialect: Dialect) -> String {
        hex::encode(Sha256::digest(self.text(dialect)))
    }
}

/// Why the store cannot be brought up to this build.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("the store cannot be migrated: {0}")]
    Db(#[from] DbError),
    /// The step was applied with another text than this build has.
    #[error(
        "migration {name} was applied to the store with another content than this build has; \
         use the build that made the store, or restore a backup"
    )]
    Changed { name: &'static str },
    /// A newer build migrated the store.
    #[error(
        "the store is at migration {found}, this build knows {known}; use the newer build, or restore a backup from before it"
    )]
    Newer { found: i64, known: i64 },
}

impl db::Transient for MigrateError {
    fn is_transient(&self) -> bool {
        matches!(self, MigrateError::Db(e) if e.is_retryable())
    }
}

/// Applies what is missing, in order; returns the names of what it applied. Nothing to do is fine, and so is another
/// process doing the same at the same time.
pub async fn migrate(db: &Db) -> Result<Vec<&'static str>, MigrateError> {
    migrate_to(db, MIGRATIONS).await
}

async fn migrate_to(db: &Db, wanted: &[Migration]) -> Result<Vec<&'static str>, MigrateError> {
    let mut attempts = Attempts::new(ATTEMPTS, u64::from(std::process::id()));
    loop {
        match migrate_once(db, wanted).await {
            Err(e) if attempts.again(&e).await => {}
            outcome => return outcome,
        }
    }
}

async fn migrate_once(db: &Db, wanted: &[Migration]) -> Result<Vec<&'static str>, MigrateError> {
    let mut tx = db.begin().await?;
    lock(&mut tx).await?;
    let outcome = apply_missing(&mut tx, wanted).await;
    // MySQL's lock belongs to the session, which goes back to the pool.
    unlock(&mut tx).await?;
    let applied = outcome?;
    tx.commit().await?;
    Ok(applied)
}

async fn apply_missing(tx: &mut Tx, wanted: &[Migration]) -> Result<Vec<&'static str>, MigrateError> {
    let dialect = tx.dialect();
    let done = applied(tx).await?;
    let known = wanted.last().map_or(0, |migration| migration.version);
    if let Some(found) = done.iter().map(|(version, _)| *version).max().filter(|found| *found > known) {
        return Err(MigrateError::Newer { found, known });
    }
    let mut names = Vec::new();
    for migration in wanted {
        match done.iter().find(|(version, _)| *version == migration.version) {
            Some((_, checksum)) if *checksum == migration.checksum(dialect) => {}
            Some(_) => return Err(MigrateError::Changed { name: migration.name }),
            None => {
                apply(tx, migration).await?;
                names.push(migration.name);
            }
        }
    }
    Ok(names)
}

/// Versions and checksums of what was applied.
async fn applied(tx: &mut Tx) -> Result<Vec<(i64, String)>, DbError> {
    let table = "CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT NOT NULL PRIMARY KEY, \
                 name VARCHAR(191) NOT NULL, checksum VARCHAR(64) NOT NULL, applied_at BIGINT NOT NULL)";
    tx.execute(&Query::raw(table, vec![])).await?;
    let rows = tx.fetch_all(&Query::raw("SELECT version, checksum FROM schema_migrations", vec![])).await?;
    rows.iter().map(|row| Ok((row.i64(0)?, row.text(1)?))).collect()
}

async fn apply(tx: &mut Tx, migration: &Migration) -> Result<(), DbError> {
    let dialect = tx.dialect();
    for statement in statements(migration.text(dialect)) {
        tx.execute(&Query::raw(statement, vec![])).await?;
    }
    let now = tx.now().await?.timestamp_millis();
    let note = "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)";
    let values: Vec<Value> =
        vec![migration.version.into(), migration.name.into(), migration.checksum(dialect).into(), now.into()];
    tx.execute(&Query::raw(note, values)).await.map(drop)
}

/// The statements of a migration file: each ends with a semicolon at the end of a line.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    text.split(";\n")
        .map(str::trim)
        .filter(|statement| statement.lines().any(|line| !line.starts_with("--") && !line.is_empty()))
}

/// SQLite's write transaction is a lock already.
async fn lock(tx: &mut Tx) -> Result<(), DbError> {
    match tx.dialect() {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => {
            let query = Query::raw("SELECT pg_advisory_xact_lock(?)", vec![LOCK_NUMBER.into()]);
            tx.fetch_all(&query).await.map(drop)
        }
        Dialect::Mysql => {
            let sql = "SELECT GET_LOCK(LEFT(CONCAT('amends:', DATABASE()), 64), ?)";
            let row = tx.fetch_optional(&Query::raw(sql, vec![LOCK_SECONDS.into()])).await?;
            match row.map(|row| row.opt_i64(0)).transpose()?.flatten() {
                Some(1) => Ok(()),
                _ => Err(DbError::Busy("another process is migrating the store".into())),
            }
        }
    }
}

async fn unlock(tx: &mut Tx) -> Result<(), DbError> {
    if tx.dialect() == Dialect::Mysql {
        let sql = "SELECT RELEASE_LOCK(LEFT(CONCAT('amends:', DATABASE()), 64))";
        tx.fetch_all(&Query::raw(sql, vec![])).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use db::testkit::{TestDb, each_database};

    use super::*;

    const EXTRA: Migration = Migration {
        version: 3,
        name: "0003_extra",
        sqlite: "CREATE TABLE extra (id TEXT);\n",
        postgres: "CREATE TABLE extra (id TEXT);\n",
        mysql: "CREATE TABLE extra (id TEXT);\n",
    };

    #[test]
    fn the_three_folders_hold_the_same_steps() {
        let names: Vec<String> =
            MIGRATIONS.iter().map(|migration| format!("{}.sql", migration.name)).collect();
        for dialect in ["sqlite", "postgres", "mysql"] {
            let folder = format!("{}/../../migrations/{dialect}", env!("CARGO_MANIFEST_DIR"));
            let mut found: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            assert_eq!(found, names, "{dialect}");
        }
        assert!(MIGRATIONS.windows(2).all(|pair| pair[0].version + 1 == pair[1].version));
    }

    #[tokio::test]
    async fn migrating_twice_does_nothing_the_second_time() {
        for TestDb { db, .. } in &each_database().await {
            assert_eq!(migrate(db).await.unwrap(), ["0001_console", "0002_cache"]);
            assert!(migrate(db).await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn processes_that_start_together_migrate_once() {
        for test in &each_database().await {
            let others = futures::future::join_all((0..4).map(|_| test.reopen())).await;
            let all = futures::future::join_all(others.iter().map(migrate)).await;
            let applied: usize = all.into_iter().map(|outcome| outcome.unwrap().len()).sum();
            assert_eq!(applied, MIGRATIONS.len(), "{}", test.db.dialect());
        }
    }

    #[tokio::test]
    async fn a_newer_store_and_a_changed_step_are_refused() {
        for TestDb { db, .. } in &each_database().await {
            let longer = [migration!(1, "0001_console"), migration!(2, "0002_cache"), EXTRA];
            assert_eq!(migrate_to(db, &longer).await.unwrap(), ["0001_console", "0002_cache", "0003_extra"]);
            assert!(matches!(migrate(db).await, Err(MigrateError::Newer { found: 3, known: 2 })));
            let other = "CREATE TABLE extra (id INT);\n";
            let changed = Migration { sqlite: other, postgres: other, mysql: other, ..EXTRA };
            let outcome =
                migrate_to(db, &[migration!(1, "0001_console"), migration!(2, "0002_cache"), changed]).await;
            assert!(matches!(outcome, Err(MigrateError::Changed { name: "0003_extra" })));
            assert!(migrate_to(db, &longer).await.unwrap().is_empty(), "the lock was given back");
        }
    }
}
