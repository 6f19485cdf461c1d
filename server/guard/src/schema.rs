//! The table.

pub mod mechanisms;

use db::{Db, DbError, Dialect, Query};

const SQLITE: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS idempotent_record (
        idempotent_id TEXT NOT NULL PRIMARY KEY,
        biz_type TEXT NOT NULL,
        biz_no TEXT,
        status TEXT NOT NULL,
        request_body TEXT,
        response_body TEXT,
        create_time TEXT NOT NULL,
        update_time TEXT NOT NULL,
        tenant TEXT,
        fingerprint TEXT,
        response_status INTEGER,
        response_headers TEXT,
        fence INTEGER NOT NULL DEFAULT 0,
        phase TEXT,
        lease_until TEXT,
        owner TEXT,
        attempts INTEGER NOT NULL DEFAULT 1
    ) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS idempotent_record_status ON idempotent_record (status, create_time)",
    "CREATE INDEX IF NOT EXISTS idempotent_record_created ON idempotent_record (create_time)",
    "CREATE INDEX IF NOT EXISTS idempotent_record_biz_no ON idempotent_record (biz_no)",
];

const POSTGRES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS idempotent_record (
        idempotent_id VARCHAR(255) NOT NULL PRIMARY KEY,
        biz_type VARCHAR(64) NOT NULL,
        biz_no VARCHAR(255),
        status VARCHAR(16) NOT NULL,
        request_body TEXT,
        response_body TEXT,
        create_time TIMESTAMPTZ(3) NOT NULL,
        update_time TIMESTAMPTZ(3) NOT NULL,
        tenant VARCHAR(64),
        fingerprint CHAR(64),
        response_status SMALLINT,
        response_headers TEXT,
        fence BIGINT NOT NULL DEFAULT 0,
        phase VARCHAR(32),
        lease_until TIMESTAMPTZ(3),
        owner VARCHAR(128),
        attempts INTEGER NOT NULL DEFAULT 1
    )",
    "CREATE INDEX IF NOT EXISTS idempotent_record_status ON idempotent_record (status, create_time)",
    "CREATE INDEX IF NOT EXISTS idempotent_record_created ON idempotent_record (create_time)",
    "CREATE INDEX IF NOT EXISTS idempotent_record_biz_no ON idempotent_record (biz_no)",
];

/// Keys are compared by their bytes: a collation that ignores case would make two keys one.
const MYSQL: &[&str] = &["CREATE TABLE IF NOT EXISTS idempotent_record (
        idempotent_id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
        biz_type VARCHAR(64) NOT NULL,
        biz_no VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        status VARCHAR(16) NOT NULL,
        request_body MEDIUMTEXT,
        response_body MEDIUMTEXT,
        create_time DATETIME(3) NOT NULL,
        update_time DATETIME(3) NOT NULL,
        tenant VARCHAR(64),
        fingerprint CHAR(64),
        response_status SMALLINT,
        response_headers MEDIUMTEXT,
        fence BIGINT NOT NULL DEFAULT 0,
        phase VARCHAR(32),
        lease_until DATETIME(3),
        owner VARCHAR(128),
        attempts INTEGER NOT NULL DEFAULT 1,
        KEY idempotent_record_status (status, create_time),
        KEY idempotent_record_created (create_time),
        KEY idempotent_record_biz_no (biz_no)
    ) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4"];

/// The statements that make the table in this dialect; times are UTC.
pub fn ddl(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
        Dialect::Mysql => MYSQL,
    }
}

/// Makes the table `idempotent_record` unless it is there. Errors: the database's own.
pub async fn create(db: &Db) -> Result<(), DbError> {
    for statement in ddl(db.dialect()) {
        db.execute(&Query::raw(*statement, vec![])).await?;
    }
    Ok(())
}
