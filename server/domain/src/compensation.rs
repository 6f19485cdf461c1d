//! One operator action on one record: the command, the stored intent, the stored outcome.

use crate::actions::Action;
use crate::cache::CacheEnd;
use crate::error::{Error, Result};
use crate::evidence::Verdict;
use crate::invalid::Invalid;
use crate::record::{RecordId, RecordRow, State, Version};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest reason, in characters.
pub const REASON_MAX: usize = 500;
/// The longest command key, in characters.
pub const COMMAND_KEY_MAX: usize = 255;

/// What an operator asks for. The same key with the same command has one effect and one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Minted by the caller per intention (per dialog, per batch item): 1 to 255 visible ASCII characters.
    pub key: String,
    pub record: RecordId,
    pub action: Action,
    pub reason: String,
    pub if_version: Version,
    pub evidence_id: Option<String>,
    /// The response later duplicates get after mark_succeeded; absent = rendered from the business row.
    pub response_body: Option<String>,
}

impl Command {
    /// Checks the shape, before anything is looked up.
    pub fn validate(&self) -> Result<()> {
        let key_ok = (1..=COMMAND_KEY_MAX).contains(&self.key.len())
            && self.key.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        if !key_ok {
            return Err(Error::invalid(
                "Idempotency-Key must be 1 to 255 visible ASCII characters; send a fresh UUID per command.",
            ));
        }
        let reason = self.reason.trim();
        if reason.is_empty() {
            return Err(Error::invalid(Invalid::ReasonEmpty));
        }
        if reason.chars().count() > REASON_MAX {
            return Err(Error::invalid(Invalid::ReasonTooLong { max: REASON_MAX }));
        }
        if self.response_body.is_some() && self.action != Action::MarkSucceeded {
            return Err(Error::invalid("response_body belongs to mark_succeeded only."));
        }
        Ok(())
    }

    /// Identifies the command's content, so that one key cannot carry two commands.
    pub fn fingerprint(&self) -> String {
        let content = (
            &self.record,
            self.action,
            self.reason.trim(),
            &self.if_version,
            &self.evidence_id,
            &self.response_body,
        );
        // Strings, enums and options always serialise.
        hex::encode(Sha256::digest(serde_json::to_vec(&content).unwrap_or_default()))
    }
}

/// How far a compensation has got. Stored before each step, so that a killed process can be resolved by looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Stored; the record may or may not have been changed as planned.
    Intended,
    /// Replay: the record was made re-executable; nothing was sent yet.
    Prepared,
    /// Replay: the request may have left; only the record can tell.
    Sending,
    /// The outcome is stored.
    Done,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Intended => "intended",
            Phase::Prepared => "prepared",
            Phase::Sending => "sending",
            Phase::Done => "done",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Phase::Intended, Phase::Prepared, Phase::Sending, Phase::Done]
            .into_iter()
            .find(|phase| phase.as_str() == text)
    }
}

/// What the record is to become, decided before anything is changed. `marker` makes the change
/// recognisable afterwards: it is the exact update time (source clock, epoch milliseconds) the change writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub state: State,
    pub marker: i64,
    /// The response body to store with it, when the action sets one.
    pub response: Option<String>,
}

impl Plan {
    /// The marker of a change to a table that keeps no time of it: the stored response alone tells it then.
    pub const UNMARKED: i64 = 0;
}

/// How a compensation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The record, and its cache entry where there is one, was read back as intended.
    Succeeded,
    /// The record was read back as intended; its cache entry is not confirmed yet and tried again until it is.
    CachePending,
    /// Nothing was changed; the error says why.
    Refused,
    /// The action ended without its goal and is known not to be running any more.
    Failed,
    /// Whether it took effect is not known; never repeated by itself.
    InDoubt,
}

impl Ending {
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Succeeded => "succeeded",
            Ending::CachePending => "cache_pending",
            Ending::Refused => "refused",
            Ending::Failed => "failed",
            Ending::InDoubt => "in_doubt",
        }
    }
}

/// What the replay target answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReplayAnswer {
    /// The request certainly did not leave (refused connection, bad address, rate limit).
    NotSent { message: String },
    /// An answer came back.
    Answered { status: u16 },
    /// It may have left and no answer came (timeout, connection lost).
    Unanswered { message: String },
}

/// The stored end of a compensation; the same command is answered from here for ever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub ending: Ending,
    /// One English sentence for the operator.
    pub message: String,
    /// The record as read back, when it could be read.
    pub record: Option<RecordRow>,
    pub replay: Option<ReplayAnswer>,
    /// Set when the ending is `Refused`.
    pub error: Option<Error>,
    /// Set when the record has a cache entry to follow it.
    #[serde(default)]
    pub cache: Option<CacheEnd>,
}

impl Outcome {
    /// The same with where the cache stands: what succeeded has only succeeded when the entry is confirmed.
    pub fn with_cache(self, cache: CacheEnd) -> Self {
        let (ending, message) = match (self.ending, &cache) {
            (Ending::Succeeded, CacheEnd::Confirmed) => {
                (Ending::Succeeded, format!("{} The cache was read back and agrees.", self.message))
            }
            (Ending::Succeeded, CacheEnd::Pending { why }) => (
                Ending::CachePending,
                format!("{} The cache entry is not confirmed and is tried again: {why}.", self.message),
            ),
            (ending, _) => (ending, self.message),
        };
        Self { ending, message, cache: Some(cache), ..self }
    }

    /// What was pending is confirmed now.
    pub fn cache_confirmed(mut self) -> Self {
        self.cache = Some(CacheEnd::Confirmed);
        if self.ending == Ending::CachePending {
            self.ending = Ending::Succeeded;
            self.message = "The record and, later, its cache entry were read back and agree.".into();
        }
        self
    }
}

/// A stored compensation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compensation {
    pub id: String,
    pub command: Command,
    pub fingerprint: String,
    pub actor: String,
    pub biz_type: Option<String>,
    pub biz_no: Option<String>,
    /// The record's key as shown, for the audit trail.
    pub record_key: String,
    pub verdict: Option<Verdict>,
    pub phase: Phase,
    pub plan: Plan,
    /// The process that is carrying it out.
    pub owner: String,
    /// Past this instant (console clock) another process may resolve it by looking.
    pub lease_until: DateTime<Utc>,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub outcome: Option<Outcome>,
}

/// The answer to a command: what happened, the same however often it is asked; only `cache_pending` becomes `succeeded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Settled {
    pub compensation_id: String,
    pub action: Action,
    pub outcome: Ending,
    pub message: String,
    pub record: Option<RecordRow>,
    pub replay: Option<ReplayAnswer>,
    /// Where the cache beside the table stands, when the source has one.
    #[serde(default)]
    pub cache: Option<CacheEnd>,
}

impl Compensation {
    /// The answer of a finished compensation; `None` while it runs.
    pub fn answer(&self) -> Option<Result<Settled>> {
        let outcome = self.outcome.as_ref()?;
        Some(match &outcome.error {
            Some(error) => Err(error.clone()),
            None => Ok(Settled {
                compensation_id: self.id.clone(),
                action: self.command.action,
                outcome: outcome.ending,
                message: outcome.message.clone(),
                record: outcome.record.clone(),
                replay: outcome.replay.clone(),
                cache: outcome.cache.clone(),
            }),
        })
    }
}
