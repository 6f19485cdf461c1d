//! What can be malformed about a request, case by case: programs read the English sentence, pages say it in the
//! reader's language.

use serde::{Deserialize, Serialize};

/// What is wrong, and what to write instead. `Display` is the English sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Invalid {
    #[error("cursor is not one that this server handed out; start from the first page")]
    Cursor,
    #[error("reason is empty; say in a few words why this is right.")]
    ReasonEmpty,
    #[error("reason is longer than {max} characters.")]
    ReasonTooLong { max: usize },
    #[error("silence lasts 1 to {max} hours")]
    SilenceHours { max: u32 },
    #[error("name must be 1 to {max} characters")]
    RuleName { max: usize },
    #[error("choose what the rule watches")]
    RuleMetric,
    #[error("set a warn threshold, a critical threshold, or both")]
    RuleWithoutThreshold,
    #[error("a threshold of a rate lies between 0 and 1; of a count or an age it is not negative")]
    RuleThresholdRange,
    #[error("critical must lie beyond warn")]
    RuleCriticalWithinWarn,
    #[error("clear must lie on the good side of the threshold")]
    RuleClearBeyond,
    #[error("window must be 1 to {max} minutes")]
    RuleWindow { max: u32 },
    #[error("for must be at most {max} minutes")]
    RuleFor { max: u32 },
    #[error("{field}: {text:?} is no number")]
    NoNumber { field: RuleField, text: String },
    #[error("{field}: {text:?} is no whole number in range")]
    NoWholeNumber { field: RuleField, text: String },
    /// What only programs can get wrong.
    #[error("{message}")]
    Other { message: String },
}

/// A field of the rule editor that holds a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleField {
    Warn,
    Critical,
    Clear,
    Window,
    For,
    MinRequests,
}

impl std::fmt::Display for RuleField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Warn => "warn",
            Self::Critical => "critical",
            Self::Clear => "clear",
            Self::Window => "window",
            Self::For => "for",
            Self::MinRequests => "minimum traffic",
        })
    }
}

impl From<String> for Invalid {
    fn from(message: String) -> Self {
        Self::Other { message }
    }
}

impl From<&str> for Invalid {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}
