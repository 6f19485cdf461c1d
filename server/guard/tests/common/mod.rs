//! A payment service behind the guard: each effect is one row.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
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
use guard::{
    Cache, Claim, Guard, Happening, KeySource, Local, Meter, OnUnknown, Outcome, Policy, Settings, Shared,
};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::ServiceExt;

pub const BODY: &str = r#"{"orderNo":"20261201000000000001","amount":128.00}"#;
pub const SAME_BODY: &str = "{ \"amount\": 128.00, \"orderNo\": \"20261201000000000001\" }";
pub const OTHER_BODY: &str = r#"{"orderNo":"20261201000000000001","amount":129.00}"#;

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
    /// Writes through the transaction and answers with so many bytes.
    Big(usize),
    /// Writes through the transaction and answers with characters beyond the basic plane.
    Emoji,
}

pub const EMOJI: &str = "{\"name\":\"😂𠮷订\"}";

#[derive(Default)]
pub struct Counts {
    happenings: Mutex<HashMap<Happening, u32>>,
    bursts: AtomicU32,
}

impl Meter for Counts {
    fn count(&self, _: &str, happening: Happening) {
        *self.happenings.lock().unwrap().entry(happening).or_default() += 1;
    }

    fn burst(&self, _: &str) {
        self.bursts.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counts {
    pub fn of(&self, happening: Happening) -> u32 {
        self.happenings.lock().unwrap().get(&happening).copied().unwrap_or_default()
    }

    pub fn bursts(&self) -> u32 {
        self.bursts.load(Ordering::Relaxed)
    }
}

/// One process of the service.
#[derive(Clone)]
pub struct Service {
    pub db: Db,
    pub guard: Guard,
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
    process_with(db, name, mode, Settings::new(name).cache, adjust).await
}

/// The same with another cache.
pub async fn process_with(
    db: Db,
    name: &str,
    mode: Mode,
    cache: Cache,
    adjust: impl Fn(Policy) -> Policy,
) -> Service {
    let counts = Arc::new(Counts::default());
    let settings = Settings { meter: counts.clone(), cache, ..Settings::new(name) };
    let guard = Guard::open(db.clone(), settings).await.unwrap();
    let policy = adjust(Policy::new("PAY", KeySource::Header).biz_no_from("/orderNo"));
    let service = Service {
        db,
        guard: guard.clone(),
        app: Router::new(),
        counts,
        mode: Arc::new(Mutex::new(mode)),
        gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        entered: Arc::new(Semaphore::new(0)),
    };
    service.behind(&guard, policy)
}

/// No cache, memory, and memory with a Redis, where there is one.
pub fn caches() -> Vec<Cache> {
    let in_memory = || Cache::InProcess(Local::default());
    let redis = std::env::var("AMENDS_TEST_REDIS").ok().filter(|url| !url.is_empty());
    let shared = redis.map(|url| shared_cache(&url));
    [Some(Cache::None), Some(in_memory()), shared].into_iter().flatten().collect()
}

/// Entries under a prefix that no other test uses.
pub fn shared_cache(url: &str) -> Cache {
    static TESTS: AtomicU32 = AtomicU32::new(0);
    let test = TESTS.fetch_add(1, Ordering::Relaxed);
    let redis = kv::Redis::open(url, kv::Options::default()).unwrap();
    let prefix = format!("guard-test:{}:{test}:", std::process::id());
    Cache::Redis(Local { max_bytes: 0 }, Shared { redis, prefix })
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
        Mode::Big(bytes) => {
            claim.tx().await.unwrap().execute(&effect).await.unwrap();
            "x".repeat(bytes).into_response()
        }
        Mode::Emoji => {
            claim.tx().await.unwrap().execute(&effect).await.unwrap();
            EMOJI.into_response()
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
    /// The same service behind another guard or policy.
    pub fn behind(&self, guard: &Guard, policy: Policy) -> Service {
        let other = Policy { biz_type: "OTHER".into(), ..policy.clone() };
        let mut service = Service { guard: guard.clone(), ..self.clone() };
        service.app = Router::new()
            .route("/pay", post(pay).layer(guard.protect(policy).unwrap()))
            .route("/other", post(pay).layer(guard.protect(other).unwrap()))
            .with_state(service.clone());
        service
    }

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
