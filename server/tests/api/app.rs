//! The whole console on SQLite files in a temporary folder, asked without a socket.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use chrono::{DateTime, Duration, Utc};
use db::{Db, Options, Query};
use domain::audit::Draft;
use domain::clock::Clock;
use domain::ports::User;
use domain::roles::Role;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use server::compose::compose;
use server::config::Config;
use server::http::password;
use server::runtime::{SystemClock, TokioRuntime, World};
use server::state::AppState;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use tower::ServiceExt;

pub const PASSWORD: &str = "correct-horse-battery";

/// The system's clock, moved by hand.
#[derive(Default)]
pub struct ShiftedClock {
    seconds: AtomicI64,
}

impl ShiftedClock {
    pub fn advance(&self, by: Duration) {
        self.seconds.fetch_add(by.num_seconds(), Ordering::Relaxed);
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now() + Duration::seconds(self.seconds.load(Ordering::Relaxed))
    }
}

/// The console, its clock, and the shop's database beside it.
pub struct TestApp {
    pub router: Router,
    pub state: AppState,
    pub clock: Arc<ShiftedClock>,
    pub shop: Db,
    _folder: TempDir,
}

/// Who asks.
#[derive(Debug, Clone)]
pub enum Who {
    Stranger,
    Cookie(String),
    Token(&'static str),
}

/// An answer, read to its end.
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts that this is a problem of this status, and gives its code.
    #[track_caller]
    pub fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        problem["code"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }
}

impl TestApp {
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// With further lines at the top of the configuration.
    pub async fn start_with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shop = shop(&folder).await;
        let text = format!("{settings}\n{}", include_str!("amends.toml"));
        let config = Config::read(&text, folder.path(), &|_| None).unwrap();
        let clock = Arc::new(ShiftedClock::default());
        let world = World { clock: clock.clone(), ..World::real(&TokioRuntime::default()) };
        let state = compose(&config, &world).await.unwrap();
        for role in Role::ALL {
            put_user(&state, role.as_str(), role).await;
        }
        Self { router: server::http::router(state.clone()), state, clock, shop, _folder: folder }
    }

    pub async fn ask(&self, request: Request<Body>) -> Reply {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: parts.status, headers: parts.headers, body }
    }

    pub async fn get(&self, who: &Who, path: &str) -> Reply {
        self.ask(request(who, Method::GET, path, None, &[])).await
    }

    pub async fn post(&self, who: &Who, path: &str, body: Value) -> Reply {
        self.ask(request(who, Method::POST, path, Some(body), &[])).await
    }

    /// Signs in and keeps the cookie.
    pub async fn sign_in(&self, name: &str) -> Who {
        let reply = self.try_sign_in(&Who::Stranger, name, PASSWORD).await;
        assert_eq!(reply.status, 204, "{}", reply.text());
        Who::Cookie(cookie(&reply))
    }

    pub async fn try_sign_in(&self, who: &Who, name: &str, password: &str) -> Reply {
        self.post(who, "/api/v1/session", json!({ "username": name, "password": password })).await
    }

    /// The stored row of a key, found by its filter.
    pub async fn row(&self, who: &Who, key: &str) -> Value {
        let page = self.get(who, &format!("/api/v1/records?key={key}")).await.ok();
        page["items"][0].clone()
    }

    /// Checks a record and gives its row and its evidence.
    pub async fn checked(&self, who: &Who, key: &str) -> (Value, Value) {
        let row = self.row(who, key).await;
        let path = format!("/api/v1/records/{}/reverse-check", row["id"].as_str().unwrap());
        let evidence = self.post(who, &path, json!({})).await.ok();
        (row, evidence)
    }

    pub async fn actions_audited(&self, who: &Who) -> Vec<String> {
        let page = self.get(who, "/api/v1/audit?limit=200").await.ok();
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["action"].as_str().unwrap().to_owned())
            .collect()
    }

    pub async fn change_shop(&self, sql: &str) {
        self.shop.execute(&Query::raw(sql.to_owned(), vec![])).await.unwrap();
    }
}

/// A request as a browser on the console itself, or a program, would send it.
pub fn request(
    who: &Who,
    method: Method,
    path: &str,
    body: Option<Value>,
    headers: &[(&str, &str)],
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header("host", "console.test");
    request = match who {
        Who::Stranger => request,
        Who::Cookie(cookie) => request.header(COOKIE, cookie).header("sec-fetch-site", "same-origin"),
        Who::Token(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
    };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match body {
        Some(body) => request.header(CONTENT_TYPE, "application/json").body(Body::from(body.to_string())),
        None => request.body(Body::empty()),
    }
    .unwrap()
}

/// The cookies of an answer, as a browser would send them back.
pub fn cookie(reply: &Reply) -> String {
    let pairs = reply.headers.get_all(SET_COOKIE).iter().map(|cookie| cookie.to_str().unwrap());
    pairs.map(|cookie| cookie.split(';').next().unwrap().to_owned()).collect::<Vec<_>>().join("; ")
}

pub async fn put_user(state: &AppState, name: &str, role: Role) {
    static HASH: OnceLock<String> = OnceLock::new();
    let password_hash = HASH.get_or_init(|| password::hash(PASSWORD).unwrap()).clone();
    let user = User { name: name.to_owned(), role, password_hash };
    state.users.put_user(&user, &Draft::new(state.clock.now(), "test", "user.added")).await.unwrap();
}

async fn shop(folder: &TempDir) -> Db {
    let url = format!("sqlite://{}", folder.path().join("shop.db").display());
    let shop = Db::connect(&url, &Options::own()).await.unwrap();
    for statement in include_str!("shop.sql").split(";\n").filter(|statement| !statement.trim().is_empty()) {
        shop.execute(&Query::raw(statement.to_owned(), vec![])).await.unwrap();
    }
    shop
}
