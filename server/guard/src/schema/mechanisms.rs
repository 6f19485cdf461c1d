//! The tables of the mechanisms, beside the record's own. Times are milliseconds since 1970 by the database's clock.

use db::{Db, DbError, Dialect, Query};

const SQLITE: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS idempotency_token (
        token TEXT NOT NULL PRIMARY KEY,
        biz_type TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        used_at INTEGER
    ) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS idempotency_token_expiry ON idempotency_token (expires_at)",
    "CREATE TABLE IF NOT EXISTS idempotency_lock (
        name TEXT NOT NULL PRIMARY KEY,
        owner TEXT,
        fence INTEGER NOT NULL,
        lease_until INTEGER NOT NULL
    ) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS idempotency_event (
        idempotent_id TEXT NOT NULL PRIMARY KEY,
        biz_type TEXT NOT NULL,
        biz_no TEXT NOT NULL,
        event_time INTEGER NOT NULL
    ) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS idempotency_event_order ON idempotency_event (biz_type, biz_no, event_time)",
    "CREATE TABLE IF NOT EXISTS idempotency_outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        message_key TEXT NOT NULL UNIQUE,
        biz_type TEXT NOT NULL,
        biz_no TEXT,
        kind TEXT NOT NULL,
        target TEXT NOT NULL,
        content_type TEXT NOT NULL,
        body TEXT NOT NULL,
        status TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        due_at INTEGER NOT NULL,
        last_error TEXT,
        created_at INTEGER NOT NULL,
        settled_at INTEGER
    )",
    "CREATE INDEX IF NOT EXISTS idempotency_outbox_due ON idempotency_outbox (status, due_at)",
    "CREATE INDEX IF NOT EXISTS idempotency_outbox_order ON idempotency_outbox (biz_type, biz_no, id)",
];

const POSTGRES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS idempotency_token (
        token CHAR(64) NOT NULL PRIMARY KEY,
        biz_type VARCHAR(64) NOT NULL,
        expires_at BIGINT NOT NULL,
        used_at BIGINT
    )",
    "CREATE INDEX IF NOT EXISTS idempotency_token_expiry ON idempotency_token (expires_at)",
    "CREATE TABLE IF NOT EXISTS idempotency_lock (
        name VARCHAR(340) NOT NULL PRIMARY KEY,
        owner VARCHAR(128),
        fence BIGINT NOT NULL,
        lease_until BIGINT NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS idempotency_event (
        idempotent_id VARCHAR(255) NOT NULL PRIMARY KEY,
        biz_type VARCHAR(64) NOT NULL,
        biz_no VARCHAR(255) NOT NULL,
        event_time BIGINT NOT NULL
    )",
    "CREATE INDEX IF NOT EXISTS idempotency_event_order ON idempotency_event (biz_type, biz_no, event_time)",
    "CREATE TABLE IF NOT EXISTS idempotency_outbox (
        id BIGSERIAL PRIMARY KEY,
        message_key VARCHAR(255) NOT NULL UNIQUE,
        biz_type VARCHAR(64) NOT NULL,
        biz_no VARCHAR(255),
        kind VARCHAR(64) NOT NULL,
        target VARCHAR(64) NOT NULL,
        content_type VARCHAR(128) NOT NULL,
        body TEXT NOT NULL,
        status VARCHAR(16) NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        owner VARCHAR(128),
        due_at BIGINT NOT NULL,
        last_error VARCHAR(255),
        created_at BIGINT NOT NULL,
        settled_at BIGINT
    )",
    "CREATE INDEX IF NOT EXISTS idempotency_outbox_due ON idempotency_outbox (status, due_at)",
    "CREATE INDEX IF NOT EXISTS idempotency_outbox_order ON idempotency_outbox (biz_type, biz_no, id)",
];

/// Names and keys are compared by their bytes.
const MYSQL: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS idempotency_token (
        token CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        biz_type VARCHAR(64) NOT NULL,
        expires_at BIGINT NOT NULL,
        used_at BIGINT,
        KEY idempotency_token_expiry (expires_at)
    ) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS idempotency_lock (
        name VARCHAR(340) NOT NULL PRIMARY KEY,
        owner VARCHAR(128),
        fence BIGINT NOT NULL,
        lease_until BIGINT NOT NULL
    ) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS idempotency_event (
        idempotent_id VARCHAR(255) NOT NULL PRIMARY KEY,
        biz_type VARCHAR(64) NOT NULL,
        biz_no VARCHAR(255) NOT NULL,
        event_time BIGINT NOT NULL,
        KEY idempotency_event_order (biz_type, biz_no, event_time)
    ) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS idempotency_outbox (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        message_key VARCHAR(255) NOT NULL UNIQUE,
        biz_type VARCHAR(64) NOT NULL,
        biz_no VARCHAR(255),
        kind VARCHAR(64) NOT NULL,
        target VARCHAR(64) NOT NULL,
        content_type VARCHAR(128) NOT NULL,
        body MEDIUMTEXT NOT NULL,
        status VARCHAR(16) NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        owner VARCHAR(128),
        due_at BIGINT NOT NULL,
        last_error VARCHAR(255),
        created_at BIGINT NOT NULL,
        settled_at BIGINT,
        KEY idempotency_outbox_due (status, due_at),
        KEY idempotency_outbox_order (biz_type, biz_no, id)
    ) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
];

/// The statements that make the tables in this dialect.
pub fn ddl(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
        Dialect::Mysql => MYSQL,
    }
}

/// Makes the tables of tokens, locks, event times and the outbox unless they are there. Errors: the database's own.
pub async fn create(db: &Db) -> Result<(), DbError> {
    for statement in ddl(db.dialect()) {
        db.execute(&Query::raw(*statement, vec![])).await?;
    }
    Ok(())
}
