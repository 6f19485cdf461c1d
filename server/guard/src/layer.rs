//! The guard as a tower layer.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::{Instant, timeout};
use tower::{Layer, Service, ServiceExt};

use crate::answer::{Refusal, Stored};
use crate::claim::Claim;
use crate::flight::{Heard, Join, Lead, Told};
use crate::guard::Guard;
use crate::memory::Recalled;
use crate::policy::{Keep, Policy};
use crate::run::Work;
use crate::search::Obtained;
use crate::ticket::{Asked, Known, Ticket};

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

impl Guard {
    async fn answer<S: Handler>(&self, policy: Arc<Policy>, request: Request, inner: S) -> Response {
        let (parts, body) = request.into_parts();
        if let Keep::Window(window) = &policy.keep
            && !window.covers(&parts)
        {
            return pass_through(Request::from_parts(parts, body), inner).await;
        }
        let known = match self.admit(&policy, &parts, body).await {
            Ok(known) => known,
            Err(refusal) => return self.refuse(&policy, &refusal),
        };
        match self.memory().recall(&known) {
            Recalled::Answer(stored) => {
                self.beat(&policy, &known.key, &known.scoped);
                return self.replay(&policy, &stored);
            }
            Recalled::Mismatch => return self.refuse(&policy, &Refusal::Mismatch),
            Recalled::Nothing => {}
        }
        match known.ticket(&policy, &self.table().columns, &parts) {
            Ok(ticket) => match policy.keep.clone() {
                Keep::Window(window) => self.answer_from_window(window, policy, ticket, parts, inner).await,
                Keep::Record | Keep::RecordFirst => self.take_part(policy, ticket, parts, inner).await,
            },
            Err(refusal) => self.refuse(&policy, &refusal),
        }
    }

    /// What may be asked of a request before its record.
    async fn admit(&self, policy: &Policy, parts: &Parts, body: Body) -> Result<Known, Refusal> {
        for mechanism in &policy.mechanisms {
            mechanism.inspect(parts).map_err(Refusal::Mechanism)?;
        }
        let body = receive(body, policy.max_request).await?;
        Known::read(policy, &self.table().columns, parts, Asked::new(parts, body))
    }

    /// Leads the key's flight or waits for what its leader learns.
    async fn take_part<S: Handler>(
        &self,
        policy: Arc<Policy>,
        ticket: Ticket,
        parts: Parts,
        inner: S,
    ) -> Response {
        let deadline = Instant::now() + policy.max_wait;
        let lease = policy.lease;
        loop {
            let learned = match self.flights().join(&ticket.scoped, &ticket.fingerprint, lease) {
                Join::Lead(lead) => return self.detach(lead, policy, ticket, parts, inner).await,
                Join::Mismatch => Err(Refusal::Mismatch),
                Join::Crowded { lease_left } => Err(Refusal::InProgress { lease_left }),
                Join::Follow(follow) => match follow.until(deadline).await {
                    Heard::Told(Told::Stored(stored)) => Ok(stored),
                    Heard::Told(Told::Refused(refusal)) => Err(refusal),
                    Heard::Told(Told::Again) if Instant::now() < deadline => continue,
                    Heard::Told(Told::Again) => Err(Refusal::InProgress { lease_left: lease }),
                    Heard::Nothing { lease_left } => Err(Refusal::InProgress { lease_left }),
                },
            };
            self.beat(&policy, &ticket.key, &ticket.scoped);
            return match learned {
                Ok(stored) => self.replay(&policy, &stored),
                Err(refusal) => self.refuse(&policy, &refusal),
            };
        }
    }

    /// Detached: a client that goes away cancels nothing, and one that stays does not wait for ever.
    async fn detach<S: Handler>(
        &self,
        lead: Lead,
        policy: Arc<Policy>,
        ticket: Ticket,
        parts: Parts,
        inner: S,
    ) -> Response {
        let longest = policy.max_run.max(policy.max_wait) + policy.lease;
        let work = tokio::spawn(self.clone().lead(lead, policy.clone(), ticket, parts, inner));
        match timeout(longest, work).await {
            Ok(Ok(response)) => response,
            Ok(Err(_broke)) => Refusal::Broke.response(&policy),
            Err(_late) => self.refuse(&policy, &Refusal::InProgress { lease_left: policy.lease }),
        }
    }

    async fn lead<S: Handler>(
        self,
        lead: Lead,
        policy: Arc<Policy>,
        ticket: Ticket,
        parts: Parts,
        inner: S,
    ) -> Response {
        let refusal = match self.obtain(&policy, &ticket).await {
            Obtained::Claim(hold) => {
                let claim = Claim::new(self.table().clone(), &policy, &ticket, hold);
                let ran = self.run(&Work::new(&policy, &claim, &ticket, &lead), parts, inner).await;
                if let Some(happening) = ran.happening {
                    self.count(&policy, happening);
                }
                lead.tell(ran.told);
                return ran.response;
            }
            Obtained::Stored(stored) => {
                let stored = Arc::new(stored);
                if stored.body.is_some() && !stored.is_failure() {
                    self.memory().remember(&ticket, &stored, policy.remember.here);
                }
                lead.tell(Told::Stored(stored.clone()));
                self.beat(&policy, &ticket.key, &ticket.scoped);
                return self.replay(&policy, &stored);
            }
            Obtained::Refused(refusal) => refusal,
        };
        self.beat(&policy, &ticket.key, &ticket.scoped);
        self.heat().refused(&ticket.scoped, &ticket.fingerprint, &refusal, Instant::now());
        // Those who wait for a worker elsewhere may have more time left.
        if !matches!(refusal, Refusal::InProgress { .. }) {
            lead.tell(Told::Refused(refusal.clone()));
        }
        self.refuse(&policy, &refusal)
    }

    pub(crate) fn replay(&self, policy: &Policy, stored: &Stored) -> Response {
        self.count(policy, stored.happening());
        stored.replay()
    }

    pub(crate) fn refuse(&self, policy: &Policy, refusal: &Refusal) -> Response {
        self.count_refusal(policy, refusal);
        refusal.response(policy)
    }
}

async fn pass_through<S: Handler>(request: Request, inner: S) -> Response {
    match inner.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

pub(crate) async fn receive(body: Body, max: usize) -> Result<Bytes, Refusal> {
    match Limited::new(body, max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(e) if e.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Err(_) => Err(Refusal::UnreadableBody),
    }
}
