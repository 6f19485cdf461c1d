//! Database errors in kinds a caller can act on.

use sqlx::error::DatabaseError;
use sqlx::mysql::MySqlDatabaseError;

/// What went wrong, by what the caller can do about it. Messages carry no values and no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// The database cannot be reached or refuses the connection: try later, check the server and the URL.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// Another transaction was in the way (deadlock, lock wait, serialisation): the same work may be tried again.
    #[error("the database was busy: {0}")]
    Busy(String),
    /// A row with the same unique key exists; carries the constraint or the columns.
    #[error("a row with the same key exists ({0})")]
    UniqueViolation(String),
    /// The statement ran longer than it may; a write may or may not have taken effect.
    #[error("the statement took too long: {0}")]
    Timeout(String),
    /// The statement cannot work as written: bad SQL, a missing table or column, no right.
    #[error("{0}")]
    Invalid(String),
    /// The database refuses a value: out of range, too long, of another type, against a constraint.
    #[error("the database refused a value ({0})")]
    RefusedValue(String),
    /// A cell does not hold what was asked for; carries the column and the kind of value found.
    #[error("{0}")]
    Decode(String),
    /// Anything else, by its code.
    #[error("database error: {0}")]
    Other(String),
}

impl DbError {
    /// Whether the same work may be tried again as it is.
    pub fn is_retryable(&self) -> bool {
        matches!(self, DbError::Busy(_))
    }

    /// Whether a unique key was in the way.
    pub fn is_unique_violation(&self) -> bool {
        matches!(self, DbError::UniqueViolation(_))
    }
}

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(e) => from_database(e.as_ref()),
            sqlx::Error::Io(e) => DbError::Unavailable(e.to_string()),
            sqlx::Error::Tls(_) => DbError::Unavailable("the TLS handshake failed".into()),
            sqlx::Error::PoolTimedOut => {
                DbError::Unavailable("no connection within the connect timeout".into())
            }
            sqlx::Error::PoolClosed => DbError::Unavailable("the connection pool is closed".into()),
            sqlx::Error::WorkerCrashed => DbError::Unavailable("the database worker stopped".into()),
            sqlx::Error::Protocol(_) => DbError::Unavailable("the server broke the protocol".into()),
            sqlx::Error::BeginFailed => DbError::Unavailable("the transaction did not start".into()),
            sqlx::Error::Configuration(_) => DbError::Invalid(
                "the database URL is not understood; check scheme, host, port and options".into(),
            ),
            sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => {
                DbError::Invalid("a parameter cannot be sent to this database".into())
            }
            sqlx::Error::TypeNotFound { type_name } => {
                DbError::Invalid(format!("type {type_name} does not exist"))
            }
            _ => DbError::Other("the driver failed".into()),
        }
    }
}

fn from_database(error: &dyn DatabaseError) -> DbError {
    if let Some(mysql) = error.try_downcast_ref::<MySqlDatabaseError>() {
        return from_mysql(mysql.number(), mysql.message());
    }
    let code = error.code().unwrap_or_default();
    match code.len() {
        5 => from_postgres(&code, error.message(), error.constraint()),
        _ => from_sqlite(code.parse().unwrap_or_default(), error.message()),
    }
}

fn from_mysql(number: u16, message: &str) -> DbError {
    let text = || message.to_owned();
    match number {
        1205 | 1213 | 1020 | 3572 => DbError::Busy(format!("MySQL error {number}")),
        1022 | 1062 | 1586 => DbError::UniqueViolation(after(message, "for key ")),
        1969 | 3024 | 1317 | 1028 => DbError::Timeout(format!("MySQL error {number}")),
        1040 | 1044 | 1045 | 1049 | 1053 | 1129 | 1130 | 1203 | 1226 | 1698 | 1927 => {
            DbError::Unavailable(text())
        }
        1792 | 1290 => {
            DbError::Invalid("writing is refused: the transaction or the server is read-only".into())
        }
        // These name tables, columns, functions or a place in the statement; never a value.
        1046 | 1051 | 1052 | 1054 | 1064 | 1109 | 1142 | 1143 | 1146 | 1305 | 1356 | 1370 => {
            DbError::Invalid(text())
        }
        1048 | 1264 | 1265 | 1292 | 1364 | 1366 | 1406 | 1452 | 4025 => {
            DbError::RefusedValue(format!("MySQL error {number}"))
        }
        _ => DbError::Other(format!("MySQL error {number}")),
    }
}

fn from_postgres(state: &str, message: &str, constraint: Option<&str>) -> DbError {
    let text = || message.to_owned();
    match state {
        "40001" | "40P01" | "55P03" => DbError::Busy(format!("SQLSTATE {state}")),
        "23505" => DbError::UniqueViolation(constraint.unwrap_or_default().to_owned()),
        "0A000" if message.starts_with("cached plan") => {
            DbError::Busy("a table was altered meanwhile".into())
        }
        "57014" => DbError::Timeout(format!("SQLSTATE {state}")),
        "25006" => DbError::Invalid("writing is refused: the transaction is read-only".into()),
        "3D000" | "53300" | "57P01" | "57P02" | "57P03" => DbError::Unavailable(text()),
        _ => match &state[..2] {
            "08" | "28" => DbError::Unavailable(text()),
            "42" | "3F" => DbError::Invalid(text()),
            "22" | "23" => DbError::RefusedValue(format!("SQLSTATE {state}")),
            _ => DbError::Other(format!("SQLSTATE {state}")),
        },
    }
}

fn from_sqlite(extended: i32, message: &str) -> DbError {
    match (extended, extended & 0xff) {
        (1555 | 2067 | 2579, _) => DbError::UniqueViolation(after(message, "failed: ")),
        (_, 5 | 6) => DbError::Busy(format!("SQLite error {extended}")),
        (_, 9) => DbError::Timeout(format!("SQLite error {extended}")),
        (_, 8) => DbError::Invalid("writing is refused: the database is opened read-only".into()),
        (_, 10 | 11 | 13 | 14 | 23 | 26) => DbError::Unavailable(message.to_owned()),
        (_, 19) => DbError::RefusedValue(format!("SQLite error {extended}")),
        (_, 1) if names_the_statement(message) => DbError::Invalid(message.to_owned()),
        (_, 1 | 20 | 25) => DbError::Invalid(format!("the statement failed (SQLite error {extended})")),
        _ => DbError::Other(format!("SQLite error {extended}")),
    }
}

/// SQLite puts all runtime errors under one code; only these speak of the statement and never of a value.
fn names_the_statement(message: &str) -> bool {
    const SAFE: [&str; 8] = [
        "no such ",
        "near ",
        "ambiguous ",
        "incomplete input",
        "unrecognized token",
        "misuse of",
        "wrong number",
        "table ",
    ];
    SAFE.iter().any(|start| message.starts_with(start))
}

fn after(message: &str, mark: &str) -> String {
    message.rsplit_once(mark).map(|(_, rest)| rest.trim_matches('\'').to_owned()).unwrap_or_default()
}
