//! The seat of further mechanisms: conditions a route puts on a request besides its claim.

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::response::Response;
use futures::future::BoxFuture;

use crate::claim::Claim;
use crate::problem::Problem;

/// A request that was granted its claim and is about to run.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub claim: &'a Claim,
    pub parts: &'a Parts,
    pub body: &'a Bytes,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The outcome is recorded.
    Recorded,
    /// Nothing happened; the same key may run again.
    RolledBack,
    /// The effect may have happened.
    Unknown,
}

/// One more condition on a route, besides the unique index. Mechanisms are asked in the order of the policy.
pub trait Mechanism: std::fmt::Debug + Send + Sync {
    /// Asked of every request, duplicates too, before anything else is done for it; must not wait.
    fn inspect(&self, parts: &Parts) -> Result<(), Problem> {
        let _ = parts;
        Ok(())
    }

    /// Asked once for each granted claim, before the handler runs. A refusal withdraws the claim: the key stays free.
    /// The pass is given back when the run has ended.
    fn enter<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<Box<dyn Pass>, Problem>>;
}

/// What a mechanism holds while the handler runs; dropped without [`Pass::leave`] when the process gives up.
pub trait Pass: Send + Sync {
    /// An answer in place of the handler's, which is recorded as if it were: the handler does not run.
    fn answer(&self) -> Option<Response> {
        None
    }

    fn leave(self: Box<Self>, ended: Ended) -> BoxFuture<'static, ()>;
}

/// For mechanisms that hold nothing.
impl Pass for () {
    fn leave(self: Box<Self>, _: Ended) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
