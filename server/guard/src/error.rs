//! Why a guard cannot be set up.

use db::DbError;
use kv::KvError;

/// What is wrong with a guard's database, table, policy or cache; the text says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    #[error(transparent)]
    Db(#[from] DbError),
    /// The table cannot carry the promise as it is.
    #[error("{0}")]
    Table(String),
    /// A route's policy contradicts itself or does not fit the table.
    #[error("{0}")]
    Policy(String),
    #[error(transparent)]
    Cache(#[from] KvError),
    /// The console's address makes no sense.
    #[error("{0}")]
    Report(String),
}
