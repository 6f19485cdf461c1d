//! What the services need from the world. Implemented by `store` (the console's own tables), `sources`
//! (attached tables) and the composition root (clock, randomness, runtime, live events).

use crate::alert::{Alert, Rule, RuleSpec};
use crate::audit::{AuditFilter, Draft, Entry};
use crate::cache::{CacheAbout, CacheChange, Cached, Disagreement, Step};
use crate::compensation::{Compensation, Outcome, Phase, Plan, ReplayAnswer};
use crate::error::Result;
use crate::evidence::{Evidence, Finding};
use crate::outbox::Undelivered;
use crate::page::{Limit, Page};
use crate::rates::{BizTypeSeries, Bucket, RateScope, Report, Span, StuckSample, Totals};
use crate::record::{Place, RecordDetail, RecordFilter, RecordId, RecordRow, Version};
use crate::roles::Role;
use crate::source::SourceStatus;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A boxed future that may cross threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Timers and detached work, so that a caller who goes away cancels nothing.
#[async_trait]
pub trait Runtime: Send + Sync {
    async fn sleep(&self, duration: Duration);
    /// Runs to the end whatever becomes of the caller.
    fn detach(&self, work: BoxFuture<()>);
}

/// What changed, for live pages. Carries no data: pages read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    Records,
    Rates,
    Alerts,
    Audit,
    Sources,
}

/// Tells live pages that something changed.
pub trait Events: Send + Sync {
    fn changed(&self, topic: Topic);
}

/// An attached table of records.
#[async_trait]
pub trait Source: Send + Sync {
    fn name(&self) -> &str;

    /// Asks the database; a source that is down answers with `Health::Down`, never with an error.
    async fn status(&self) -> SourceStatus;

    /// Rows matching the filter after `after`, at most `limit`, in the filter's order (creation time, then
    /// locator; records without a creation time last). `verdict` fields stay empty: they are the store's.
    async fn list(
        &self,
        filter: &RecordFilter,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<RecordRow>>;

    /// One record; `NotFound` when the locator finds nothing.
    async fn get(&self, id: &RecordId) -> Result<RecordDetail>;

    /// Messages with a number above `after` that the source's outbox has not delivered, oldest first; a source
    /// without an outbox has none.
    async fn undelivered(&self, after: Option<i64>, limit: usize) -> Result<Vec<Undelivered>> {
        let _ = (after, limit);
        Ok(Vec::new())
    }

    /// Reads the business data for a record. Errors of the business database are a finding
    /// (`unavailable`), not an error.
    async fn reverse_check(&self, record: &RecordDetail) -> Finding;

    /// Decides what the record would become: state, marker time by the source's clock, response body
    /// (given, or rendered from the business row of `finding`). Changes nothing.
    async fn plan(&self, change: Change<'_>) -> Result<Plan>;

    /// Applies a plan by compare-and-set on `expect` (for `Action::Replay`, removes the record by it), after checking again that the evidence still permits
    /// it: in the same transaction where the business data is in the same database, else just before.
    /// Past `until` (console clock) it changes nothing any more: others may have judged by what they saw.
    async fn apply(
        &self,
        record: &RecordDetail,
        expect: &Version,
        change: crate::actions::Action,
        plan: &Plan,
        until: DateTime<Utc>,
    ) -> Result<Applied>;

    /// What a replay does to the record first, as configured: a mark, or its own `Action::Replay`, which removes the
    /// record; `None` = nothing, also when the record's state already lets the key run again.
    fn prepare_of(&self, record: &RecordRow) -> Option<crate::actions::Action>;

    /// Sends the stored request again: same key, same bytes, no redirect, bounded; never twice by itself.
    async fn replay(&self, record: &RecordDetail) -> ReplayAnswer;

    /// The longest a replay of this record may take.
    fn replay_timeout(&self, record: &RecordRow) -> Duration;

    /// The cache beside the table, where one is attached.
    fn cache(&self) -> Option<&dyn Cache> {
        None
    }
}

/// The cache beside an attached table. The table decides; an entry may only say the same.
#[async_trait]
pub trait Cache: Send + Sync {
    fn about(&self) -> CacheAbout;

    /// Whether it answers; the error is one line without a secret.
    async fn ping(&self) -> Result<(), String>;

    /// The entry of a record. A cache that is down is a finding, never an error.
    async fn read(&self, record: &RecordRow) -> Cached;

    /// One step towards an entry that agrees with `record`: reads it, and changes at most exactly what was read.
    async fn make_agree(&self, record: &RecordDetail) -> Step;
}

/// Input of [`Source::plan`].
pub struct Change<'a> {
    pub action: crate::actions::Action,
    pub record: &'a RecordDetail,
    pub finding: Option<&'a Finding>,
    pub response_body: Option<&'a str>,
}

/// How a compare-and-set ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// Exactly one row was changed and committed.
    Changed,
    /// The record is not what was expected; nothing was changed.
    Moved(Box<RecordRow>),
    /// The business data no longer permits the action; nothing was changed.
    EvidenceChanged(Finding),
}

/// All attached sources, by name.
#[derive(Clone)]
pub struct Sources(pub Arc<[Arc<dyn Source>]>);

impl Sources {
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Source>> {
        self.0
            .iter()
            .find(|source| source.name() == name)
            .ok_or_else(|| crate::Error::not_found(format!("The source {name:?}")))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Source>> {
        self.0.iter()
    }
}

/// Evidence, kept for the life of the audit trail.
#[async_trait]
pub trait EvidenceStore: Send + Sync {
    async fn put(&self, evidence: &Evidence) -> Result<()>;
    async fn get(&self, id: &str) -> Result<Option<Evidence>>;
    /// The newest evidence of each of these records (any order, at most one each; records without are left out).
    async fn latest(&self, records: &[RecordId]) -> Result<Vec<Evidence>>;
    /// The evidence of one record, newest first, at most `limit`.
    async fn history(&self, record: &RecordId, limit: usize) -> Result<Vec<Evidence>>;
}

/// What [`CompensationStore::begin`] found.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// Stored; carry it out.
    New,
    /// This actor already sent this key.
    Existing(Box<Compensation>),
    /// Another compensation of the same record is unfinished.
    RecordBusy { by: String },
}

/// Intents and outcomes. One transaction each, with the audit entry in it.
#[async_trait]
pub trait CompensationStore: Send + Sync {
    /// Stores the intent and its audit entry, unless (actor, command key) is known or the record has an
    /// unfinished compensation. Exactly one of any number of simultaneous callers gets `New`.
    async fn begin(&self, intent: &Compensation, audit: &Draft) -> Result<Begun>;
    async fn find(&self, actor: &str, command_key: &str) -> Result<Option<Compensation>>;
    /// Moves to `phase` if `owner` still holds an unexpired lease at `now`; `false` = lost it, do nothing more.
    async fn advance(&self, id: &str, owner: &str, phase: Phase, now: DateTime<Utc>) -> Result<bool>;
    /// Stores the outcome and its audit entry if none is stored yet and `owner` still owns it;
    /// `false` = somebody else resolved it. `late_check_at` schedules a look for a late effect.
    async fn finish(
        &self,
        id: &str,
        owner: &str,
        outcome: &Outcome,
        audit: &Draft,
        now: DateTime<Utc>,
        late_check_at: Option<DateTime<Utc>>,
    ) -> Result<bool>;
    /// Unfinished compensations whose lease ended before `now`, each handed to `owner` with the new lease by
    /// compare-and-set: no two callers get the same one.
    async fn take_abandoned(
        &self,
        owner: &str,
        now: DateTime<Utc>,
        lease_until: DateTime<Utc>,
    ) -> Result<Vec<Compensation>>;
    /// The unfinished compensation of each of these records.
    async fn running(&self, records: &[RecordId]) -> Result<Vec<Compensation>>;
    /// Compensations of one record, newest first, at most `limit`.
    async fn history(&self, record: &RecordId, limit: usize) -> Result<Vec<Compensation>>;
    /// Compensations that changed their record as intended, finished at or after `since`.
    async fn settled_since(&self, since: DateTime<Utc>) -> Result<u64>;
    /// Reasons this actor gave lately, newest first, distinct.
    async fn recent_reasons(&self, actor: &str, limit: usize) -> Result<Vec<String>>;
    /// Claims late checks due at `now` (record, compensation id), moving each to `next` so that nobody else takes it.
    async fn take_late_checks(
        &self,
        now: DateTime<Utc>,
        next: DateTime<Utc>,
    ) -> Result<Vec<(RecordId, String)>>;
    /// The late check is over; with `Some`, the effect was found late and the entry is written with it.
    async fn end_late_check(&self, compensation_id: &str, audit: Option<&Draft>) -> Result<()>;
}

/// What is remembered about the caches beside the sources.
///
/// A change that is pending when its compensation ends is stored by [`CompensationStore::finish`], with the outcome.
#[async_trait]
pub trait CacheStore: Send + Sync {
    /// Unconfirmed changes due at `now`, each moved to `next` so that nobody else takes it.
    async fn take_changes(&self, now: DateTime<Utc>, next: DateTime<Utc>) -> Result<Vec<CacheChange>>;
    /// One more try did not confirm it.
    async fn postpone_change(&self, compensation_id: &str, why: &str, next: DateTime<Utc>) -> Result<()>;
    /// Confirms a change, with its audit entry; a compensation that waited only for it has succeeded.
    /// `false` = it was confirmed before.
    async fn confirm_change(&self, compensation_id: &str, at: DateTime<Utc>, audit: &Draft) -> Result<bool>;
    /// The changes of one record, newest first, at most `limit`.
    async fn changes_of(&self, record: &RecordId, limit: usize) -> Result<Vec<CacheChange>>;
    /// Per source: how many changes are unconfirmed, and since when the oldest.
    async fn pending_changes(&self) -> Result<Vec<(String, u64, DateTime<Utc>)>>;

    /// Lists a disagreement and counts it as an anomaly, in one transaction; `false` = it is listed already.
    async fn note_disagreement(&self, disagreement: &Disagreement) -> Result<bool>;
    async fn end_disagreement(&self, record: &RecordId) -> Result<()>;
    /// Listed disagreements of a source, newest first, at most `limit`.
    async fn disagreements(&self, source: &str, limit: usize) -> Result<Vec<Disagreement>>;
    /// Per source, how many are listed.
    async fn disagreeing(&self) -> Result<Vec<(String, u64)>>;

    /// Takes the comparison of a source for `owner`: where to go on (`None` inside = from the newest record), or `None`
    /// while another holds an unexpired lease.
    async fn take_walk(
        &self,
        source: &str,
        owner: &str,
        now: DateTime<Utc>,
        lease_until: DateTime<Utc>,
    ) -> Result<Option<Option<Place>>>;
    /// Gives the comparison back if `owner` still has it, with the place to go on from.
    async fn leave_walk(&self, source: &str, owner: &str, place: Option<&Place>) -> Result<()>;
}

/// The hash-chained audit trail.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Appends one entry behind the newest, whoever else appends at the same time.
    async fn append(&self, draft: &Draft) -> Result<Entry>;
    /// Newest first.
    async fn list(&self, filter: &AuditFilter, before_seq: Option<i64>, limit: Limit) -> Result<Page<Entry>>;
    /// Entries after `after_seq`, oldest first, for verification.
    async fn read_on(&self, after_seq: i64, limit: usize) -> Result<Vec<Entry>>;
    /// Sequence and hash of the newest entry, as kept beside the entries.
    async fn head(&self) -> Result<Option<(i64, String)>>;
}

/// Counters and stuck samples.
#[async_trait]
pub trait RateStore: Send + Sync {
    /// Adds a report unless this producer already reported this sequence; `false` = already there.
    async fn report(&self, report: &Report) -> Result<bool>;
    /// Totals per step, ascending, steps without counts left out. Steps start at multiples of the step from `span.from`.
    async fn series(&self, scope: &RateScope, span: Span) -> Result<Vec<Bucket>>;
    /// Totals per (source, biz_type) over a span.
    async fn by_biz_type(
        &self,
        scope: &RateScope,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
    ) -> Result<Vec<(String, String, Totals)>>;
    /// The series of every (source, biz_type) in scope, in one read.
    async fn series_by_biz_type(&self, scope: &RateScope, span: Span) -> Result<Vec<BizTypeSeries>>;
    /// Replaces the samples of these minutes.
    async fn sample_stuck(&self, samples: &[StuckSample]) -> Result<()>;
    /// Samples per minute, summed (stuck) and maximised (oldest) over the scope, ascending.
    async fn stuck_series(
        &self,
        scope: &RateScope,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
    ) -> Result<Vec<(DateTime<Utc>, u64, u64)>>;
    /// Business types that ever reported, for filter choices (never a DISTINCT over a big table).
    async fn biz_types(&self) -> Result<Vec<(String, String)>>;
}

/// Alert rules and episodes.
#[async_trait]
pub trait AlertStore: Send + Sync {
    async fn rules(&self) -> Result<Vec<Rule>>;
    async fn rule(&self, id: &str) -> Result<Option<Rule>>;
    /// Inserts a new rule with its audit entry.
    async fn insert_rule(&self, rule: &Rule, audit: &Draft) -> Result<()>;
    /// Changes a rule if its version is still `expect`; `false` = it is not.
    async fn update_rule(
        &self,
        id: &str,
        expect: i64,
        spec: &RuleSpec,
        by: &str,
        at: DateTime<Utc>,
        audit: &Draft,
    ) -> Result<bool>;
    /// Deletes a rule and resolves its open episode; `false` = no such rule.
    async fn delete_rule(&self, id: &str, at: DateTime<Utc>, audit: &Draft) -> Result<bool>;
    /// Pending and firing episodes.
    async fn open_alerts(&self) -> Result<Vec<Alert>>;
    async fn alert(&self, id: &str) -> Result<Option<Alert>>;
    /// Inserts or replaces an episode. A rule has at most one open episode: a second insert for it is ignored.
    async fn put_alert(&self, alert: &Alert) -> Result<()>;
    async fn drop_alert(&self, id: &str) -> Result<()>;
    /// Episodes newest first (by pending_since, id), `before` = where the last page ended.
    async fn alerts(&self, before: Option<&(i64, String)>, limit: Limit) -> Result<Page<Alert>>;
    /// Records who acknowledged, once; `false` = no such open alert.
    async fn acknowledge(&self, id: &str, by: &str, at: DateTime<Utc>, audit: &Draft) -> Result<bool>;
    async fn silence(&self, id: &str, until: DateTime<Utc>, audit: &Draft) -> Result<bool>;
}

/// A person who may sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub role: Role,
    /// PHC string.
    pub password_hash: String,
}

/// People and tokens.
#[async_trait]
pub trait UserStore: Send + Sync {
    async fn user(&self, name: &str) -> Result<Option<User>>;
    async fn users(&self) -> Result<Vec<User>>;
    /// Adds or replaces a user, with the audit entry.
    async fn put_user(&self, user: &User, audit: &Draft) -> Result<()>;
    /// Stores a token by its SHA-256 (hex), with the audit entry.
    async fn put_token(&self, sha256: &str, name: &str, role: Role, audit: &Draft) -> Result<()>;
    /// (name, role) of a token.
    async fn token(&self, sha256: &str) -> Result<Option<(String, Role)>>;
}
