//! What the business tables say about a record, when it was read, and for how long that counts.

use crate::record::{RecordId, Version};
use crate::redact;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The answer of a reverse check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The effect exists and agrees.
    Found,
    /// The effect exists and disagrees: amount, payer, status, or soft-deleted.
    Mismatch,
    /// Some of the effects exist.
    Partial,
    /// Proved not there, on the primary.
    Absent,
    /// Could not tell.
    Unavailable,
}

impl Verdict {
    pub const ALL: [Verdict; 5] =
        [Verdict::Found, Verdict::Mismatch, Verdict::Partial, Verdict::Absent, Verdict::Unavailable];

    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Found => "found",
            Verdict::Mismatch => "mismatch",
            Verdict::Partial => "partial",
            Verdict::Absent => "absent",
            Verdict::Unavailable => "unavailable",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == text)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One reason behind a verdict, in a form that can be translated; `Display` is the English sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    RowAgrees {
        check: String,
    },
    NoRow {
        check: String,
    },
    SoftDeleted {
        check: String,
    },
    SeveralRows {
        check: String,
        rows: u32,
    },
    FieldDiffers {
        check: String,
        field: String,
        request: Option<String>,
        business: Option<String>,
    },
    OutsideExpected {
        check: String,
        field: String,
        value: Option<String>,
        expected: Vec<String>,
    },
    /// The request lacks the value that the check or the comparison needs.
    RequestLacks {
        pointer: String,
    },
    NotConfigured {
        biz_type: Option<String>,
    },
    NoBizNo,
    NotPrimary {
        server: String,
    },
    QueryFailed {
        check: String,
        message: String,
    },
    TimedOut {
        check: String,
    },
    SourceDown {
        message: String,
    },
    /// Some tables or databases of a shard set did not answer, so nothing is proved absent.
    ShardsMissing {
        check: String,
        missed: u32,
        total: u32,
        shards: String,
        message: String,
    },
    /// The database took another number for the record's: other case, blanks, or a number coerced.
    NumberDiffers {
        check: String,
        field: String,
        value: Option<String>,
        wanted: Option<String>,
    },
    /// The record's value cannot be written as the whole number that the check looks for.
    NotANumber {
        check: String,
        param: String,
    },
    /// The record has nothing in a column that the check needs.
    RecordLacks {
        what: String,
    },
    /// A query endpoint says that the effect does not exist.
    SaysAbsent {
        check: String,
        status: u16,
    },
    /// A query endpoint answered with something that no rule covers.
    Unclear {
        check: String,
        status: u16,
        excerpt: String,
    },
    /// A query endpoint could not be asked.
    EndpointDown {
        check: String,
        message: String,
    },
    /// More questions in a moment than the configuration allows to send.
    Throttled {
        check: String,
        rate: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A sentence ends up in logs, messages and the audit trail, so it never quotes a sensitive value whole.
        let shown = |field: &str, value: &Option<String>| match value {
            None => "nothing".to_owned(),
            Some(value) if redact::is_sensitive(field) => redact::mask(value),
            Some(value) => value.clone(),
        };
        match self {
            Reason::RowAgrees { check } => write!(f, "{check}: the row exists and agrees with the request"),
            Reason::NoRow { check } => write!(f, "{check}: no row"),
            Reason::SoftDeleted { check } => write!(f, "{check}: the row exists but is marked deleted"),
            Reason::SeveralRows { check, rows } => write!(f, "{check}: {rows} rows where one is expected"),
            Reason::FieldDiffers { check, field, request, business } => write!(
                f,
                "{check}: {field} is {} in the business table, {} in the request",
                shown(field, business),
                shown(field, request)
            ),
            Reason::OutsideExpected { check, field, value, expected } => {
                write!(f, "{check}: {field} is {}, expected {}", shown(field, value), expected.join(" or "))
            }
            Reason::RequestLacks { pointer } => write!(f, "the stored request has no {pointer}"),
            Reason::NotConfigured { biz_type: Some(biz_type) } => {
                write!(f, "no reverse check is configured for {biz_type}")
            }
            Reason::NotConfigured { biz_type: None } => {
                write!(f, "the record has no business type, so no reverse check applies")
            }
            Reason::NoBizNo => write!(f, "the record has no business number to look for"),
            Reason::NotPrimary { server } => {
                write!(f, "{server} is a replica, so a missing row proves nothing")
            }
            Reason::QueryFailed { check, message } => write!(f, "{check}: the query failed: {message}"),
            Reason::TimedOut { check } => write!(f, "{check}: no answer within the time limit"),
            Reason::SourceDown { message } => write!(f, "the business database cannot be reached: {message}"),
            Reason::ShardsMissing { check, missed, total, shards, message } => {
                write!(f, "{check}: {missed} of {total} shards not reached ({shards}): {message}")
            }
            Reason::NumberDiffers { check, field, value, wanted } => write!(
                f,
                "{check}: the database took {field} {} for {}, which it is not",
                shown(field, value),
                shown(field, wanted)
            ),
            Reason::NotANumber { check, param } => {
                write!(f, "{check}: {param} is not written as the whole number that the check looks for")
            }
            Reason::RecordLacks { what } => write!(f, "the record has no {what}"),
            Reason::SaysAbsent { check, status } => {
                write!(f, "{check}: the endpoint says that it does not exist (status {status})")
            }
            Reason::Unclear { check, status, excerpt } => {
                write!(f, "{check}: the answer with status {status} proves nothing: {excerpt}")
            }
            Reason::EndpointDown { check, message } => write!(f, "{check}: {message}"),
            Reason::Throttled { check, rate } => {
                write!(f, "{check}: more than {rate} questions; try again in a moment")
            }
        }
    }
}

/// The rows one check saw, as text, in the query's column order; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckRows {
    pub check: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
    /// Where each row was seen (shard or endpoint); empty when all are from one place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    /// More rows were there than the limit shows.
    pub truncated: bool,
}

/// One field of the business row against the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Comparison {
    pub check: String,
    pub field: String,
    pub request: Option<String>,
    pub business: Option<String>,
    pub agrees: bool,
}

/// What one reverse check found, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub verdict: Verdict,
    pub rows: Vec<CheckRows>,
    pub comparisons: Vec<Comparison>,
    pub reasons: Vec<Reason>,
    /// Which server answered, for the eye; never a credential.
    pub read_from: String,
}

impl Finding {
    /// The answer when the check could not be made.
    pub fn unavailable(reason: Reason, read_from: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Unavailable,
            rows: Vec::new(),
            comparisons: Vec::new(),
            reasons: vec![reason],
            read_from: read_from.into(),
        }
    }

    /// The reasons as one English sentence.
    pub fn explanation(&self) -> String {
        self.reasons.iter().map(Reason::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// A stored finding about one version of one record. It expires: the world moves on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub id: String,
    pub record: RecordId,
    /// The version the record had when it was checked.
    pub version: Version,
    pub finding: Finding,
    pub checked_by: String,
    pub checked_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

impl Evidence {
    pub fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        now < self.expires_at
    }
}
