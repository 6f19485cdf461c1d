//! After a crash: unfinished compensations are resolved by looking at the record, never by repeating.

use super::compensations::{CompensationService, look, replay_ending};
use crate::actions::Action;
use crate::audit::Draft;
use crate::compensation::{Compensation, Ending, Outcome, Phase, ReplayAnswer};
use crate::error::Result;
use crate::evidence::Verdict;
use crate::ports::{Source, Topic};
use crate::record::{RecordId, State};
use chrono::Duration;

/// How long one process has to resolve what another left behind.
const RESOLVE_LEASE_SECONDS: i64 = 30;
/// When a late check that could not be made is tried again.
const LATE_RETRY_SECONDS: i64 = 60;

impl CompensationService {
    /// Resolves every compensation whose process is gone. Idempotent; returns how many were resolved.
    pub async fn recover(&self) -> Result<usize> {
        let now = self.records.clock.now();
        let lease = now + Duration::seconds(RESOLVE_LEASE_SECONDS);
        // Never this process's own name: it may be one of its own commands that is late, and must not go on.
        let rescuer = self.records.ids.next();
        let abandoned = self.records.compensations.take_abandoned(&rescuer, now, lease).await?;
        let mut resolved = 0;
        for compensation in abandoned {
            let Ok(source) = self.records.sources.get(&compensation.command.record.source) else { continue };
            // A source that is down now is asked again later: the lease simply runs out.
            let Some(outcome) = resolve(source.as_ref(), &compensation).await else { continue };
            // The answer is for the operator who asks again; here only the storing counts.
            let _ = self.conclude(compensation, outcome).await;
            resolved += 1;
        }
        Ok(resolved)
    }

    /// Looks once more at records that were marked timed out: a late effect is raised, nothing is changed.
    pub async fn check_late_effects(&self) -> Result<Vec<RecordId>> {
        let now = self.records.clock.now();
        let retry = now + Duration::seconds(LATE_RETRY_SECONDS);
        let mut late = Vec::new();
        for (record, compensation_id) in self.records.compensations.take_late_checks(now, retry).await? {
            let Ok(source) = self.records.sources.get(&record.source) else { continue };
            let Ok(detail) = source.get(&record).await else { continue };
            if detail.row.state != State::Timeout {
                self.records.compensations.end_late_check(&compensation_id, None).await?;
                continue;
            }
            let checked = self.records.check(source.as_ref(), &detail, "late-check").await?;
            let verdict = checked.evidence.finding.verdict;
            if verdict == Verdict::Unavailable {
                continue;
            }
            let found = matches!(verdict, Verdict::Found | Verdict::Mismatch | Verdict::Partial);
            let draft = found.then(|| {
                let mut draft = Draft::new(now, "late-check", "late_effect.found");
                draft.record = Some(record.clone());
                draft.record_key = Some(detail.row.key.clone());
                draft.biz_type.clone_from(&detail.row.biz_type);
                draft.biz_no.clone_from(&detail.row.biz_no);
                draft.verdict = Some(verdict);
                draft.evidence_id = Some(checked.evidence.id.clone());
                draft.compensation_id = Some(compensation_id.clone());
                draft.result = Some(checked.evidence.finding.explanation());
                draft
            });
            self.records.compensations.end_late_check(&compensation_id, draft.as_ref()).await?;
            if found {
                self.records.events.changed(Topic::Audit);
                late.push(record);
            }
        }
        Ok(late)
    }
}

/// What became of a compensation whose process died in this phase; `None` when the source cannot be asked.
async fn resolve(source: &dyn Source, compensation: &Compensation) -> Option<Outcome> {
    let detail = source.get(&compensation.command.record).await;
    if matches!(detail, Err(crate::Error::Unavailable { .. })) {
        return None;
    }
    let is_replay = compensation.command.action == Action::Replay;
    Some(match compensation.phase {
        Phase::Sending => {
            let row = detail.ok().map(|detail| detail.row);
            let unanswered = ReplayAnswer::Unanswered { message: "the console stopped while sending".into() };
            let (ending, message) = replay_ending(&unanswered, row.as_ref().map(|row| row.state));
            Outcome { ending, message, record: row, replay: Some(unanswered), error: None, cache: None }
        }
        Phase::Intended | Phase::Prepared if is_replay => Outcome {
            ending: Ending::Failed,
            message:
                "The console stopped before sending; nothing was sent. Check the record and replay again."
                    .into(),
            record: detail.ok().map(|detail| detail.row),
            replay: None,
            error: None,
            cache: None,
        },
        Phase::Intended | Phase::Prepared | Phase::Done => {
            look(source, compensation, "the console stopped before it changed the record").await
        }
    })
}
