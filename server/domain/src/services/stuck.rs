//! The stuck board, kept by a background task, and the checks that fill its lanes.

use super::records::{Checked, RecordService};
use crate::error::{Error, Result};
use crate::ports::{RateStore, Runtime, Topic};
use crate::rates::StuckSample;
use crate::record::{RecordFilter, RecordId, RecordRow};
use crate::roles::{Actor, Permission};
use crate::stuck::{Board, Lane};
use chrono::{DateTime, Duration, Utc};
use futures::StreamExt;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError, RwLock};

/// Reverse checks in flight at once: reading must never weigh on the owner's traffic.
const CHECKS_AT_ONCE: usize = 4;
/// Evidence on the board is renewed by the background task when it is older than this.
const RENEW_AFTER_MINUTES: i64 = 10;
/// How many checks the background task makes in one round.
const CHECKS_PER_ROUND: usize = 200;

/// A "check all" in progress, or the last one that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    pub id: String,
    pub by: String,
    pub total: u64,
    pub done: u64,
    pub failed: u64,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Which part of the board a page or a check is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardScope {
    pub source: Option<String>,
    pub biz_type: Option<String>,
    pub lane: Option<Lane>,
}

impl BoardScope {
    pub fn holds(&self, row: &RecordRow) -> bool {
        self.source.as_ref().is_none_or(|source| *source == row.source)
            && self.biz_type.as_ref().is_none_or(|wanted| row.biz_type.as_ref() == Some(wanted))
            && self.lane.is_none_or(|lane| Lane::of(row.verdict) == lane)
    }
}

pub struct StuckService {
    pub records: Arc<RecordService>,
    pub rates: Arc<dyn RateStore>,
    pub runtime: Arc<dyn Runtime>,
    board: RwLock<Option<Arc<Board>>>,
    run: RwLock<Option<CheckRun>>,
}

impl StuckService {
    pub fn new(records: Arc<RecordService>, rates: Arc<dyn RateStore>, runtime: Arc<dyn Runtime>) -> Self {
        Self { records, rates, runtime, board: RwLock::default(), run: RwLock::default() }
    }

    /// Everything stuck, as last read; read now if it never was.
    pub async fn board(&self, actor: &Actor) -> Result<Arc<Board>> {
        actor.require(Permission::Read)?;
        self.latest().await
    }

    pub(super) async fn latest(&self) -> Result<Arc<Board>> {
        let known = self.board.read().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(board) => Ok(board),
            None => self.refresh().await,
        }
    }

    /// Reads the board anew from every source; tells live pages when it differs.
    pub async fn refresh(&self) -> Result<Arc<Board>> {
        let filter = RecordFilter::stuck();
        let (mut rows, mut more, mut down) = (Vec::new(), false, Vec::new());
        let reads =
            self.records.sources.iter().map(|source| source.list(&filter, None, Board::MAX_PER_SOURCE + 1));
        for (source, read) in self.records.sources.iter().zip(join_all(reads).await) {
            match read {
                Ok(mut found) => {
                    more |= found.len() > Board::MAX_PER_SOURCE;
                    found.truncate(Board::MAX_PER_SOURCE);
                    rows.append(&mut found);
                }
                // Beside the source's name the bare cause is enough.
                Err(Error::Unavailable { message, .. }) => down.push((source.name().to_owned(), message)),
                Err(error) => down.push((source.name().to_owned(), error.to_string())),
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.age_seconds));
        self.records.attach_verdicts(&mut rows).await?;
        let board = Arc::new(Board { rows, more, down, read_at: self.records.clock.now() });
        let mut known = self.board.write().unwrap_or_else(PoisonError::into_inner);
        let differs = known.as_ref().is_none_or(|known| !same_outline(known, &board));
        *known = Some(Arc::clone(&board));
        drop(known);
        if differs {
            self.records.events.changed(Topic::Records);
        }
        Ok(board)
    }

    /// Checks one record and puts what it says on the board, so that the next page shows it.
    pub async fn check(&self, actor: &Actor, id: &RecordId) -> Result<Checked> {
        let checked = self.records.reverse_check(actor, id).await?;
        // The background task brings the board up to date if this fails.
        let _ = self.refresh().await;
        Ok(checked)
    }

    /// Checks every record in scope as a detached run with progress; a second call while one runs joins it.
    pub async fn check_all(self: &Arc<Self>, actor: &Actor, scope: &BoardScope) -> Result<CheckRun> {
        actor.require(Permission::ReverseCheck)?;
        let board = self.refresh().await?;
        let ids: Vec<RecordId> =
            board.rows.iter().filter(|row| scope.holds(row)).map(|row| row.id.clone()).collect();
        let Some(run) = self.open_run(&actor.name, ids.len()) else {
            return self
                .check_run(actor)?
                .ok_or_else(|| Error::internal("The running check ended; start it again."));
        };
        let (service, by) = (Arc::clone(self), actor.name.clone());
        self.runtime.detach(Box::pin(async move {
            service.check_each(ids, &by, true).await;
            service.close_run();
            // The board is read again by the background task if this fails.
            let _ = service.refresh().await;
        }));
        Ok(run)
    }

    /// The run in progress, or the last one.
    pub fn check_run(&self, actor: &Actor) -> Result<Option<CheckRun>> {
        actor.require(Permission::Read)?;
        Ok(self.run.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// One round of the background task: checks what was never checked in its present version, or long ago.
    pub async fn check_unchecked(&self) -> Result<usize> {
        let board = self.latest().await?;
        let renew_before = self.records.clock.now() - Duration::minutes(RENEW_AFTER_MINUTES);
        let ids: Vec<RecordId> = board
            .rows
            .iter()
            .filter(|row| row.verdict_at.is_none_or(|at| at < renew_before))
            .take(CHECKS_PER_ROUND)
            .map(|row| row.id.clone())
            .collect();
        let checked = ids.len();
        if checked > 0 {
            self.check_each(ids, "auto-check", false).await;
            self.refresh().await?;
        }
        Ok(checked)
    }

    /// Stores how many records are stuck this minute, for the history that alerts and charts look at.
    pub async fn sample(&self) -> Result<()> {
        let board = self.latest().await?;
        let mut samples: Vec<StuckSample> = Vec::new();
        for group in board.groups() {
            let biz_type = group.biz_type.unwrap_or_default();
            match samples.iter_mut().find(|s| s.source == group.source && s.biz_type == biz_type) {
                Some(sample) => {
                    sample.stuck += group.records;
                    sample.oldest_seconds = sample.oldest_seconds.max(group.oldest_seconds);
                }
                None => samples.push(StuckSample {
                    source: group.source,
                    biz_type,
                    at: board.read_at,
                    stuck: group.records,
                    oldest_seconds: group.oldest_seconds,
                }),
            }
        }
        // A source that is up and has nothing stuck is a zero, a source that is down is a gap.
        for source in self.records.sources.iter() {
            let name = source.name();
            let is_down = board.down.iter().any(|(down, _)| down == name);
            if !is_down && !samples.iter().any(|sample| sample.source == name) {
                samples.push(StuckSample {
                    source: name.to_owned(),
                    biz_type: String::new(),
                    at: board.read_at,
                    stuck: 0,
                    oldest_seconds: 0,
                });
            }
        }
        self.rates.sample_stuck(&samples).await
    }

    async fn check_each(&self, ids: Vec<RecordId>, by: &str, count: bool) {
        let checks = futures::stream::iter(ids).map(|id| self.check_one(id, by));
        let mut checks = std::pin::pin!(checks.buffer_unordered(CHECKS_AT_ONCE));
        while let Some(checked) = checks.next().await {
            if count {
                self.count_one(checked.is_ok());
            }
        }
    }

    async fn check_one(&self, id: RecordId, by: &str) -> Result<()> {
        let source = self.records.sources.get(&id.source)?;
        let record = source.get(&id).await?;
        self.records.check(source.as_ref(), &record, by).await.map(|_| ())
    }

    fn open_run(&self, by: &str, total: usize) -> Option<CheckRun> {
        let mut slot = self.run.write().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_some_and(|run| run.finished_at.is_none()) {
            return None;
        }
        let run = CheckRun {
            id: self.records.ids.next(),
            by: by.to_owned(),
            total: total as u64,
            done: 0,
            failed: 0,
            started_at: self.records.clock.now(),
            finished_at: None,
        };
        *slot = Some(run.clone());
        Some(run)
    }

    fn count_one(&self, ok: bool) {
        if let Some(run) = self.run.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            if ok { run.done += 1 } else { run.failed += 1 }
        }
    }

    fn close_run(&self) {
        if let Some(run) = self.run.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            run.finished_at = Some(self.records.clock.now());
        }
    }
}

/// Whether a page would show two boards differently.
fn same_outline(left: &Board, right: &Board) -> bool {
    let rows =
        |board: &Board| board.rows.iter().map(|row| (row.id.clone(), row.verdict_at)).collect::<Vec<_>>();
    left.down == right.down && rows(left) == rows(right)
}
