//! A payment service behind the guard: each effect is one row.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use db::testkit::TestDb;
use db::{Db, Query};
use guard::{Claim, Guard, Happening, KeySource, Meter, OnUnknown, Outcome, Policy, Settings};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// How the handler behaves, set by the test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Writes through the claim's transaction.
    Tx,
    /// Notes that it sends something, then writes through the transaction.
    SendAndTx,
    /// Writes by itself, outside the claim's transaction.
    Alone,
    /// Writes by itself, then fails.
    FailAfterEffect,
    /// Writes through the transaction, then panics.
    Panic,
    /// Refuses before any effect.
    Refuse,
    /// Fails, and knows that nothing happened.
    RollBack,
    /// Notes that it sends something, then never answers.
    Hang,
}

#[derive(Default)]
pub struct Counts(Mutex<HashMap<Happening, u32>>);

impl Meter for Counts {
    fn count(&self, _: &str, happening: Happening) {
        *self.0.lock().unwrap().entry(happening).or_default() += 1;
    }
}

impl Counts {
    pub fn of(&self, happening: Happening) -> u32 {
        self.0.lock().unwrap().get(&happening).copied().unwrap_or_default()
    }
}

/// One process of the service.
#[derive(Clone)]
pub struct Service {
    pub db: Db,
    pub app: Router,
    pub counts: Arc<Counts>,
    pub mode: Arc<Mutex<Mode>>,
    /// Handlers pass only with a permit, so that the test decides when they go on.
    pub gate: Arc<Semaphore>,
    pub entered: Arc<Semaphore>,
}

/// Tables and one process.
pub async fn service(test: &TestDb, mode: Mode) -> Service {
    guard::schema::create(&test.db).await.unwrap();
    let id = match test.db.dialect() {
        db::Dialect::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
        db::Dialect::Postgres => "BIGSERIAL PRIMARY KEY",
        db::Dialect::Mysql => "BIGINT AUTO_INCREMENT PRIMARY KEY",
    };
    test.run(&[&format!("CREATE TABLE biz_order (id {id}, order_no VARCHAR(255))")]).await;
    process(test.db.clone(), "one", mode, |policy| policy).await
}

/// One more process over the same tables.
pub async fn process(db: Db, name: &str, mode: Mode, adjust: impl Fn(Policy) -> Policy) -> Service {
    let counts = Arc::new(Counts::default());
    let guard =
        Guard::open(db.clone(), Settings { meter: counts.clone(), ..Settings::new(name) }).await.unwrap();
    let policy = adjust(Policy::new("PAY", KeySource::Header).biz_no_from("/orderNo"));
    let mut service = Service {
        db,
        app: Router::new(),
        counts,
        mode: Arc::new(Mutex::new(mode)),
        gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        entered: Arc::new(Semaphore::new(0)),
    };
    let other = Policy { biz_type: "OTHER".into(), ..policy.clone() };
    service.app = Router::new()
        .route("/pay", post(pay).layer(guard.protect(policy).unwrap()))
        .route("/other", post(pay).layer(guard.protect(other).unwrap()))
        .with_state(service.clone());
    service
}

pub fn re_execute(policy: Policy) -> Policy {
    Policy { on_unknown: OnUnknown::ReExecute, ..policy }
}

async fn pay(State(service): State<Service>, claim: Extension<Claim>, body: Bytes) -> Response {
    service.entered.add_permits(1);
    service.gate.acquire().await.unwrap().forget();
    let mode = *service.mode.lock().unwrap();
    let order_no = String::from_utf8_lossy(&body).into_owned();
    let effect = Query::raw("INSERT INTO biz_order (order_no) VALUES (?)", vec![order_no.into()]);
    let answer = [
        ("content-type", "application/json"),
        ("set-cookie", "visitor=1"),
        ("x-order", "a"),
        ("x-order", "b"),
    ];
    match mode {
        Mode::Tx => {
            claim.tx().await.unwrap().execute(&effect).await.unwrap();
            let mut response = "{ \"amount\": 128.00,\n\"a\":1E400 }".into_response();
            for (name, value) in answer {
                response.headers_mut().append(name, value.parse().unwrap());
            }
            response.headers_mut().insert("content-type", "application/json".parse().unwrap());
            response
        }
        Mode::SendAndTx => {
            assert!(claim.sending().await.unwrap());
            claim.tx().await.unwrap().execute(&effect).await.unwrap();
            "sent".into_response()
        }
        Mode::Alone => {
            service.db.execute(&effect).await.unwrap();
            "alone".into_response()
        }
        Mode::FailAfterEffect => {
            service.db.execute(&effect).await.unwrap();
            StatusCode::BAD_GATEWAY.into_response()
        }
        Mode::Panic => {
            claim.tx().await.unwrap().execute(&effect).await.unwrap();
            panic!("the handler broke, as the test wants");
        }
        Mode::Refuse => (StatusCode::PAYMENT_REQUIRED, "no money").into_response(),
        Mode::RollBack => {
            claim.tx().await.unwrap().execute(&effect).await.unwrap();
            let mut response = StatusCode::SERVICE_UNAVAILABLE.into_response();
            response.extensions_mut().insert(Outcome::RolledBack);
            response
        }
        Mode::Hang => {
            assert!(claim.sending().await.unwrap());
            std::future::pending().await
        }
    }
}

/// An answer taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn replayed(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some()
    }

    pub fn code(&self) -> String {
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        json["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Service {
    pub fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    /// From now on handlers stop at the gate.
    pub fn close_gate(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub fn open_gate(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// Waits until one more handler has begun.
    pub async fn handler_began(&self) {
        self.entered.acquire().await.unwrap().forget();
    }

    pub async fn pay(&self, key: &str, body: &str) -> Answer {
        self.post("/pay", &[key], body).await
    }

    pub async fn post(&self, path: &str, keys: &[&str], body: &str) -> Answer {
        let mut request = Request::post(path);
        for key in keys {
            request = request.header("Idempotency-Key", key.as_bytes());
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let (parts, body) = self.app.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub fn pay_in_background(
        &self,
        key: &'static str,
        body: &'static str,
    ) -> tokio::task::JoinHandle<Answer> {
        let service = self.clone();
        tokio::spawn(async move { service.pay(key, body).await })
    }

    pub async fn effects(&self) -> i64 {
        let count = Query::raw("SELECT COUNT(*) FROM biz_order", vec![]);
        self.db.fetch_optional(&count).await.unwrap().unwrap().i64(0).unwrap()
    }

    /// One column of a record, as text.
    pub async fn column(&self, key: &str, column: &str) -> Option<String> {
        let sql = format!("SELECT {column} FROM idempotent_record WHERE idempotent_id = ?");
        let row = self.db.fetch_optional(&Query::raw(sql, vec![key.into()])).await.unwrap();
        row.unwrap().opt_text(0).unwrap()
    }

    pub async fn status(&self, key: &str) -> String {
        self.column(key, "status").await.unwrap()
    }

    /// What an operator or another hand does to a record.
    pub async fn set_record(&self, key: &str, assignment: &str) {
        let sql = format!("UPDATE idempotent_record SET {assignment} WHERE idempotent_id = ?");
        assert_eq!(self.db.execute(&Query::raw(sql, vec![key.into()])).await.unwrap(), 1);
    }

    /// Waits until the record is in `status`.
    pub async fn until_status(&self, key: &str, status: &str) {
        let waited = tokio::time::timeout(Duration::from_secs(10), async {
            while self.status(key).await != status {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("the record never became {status}"));
    }
}
