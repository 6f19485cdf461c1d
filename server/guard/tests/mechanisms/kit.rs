//! A shop whose effects can be counted, and small helpers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::post;
use db::testkit::TestDb;
use db::{Db, Query};
use guard::{Claim, Guard, Policy, Settings};
use http_body_util::BodyExt;
use kv::{Options, Redis};
use tower::ServiceExt;

/// All tables, and one of orders.
pub async fn prepare(test: &TestDb) {
    guard::schema::create(&test.db).await.unwrap();
    guard::schema::mechanisms::create(&test.db).await.unwrap();
    let orders = "CREATE TABLE t_order (order_no VARCHAR(64) PRIMARY KEY, status VARCHAR(16), \
                  version BIGINT NOT NULL, moved_by VARCHAR(255))";
    test.run(&[orders, "CREATE TABLE effect (name VARCHAR(255))"]).await;
}

pub async fn guard(db: &Db, instance: &str) -> Guard {
    Guard::open(db.clone(), Settings::new(instance)).await.unwrap()
}

/// One route whose handler leaves one effect, in the transaction of its claim.
pub fn counting(guard: &Guard, policy: Policy) -> Router {
    Router::new().route("/work", post(leave_effect).layer(guard.protect(policy).unwrap()))
}

async fn leave_effect(claim: axum::Extension<Claim>, body: Bytes) -> impl IntoResponse {
    let name = String::from_utf8_lossy(&body).into_owned();
    claim.tx().await.unwrap().execute(&effect(&name)).await.unwrap();
    format!("done {name}")
}

pub fn effect(name: &str) -> Query {
    Query::raw("INSERT INTO effect (name) VALUES (?)", vec![name.into()])
}

pub async fn effects(db: &Db) -> i64 {
    number(db, "SELECT COUNT(*) FROM effect").await
}

pub async fn number(db: &Db, sql: &str) -> i64 {
    db.fetch_optional(&Query::raw(sql, vec![])).await.unwrap().unwrap().i64(0).unwrap()
}

pub async fn text(db: &Db, sql: &str) -> Option<String> {
    db.fetch_optional(&Query::raw(sql, vec![])).await.unwrap()?.opt_text(0).unwrap()
}

/// An answer taken apart.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn replayed(&self) -> bool {
        self.headers.contains_key("idempotency-replayed")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

pub async fn send(app: &Router, request: Request) -> Answer {
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

pub fn request(path: &str, headers: &[(&str, &str)], body: &str) -> Request {
    let with =
        headers.iter().fold(Request::post(path), |request, (name, value)| request.header(*name, *value));
    with.body(Body::from(body.to_owned())).unwrap()
}

/// The test Redis and a prefix nobody else uses; `None` where there is no Redis.
pub fn redis() -> Option<(Redis, String)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let Some(url) = std::env::var("AMENDS_TEST_REDIS").ok().filter(|url| !url.is_empty()) else {
        assert!(std::env::var("AMENDS_TEST_ALL").is_err(), "AMENDS_TEST_REDIS is not set");
        eprintln!("skipped with Redis: AMENDS_TEST_REDIS is not set");
        return None;
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let prefix = format!("g2-{:x}-{number}:", u64::from_be_bytes(rand::random()));
    let options = Options {
        response_timeout: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(5),
        ..Options::default()
    };
    Some((Redis::open(&url, options).unwrap(), prefix))
}

pub fn entropy() -> [u8; 16] {
    rand::random()
}

/// Waits until `check` holds.
pub async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never came true: {what}"));
}
