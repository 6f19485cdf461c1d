//! Ports that meet a fault at one chosen point: the process is killed there, or the store goes away.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::actions::Action;
use domain::audit::Draft;
use domain::compensation::{Compensation, Outcome, Phase, Plan, ReplayAnswer};
use domain::evidence::Finding;
use domain::ports::{Applied, Begun, Cache, Change, CompensationStore, Source};
use domain::record::{Place, RecordDetail, RecordFilter, RecordId, RecordRow, Version};
use domain::source::SourceStatus;
use domain::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A place between two steps of a compensation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    BeforeIntent,
    AfterIntent,
    AfterChange,
    BeforePhase(Phase),
    AfterPhase(Phase),
    AfterAnswer,
    BeforeOutcome,
    AfterOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing of this process runs on from there; its connections close, as a dead process's do.
    Killed,
    /// From there on the store answers nothing.
    StoreDown,
}

pub struct Trap {
    point: Point,
    fault: Fault,
    down: AtomicBool,
}

impl Trap {
    pub fn new(point: Point, fault: Fault) -> Self {
        Self { point, fault, down: AtomicBool::new(false) }
    }

    fn pass(&self, point: Point) {
        if point != self.point {
            return;
        }
        match self.fault {
            // Unwinds without the noise of a panic.
            Fault::Killed => std::panic::resume_unwind(Box::new("killed")),
            Fault::StoreDown => self.down.store(true, Ordering::SeqCst),
        }
    }

    fn up(&self) -> Result<()> {
        if self.down.load(Ordering::SeqCst) {
            return Err(Error::unavailable("The console's store", "it was taken down by the test"));
        }
        Ok(())
    }
}

pub struct TrappedSource {
    inner: Arc<dyn Source>,
    trap: Arc<Trap>,
}

impl TrappedSource {
    pub fn over(inner: &Arc<dyn Source>, trap: &Arc<Trap>) -> Arc<Self> {
        Arc::new(Self { inner: Arc::clone(inner), trap: Arc::clone(trap) })
    }
}

#[async_trait]
impl Source for TrappedSource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn status(&self) -> SourceStatus {
        self.inner.status().await
    }

    async fn list(
        &self,
        filter: &RecordFilter,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<RecordRow>> {
        self.inner.list(filter, after, limit).await
    }

    async fn get(&self, id: &RecordId) -> Result<RecordDetail> {
        self.inner.get(id).await
    }

    async fn reverse_check(&self, record: &RecordDetail) -> Finding {
        self.inner.reverse_check(record).await
    }

    async fn plan(&self, change: Change<'_>) -> Result<Plan> {
        self.inner.plan(change).await
    }

    async fn apply(
        &self,
        record: &RecordDetail,
        expect: &Version,
        change: Action,
        plan: &Plan,
        until: DateTime<Utc>,
    ) -> Result<Applied> {
        let applied = self.inner.apply(record, expect, change, plan, until).await;
        self.trap.pass(Point::AfterChange);
        applied
    }

    fn prepare_of(&self, record: &RecordRow) -> Option<Action> {
        self.inner.prepare_of(record)
    }

    async fn replay(&self, record: &RecordDetail) -> ReplayAnswer {
        let answer = self.inner.replay(record).await;
        self.trap.pass(Point::AfterAnswer);
        answer
    }

    fn replay_timeout(&self, record: &RecordRow) -> Duration {
        self.inner.replay_timeout(record)
    }

    fn cache(&self) -> Option<&dyn Cache> {
        self.inner.cache()
    }
}

pub struct TrappedCompensations {
    inner: Arc<dyn CompensationStore>,
    trap: Arc<Trap>,
}

impl TrappedCompensations {
    pub fn over(inner: &Arc<dyn CompensationStore>, trap: &Arc<Trap>) -> Self {
        Self { inner: Arc::clone(inner), trap: Arc::clone(trap) }
    }
}

#[async_trait]
impl CompensationStore for TrappedCompensations {
    async fn begin(&self, intent: &Compensation, audit: &Draft) -> Result<Begun> {
        self.trap.pass(Point::BeforeIntent);
        self.trap.up()?;
        let begun = self.inner.begin(intent, audit).await;
        self.trap.pass(Point::AfterIntent);
        begun
    }

    async fn find(&self, actor: &str, command_key: &str) -> Result<Option<Compensation>> {
        self.trap.up()?;
        self.inner.find(actor, command_key).await
    }

    async fn advance(&self, id: &str, owner: &str, phase: Phase, now: DateTime<Utc>) -> Result<bool> {
        self.trap.pass(Point::BeforePhase(phase));
        self.trap.up()?;
        let advanced = self.inner.advance(id, owner, phase, now).await;
        self.trap.pass(Point::AfterPhase(phase));
        advanced
    }

    async fn finish(
        &self,
        id: &str,
        owner: &str,
        outcome: &Outcome,
        audit: &Draft,
        now: DateTime<Utc>,
        late_check_at: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        self.trap.pass(Point::BeforeOutcome);
        self.trap.up()?;
        let stored = self.inner.finish(id, owner, outcome, audit, now, late_check_at).await;
        self.trap.pass(Point::AfterOutcome);
        stored
    }

    async fn take_abandoned(
        &self,
        owner: &str,
        now: DateTime<Utc>,
        lease_until: DateTime<Utc>,
    ) -> Result<Vec<Compensation>> {
        self.trap.up()?;
        self.inner.take_abandoned(owner, now, lease_until).await
    }

    async fn running(&self, records: &[RecordId]) -> Result<Vec<Compensation>> {
        self.trap.up()?;
        self.inner.running(records).await
    }

    async fn history(&self, record: &RecordId, limit: usize) -> Result<Vec<Compensation>> {
        self.trap.up()?;
        self.inner.history(record, limit).await
    }

    async fn settled_since(&self, since: DateTime<Utc>) -> Result<u64> {
        self.trap.up()?;
        self.inner.settled_since(since).await
    }

    async fn recent_reasons(&self, actor: &str, limit: usize) -> Result<Vec<String>> {
        self.trap.up()?;
        self.inner.recent_reasons(actor, limit).await
    }

    async fn take_late_checks(
        &self,
        now: DateTime<Utc>,
        next: DateTime<Utc>,
    ) -> Result<Vec<(RecordId, String)>> {
        self.trap.up()?;
        self.inner.take_late_checks(now, next).await
    }

    async fn end_late_check(&self, compensation_id: &str, audit: Option<&Draft>) -> Result<()> {
        self.trap.up()?;
        self.inner.end_late_check(compensation_id, audit).await
    }
}
