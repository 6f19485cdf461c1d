//! The guard as a tower layer.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use crate::answer::{Refusal, Stored};
use crate::claim::Claim;
use crate::flight::{Join, Lead, Told};
use crate::guard::Guard;
use crate::policy::{Keep, OnUnknown, Policy};
use crate::table::{
    PHASE_ROLLED_BACK, Record, STATUS_FAILED, STATUS_PROCESSING, STATUS_SUCCESS, STATUS_TIMEOUT,
};
use crate::ticket::Ticket;

/// First and longest pause between two looks at a record that another process works on.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Protects one route; made by [`Guard::protect`].
#[derive(Clone)]
pub struct GuardLayer {
    guard: Guard,
    policy: Arc<Policy>,
}

impl GuardLayer {
    pub(crate) fn new(guard: Guard, policy: Policy) -> GuardLayer {
        GuardLayer { guard, policy: Arc::new(policy) }
    }

    pub(crate) fn max_request(&self) -> usize {
        self.policy.max_request
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { layer: self.clone(), inner }
    }
}

/// A protected service.
#[derive(Clone)]
pub struct Guarded<S> {
    layer: GuardLayer,
    inner: S,
}

/// What a guard can stand in front of.
pub(crate) trait Handler:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> Handler for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The inner service is cloned and made ready when it is used, if it is used at all.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Guarded { layer: GuardLayer { guard, policy }, inner } = self.clone();
        Box::pin(async move { Ok(guard.answer(policy, request, inner).await) })
    }
}

/// How the search for a claim ended.
enum Obtained {
    Claim(Claim),
    Stored(Stored),
    Refused(Refusal),
}

/// What an existing record means for a request.
enum Judged {
    Answer,
    Refuse(Refusal),
    TakeOver,
    Wait,
}

impl Guard {
    async fn answer<S: Handler>(&self, policy: Arc<Policy>, request: Request, inner: S) -> Response {
        let (parts, body) = request.into_parts();
        if let Keep::Window(window) = &policy.keep
            && !window.covers(&parts)
        {
            return pass_through(Request::from_parts(parts, body), inner).await;
        }
        let ticket = match self.admit(&policy, &parts, body).await {
            Ok(ticket) => ticket,
            Err(refusal) => return self.refuse(&policy, refusal),
        };
        if let Keep::Window(window) = &policy.keep {
            let window = window.clone();
            return self.answer_from_window(window, policy, ticket, parts, inner).await;
        }
        let deadline = Instant::now() + policy.max_wait;
        loop {
            match self.flights().join(&ticket.key, &ticket.fingerprint) {
                Join::Mismatch => return self.refuse(&policy, Refusal::Mismatch),
                Join::Follow(follow) => match follow.until(deadline).await {
                    Some(Told::Stored(stored)) => return self.replay(&policy, &stored),
                    Some(Told::Refused(refusal)) => return self.refuse(&policy, refusal),
                    Some(Told::Again) if Instant::now() < deadline => {}
                    _ => return self.refuse(&policy, in_progress(policy.lease)),
                },
                Join::Lead(lead) => {
                    // Detached: a client that goes away cancels nothing.
                    let work = self.clone().lead(lead, policy.clone(), ticket, parts, inner);
                    return tokio::spawn(work).await.unwrap_or_else(|_| Refusal::Broke.response(&policy));
                }
            }
        }
    }

    /// What may be asked of a request before its record.
    async fn admit(&self, policy: &Policy, parts: &Parts, body: axum::body::Body) -> Result<Ticket, Refusal> {
        for mechanism in &policy.mechanisms {
            mechanism.inspect(parts).map_err(Refusal::Mechanism)?;
        }
        Ticket::read(policy, parts, receive(body, policy.max_request).await?)
    }

    async fn lead<S: Handler>(
        self,
        lead: Lead,
        policy: Arc<Policy>,
        ticket: Ticket,
        parts: Parts,
        inner: S,
    ) -> Response {
        match self.obtain(&policy, &ticket).await {
            Obtained::Claim(claim) => {
                let ran = self.run(&policy, &claim, parts, ticket.body, inner).await;
                if let Some(happening) = ran.happening {
                    self.count(&policy, happening);
                }
                lead.tell(ran.told);
                ran.response
            }
            Obtained::Stored(stored) => {
                let stored = Arc::new(stored);
                lead.tell(Told::Stored(stored.clone()));
                self.replay(&policy, &stored)
            }
            // The others may have more time left.
            Obtained::Refused(refusal @ Refusal::InProgress { .. }) => self.refuse(&policy, refusal),
            Obtained::Refused(refusal) => {
                lead.tell(Told::Refused(refusal.clone()));
                self.refuse(&policy, refusal)
            }
        }
    }

    pub(crate) fn replay(&self, policy: &Policy, stored: &Stored) -> Response {
        self.count(policy, stored.happening());
        stored.replay()
    }

    pub(crate) fn refuse(&self, policy: &Policy, refusal: Refusal) -> Response {
        self.count_refusal(policy, &refusal);
        refusal.response(policy)
    }

    async fn obtain(&self, policy: &Policy, ticket: &Ticket) -> Obtained {
        self.search(policy, ticket).await.unwrap_or_else(|e| {
            tracing::warn!(biz_type = policy.biz_type, error = %e, "the idempotency table cannot be used");
            Obtained::Refused(Refusal::StoreDown)
        })
    }

    /// Claims the key, or waits (holding no connection) for what its record becomes.
    async fn search(&self, policy: &Policy, ticket: &Ticket) -> Result<Obtained, db::DbError> {
        let table = self.table();
        let deadline = Instant::now() + policy.max_wait;
        let mut pause = FIRST_PAUSE;
        let mut owner = self.next_owner();
        loop {
            let Some(record) = table.read(&ticket.key, policy.lease).await? else {
                match table.claim(ticket, &policy.biz_type, &owner, policy.lease).await? {
                    Some(hold) => {
                        return Ok(Obtained::Claim(Claim::new(table.clone(), policy, ticket, hold)));
                    }
                    None => continue,
                }
            };
            match self.judge(policy, ticket, &record).await? {
                Judged::Answer => return Ok(Obtained::Stored(record.stored)),
                Judged::Refuse(refusal) => return Ok(Obtained::Refused(refusal)),
                Judged::TakeOver => {
                    if let Some(hold) = table.take_over(&record, &owner, policy.lease).await? {
                        return Ok(Obtained::Claim(Claim::new(table.clone(), policy, ticket, hold)));
                    }
                    owner = self.next_owner();
                }
                Judged::Wait if Instant::now() + pause > deadline => {
                    return Ok(Obtained::Refused(in_progress(record.lease_left)));
                }
                Judged::Wait => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn judge(&self, policy: &Policy, ticket: &Ticket, record: &Record) -> Result<Judged, db::DbError> {
        // A collation may find a key that is not this one.
        if record.key != ticket.key
            || record.biz_type != policy.biz_type
            || record.tenant != ticket.tenant
            || !self.same(ticket, record).await?
        {
            return Ok(Judged::Refuse(Refusal::Mismatch));
        }
        Ok(match record.status.as_str() {
            STATUS_TIMEOUT => Judged::TakeOver,
            STATUS_FAILED if record.phase.as_deref() == Some(PHASE_ROLLED_BACK) => Judged::TakeOver,
            STATUS_SUCCESS | STATUS_FAILED => Judged::Answer,
            STATUS_PROCESSING if !record.lease_left.is_zero() => Judged::Wait,
            STATUS_PROCESSING if policy.on_unknown == OnUnknown::ReExecute => Judged::TakeOver,
            _ => Judged::Refuse(Refusal::Held),
        })
    }

    async fn same(&self, ticket: &Ticket, record: &Record) -> Result<bool, db::DbError> {
        match &record.fingerprint {
            Some(fingerprint) => Ok(*fingerprint == ticket.fingerprint),
            None => {
                let request = self.table().request(&record.key).await?;
                Ok(request.is_none_or(|request| ticket.same_as(&request)))
            }
        }
    }
}

async fn pass_through<S: Handler>(request: Request, inner: S) -> Response {
    match inner.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn in_progress(lease_left: Duration) -> Refusal {
    Refusal::InProgress { lease_left }
}

pub(crate) async fn receive(body: axum::body::Body, max: usize) -> Result<Bytes, Refusal> {
    match Limited::new(body, max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(e) if e.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Err(_) => Err(Refusal::UnreadableBody),
    }
}
