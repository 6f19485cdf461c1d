//! Running the handler under a claim, and writing its outcome back.

use std::future::{Future, pending};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use db::{DbError, Tx};
use futures::FutureExt;
use tokio::time::Instant;
use tower::ServiceExt;

use crate::answer::{Fate, Refusal, Stored};
use crate::capture::capture;
use crate::claim::{Claim, Outcome};
use crate::flight::{Lead, Told};
use crate::guard::Guard;
use crate::happening::Happening;
use crate::layer::Handler;
use crate::mechanism::{Ended, Entry, Pass};
use crate::policy::{Keep, OnRefusal, Policy};
use crate::problem::Problem;
use crate::table::{PHASE_SENT, PHASE_UNKNOWN, STATUS_TIMEOUT, status_word};
use crate::ticket::Ticket;

/// Under which business type and number an answer will be reconciled.
const RECONCILE_HEADER: HeaderName = HeaderName::from_static("idempotency-reconcile");

/// A lease is renewed when this share of it has passed.
const RENEWALS_PER_LEASE: u32 = 3;

/// How often the write-back of work that is already done is tried.
const WRITE_BACK_ATTEMPTS: u32 = 5;

/// Where others look into Redis, work that takes longer than this is announced there.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(250);

/// A granted claim and what belongs to it.
pub(crate) struct Work<'a> {
    policy: &'a Policy,
    claim: &'a Claim,
    ticket: &'a Ticket,
    lead: &'a Lead,
    /// Redis may say PROCESSING.
    announced: AtomicBool,
}

impl<'a> Work<'a> {
    pub(crate) fn new(policy: &'a Policy, claim: &'a Claim, ticket: &'a Ticket, lead: &'a Lead) -> Work<'a> {
        Work { policy, claim, ticket, lead, announced: AtomicBool::new(false) }
    }
}

/// How a run ended: for the first client, for those who waited, for the counters.
pub(crate) struct Ran {
    pub response: Response,
    pub told: Told,
    /// `None`: the handler was not asked.
    pub happening: Option<Happening>,
    pub ended: Ended,
}

/// What became of a write-back.
pub(crate) enum Written {
    Done,
    /// The record had been settled by somebody else.
    Late,
    /// Certainly not written, and the business with it rolled back.
    Undone,
    /// The same, because the route's lock was lost.
    Unlocked,
    /// Written or not: nobody knows.
    Unclear,
}

impl Guard {
    pub(crate) async fn run<S: Handler>(&self, work: &Work<'_>, parts: Parts, inner: S) -> Ran {
        let Work { policy, claim, ticket, .. } = *work;
        let body = &ticket.asked.body;
        // Waiting for a lock must not cost the claim.
        let entered = enter(policy, Entry { claim, parts: &parts, body });
        let passes = match self.keep_alive(work, entered).await {
            Ok(passes) => passes,
            Err(problem) => return self.withdraw(policy, claim, problem).await,
        };
        let ran = match passes.iter().find_map(|pass| pass.answer()) {
            Some(response) => self.settle(work, response).await,
            None => {
                let mut request = Request::from_parts(parts, Body::from(body.clone()));
                request.extensions_mut().insert(claim.clone());
                match policy.keep {
                    Keep::RecordFirst => self.run_recorded(policy, claim, request, inner).await,
                    Keep::Record | Keep::Window(_) => self.run_claimed(work, request, inner).await,
                }
            }
        };
        if ran.ended != Ended::Recorded && work.announced.load(Ordering::Relaxed) {
            self.recall(claim).await;
        }
        leave(passes, ran.ended).await;
        ran
    }

    async fn run_claimed<S: Handler>(&self, work: &Work<'_>, request: Request, inner: S) -> Ran {
        let Work { policy, claim, .. } = *work;
        let handled = AssertUnwindSafe(inner.oneshot(request)).catch_unwind();
        match self.keep_alive(work, handled).await {
            Ok(Ok(response)) => match outcome(policy, claim, &response) {
                Outcome::Definitive => self.settle(work, response).await,
                Outcome::RolledBack => {
                    let (stored, response) = capture(policy, response).await;
                    self.give_back(claim, Told::Stored(Arc::new(retryable(stored))), response).await
                }
                Outcome::Unknown => self.leave_open(claim, response).await,
            },
            Ok(Err(never)) => match never {},
            Err(_panic) => self.leave_open(claim, Refusal::Broke.response(policy)).await,
        }
    }

    /// A mechanism refused, so nothing was run and nothing is kept.
    async fn withdraw(&self, policy: &Policy, claim: &Claim, problem: Problem) -> Ran {
        if let Err(e) = self.table().withdraw(claim.hold()).await {
            tracing::warn!(error = %e, "a withdrawn record stays PROCESSING until its lease ends");
        }
        let refusal = Refusal::Mechanism(problem);
        Ran {
            response: refusal.response(policy),
            told: Told::Refused(refusal),
            happening: None,
            ended: Ended::RolledBack,
        }
    }

    /// Renews the lease while `handler` goes on, up to the policy's longest run. After that it goes on alone, and
    /// duplicates hear from the table what became of the claim.
    async fn keep_alive<T>(&self, work: &Work<'_>, handler: impl Future<Output = T>) -> T {
        let renewals = async {
            let end = Instant::now() + work.policy.max_run;
            let pause = (work.policy.lease / RENEWALS_PER_LEASE).max(Duration::from_millis(10));
            let mut next = if self.shared().is_some() { pause.min(ANNOUNCED_AFTER) } else { pause };
            while Instant::now() < end {
                tokio::time::sleep(next).await;
                if !self.renew(work).await {
                    break;
                }
                next = pause;
            }
            work.lead.step_aside();
            pending().await
        };
        tokio::select! {
            biased;
            done = handler => done,
            never = renewals => never,
        }
    }

    /// `false`: the claim was lost. A database that does not answer may do so before the lease ends.
    async fn renew(&self, work: &Work<'_>) -> bool {
        let Work { policy, claim, ticket, .. } = *work;
        match self.table().renew(claim.hold(), policy.lease).await {
            Ok(false) => return false,
            Ok(true) => work.lead.renewed(policy.lease),
            Err(_) => return true,
        }
        if let Some(shared) = self.shared() {
            work.announced.store(true, Ordering::Relaxed);
            shared.announce(claim.hold(), ticket, &policy.biz_type, policy.lease).await;
        }
        true
    }

    async fn recall(&self, claim: &Claim) {
        if let Some(shared) = self.shared() {
            shared.recall(claim.hold()).await;
        }
    }

    async fn settle(&self, work: &Work<'_>, mut response: Response) -> Ran {
        let Work { policy, claim, ticket, .. } = *work;
        if policy.reconciled {
            hint(claim, &mut response);
        }
        let (stored, mut response) = capture(policy, response).await;
        let unrecorded = |refusal: Refusal, happening| Ran {
            response: refusal.response(policy),
            told: Told::Again,
            happening: Some(happening),
            ended: Ended::Unknown,
        };
        match self.write_back(claim, &stored).await {
            Written::Done => {
                let stored = Arc::new(stored);
                self.remember(policy, claim.hold(), ticket, &stored);
                if stored.is_failure() {
                    Fate::Final.mark(response.headers_mut());
                }
                Ran {
                    response,
                    told: Told::Stored(stored),
                    happening: Some(Happening::Executed),
                    ended: Ended::Recorded,
                }
            }
            Written::Late => unrecorded(Refusal::Late, Happening::LateCompletion),
            // What was sent elsewhere is not undone with it.
            Written::Undone | Written::Unlocked if claim.was_sent() => {
                self.leave_open(claim, Refusal::NotRecorded.response(policy)).await
            }
            Written::Undone => self.give_back(claim, Told::Again, Refusal::StoreDown.response(policy)).await,
            Written::Unlocked => self.give_back(claim, Told::Again, Refusal::LockLost.response(policy)).await,
            Written::Unclear => unrecorded(Refusal::NotRecorded, Happening::InDoubt),
        }
    }

    async fn write_back(&self, claim: &Claim, stored: &Stored) -> Written {
        match claim.take_tx() {
            Ok(Some(tx)) => self.write_back_with(tx, claim, stored).await,
            Ok(None) => self.write_back_alone(claim, stored).await,
            Err(_) => Written::Unclear,
        }
    }

    async fn write_back_with(&self, mut tx: Tx, claim: &Claim, stored: &Stored) -> Written {
        if !claim.holds_lock(&mut tx).await.unwrap_or(false) {
            tracing::warn!("the business transaction was rolled back: its lock was lost");
            let _ = tx.rollback().await;
            return Written::Unlocked;
        }
        match tx.execute(&self.table().finish(claim.hold(), stored)).await {
            Ok(1) => match tx.commit().await {
                Ok(()) => Written::Done,
                Err(DbError::Busy(_)) => Written::Undone,
                Err(e) => unclear(&e),
            },
            Ok(_) => {
                // The transaction ends here, before anybody asks again.
                let _ = tx.rollback().await;
                Written::Late
            }
            // Not committed, so nothing of it happened.
            Err(e) => {
                tracing::warn!(error = %e, "the business transaction was rolled back");
                let _ = tx.rollback().await;
                Written::Undone
            }
        }
    }

    /// The effect is there already, so the record is all that can be lost: try hard.
    pub(crate) async fn write_back_alone(&self, claim: &Claim, stored: &Stored) -> Written {
        let finish = self.table().finish(claim.hold(), stored);
        let mut pause = Duration::from_millis(20);
        let mut attempt = 1;
        loop {
            let outcome = match self.table().db.execute(&finish).await {
                Ok(1) => Ok(Written::Done),
                Ok(_) => self.look_back(claim, stored).await,
                Err(e) => Err(e),
            };
            match outcome {
                Ok(written) => return written,
                Err(e) if attempt == WRITE_BACK_ATTEMPTS => return unclear(&e),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 3;
            attempt += 1;
        }
    }

    /// Nothing was changed: an earlier attempt did it, or the record was settled while the handler ran.
    async fn look_back(&self, claim: &Claim, stored: &Stored) -> Result<Written, DbError> {
        let hold = claim.hold();
        let record = self.table().read(&hold.id).await?;
        let Some(record) = record.filter(|record| record.owner.as_ref() == Some(&hold.owner)) else {
            return Ok(Written::Late);
        };
        if record.status == status_word(stored.status) && record.fence == hold.fence {
            return Ok(Written::Done);
        }
        if record.status == STATUS_TIMEOUT {
            self.table().finish_late(hold, stored).await?;
        }
        Ok(Written::Late)
    }

    /// Nothing happened: the key is free for the next request. Those who waited hear what the first one hears, or else
    /// each of them would run into the same refusal.
    async fn give_back(&self, claim: &Claim, told: Told, mut response: Response) -> Ran {
        if let Ok(Some(tx)) = claim.take_tx() {
            let _ = tx.rollback().await;
        }
        if let Err(e) = self.table().release(claim.hold()).await {
            tracing::warn!(error = %e, "a rolled-back record stays PROCESSING until its lease ends");
        }
        Fate::Retryable.mark(response.headers_mut());
        Ran { response, told, happening: Some(Happening::Executed), ended: Ended::RolledBack }
    }

    /// The effect may have happened: the record stays PROCESSING, and says how far the work got.
    async fn leave_open(&self, claim: &Claim, mut response: Response) -> Ran {
        if let Ok(Some(tx)) = claim.take_tx() {
            let _ = tx.rollback().await;
        }
        let phase = if claim.was_sent() { PHASE_SENT } else { PHASE_UNKNOWN };
        if let Err(e) = self.table().note(claim.hold(), phase, true).await {
            tracing::warn!(error = %e, "a record with an unknown outcome keeps its lease until it ends");
        }
        Fate::Unknown.mark(response.headers_mut());
        Ran { response, told: Told::Again, happening: Some(Happening::InDoubt), ended: Ended::Unknown }
    }
}

/// Names what the T+1 reconciliation compares: the business type, and the number where it fits a header.
fn hint(claim: &Claim, response: &mut Response) {
    let number = claim.biz_no().unwrap_or_default();
    if let Ok(value) = HeaderValue::from_str(&format!("{}; {number}", claim.biz_type())) {
        response.headers_mut().insert(RECONCILE_HEADER, value);
    }
}

fn retryable(mut stored: Stored) -> Stored {
    Fate::Retryable.mark(&mut stored.headers);
    stored
}

fn unclear(error: &DbError) -> Written {
    tracing::warn!(%error, "an outcome could not be recorded");
    Written::Unclear
}

fn outcome(policy: &Policy, claim: &Claim, response: &Response) -> Outcome {
    let status: StatusCode = response.status();
    match response.extensions().get::<Outcome>() {
        Some(outcome) => *outcome,
        None if status.is_server_error() => Outcome::Unknown,
        None if status.is_client_error() => refusal(policy.on_refusal, claim),
        None => Outcome::Definitive,
    }
}

fn refusal(policy: OnRefusal, claim: &Claim) -> Outcome {
    let retry = match policy {
        OnRefusal::Store => false,
        OnRefusal::Retry => true,
        OnRefusal::RetryUnlessTouched => !claim.was_touched(),
    };
    if retry { Outcome::RolledBack } else { Outcome::Definitive }
}

/// Asks the mechanisms one after the other; those before a refusal get their pass back.
async fn enter(policy: &Policy, entry: Entry<'_>) -> Result<Vec<Box<dyn Pass>>, Problem> {
    let mut passes = Vec::with_capacity(policy.mechanisms.len());
    for mechanism in &policy.mechanisms {
        match mechanism.enter(entry).await {
            Ok(pass) => passes.push(pass),
            Err(problem) => {
                leave(passes, Ended::RolledBack).await;
                return Err(problem);
            }
        }
    }
    Ok(passes)
}

/// Last come, first gone.
async fn leave(passes: Vec<Box<dyn Pass>>, ended: Ended) {
    for pass in passes.into_iter().rev() {
        pass.leave(ended).await;
    }
}
