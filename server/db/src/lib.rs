//! One way to three databases: SQLite, PostgreSQL and MySQL/MariaDB.
//!
//! * [`Db`] opens a database by URL and runs [`Query`]s; [`Tx`] is a transaction on it.
//! * A [`Query`] is a sea-query statement built for a [`Dialect`], or raw text with `?` placeholders.
//! * A [`Row`] holds [`Cell`]s, decoded from what the database really sent: one cell that cannot be
//!   read is [`Cell::Unreadable`] and spoils nothing else.
//! * [`DbError`] says what went wrong in kinds a caller can act on, and never carries a value or a password.
//!
//! What differs between the databases lives here and nowhere above.

mod args;
mod cell;
mod db;
mod decode;
mod dialect;
mod error;
mod exec;
mod options;
mod pool;
mod query;
mod retry;
mod row;
#[cfg(feature = "testkit")]
pub mod testkit;
mod time;
mod tx;

pub use cell::Cell;
pub use db::Db;
pub use dialect::Dialect;
pub use error::DbError;
pub use options::{Options, redact_url};
pub use query::{Query, Statement};
pub use retry::{Attempts, Transient};
pub use row::{ColumnRef, Row};
pub use sea_query::Value;
pub use time::TimeKind;
pub use tx::Tx;
