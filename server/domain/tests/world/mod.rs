//! A world in memory: one attached record with a counted business effect, and stores that keep their promises.

use async_trait::async_trait;
use chrono::{DateTime, Duration, Utc};
use domain::actions::{Action, by_verdict};
use domain::audit::{AuditFilter, Draft, Entry};
use domain::cache::{CacheAbout, CacheChange, CacheEnd, CacheEntry, Cached, Disagreement, Held, Pace, Step};
use domain::clock::{Clock, Ids};
use domain::compensation::{Command, Compensation, Outcome, Phase, Plan, ReplayAnswer};
use domain::error::{Error, Result};
use domain::evidence::{Evidence, Finding, Reason, Verdict};
use domain::page::{Limit, Page};
use domain::ports::*;
use domain::record::{
    Abilities, Body, Place, RecordDetail, RecordFilter, RecordId, RecordRow, State, Version,
};
use domain::roles::{Actor, Role};
use domain::services::caches::CacheService;
use domain::services::compensations::CompensationService;
use domain::services::records::RecordService;
use domain::source::SourceStatus;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Where a step goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    #[default]
    None,
    /// The step never returns, before or after its effect: the process is as good as dead.
    DiesBefore,
    DiesAfter,
    /// The step fails before or after its effect: the reply is lost.
    FailsBefore,
    FailsAfter,
    /// The step takes longer than any lease, before it looks at its time limit.
    Waits,
    /// The step takes longer than any lease, after it looked at its time limit.
    CommitsLate,
}

impl Fault {
    async fn before(self) -> Result<()> {
        match self {
            Fault::DiesBefore => std::future::pending().await,
            Fault::FailsBefore => Err(Error::unavailable("orders", "connection lost")),
            Fault::Waits => {
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn within(self) {
        if self == Fault::CommitsLate {
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        }
    }

    async fn after(self) -> Result<()> {
        match self {
            Fault::DiesAfter => std::future::pending().await,
            Fault::FailsAfter => Err(Error::unavailable("orders", "connection lost")),
            _ => Ok(()),
        }
    }
}

pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        domain::clock::from_millis(self.0.load(Ordering::SeqCst))
    }
}

pub struct Counter(AtomicU64);

impl Ids for Counter {
    fn next(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::SeqCst))
    }
}

pub struct Tokio;

#[async_trait]
impl Runtime for Tokio {
    async fn sleep(&self, duration: std::time::Duration) {
        tokio::time::sleep(duration).await;
    }

    fn detach(&self, work: BoxFuture<()>) {
        tokio::spawn(work);
    }
}

pub struct Quiet;

impl Events for Quiet {
    fn changed(&self, _: Topic) {}
}

/// The one record and its business data.
#[derive(Debug, Clone)]
pub struct Table {
    pub state: State,
    pub updated_ms: i64,
    pub response: Option<String>,
    /// Business rows for this record: never more than one, whatever happens.
    pub effects: u32,
    pub changes: u32,
    pub sends: u32,
}

pub struct FakeSource {
    pub table: Mutex<Table>,
    pub clock: Arc<TestClock>,
    pub on_apply: Mutex<Fault>,
    pub on_replay: Mutex<Fault>,
    pub cache: FakeCache,
    /// Whether the service runs a replayed request that reaches it.
    pub service_runs: bool,
}

impl FakeSource {
    fn row(&self, table: &Table) -> RecordRow {
        let at = domain::clock::from_millis(table.updated_ms);
        RecordRow {
            id: record_id(),
            source: "orders".into(),
            key: "k".into(),
            biz_type: Some("ORDER".into()),
            biz_no: Some("1".into()),
            state: table.state,
            native_state: Some(table.state.to_string()),
            created_at: Some(DateTime::UNIX_EPOCH),
            updated_at: Some(at),
            age_seconds: Some(3600),
            stuck_after_seconds: 600,
            stuck: table.state == State::Processing,
            lease_until: None,
            attempts: Some(1),
            version: Version::new(table.state, table.updated_ms.to_string()),
            verdict: None,
            verdict_at: None,
        }
    }

    pub fn table(&self) -> Table {
        self.table.lock().unwrap().clone()
    }
}

/// The entry beside the one record.
#[derive(Default)]
pub struct FakeCache {
    /// `None` = no entry.
    pub entry: Mutex<Option<State>>,
    pub on_change: Mutex<Fault>,
    pub is_down: Mutex<bool>,
    pub changes: AtomicU64,
}

#[async_trait]
impl Cache for FakeCache {
    fn about(&self) -> CacheAbout {
        let pace = Pace { window: std::time::Duration::from_secs(3_600), records_per_second: 10 };
        CacheAbout { address: "memory".into(), key: "idem:{key}".into(), pace: Some(pace) }
    }

    async fn ping(&self) -> Result<(), String> {
        if *self.is_down.lock().unwrap() { Err("it is down".into()) } else { Ok(()) }
    }

    async fn read(&self, _: &RecordRow) -> Cached {
        let held = match (self.ping().await, *self.entry.lock().unwrap()) {
            (Err(why), _) => Held::Unknown(why),
            (Ok(()), None) => Held::Nothing,
            (Ok(()), Some(state)) => {
                let value = state.as_str().into();
                Held::Entry(CacheEntry { value, ttl: None, native: None, means: vec![state] })
            }
        };
        Cached { key: "idem:k".into(), held }
    }

    async fn make_agree(&self, record: &RecordDetail) -> Step {
        let fault = *self.on_change.lock().unwrap();
        if let Err(error) = fault.before().await {
            return Step::Kept(error.to_string());
        }
        if let Err(why) = self.ping().await {
            return Step::Kept(why);
        }
        let step = {
            let mut entry = self.entry.lock().unwrap();
            if entry.is_none_or(|state| state == record.row.state) {
                Step::Agrees
            } else {
                *entry = None;
                self.changes.fetch_add(1, Ordering::SeqCst);
                Step::Changed
            }
        };
        match fault.after().await {
            Ok(()) => step,
            Err(error) => Step::Kept(error.to_string()),
        }
    }
}

pub fn record_id() -> RecordId {
    RecordId::new("orders", vec!["k".into()])
}

#[async_trait]
impl Source for FakeSource {
    fn name(&self) -> &str {
        "orders"
    }

    async fn status(&self) -> SourceStatus {
        unreachable!("settling asks no status")
    }

    async fn list(&self, _: &RecordFilter, _: Option<&Place>, _: usize) -> Result<Vec<RecordRow>> {
        Ok(vec![self.row(&self.table())])
    }

    async fn get(&self, _: &RecordId) -> Result<RecordDetail> {
        let table = self.table();
        let row = self.row(&table);
        Ok(RecordDetail {
            located: vec![Some("k".into())],
            marks: row.updated_at.iter().map(|at| at.timestamp_millis()).collect(),
            row,
            request: Body::Stored(b"{}".to_vec()),
            response: table.response.map_or(Body::Empty, |text| Body::Stored(text.into_bytes())),
            facts: vec![],
            abilities: Abilities { mark_succeeded: Ok(()), mark_timed_out: Ok(()), replay: Ok(()) },
            read_at: self.clock.now(),
        })
    }

    async fn reverse_check(&self, _: &RecordDetail) -> Finding {
        finding(self.table().effects)
    }

    async fn plan(&self, change: Change<'_>) -> Result<Plan> {
        let state = if change.action == Action::MarkSucceeded { State::Success } else { State::Timeout };
        let response = (change.action == Action::MarkSucceeded).then(|| "{\"code\":0}".to_owned());
        let marker = change.record.row.updated_at.map_or(0, |at| at.timestamp_millis()) + 1;
        Ok(Plan { state, marker, response })
    }

    async fn apply(
        &self,
        _: &RecordDetail,
        expect: &Version,
        action: Action,
        plan: &Plan,
        until: DateTime<Utc>,
    ) -> Result<Applied> {
        let fault = *self.on_apply.lock().unwrap();
        fault.before().await?;
        if self.clock.now() >= until {
            return Err(Error::unavailable("orders", "busy for too long"));
        }
        fault.within().await;
        {
            let mut table = self.table.lock().unwrap();
            if self.row(&table).version != *expect {
                return Ok(Applied::Moved(Box::new(self.row(&table))));
            }
            let now = finding(table.effects);
            if !by_verdict(action, now.verdict).is_allowed() {
                return Ok(Applied::EvidenceChanged(now));
            }
            table.changes += 1;
            (table.state, table.updated_ms) = (plan.state, plan.marker);
            if plan.response.is_some() {
                table.response.clone_from(&plan.response);
            }
        }
        fault.after().await?;
        Ok(Applied::Changed)
    }

    fn prepare_of(&self, record: &RecordRow) -> Option<Action> {
        (record.state == State::Processing).then_some(Action::MarkTimedOut)
    }

    async fn replay(&self, _: &RecordDetail) -> ReplayAnswer {
        let fault = *self.on_replay.lock().unwrap();
        if let Err(error) = fault.before().await {
            return ReplayAnswer::Unanswered { message: error.to_string() };
        }
        {
            let mut table = self.table.lock().unwrap();
            table.sends += 1;
            if self.service_runs && table.state != State::Success {
                table.effects += 1;
                table.state = State::Success;
                table.updated_ms += 1;
            }
        }
        match fault.after().await {
            Ok(()) => ReplayAnswer::Answered { status: 200 },
            Err(error) => ReplayAnswer::Unanswered { message: error.to_string() },
        }
    }

    fn replay_timeout(&self, _: &RecordRow) -> std::time::Duration {
        std::time::Duration::from_secs(10)
    }

    fn cache(&self) -> Option<&dyn Cache> {
        Some(&self.cache)
    }
}

fn finding(effects: u32) -> Finding {
    let verdict = if effects == 0 { Verdict::Absent } else { Verdict::Found };
    Finding {
        verdict,
        rows: vec![],
        comparisons: vec![],
        reasons: vec![Reason::NoRow { check: "t_order".into() }],
        read_from: "primary".into(),
    }
}

/// The console's tables, with the same guarantees as the real store.
#[derive(Default)]
pub struct FakeStore {
    pub evidence: Mutex<Vec<Evidence>>,
    pub compensations: Mutex<Vec<Compensation>>,
    pub audit: Mutex<Vec<Entry>>,
    pub cache_changes: Mutex<Vec<CacheChange>>,
    pub disagreements: Mutex<Vec<Disagreement>>,
    /// How often a disagreement was counted.
    pub counted: AtomicU64,
    pub on_finish: Mutex<Fault>,
    pub on_advance: Mutex<Fault>,
}

impl FakeStore {
    fn seal(&self, draft: &Draft) -> Entry {
        let mut audit = self.audit.lock().unwrap();
        let entry = Entry::seal(audit.last().map(|e| (e.seq, e.hash.as_str())), draft.clone());
        audit.push(entry.clone());
        entry
    }
}

#[async_trait]
impl EvidenceStore for FakeStore {
    async fn put(&self, evidence: &Evidence) -> Result<()> {
        self.evidence.lock().unwrap().push(evidence.clone());
        Ok(())
    }

    async fn get(&self, id: &str) -> Result<Option<Evidence>> {
        Ok(self.evidence.lock().unwrap().iter().find(|evidence| evidence.id == id).cloned())
    }

    async fn latest(&self, _: &[RecordId]) -> Result<Vec<Evidence>> {
        Ok(self.evidence.lock().unwrap().last().cloned().into_iter().collect())
    }

    async fn history(&self, _: &RecordId, _: usize) -> Result<Vec<Evidence>> {
        Ok(self.evidence.lock().unwrap().iter().rev().cloned().collect())
    }
}

#[async_trait]
impl CompensationStore for FakeStore {
    async fn begin(&self, intent: &Compensation, audit: &Draft) -> Result<Begun> {
        let mut all = self.compensations.lock().unwrap();
        let same = |c: &&Compensation| c.actor == intent.actor && c.command.key == intent.command.key;
        if let Some(existing) = all.iter().find(same) {
            return Ok(Begun::Existing(Box::new(existing.clone())));
        }
        if let Some(busy) = all.iter().find(|c| c.outcome.is_none()) {
            return Ok(Begun::RecordBusy { by: busy.actor.clone() });
        }
        all.push(intent.clone());
        self.seal(audit);
        Ok(Begun::New)
    }

    async fn find(&self, actor: &str, key: &str) -> Result<Option<Compensation>> {
        let all = self.compensations.lock().unwrap();
        Ok(all.iter().find(|c| c.actor == actor && c.command.key == key).cloned())
    }

    async fn advance(&self, id: &str, owner: &str, phase: Phase, now: DateTime<Utc>) -> Result<bool> {
        let fault = *self.on_advance.lock().unwrap();
        fault.before().await?;
        let mine = {
            let mut all = self.compensations.lock().unwrap();
            let mine = all
                .iter_mut()
                .find(|c| c.id == id && c.owner == owner && c.outcome.is_none() && now < c.lease_until);
            mine.map(|c| c.phase = phase).is_some()
        };
        fault.after().await?;
        Ok(mine)
    }

    async fn finish(
        &self,
        id: &str,
        owner: &str,
        outcome: &Outcome,
        audit: &Draft,
        now: DateTime<Utc>,
        _: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        let fault = *self.on_finish.lock().unwrap();
        fault.before().await?;
        let stored = {
            let mut all = self.compensations.lock().unwrap();
            let open = all.iter_mut().find(|c| c.id == id && c.owner == owner && c.outcome.is_none());
            open.map(|c| {
                (c.phase, c.finished_at, c.outcome) = (Phase::Done, Some(now), Some(outcome.clone()));
            })
            .is_some()
        };
        if stored {
            self.seal(audit);
            if let Some(CacheEnd::Pending { why }) = &outcome.cache {
                self.cache_changes.lock().unwrap().push(CacheChange {
                    compensation_id: id.to_owned(),
                    record: record_id(),
                    since: now,
                    attempts: 0,
                    why: why.clone(),
                    next_at: Some(now),
                    confirmed_at: None,
                });
            }
        }
        fault.after().await?;
        Ok(stored)
    }

    async fn take_abandoned(
        &self,
        owner: &str,
        now: DateTime<Utc>,
        lease: DateTime<Utc>,
    ) -> Result<Vec<Compensation>> {
        let mut all = self.compensations.lock().unwrap();
        let taken = all.iter_mut().filter(|c| c.outcome.is_none() && c.lease_until <= now).map(|c| {
            (c.owner, c.lease_until) = (owner.to_owned(), lease);
            c.clone()
        });
        Ok(taken.collect())
    }

    async fn running(&self, _: &[RecordId]) -> Result<Vec<Compensation>> {
        Ok(self.compensations.lock().unwrap().iter().filter(|c| c.outcome.is_none()).cloned().collect())
    }

    async fn history(&self, _: &RecordId, _: usize) -> Result<Vec<Compensation>> {
        Ok(self.compensations.lock().unwrap().iter().rev().cloned().collect())
    }

    async fn settled_since(&self, _: DateTime<Utc>) -> Result<u64> {
        Ok(0)
    }

    async fn recent_reasons(&self, _: &str, _: usize) -> Result<Vec<String>> {
        Ok(vec![])
    }

    async fn take_late_checks(&self, _: DateTime<Utc>, _: DateTime<Utc>) -> Result<Vec<(RecordId, String)>> {
        Ok(vec![])
    }

    async fn end_late_check(&self, _: &str, _: Option<&Draft>) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl CacheStore for FakeStore {
    async fn take_changes(&self, now: DateTime<Utc>, next: DateTime<Utc>) -> Result<Vec<CacheChange>> {
        let mut all = self.cache_changes.lock().unwrap();
        let due =
            all.iter_mut().filter(|change| change.confirmed_at.is_none() && change.next_at <= Some(now));
        Ok(due
            .map(|change| std::mem::replace(change, CacheChange { next_at: Some(next), ..change.clone() }))
            .collect())
    }

    async fn postpone_change(&self, id: &str, why: &str, next: DateTime<Utc>) -> Result<()> {
        let mut all = self.cache_changes.lock().unwrap();
        for change in all.iter_mut().filter(|change| change.compensation_id == id) {
            change.attempts += 1;
            (change.why, change.next_at) = (why.to_owned(), Some(next));
        }
        Ok(())
    }

    async fn confirm_change(&self, id: &str, at: DateTime<Utc>, audit: &Draft) -> Result<bool> {
        let mut all = self.cache_changes.lock().unwrap();
        let open =
            all.iter_mut().find(|change| change.compensation_id == id && change.confirmed_at.is_none());
        let Some(change) = open else { return Ok(false) };
        (change.next_at, change.confirmed_at) = (None, Some(at));
        for done in self.compensations.lock().unwrap().iter_mut().filter(|c| c.id == id) {
            done.outcome = done.outcome.take().map(Outcome::cache_confirmed);
        }
        self.seal(audit);
        Ok(true)
    }

    async fn changes_of(&self, _: &RecordId, _: usize) -> Result<Vec<CacheChange>> {
        Ok(self.cache_changes.lock().unwrap().iter().rev().cloned().collect())
    }

    async fn pending_changes(&self) -> Result<Vec<(String, u64, DateTime<Utc>)>> {
        let all = self.cache_changes.lock().unwrap();
        let open: Vec<_> = all.iter().filter(|change| change.confirmed_at.is_none()).collect();
        Ok(open
            .first()
            .map(|oldest| ("orders".to_owned(), open.len() as u64, oldest.since))
            .into_iter()
            .collect())
    }

    async fn note_disagreement(&self, disagreement: &Disagreement) -> Result<bool> {
        let mut all = self.disagreements.lock().unwrap();
        if all.iter().any(|listed| listed.record == disagreement.record) {
            return Ok(false);
        }
        all.push(disagreement.clone());
        self.counted.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    }

    async fn end_disagreement(&self, record: &RecordId) -> Result<()> {
        self.disagreements.lock().unwrap().retain(|listed| listed.record != *record);
        Ok(())
    }

    async fn disagreements(&self, _: &str, _: usize) -> Result<Vec<Disagreement>> {
        Ok(self.disagreements.lock().unwrap().clone())
    }

    async fn disagreeing(&self) -> Result<Vec<(String, u64)>> {
        Ok(vec![("orders".into(), self.disagreements.lock().unwrap().len() as u64)])
    }

    async fn take_walk(
        &self,
        _: &str,
        _: &str,
        _: DateTime<Utc>,
        _: DateTime<Utc>,
    ) -> Result<Option<Option<Place>>> {
        Ok(Some(None))
    }

    async fn leave_walk(&self, _: &str, _: &str, _: Option<&Place>) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl AuditStore for FakeStore {
    async fn append(&self, draft: &Draft) -> Result<Entry> {
        Ok(self.seal(draft))
    }

    async fn list(&self, _: &AuditFilter, _: Option<i64>, _: Limit) -> Result<Page<Entry>> {
        Ok(Page { items: self.audit.lock().unwrap().clone(), next_cursor: None })
    }

    async fn read_on(&self, after: i64, limit: usize) -> Result<Vec<Entry>> {
        let audit = self.audit.lock().unwrap();
        Ok(audit.iter().filter(|entry| entry.seq > after).take(limit).cloned().collect())
    }

    async fn head(&self) -> Result<Option<(i64, String)>> {
        Ok(self.audit.lock().unwrap().last().map(|entry| (entry.seq, entry.hash.clone())))
    }
}

/// One console process over the world. Several may share source, store and clock.
pub struct World {
    pub source: Arc<FakeSource>,
    pub store: Arc<FakeStore>,
    pub clock: Arc<TestClock>,
    ids: Arc<Counter>,
}

impl World {
    /// A stuck record; its effect happened or not.
    pub fn new(effect_happened: bool, service_runs: bool) -> Self {
        let clock = Arc::new(TestClock(AtomicI64::new(1_000_000_000)));
        let table = Table {
            state: State::Processing,
            updated_ms: 5_000,
            response: None,
            effects: effect_happened.into(),
            changes: 0,
            sends: 0,
        };
        let source = FakeSource {
            table: Mutex::new(table),
            clock: Arc::clone(&clock),
            on_apply: Mutex::default(),
            on_replay: Mutex::default(),
            cache: FakeCache::default(),
            service_runs,
        };
        Self {
            source: Arc::new(source),
            store: Arc::default(),
            clock,
            ids: Arc::new(Counter(AtomicU64::new(0))),
        }
    }

    /// The services of one process.
    pub fn process(&self, owner: &str) -> Arc<CompensationService> {
        let source: Arc<dyn Source> = self.source.clone();
        let records = RecordService {
            sources: Sources(Arc::from([source])),
            evidence: self.store.clone(),
            compensations: self.store.clone(),
            caches: self.store.clone(),
            audit: self.store.clone(),
            events: Arc::new(Quiet),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            evidence_life: Duration::seconds(60),
        };
        Arc::new(CompensationService {
            records: Arc::new(records),
            runtime: Arc::new(Tokio),
            owner: owner.into(),
            late_check_after: Duration::minutes(5),
        })
    }

    /// The background tasks of a process.
    pub fn caches(&self, process: &CompensationService) -> CacheService {
        CacheService {
            records: Arc::clone(&process.records),
            runtime: Arc::new(Tokio),
            owner: process.owner.clone(),
            compares_every: std::time::Duration::from_secs(10),
        }
    }

    /// A command as an operator would send it now, on evidence taken now.
    pub async fn command(&self, process: &CompensationService, key: &str, action: Action) -> Command {
        let checked = process.records.reverse_check(&operator("amy"), &record_id()).await.unwrap();
        Command {
            key: key.into(),
            record: record_id(),
            action,
            reason: "checked with the shop".into(),
            if_version: checked.evidence.version,
            evidence_id: Some(checked.evidence.id),
            response_body: None,
        }
    }

    /// Everything that must hold at any time, whatever went wrong.
    pub fn assert_sound(&self) {
        let table = self.source.table();
        assert!(table.effects <= 1, "the effect happened {} times", table.effects);
        assert!(table.changes <= 1, "the record was changed {} times by the console", table.changes);
        assert!(table.sends <= 1, "the request was sent {} times", table.sends);
        let mut verifier = domain::audit::Verifier::default();
        for entry in self.store.audit.lock().unwrap().iter() {
            verifier.check(entry).unwrap();
        }
    }
}

pub fn operator(name: &str) -> Actor {
    Actor::new(name, Role::Operator)
}
