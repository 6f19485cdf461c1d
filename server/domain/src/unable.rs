//! Why a table cannot express an action, case by case: programs read the English sentence, pages say it in the
//! reader's language.

use crate::actions::Action;
use crate::record::State;
use serde::{Deserialize, Serialize};

/// What the mapping or the configuration lacks. `Display` is the English sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Unable {
    #[error("This business type needs a second person's approval, which is not available yet.")]
    NeedsApproval,
    #[error("This table holds a row only when the work is done, so there is nothing to settle here.")]
    OnlyWhenDone,
    #[error(
        "This table has no value for {state}; map one under [[source.state]] is = \"{state}\", or say under [source.write.{action}] what to set instead."
    )]
    StateNotMapped { state: State, action: Action },
    #[error(
        "This table has no status column; say under [source.write.{action}] which columns make a record {state}."
    )]
    NoStatusColumn { state: State, action: Action },
    #[error(
        "Nothing that this change writes could be recognised afterwards; map updated_at, or set a time under [source.write.{action}] with {{ now = true }}."
    )]
    NotRecognised { action: Action },
    #[error("This business type is not configured, so nothing says where to replay to.")]
    NotConfigured,
    #[error("No replay target is configured for {biz_type}; add [source.biz.replay].")]
    NoReplayTarget { biz_type: String },
    #[error("The record keeps no request, so there is nothing to send again.")]
    NoRequest,
    #[error(
        "The request is kept in several columns, which give no body to send again; map request to one of them."
    )]
    RequestInColumns,
    #[error("The stored request cannot be read: {reason}.")]
    RequestUnreadable { reason: String },
    /// What the configuration says does not fit the table.
    #[error("{message}")]
    Other { message: String },
}

impl From<String> for Unable {
    fn from(message: String) -> Self {
        Self::Other { message }
    }
}

impl From<&str> for Unable {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}
