//! The one error of the services: what kind it is, and what to do next.

use crate::invalid::Invalid;
use crate::record::RecordRow;
use crate::roles::Role;
use serde::{Deserialize, Serialize};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a service did not do what was asked. The message says what to do next and holds no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Error {
    /// The request itself is malformed (400).
    #[error(transparent)]
    Invalid(Invalid),
    /// Nobody is signed in (401).
    #[error("Sign in first.")]
    Unauthenticated,
    /// The role does not allow it (403).
    #[error("Your role is {role}; this needs {least} or higher.")]
    Forbidden { role: Role, least: Role },
    /// No such thing (404).
    #[error("{what} was not found.")]
    NotFound { what: String },
    /// The record is no longer what the operator saw; nothing was changed (409).
    #[error("The record changed since you looked; nothing was done.")]
    Moved { current: Box<RecordRow> },
    /// Somebody else is settling this record right now, or the same command is still running (409).
    #[error("{message}")]
    Busy { message: String, retry_after_seconds: u32 },
    /// The version given is not the record's version; nothing was changed (412).
    #[error("The version you sent is not the record's version; read it again.")]
    StaleVersion { current: Box<RecordRow> },
    /// The evidence, the state or the mapping forbids the action (422).
    #[error("{message}")]
    Refused { code: String, message: String },
    /// The same command key came with a different command (422).
    #[error("This Idempotency-Key was already used for a different command; mint a new key per command.")]
    KeyReused,
    /// Too many attempts (429).
    #[error("Too many attempts; try again in {retry_after_seconds} s.")]
    TooMany { retry_after_seconds: u32 },
    /// A source, cache or the store cannot be reached (503).
    #[error("{what} cannot be reached: {message}")]
    Unavailable { what: String, message: String },
    /// A defect of ours (500); the message is safe to show, the details are in the log.
    #[error("{message}")]
    Internal { message: String },
}

impl Error {
    pub fn invalid(what: impl Into<Invalid>) -> Self {
        Self::Invalid(what.into())
    }

    pub fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound { what: what.into() }
    }

    pub fn unavailable(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Unavailable { what: what.into(), message: message.into() }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal { message: message.into() }
    }

    /// A stable word for programs and for translation.
    pub fn code(&self) -> &str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden { .. } => "forbidden",
            Self::NotFound { .. } => "not_found",
            Self::Moved { .. } => "record_moved",
            Self::Busy { .. } => "in_progress",
            Self::StaleVersion { .. } => "stale_version",
            Self::Refused { code, .. } => code,
            Self::KeyReused => "key_reused",
            Self::TooMany { .. } => "too_many_attempts",
            Self::Unavailable { .. } => "unavailable",
            Self::Internal { .. } => "internal",
        }
    }

    /// The HTTP status that says the same.
    pub fn status(&self) -> u16 {
        match self {
            Self::Invalid(_) => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden { .. } => 403,
            Self::NotFound { .. } => 404,
            Self::Moved { .. } | Self::Busy { .. } => 409,
            Self::StaleVersion { .. } => 412,
            Self::Refused { .. } | Self::KeyReused => 422,
            Self::TooMany { .. } => 429,
            Self::Internal { .. } => 500,
            Self::Unavailable { .. } => 503,
        }
    }
}
