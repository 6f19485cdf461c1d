//! Settling one record: intent before the effect, compare-and-set, read back, outcome after.
//!
//! Promises held here: nothing is done without fresh evidence; the same command has one effect and one answer;
//! the intent is stored before and the outcome after; "succeeded" is said only of a record that was read back so, and
//! of its cache entry where it has one.

use super::caches::make_agree;
use super::records::RecordService;
use crate::actions::{Action, Known, Permit, Situation, by_verdict, permit};
use crate::audit::Draft;
use crate::cache::CacheEnd;
use crate::compensation::{Command, Compensation, Ending, Outcome, Phase, Plan, ReplayAnswer, Settled};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::ports::{Applied, Begun, Change, Runtime, Source, Topic};
use crate::record::{RecordDetail, RecordFilter, RecordId, RecordRow, State, Version};
use crate::roles::{Actor, Permission};
use chrono::{DateTime, Duration, Utc};
use futures::channel::oneshot;
use std::sync::Arc;

/// What a compensation may take beside the replay's own time limit before others may resolve it.
const LEASE_MARGIN_SECONDS: i64 = 15;
/// From its start, how long a compensation may still begin to change the record: what is committed after that, and
/// seen by nobody, must be committed well before others may resolve it.
const CHANGE_WITHIN_SECONDS: i64 = 10;
/// How long a repeated command waits for the first one's answer.
const WAIT_FOR_ANSWER: std::time::Duration = std::time::Duration::from_secs(15);
const POLL: std::time::Duration = std::time::Duration::from_millis(50);
/// How often a replayed record is read again while it is still PROCESSING.
const READ_BACKS: u32 = 20;

pub struct CompensationService {
    pub records: Arc<RecordService>,
    pub runtime: Arc<dyn Runtime>,
    /// This process, as it signs the compensations it carries out.
    pub owner: String,
    /// How long after a mark-timed-out to look for a late effect.
    pub late_check_after: Duration,
}

impl CompensationService {
    /// Carries out a command, or answers it from its stored outcome. Runs to the end even if the caller goes away.
    ///
    /// Errors: `Forbidden`, `Invalid`, `NotFound`, `Moved` and `StaleVersion` (with the current row), `Refused`
    /// (evidence, state or mapping forbids), `KeyReused`, `Busy`, `Unavailable`. None of them changed anything.
    pub async fn settle(self: &Arc<Self>, actor: &Actor, command: Command) -> Result<Settled> {
        actor.require(Permission::Compensate)?;
        command.validate()?;
        let (sender, receiver) = oneshot::channel();
        let (service, actor) = (Arc::clone(self), actor.clone());
        self.runtime.detach(Box::pin(async move {
            // A dropped receiver means that the caller left; the outcome is stored all the same.
            let _ = sender.send(service.settle_once(&actor, command).await);
        }));
        receiver
            .await
            .unwrap_or_else(|_| Err(Error::internal("The command was interrupted; read the record again.")))
    }

    /// Reasons this person gave lately, to offer again.
    pub async fn recent_reasons(&self, actor: &Actor) -> Result<Vec<String>> {
        actor.require(Permission::Compensate)?;
        self.records.compensations.recent_reasons(&actor.name, 5).await
    }

    /// How many records were settled since an instant.
    pub async fn settled_since(&self, actor: &Actor, since: DateTime<Utc>) -> Result<u64> {
        actor.require(Permission::Read)?;
        self.records.compensations.settled_since(since).await
    }

    async fn settle_once(&self, actor: &Actor, command: Command) -> Result<Settled> {
        let store = &self.records.compensations;
        if let Some(earlier) = store.find(&actor.name, &command.key).await? {
            return self.answer_of(earlier, &command).await;
        }
        let source = Arc::clone(self.records.sources.get(&command.record.source)?);
        let record = source.get(&command.record).await?;
        let (evidence, plan) = match self.examine(actor, &command, source.as_ref(), &record).await {
            Ok(examined) => examined,
            // A twin of this command may have begun, or even changed the record, since we looked.
            Err(refusal) => match store.find(&actor.name, &command.key).await? {
                Some(twin) => return self.answer_of(twin, &command).await,
                None => return Err(refusal),
            },
        };
        let intent = self.intent(actor, command, source.as_ref(), &record, evidence.as_ref(), plan);
        let audit = self.draft(&intent, "intended", Some(&record.row));
        match store.begin(&intent, &audit).await? {
            Begun::New => self.carry_out(source.as_ref(), &record, intent).await,
            Begun::Existing(earlier) => self.answer_of(*earlier, &intent.command).await,
            Begun::RecordBusy { by } => Err(Error::Busy {
                message: format!("{by} is settling this record right now; read it again in a moment."),
                retry_after_seconds: 2,
            }),
        }
    }

    /// Everything that can refuse the command before anything is stored.
    async fn examine(
        &self,
        actor: &Actor,
        command: &Command,
        source: &dyn Source,
        record: &RecordDetail,
    ) -> Result<(Option<Evidence>, Plan)> {
        same_version(&command.if_version, &record.row)?;
        let evidence = self.evidence_of(command, record).await?;
        let situation = Situation {
            role: actor.role,
            state: record.row.state,
            stuck: record.row.stuck,
            abilities: &record.abilities,
            being_settled: false,
            known: Known::of(evidence.as_ref(), self.records.clock.now()),
        };
        if let Permit::Refused(why) | Permit::SecondPerson(why) = permit(command.action, &situation) {
            return Err(Error::Refused { code: why.code().to_owned(), message: why.to_string() });
        }
        let finding = evidence.as_ref().map(|evidence| &evidence.finding);
        let change = Change {
            action: command.action,
            record,
            finding,
            response_body: command.response_body.as_deref(),
        };
        let plan = source.plan(change).await?;
        Ok((evidence, plan))
    }

    /// The evidence the command names, if it is about this record in this version.
    async fn evidence_of(&self, command: &Command, record: &RecordDetail) -> Result<Option<Evidence>> {
        let Some(id) = &command.evidence_id else { return Ok(None) };
        let evidence = self.records.evidence.get(id).await?;
        match evidence {
            Some(evidence) if evidence.record == command.record => {
                Ok((evidence.version == record.row.version).then_some(evidence))
            }
            _ => Err(Error::Refused {
                code: "no_evidence".into(),
                message: "evidence_id names no reverse check of this record; run one and send its id.".into(),
            }),
        }
    }

    fn intent(
        &self,
        actor: &Actor,
        command: Command,
        source: &dyn Source,
        record: &RecordDetail,
        evidence: Option<&Evidence>,
        plan: Plan,
    ) -> Compensation {
        let now = self.records.clock.now();
        let budget = match command.action {
            Action::Replay => {
                Duration::from_std(source.replay_timeout(&record.row)).unwrap_or(Duration::minutes(1))
            }
            Action::MarkSucceeded | Action::MarkTimedOut => Duration::zero(),
        };
        Compensation {
            id: self.records.ids.next(),
            fingerprint: command.fingerprint(),
            actor: actor.name.clone(),
            biz_type: record.row.biz_type.clone(),
            biz_no: record.row.biz_no.clone(),
            record_key: record.row.key.clone(),
            verdict: evidence.map(|evidence| evidence.finding.verdict),
            phase: Phase::Intended,
            plan,
            owner: self.owner.clone(),
            lease_until: now + budget + Duration::seconds(LEASE_MARGIN_SECONDS),
            started_at: now,
            finished_at: None,
            outcome: None,
            command,
        }
    }

    async fn carry_out(
        &self,
        source: &dyn Source,
        record: &RecordDetail,
        intent: Compensation,
    ) -> Result<Settled> {
        let outcome = match intent.command.action {
            Action::MarkSucceeded | Action::MarkTimedOut => self.mark(source, record, &intent).await,
            Action::Replay => self.replay(source, record, &intent).await,
        };
        self.conclude(intent, outcome).await
    }

    /// Compare-and-set as planned, then read back.
    async fn mark(&self, source: &dyn Source, record: &RecordDetail, intent: &Compensation) -> Outcome {
        if !self.still_mine(intent, Phase::Intended).await {
            return lost("This process lost its lease before changing the record; nothing was changed.");
        }
        match change(source, record, intent, intent.command.action).await {
            Ok(applied) => match refused(applied) {
                Some(outcome) => outcome,
                None => read_back(source, intent).await,
            },
            // Whether the change was committed is not known: look instead of guessing.
            Err(error) => look(source, intent, &error.to_string()).await,
        }
    }

    /// Makes the record re-executable, sends the stored request once, and believes only the record.
    async fn replay(&self, source: &dyn Source, record: &RecordDetail, intent: &Compensation) -> Outcome {
        if let Some(prepare) = source.prepare_of(&record.row) {
            match change(source, record, intent, prepare).await.map(refused) {
                Ok(None) => {}
                Ok(Some(outcome)) => return outcome,
                Err(error) => return look(source, intent, &error.to_string()).await,
            }
            if !self.still_mine(intent, Phase::Prepared).await {
                let trouble = "The record was prepared, but this process lost its lease; nothing was sent.";
                return unsent(source, intent, trouble).await;
            }
        }
        if source.prepare_of(&record.row).is_none()
            && let Some(outcome) = changed_meanwhile(source, record, intent).await
        {
            return outcome;
        }
        // A service that is asked again looks into its cache first.
        if let Some(CacheEnd::Pending { why }) = cache_follows(source, &intent.command.record).await {
            let trouble =
                format!("Nothing was sent, because the record's cache entry does not follow it: {why}.");
            return unsent(source, intent, &trouble).await;
        }
        if !self.still_mine(intent, Phase::Sending).await {
            return unsent(source, intent, "This process lost its lease before sending; nothing was sent.")
                .await;
        }
        let answer = source.replay(record).await;
        self.judge_replay(source, intent, answer).await
    }

    async fn still_mine(&self, intent: &Compensation, phase: Phase) -> bool {
        let store = &self.records.compensations;
        store.advance(&intent.id, &intent.owner, phase, self.records.clock.now()).await.unwrap_or(false)
    }

    /// What the record says after the answer; the answer alone proves nothing.
    async fn judge_replay(
        &self,
        source: &dyn Source,
        intent: &Compensation,
        answer: ReplayAnswer,
    ) -> Outcome {
        let mut record = reread(source, intent).await;
        if let ReplayAnswer::Answered { .. } = answer {
            for _ in 0..READ_BACKS {
                match &record {
                    Ok(detail) if detail.row.state == State::Processing => {
                        self.runtime.sleep(POLL * 4).await;
                        record = reread(source, intent).await;
                    }
                    _ => break,
                }
            }
        }
        let row = record.ok().map(|detail| detail.row);
        let (ending, message) = replay_ending(&answer, row.as_ref().map(|row| row.state));
        Outcome { ending, message, record: row, replay: Some(answer), error: None, cache: None }
    }

    /// Stores the outcome and answers with what is stored, whoever stored it.
    pub(super) async fn conclude(&self, intent: Compensation, outcome: Outcome) -> Result<Settled> {
        let outcome = self.with_cache(&intent, outcome).await;
        let now = self.records.clock.now();
        let draft = self.outcome_draft(&intent, &outcome);
        let done = matches!(outcome.ending, Ending::Succeeded | Ending::CachePending);
        let timed_out = done && intent.command.action == Action::MarkTimedOut;
        let late_check_at = timed_out.then(|| now + self.late_check_after);
        let store = &self.records.compensations;
        if !store.finish(&intent.id, &intent.owner, &outcome, &draft, now, late_check_at).await? {
            self.contradict(&intent, &outcome).await?;
        }
        self.records.events.changed(Topic::Records);
        self.records.events.changed(Topic::Audit);
        let stored = store.find(&intent.actor, &intent.command.key).await?;
        stored.and_then(|compensation| compensation.answer()).unwrap_or_else(|| {
            Err(Error::internal("The outcome is not stored yet; send the same command again."))
        })
    }

    /// The cache follows the table, once the table is changed and whoever changed it.
    async fn with_cache(&self, intent: &Compensation, outcome: Outcome) -> Outcome {
        let record = &intent.command.record;
        if !may_have_changed(intent, &outcome) {
            return outcome;
        }
        let Ok(source) = self.records.sources.get(&record.source) else { return outcome };
        match cache_follows(source.as_ref(), record).await {
            Some(cache) => outcome.with_cache(cache),
            None => outcome,
        }
    }

    /// Another process resolved this one while it was merely slow. If the two saw different things, the trail says so.
    async fn contradict(&self, intent: &Compensation, outcome: &Outcome) -> Result<()> {
        let stored = self.records.compensations.find(&intent.actor, &intent.command.key).await?;
        if stored.and_then(|stored| stored.outcome).is_some_and(|stored| stored.ending != outcome.ending) {
            let mut draft = self.outcome_draft(intent, outcome);
            draft.action = format!("{}.late_outcome", intent.command.action);
            self.records.audit.append(&draft).await?;
        }
        Ok(())
    }

    fn outcome_draft(&self, intent: &Compensation, outcome: &Outcome) -> Draft {
        let mut draft = self.draft(intent, outcome.ending.as_str(), None);
        draft.after = outcome.record.as_ref().map(|row| row.state.to_string());
        draft.result = Some(match &outcome.error {
            Some(error) => error.to_string(),
            None => outcome.message.clone(),
        });
        draft
    }

    fn draft(&self, intent: &Compensation, verb: &str, before: Option<&RecordRow>) -> Draft {
        let command = &intent.command;
        Draft {
            record: Some(command.record.clone()),
            record_key: Some(intent.record_key.clone()),
            biz_type: intent.biz_type.clone(),
            biz_no: intent.biz_no.clone(),
            reason: Some(command.reason.trim().to_owned()),
            verdict: intent.verdict,
            evidence_id: command.evidence_id.clone(),
            compensation_id: Some(intent.id.clone()),
            before: Some(before.map_or(command.if_version.state, |row| row.state).to_string()),
            after: Some(intent.plan.state.to_string()),
            ..Draft::new(self.records.clock.now(), &intent.actor, format!("{}.{verb}", command.action))
        }
    }

    /// The answer of a known command: waits for it while it runs, never runs it again.
    async fn answer_of(&self, mut known: Compensation, command: &Command) -> Result<Settled> {
        if known.fingerprint != command.fingerprint() {
            return Err(Error::KeyReused);
        }
        let polls = WAIT_FOR_ANSWER.as_millis() / POLL.as_millis();
        for _ in 0..polls {
            if let Some(answer) = known.answer() {
                return answer;
            }
            self.runtime.sleep(POLL).await;
            match self.records.compensations.find(&known.actor, &known.command.key).await? {
                Some(again) => known = again,
                None => break,
            }
        }
        known.answer().unwrap_or_else(|| {
            Err(Error::Busy {
                message: "The same command is still running; send it again for its answer.".into(),
                retry_after_seconds: 5,
            })
        })
    }
}

/// `Moved` when the state is another than the one seen, `StaleVersion` when only the version is.
fn same_version(seen: &Version, row: &RecordRow) -> Result<()> {
    if *seen == row.version {
        return Ok(());
    }
    let current = Box::new(row.clone());
    if seen.state == row.version.state {
        Err(Error::StaleVersion { current })
    } else {
        Err(Error::Moved { current })
    }
}

/// Brings the record's cache entry to agree with it; `None` when the source has no cache.
async fn cache_follows(source: &dyn Source, record: &RecordId) -> Option<CacheEnd> {
    let cache = source.cache()?;
    Some(make_agree(source, cache, record).await)
}

/// Whether the record may be another than the one the command was about.
fn may_have_changed(intent: &Compensation, outcome: &Outcome) -> bool {
    let differs = |row: &RecordRow| row.version != intent.command.if_version;
    match outcome.ending {
        Ending::Succeeded | Ending::CachePending => true,
        Ending::InDoubt => outcome.record.as_ref().is_none_or(differs),
        Ending::Failed => outcome.record.as_ref().is_some_and(differs),
        Ending::Refused => false,
    }
}

/// A replay that ended before sending; the record may have been prepared for it.
async fn unsent(source: &dyn Source, intent: &Compensation, message: &str) -> Outcome {
    let record = source.get(&intent.command.record).await.ok().map(|detail| detail.row);
    Outcome { record, ..lost(message) }
}

/// The compare-and-set of the intent, bounded well inside its lease.
async fn change(
    source: &dyn Source,
    record: &RecordDetail,
    intent: &Compensation,
    action: Action,
) -> Result<Applied> {
    let until = intent.started_at + Duration::seconds(CHANGE_WITHIN_SECONDS);
    source.apply(record, &intent.command.if_version, action, &intent.plan, until).await
}

/// The outcome of a compare-and-set that changed nothing; `None` when it changed the row.
fn refused(applied: Applied) -> Option<Outcome> {
    let (message, record, error) = match applied {
        Applied::Changed => return None,
        Applied::Moved(row) => {
            let error = Error::Moved { current: row.clone() };
            (error.to_string(), Some(*row), error)
        }
        Applied::EvidenceChanged(finding) => {
            let message = format!(
                "The business data changed since the check ({}); nothing was done. Run the reverse check again.",
                finding.explanation()
            );
            let error = Error::Refused { code: "evidence_changed".into(), message: message.clone() };
            (message, None, error)
        }
    };
    Some(Outcome { ending: Ending::Refused, message, record, replay: None, error: Some(error), cache: None })
}

/// A replay that changes nothing first has no compare-and-set to lean on: look at record and business data once more.
async fn changed_meanwhile(
    source: &dyn Source,
    record: &RecordDetail,
    intent: &Compensation,
) -> Option<Outcome> {
    match source.get(&intent.command.record).await {
        Ok(now) if now.row.version == intent.command.if_version => {}
        Ok(now) => return refused(Applied::Moved(Box::new(now.row))),
        Err(error) => return Some(lost(&format!("Nothing was sent: {error}"))),
    }
    let finding = source.reverse_check(record).await;
    if by_verdict(intent.command.action, finding.verdict).is_allowed() {
        return None;
    }
    refused(Applied::EvidenceChanged(finding))
}

/// The record after a replay: one that was removed first may have come back in another place, under its key.
async fn reread(source: &dyn Source, intent: &Compensation) -> Result<RecordDetail> {
    let read = source.get(&intent.command.record).await;
    if !matches!(read, Err(Error::NotFound { .. })) {
        return read;
    }
    let filter = RecordFilter { key: Some(intent.record_key.clone()), ..RecordFilter::default() };
    match source.list(&filter, None, 2).await?.as_slice() {
        [only] => source.get(&only.id).await,
        _ => read,
    }
}

/// Succeeded only if the record reads back exactly as planned.
async fn read_back(source: &dyn Source, intent: &Compensation) -> Outcome {
    look(source, intent, "the record does not read back as it was written").await
}

/// Decides by looking at the record whether the planned change is there.
pub(super) async fn look(source: &dyn Source, intent: &Compensation, trouble: &str) -> Outcome {
    match source.get(&intent.command.record).await {
        Ok(detail) if is_as_planned(&detail, &intent.plan) => Outcome {
            ending: Ending::Succeeded,
            message: format!("The record was read back as {}.", intent.plan.state),
            record: Some(detail.row),
            replay: None,
            error: None,
            cache: None,
        },
        Ok(detail) if detail.row.version == intent.command.if_version => Outcome {
            ending: Ending::Failed,
            message: format!("Nothing was changed: {trouble}."),
            record: Some(detail.row),
            replay: None,
            error: None,
            cache: None,
        },
        Ok(detail) => in_doubt(trouble, Some(detail.row)),
        Err(_) => in_doubt(trouble, None),
    }
}

fn in_doubt(trouble: &str, record: Option<RecordRow>) -> Outcome {
    Outcome {
        ending: Ending::InDoubt,
        message: format!(
            "Whether this took effect is not known: {trouble}. Check the record before doing anything else."
        ),
        record,
        replay: None,
        error: None,
        cache: None,
    }
}

/// The marker makes our own change recognisable among everybody's.
pub(super) fn is_as_planned(detail: &RecordDetail, plan: &Plan) -> bool {
    let marked = match plan.marker {
        Plan::UNMARKED => plan.response.is_some(),
        marker => detail.marks.contains(&marker),
    };
    let answered =
        plan.response.as_deref().is_none_or(|text| detail.response.bytes() == Some(text.as_bytes()));
    detail.row.state == plan.state && marked && answered
}

fn lost(message: &str) -> Outcome {
    Outcome {
        ending: Ending::Failed,
        message: message.to_owned(),
        record: None,
        replay: None,
        error: None,
        cache: None,
    }
}

/// What a replay came to, by its answer and the state the record reads back with.
pub(super) fn replay_ending(answer: &ReplayAnswer, state: Option<State>) -> (Ending, String) {
    let reads = state.map_or("cannot be read".to_owned(), |state| format!("reads {state}"));
    match (answer, state) {
        (_, Some(State::Success)) => {
            (Ending::Succeeded, "The request was replayed and the record reads SUCCESS.".to_owned())
        }
        (ReplayAnswer::NotSent { message }, _) => {
            (Ending::Failed, format!("Nothing was sent: {message}. The record {reads}."))
        }
        (ReplayAnswer::Answered { status }, Some(State::Failed)) => {
            (Ending::Failed, format!("The service answered {status} and the record reads FAILED."))
        }
        (ReplayAnswer::Answered { status }, Some(State::Timeout)) if (400..500).contains(status) => (
            Ending::Failed,
            format!("The service refused the request with {status}; the record reads TIMEOUT."),
        ),
        (ReplayAnswer::Answered { status }, _) => (
            Ending::InDoubt,
            format!(
                "The service answered {status}, but the record {reads}. It is not sent again; check the record."
            ),
        ),
        (ReplayAnswer::Unanswered { message }, _) => (
            Ending::InDoubt,
            format!(
                "No answer came ({message}) and the record {reads}. It is not sent again; check the record."
            ),
        ),
    }
}
