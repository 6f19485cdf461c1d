//! What can go wrong, in kinds a caller can act on.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a call to Redis did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// The address makes no sense; the text says what to write.
    #[error("{0}")]
    Invalid(String),
    /// Not reached, not in time, or not ready; whether a write happened is not known.
    #[error("Redis does not answer: {0}")]
    Unavailable(String),
    /// Reached and refused: a wrong password, a missing right, a key of another type.
    #[error("Redis refuses: {0}")]
    Refused(String),
}

impl From<RedisError> for KvError {
    /// Keeps the server's error code and drops its detail, which may quote what was sent.
    fn from(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::InvalidClientConfig => KvError::Invalid(error.category().to_owned()),
            ErrorKind::AuthenticationFailed => {
                KvError::Refused("the password or the user's rights are wrong".into())
            }
            ErrorKind::UnexpectedReturnType => {
                KvError::Refused("the key holds a value of another type".into())
            }
            ErrorKind::Server(kind) if is_passing(kind) => KvError::Unavailable(code(&error)),
            ErrorKind::Server(_) | ErrorKind::Extension => KvError::Refused(code(&error)),
            ErrorKind::Io if error.is_timeout() => KvError::Unavailable("no answer in time".into()),
            ErrorKind::Io => KvError::Unavailable("the connection failed".into()),
            _ => KvError::Unavailable(error.category().to_owned()),
        }
    }
}

/// Servers that are loading, failing over or not the master take writes again later.
fn is_passing(kind: ServerErrorKind) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly, TryAgain};
    matches!(kind, BusyLoading | ClusterDown | MasterDown | ReadOnly | TryAgain)
}

fn code(error: &RedisError) -> String {
    error.code().unwrap_or("an error without a code").to_owned()
}
