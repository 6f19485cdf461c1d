//! Running at most once: the record is settled first, then the handler runs, whatever becomes of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use db::Tx;
use futures::FutureExt;
use tower::ServiceExt;

use crate::answer::{Refusal, Stored};
use crate::capture::capture;
use crate::claim::Claim;
use crate::flight::Told;
use crate::guard::Guard;
use crate::happening::Happening;
use crate::layer::Handler;
use crate::mechanism::Ended;
use crate::policy::Policy;
use crate::run::{Ran, Written};

impl Guard {
    /// A record that is PROCESSING says here that nothing was begun, so it may be taken over.
    pub(crate) async fn run_recorded<S: Handler>(
        &self,
        policy: &Policy,
        claim: &Claim,
        request: Request,
        inner: S,
    ) -> Ran {
        match self.write_back_alone(claim, &taken()).await {
            Written::Done => {}
            // Perhaps recorded: then running could be the second time.
            _ => return not_run(policy),
        }
        let mut response = match AssertUnwindSafe(inner.oneshot(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_panic) => Refusal::Broke.response(policy),
        };
        if let Ok(Some(tx)) = claim.take_tx()
            && !ended(tx, response.status()).await
        {
            response = Refusal::Broke.response(policy);
        }
        let (stored, response) = capture(policy, response).await;
        let told = Told::Stored(Arc::new(stored));
        Ran { response, told, happening: Some(Happening::Executed), ended: Ended::Recorded }
    }
}

/// What duplicates hear: taken, and never run again.
fn taken() -> Stored {
    Stored { status: StatusCode::ACCEPTED, headers: HeaderMap::new(), body: None, tombstone: true }
}

fn not_run(policy: &Policy) -> Ran {
    Ran {
        response: Refusal::NotRecorded.response(policy),
        told: Told::Again,
        happening: Some(Happening::InDoubt),
        ended: Ended::Unknown,
    }
}

/// Whether the transaction ended as the answer says.
async fn ended(tx: Tx, status: StatusCode) -> bool {
    let outcome = if status.is_server_error() { tx.rollback().await } else { tx.commit().await };
    outcome.inspect_err(|error| tracing::warn!(%error, "work that runs at most once was lost")).is_ok()
}
