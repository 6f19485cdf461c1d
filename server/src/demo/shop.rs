//! The shop's HTTP server: five routes behind the guard, and the faults its customers bring about.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use db::{Db, DbError};
use domain::clock::{Clock, millis};
use guard::{Claim, Guard, KeySource, Outcome, Policy, Settings, Template};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Running;
use super::kind::{Kind, PROMO, SHOP};
use super::rows::{self, Row, Twist};
use super::tables::Databases;
use super::tally::{SourceMeter, Tally};

/// The header by which the demo's customers bring a fault about.
pub(super) const FAULT_HEADER: &str = "x-demo-fault";

/// How long the shop waits for a payment provider.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(5);

/// What goes wrong in a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Dies before it did anything.
    CrashBefore,
    /// Dies after its business write was committed by itself: the write-back is lost.
    CrashAfter,
    /// The same, with a wrong amount written.
    OtherAmount,
    /// Dies between the two writes of a refund.
    Half,
    /// The payment provider never answers.
    ProviderHangs,
}

impl Fault {
    const ALL: [Fault; 5] =
        [Fault::CrashBefore, Fault::CrashAfter, Fault::OtherAmount, Fault::Half, Fault::ProviderHangs];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Fault::CrashBefore => "crash-before",
            Fault::CrashAfter => "crash-after",
            Fault::OtherAmount => "other-amount",
            Fault::Half => "half",
            Fault::ProviderHangs => "provider-hangs",
        }
    }

    /// What is left in the business tables.
    fn leaves(self) -> Option<Twist> {
        match self {
            Fault::CrashBefore => None,
            Fault::CrashAfter => Some(Twist::Exact),
            Fault::OtherAmount => Some(Twist::OtherAmount),
            Fault::Half => Some(Twist::Half),
            Fault::ProviderHangs => Some(Twist::Sent),
        }
    }
}

impl FromStr for Fault {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Fault::ALL.into_iter().find(|fault| fault.as_str() == text).ok_or(())
    }
}

#[derive(Clone)]
pub(super) struct Shop {
    databases: Databases,
    shop_guard: Guard,
    promo_guard: Guard,
    clock: Arc<dyn Clock>,
}

impl Shop {
    pub(super) async fn new(
        databases: &Databases,
        tally: &Arc<Tally>,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Shop> {
        let instance = format!("shop-{}", millis(clock.now()));
        let guard = |db: &Db, source| {
            let meter = Arc::new(SourceMeter { tally: tally.clone(), source });
            Guard::open(db.clone(), Settings { meter, ..Settings::new(instance.clone()) })
        };
        Ok(Shop {
            shop_guard: guard(&databases.shop, SHOP).await?,
            promo_guard: guard(&databases.promo, PROMO).await?,
            databases: databases.clone(),
            clock,
        })
    }

    /// Serves on a loopback port of the system's choice, until the demo ends.
    pub(super) async fn open(self, running: &Running) -> anyhow::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("the shop found no free loopback port")?;
        let address = listener.local_addr()?;
        let router = self.router();
        running.spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the demo's shop closed");
            }
        });
        Ok(address)
    }

    fn router(self) -> Router {
        let routes = Kind::ALL
            .into_iter()
            .fold(Router::new(), |router, kind| router.route(kind.path(), self.route(kind)));
        routes.with_state(self)
    }

    fn route(&self, kind: Kind) -> MethodRouter<Shop> {
        let guard = if kind.source() == PROMO { &self.promo_guard } else { &self.shop_guard };
        let key = match kind.key_template() {
            Some(template) => {
                KeySource::Template(Template::parse(template).expect("the demo's own template"))
            }
            None => KeySource::Header,
        };
        let policy = Policy::new(kind.biz_type(), key).biz_no_from(kind.biz_no_pointer());
        let handler =
            move |State(shop): State<Shop>,
                  Extension(claim): Extension<Claim>,
                  headers: HeaderMap,
                  body: Bytes| async move { shop.answer(kind, &claim, fault(&headers), &body).await };
        post(handler).layer(guard.protect(policy).expect("the demo's own policy"))
    }

    async fn answer(&self, kind: Kind, claim: &Claim, fault: Option<Fault>, body: &[u8]) -> Response {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let Some(exact) = self.effect(kind, &request, Twist::Exact) else {
            return refusal(
                StatusCode::BAD_REQUEST,
                "the request lacks something; see the shop's documentation",
            );
        };
        let done = match fault {
            None => self.work(kind, claim, &request, exact).await,
            Some(fault) => self.break_down(kind, claim, fault, &request).await,
        };
        done.unwrap_or_else(|error| failed(&error))
    }

    fn effect(&self, kind: Kind, request: &Value, twist: Twist) -> Option<Vec<Row>> {
        rows::effect(kind, request, self.clock.now(), twist)
    }

    /// What a sound worker does: the business write and the answer, in the guard's transaction.
    async fn work(
        &self,
        kind: Kind,
        claim: &Claim,
        request: &Value,
        effect: Vec<Row>,
    ) -> Result<Response, DbError> {
        rows::insert(&mut *claim.tx().await?, effect).await?;
        Ok(([(CONTENT_TYPE, "application/json")], kind.response(request)).into_response())
    }

    /// What a worker leaves that does not live to write its answer back.
    async fn break_down(
        &self,
        kind: Kind,
        claim: &Claim,
        fault: Fault,
        request: &Value,
    ) -> Result<Response, DbError> {
        if fault == Fault::ProviderHangs && !claim.sending().await? {
            return Ok(gone(StatusCode::CONFLICT));
        }
        if let Some(effect) = fault.leaves().and_then(|twist| self.effect(kind, request, twist)) {
            let db = if kind.source() == PROMO { &self.databases.promo } else { &self.databases.shop };
            let mut tx = db.begin().await?;
            rows::insert(&mut tx, effect).await?;
            tx.commit().await?;
        }
        if fault == Fault::ProviderHangs {
            tokio::time::sleep(PROVIDER_TIMEOUT).await;
            return Ok(gone(StatusCode::GATEWAY_TIMEOUT));
        }
        Ok(gone(StatusCode::BAD_GATEWAY))
    }
}

fn fault(headers: &HeaderMap) -> Option<Fault> {
    headers.get(FAULT_HEADER)?.to_str().ok()?.parse().ok()
}

/// What a client sees of a worker that died.
fn gone(status: StatusCode) -> Response {
    (status, Extension(Outcome::Unknown), "").into_response()
}

fn refusal(status: StatusCode, message: &str) -> Response {
    (status, axum::Json(json!({ "code": status.as_u16(), "message": message }))).into_response()
}

fn failed(error: &DbError) -> Response {
    if error.is_unique_violation() {
        return refusal(StatusCode::CONFLICT, "this number was used before");
    }
    tracing::warn!(%error, "the demo's shop could not write");
    (Extension(Outcome::RolledBack), refusal(StatusCode::SERVICE_UNAVAILABLE, "try again")).into_response()
}
