//! Finding records, reading one, checking the business tables for evidence.

use crate::actions::{Action, Known, Permit, Situation, permit, recommended};
use crate::audit::Draft;
use crate::cache::{CacheChange, Cached};
use crate::clock::{Clock, Ids};
use crate::compensation::{Compensation, Ending};
use crate::error::{Error, Result};
use crate::evidence::{Evidence, Finding, Reason, Verdict};
use crate::page::{Limit, decode_cursor, encode_cursor};
use crate::ports::{
    AuditStore, CacheStore, Change, CompensationStore, Events, EvidenceStore, Source, Sources, Topic,
};
use crate::record::{Place, RecordDetail, RecordFilter, RecordId, RecordRow, State};
use crate::roles::{Actor, Permission};
use crate::source::SourceStatus;
use chrono::{DateTime, Duration, Utc};
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many checks and compensations a record's timeline shows.
const HISTORY: usize = 50;

/// A page of records, and the sources that could not be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordPage {
    pub items: Vec<RecordRow>,
    pub next_cursor: Option<String>,
    /// (source, why it could not be read): their records are missing from the page, not absent.
    pub down: Vec<(String, String)>,
}

/// One action beside the record: offered, or not and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub action: Action,
    pub permit: Permit,
}

/// One line of a record's timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    pub at: DateTime<Utc>,
    pub what: Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The record was claimed.
    Created,
    /// The lease of the worker that holds it ends or ended.
    LeaseEnds,
    /// The record last changed, into its present state.
    Updated {
        state: State,
    },
    Checked {
        verdict: Verdict,
        by: String,
        reasons: Vec<Reason>,
    },
    CompensationBegan {
        action: Action,
        by: String,
        reason: String,
    },
    CompensationEnded {
        action: Action,
        by: String,
        ending: Ending,
        message: String,
    },
    /// The cache entry could not be confirmed with the compensation.
    CacheChangePending {
        message: String,
    },
    /// Record and cache entry were read back and agree, after so many more tries.
    CacheChangeConfirmed {
        attempts: u32,
    },
}

/// Everything the record page shows.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordView {
    pub detail: RecordDetail,
    /// The newest evidence of this version, fresh or not.
    pub evidence: Option<Evidence>,
    pub evidence_is_fresh: bool,
    pub offers: Vec<Offer>,
    /// The unfinished compensation, if somebody is settling the record.
    pub running: Option<Compensation>,
    /// What the cache holds for the record; `None` = the source has no cache.
    pub cached: Option<Cached>,
    /// The oldest cache change of this record that is still tried.
    pub cache_pending: Option<CacheChange>,
    /// Oldest first.
    pub history: Vec<Happened>,
}

/// The answer of a reverse check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub evidence: Evidence,
    pub recommended: Option<Action>,
}

pub struct RecordService {
    pub sources: Sources,
    pub evidence: Arc<dyn EvidenceStore>,
    pub compensations: Arc<dyn CompensationStore>,
    pub caches: Arc<dyn CacheStore>,
    pub audit: Arc<dyn AuditStore>,
    pub events: Arc<dyn Events>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    /// How long evidence counts.
    pub evidence_life: Duration,
}

impl RecordService {
    /// What each source says now.
    pub async fn source_statuses(&self, actor: &Actor) -> Result<Vec<SourceStatus>> {
        actor.require(Permission::Read)?;
        Ok(join_all(self.sources.iter().map(|source| source.status())).await)
    }

    /// One keyset page over one source or all. `Unavailable` only when the one source asked for is down.
    pub async fn list(
        &self,
        actor: &Actor,
        filter: &RecordFilter,
        cursor: Option<&str>,
        limit: Limit,
    ) -> Result<RecordPage> {
        actor.require(Permission::Read)?;
        let after: Option<Place> = cursor.map(decode_cursor).transpose()?;
        let (mut items, down) = self.read(filter, after.as_ref(), limit.get() + 1).await?;
        let more = items.len() > limit.get();
        items.truncate(limit.get());
        let next_cursor = items.last().filter(|_| more).map(|row| encode_cursor(&Place::of(row)));
        self.attach_verdicts(&mut items).await?;
        Ok(RecordPage { items, next_cursor, down })
    }

    /// At most `limit` records over the sources the filter names, in its order, without verdicts.
    pub(super) async fn read(
        &self,
        filter: &RecordFilter,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<(Vec<RecordRow>, Vec<(String, String)>)> {
        let asked: Vec<&Arc<dyn Source>> = match &filter.source {
            Some(name) => vec![self.sources.get(name)?],
            None => self.sources.iter().collect(),
        };
        let answers = join_all(asked.iter().map(|source| source.list(filter, after, limit))).await;
        let (mut rows, mut down) = (Vec::new(), Vec::new());
        for (source, answer) in asked.iter().zip(answers) {
            match answer {
                Ok(found) => rows.extend(found),
                Err(Error::Unavailable { message, .. }) if filter.source.is_none() => {
                    down.push((source.name().to_owned(), message));
                }
                Err(error) => return Err(error),
            }
        }
        crate::record::sort(&mut rows, filter.oldest_first());
        rows.truncate(limit);
        Ok((rows, down))
    }

    /// Fills in the latest verdict of each row that was checked in its present version.
    pub(super) async fn attach_verdicts(&self, rows: &mut [RecordRow]) -> Result<()> {
        let ids: Vec<RecordId> = rows.iter().map(|row| row.id.clone()).collect();
        let latest: std::collections::HashMap<RecordId, Evidence> = self
            .evidence
            .latest(&ids)
            .await?
            .into_iter()
            .map(|evidence| (evidence.record.clone(), evidence))
            .collect();
        for row in rows {
            if let Some(evidence) = latest.get(&row.id).filter(|evidence| evidence.version == row.version) {
                row.verdict = Some(evidence.finding.verdict);
                row.verdict_at = Some(evidence.checked_at);
            }
        }
        Ok(())
    }

    /// One record with its evidence, the offered actions and its timeline.
    pub async fn view(&self, actor: &Actor, id: &RecordId) -> Result<RecordView> {
        actor.require(Permission::Read)?;
        let source = self.sources.get(&id.source)?;
        let mut detail = source.get(id).await?;
        let cached = match source.cache() {
            Some(cache) => Some(cache.read(&detail.row).await),
            None => None,
        };
        let checks = self.evidence.history(id, HISTORY).await?;
        let settlings = self.compensations.history(id, HISTORY).await?;
        let running = settlings.iter().find(|settling| settling.outcome.is_none()).cloned();
        let evidence = checks.first().filter(|evidence| evidence.version == detail.row.version).cloned();
        detail.row.verdict = evidence.as_ref().map(|evidence| evidence.finding.verdict);
        detail.row.verdict_at = evidence.as_ref().map(|evidence| evidence.checked_at);
        let known = Known::of(evidence.as_ref(), self.clock.now());
        let offers = offers(actor, &detail, running.is_some(), known);
        let changes = self.caches.changes_of(id, HISTORY).await?;
        let history = timeline(&detail, &checks, &settlings, &changes);
        let cache_pending = changes.into_iter().rev().find(|change| change.confirmed_at.is_none());
        let evidence_is_fresh = matches!(known, Known::Fresh(_));
        Ok(RecordView {
            detail,
            evidence,
            evidence_is_fresh,
            offers,
            running,
            cached,
            cache_pending,
            history,
        })
    }

    /// The response that mark-succeeded would store if none is given, rendered from the business row as it is now;
    /// `None` when the table keeps no response. Changes nothing. `Refused` says what is missing.
    pub async fn response_preview(
        &self,
        actor: &Actor,
        record: &RecordDetail,
        finding: &Finding,
    ) -> Result<Option<String>> {
        actor.require(Permission::Compensate)?;
        let change =
            Change { action: Action::MarkSucceeded, record, finding: Some(finding), response_body: None };
        Ok(self.sources.get(&record.row.id.source)?.plan(change).await?.response)
    }

    /// Reads the business tables for one record and stores what was seen.
    pub async fn reverse_check(&self, actor: &Actor, id: &RecordId) -> Result<Checked> {
        actor.require(Permission::ReverseCheck)?;
        let source = self.sources.get(&id.source)?;
        let record = source.get(id).await?;
        self.check(source.as_ref(), &record, &actor.name).await
    }

    pub(super) async fn check(
        &self,
        source: &dyn Source,
        record: &RecordDetail,
        by: &str,
    ) -> Result<Checked> {
        // The life of evidence counts from before the read: a slow check must not look fresher than it is.
        let checked_at = self.clock.now();
        let finding = source.reverse_check(record).await;
        let evidence = Evidence {
            id: self.ids.next(),
            record: record.row.id.clone(),
            version: record.row.version.clone(),
            checked_by: by.to_owned(),
            checked_at,
            expires_at: checked_at + self.evidence_life,
            finding,
        };
        self.evidence.put(&evidence).await?;
        self.events.changed(Topic::Records);
        let recommended = recommended(evidence.finding.verdict);
        Ok(Checked { evidence, recommended })
    }

    /// The record with its bodies unmasked; written to the audit trail before anything is shown.
    pub async fn reveal(&self, actor: &Actor, id: &RecordId) -> Result<RecordDetail> {
        actor.require(Permission::RevealBodies)?;
        let detail = self.sources.get(&id.source)?.get(id).await?;
        let mut draft = Draft::new(self.clock.now(), &actor.name, "bodies.revealed");
        draft.record = Some(id.clone());
        draft.record_key = Some(detail.row.key.clone());
        draft.biz_type.clone_from(&detail.row.biz_type);
        draft.biz_no.clone_from(&detail.row.biz_no);
        self.audit.append(&draft).await?;
        self.events.changed(Topic::Audit);
        Ok(detail)
    }
}

/// The three actions in their fixed order, each with its permit.
fn offers(actor: &Actor, detail: &RecordDetail, being_settled: bool, known: Known) -> Vec<Offer> {
    let situation = Situation {
        role: actor.role,
        state: detail.row.state,
        stuck: detail.row.stuck,
        abilities: &detail.abilities,
        being_settled,
        known,
    };
    Action::ALL.into_iter().map(|action| Offer { action, permit: permit(action, &situation) }).collect()
}

fn timeline(
    detail: &RecordDetail,
    checks: &[Evidence],
    settlings: &[Compensation],
    changes: &[CacheChange],
) -> Vec<Happened> {
    let row = &detail.row;
    let mut lines: Vec<Happened> = Vec::new();
    let mut add = |at: Option<DateTime<Utc>>, what: Event| {
        lines.extend(at.map(|at| Happened { at, what }));
    };
    add(row.created_at, Event::Created);
    if row.updated_at != row.created_at {
        add(row.updated_at, Event::Updated { state: row.state });
    }
    if row.state == State::Processing {
        add(row.lease_until, Event::LeaseEnds);
    }
    for check in checks {
        let (by, reasons) = (check.checked_by.clone(), check.finding.reasons.clone());
        add(Some(check.checked_at), Event::Checked { verdict: check.finding.verdict, by, reasons });
    }
    for settling in settlings {
        let (action, by) = (settling.command.action, settling.actor.clone());
        let reason = settling.command.reason.clone();
        add(Some(settling.started_at), Event::CompensationBegan { action, by: by.clone(), reason });
        if let Some(outcome) = &settling.outcome {
            let (ending, message) = (outcome.ending, outcome.message.clone());
            add(settling.finished_at, Event::CompensationEnded { action, by, ending, message });
        }
    }
    for change in changes {
        add(Some(change.since), Event::CacheChangePending { message: change.why.clone() });
        add(change.confirmed_at, Event::CacheChangeConfirmed { attempts: change.attempts });
    }
    lines.sort_by_key(|line| line.at);
    lines
}
