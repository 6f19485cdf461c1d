use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use db::Db;
use db::testkit::each_database;
use futures::future::join_all;
use guard::{
    Claim, Covers, Keep, KeySource, Locks, Policy, Preset, Presets, SubjectFrom, TokenRules, Tokens, Window,
    WindowRules,
};
use tokio::sync::Semaphore;

use crate::kit::{self, entropy, prepare, request, send};

fn presets(db: &Db) -> Presets {
    let rules = TokenRules { subject: SubjectFrom::Anyone, ..TokenRules::default() };
    Presets {
        tokens: Tokens::in_table(db.clone(), entropy, rules),
        locks: Locks::in_table(db.clone(), "one"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_preset_that_writes_has_one_effect_for_many_submits() {
    for test in each_database().await {
        prepare(&test).await;
        let (presets, guard) = (presets(&test.db), kit::guard(&test.db, "one").await);
        let writing = [
            Preset::Standard,
            Preset::InsertWithoutKey,
            Preset::InsertWithKey,
            Preset::Overwrite,
            Preset::Transition,
            Preset::Amount,
        ];
        for (nth, preset) in writing.into_iter().enumerate() {
            let biz_type = preset.as_str();
            let app = match preset {
                // Without a record there is no claim to write with.
                Preset::Overwrite => {
                    let layer = guard.protect(presets.policy(preset, biz_type)).unwrap();
                    let db = test.db.clone();
                    let write =
                        move || async move { db.execute(&kit::effect("x")).await.unwrap().to_string() };
                    Router::new().route("/work", any(write).layer(layer))
                }
                _ => kit::counting(&guard, presets.policy(preset, biz_type).biz_no_from("/no")),
            };
            let token = presets.tokens.issue(biz_type, "").await.unwrap();
            let headers = [("idempotency-key", token.as_str())];
            let submits = (0..20).map(|_| send(&app, request("/work", &headers, r#"{"no":"P1"}"#)));
            let answers = join_all(submits).await;
            assert!(
                answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body),
                "{biz_type}"
            );
            assert_eq!(kit::effects(&test.db).await, nth as i64 + 1, "{biz_type}");
            let hint =
                answers.iter().filter(|answer| answer.headers.contains_key("idempotency-reconcile")).count();
            assert_eq!(hint, if preset == Preset::Amount { 20 } else { 0 }, "{biz_type}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_amount_tells_where_reconciliation_finds_it() {
    for test in each_database().await {
        prepare(&test).await;
        let presets = presets(&test.db);
        let policy = presets.policy(Preset::Amount, "PAYMENT").biz_no_from("/no");
        let app = kit::counting(&kit::guard(&test.db, "one").await, policy);
        let token = presets.tokens.issue("PAYMENT", "").await.unwrap();
        for replayed in [false, true] {
            let answer =
                send(&app, request("/work", &[("idempotency-token", &token)], r#"{"no":"P1"}"#)).await;
            assert_eq!((answer.status, answer.replayed()), (200, replayed));
            assert_eq!(answer.headers["idempotency-reconcile"], "PAYMENT; P1");
        }
    }
}

/// A handler that counts, and waits when the test says so.
#[derive(Clone)]
struct Reads {
    runs: Arc<AtomicU32>,
    gate: Arc<Semaphore>,
    status: StatusCode,
}

async fn read(State(reads): State<Reads>) -> Response {
    let number = reads.runs.fetch_add(1, Ordering::SeqCst);
    reads.gate.acquire().await.unwrap().forget();
    (reads.status, number.to_string()).into_response()
}

async fn reading(db: &Db, policy: Policy, status: StatusCode) -> (Router, Reads) {
    let reads =
        Reads { runs: Arc::default(), gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)), status };
    let layer = kit::guard(db, "one").await.protect(policy).unwrap();
    (Router::new().route("/orders", any(read).layer(layer)).with_state(reads.clone()), reads)
}

fn question(path: &str, user: &str) -> Request {
    Request::get(path).header("authorization", user).body(Body::empty()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_reads_of_one_caller_run_once_and_others_see_nothing_of_them() {
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    let (app, reads) =
        reading(&test.db, presets(&test.db).policy(Preset::Read, "ORDERS"), StatusCode::OK).await;
    let answers = join_all((0..50).map(|_| send(&app, question("/orders?a=1", "ann")))).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body));
    assert_eq!(reads.runs.load(Ordering::SeqCst), 1);
    for (path, user) in [("/orders?a=1", "bob"), ("/orders?a=2", "ann")] {
        assert_ne!(send(&app, question(path, user)).await.body, answers[0].body);
    }
    // What is no read passes through.
    for _ in 0..2 {
        assert!(!send(&app, request("/orders?a=1", &[("authorization", "ann")], "")).await.replayed());
    }
    assert_eq!(reads.runs.load(Ordering::SeqCst), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_forgets_in_time_in_bytes_and_what_failed() {
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    let with = |rules: WindowRules| Policy {
        keep: Keep::Window(Window::new(rules)),
        ..Policy::new("NOTE", KeySource::Header)
    };
    let keyed = |key: &'static str| request("/orders", &[("idempotency-key", key)], "{}");

    let brief = WindowRules::new(Duration::from_millis(20), Covers::Keyed);
    let (app, _) = reading(&test.db, with(brief), StatusCode::OK).await;
    let first = send(&app, keyed("k")).await;
    kit::until("the answer is forgotten", async || send(&app, keyed("k")).await.body != first.body).await;

    let long = WindowRules::new(Duration::from_secs(600), Covers::Keyed);
    let (app, _) = reading(&test.db, with(WindowRules { max_bytes: 1000, ..long }), StatusCode::OK).await;
    let first = send(&app, keyed("k1")).await;
    assert!(send(&app, keyed("k1")).await.replayed());
    for other in ["k2", "k3", "k4"] {
        send(&app, keyed(other)).await;
    }
    assert_ne!(send(&app, keyed("k1")).await.body, first.body, "the oldest made room");

    let (app, reads) = reading(&test.db, with(long), StatusCode::BAD_GATEWAY).await;
    for _ in 0..2 {
        assert_eq!(send(&app, keyed("k")).await.status, 502);
    }
    assert_eq!(reads.runs.load(Ordering::SeqCst), 2);

    let (app, _) = reading(&test.db, with(long), StatusCode::OK).await;
    send(&app, keyed("k")).await;
    let other = send(&app, request("/orders", &[("idempotency-key", "k")], "{\"other\":1}")).await;
    assert_eq!((other.status, other.code().as_str()), (422, "key_reused"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_at_most_once_is_recorded_before_it_runs_and_never_runs_again() {
    for test in each_database().await {
        prepare(&test).await;
        let policy = Policy::new("LOG", KeySource::Header).at_most_once();
        let layer = kit::guard(&test.db, "one").await.protect(policy.clone()).unwrap();
        let app = Router::new().route("/log", post(break_down).layer(layer)).with_state(test.db.clone());
        let broken = send(&app, request("/log", &[("idempotency-key", "k")], "{}")).await;
        assert_eq!(broken.status, 500);
        // Another process, which remembers nothing.
        let layer = kit::guard(&test.db, "two").await.protect(policy).unwrap();
        let app = Router::new().route("/log", post(break_down).layer(layer)).with_state(test.db.clone());
        let again = send(&app, request("/log", &[("idempotency-key", "k")], "{}")).await;
        assert_eq!(
            (again.status, again.replayed(), again.code().as_str()),
            (202, true, "response_not_stored")
        );
        assert_eq!(kit::effects(&test.db).await, 0);
    }
}

async fn break_down(State(db): State<Db>, claim: Extension<Claim>) -> String {
    let sql = "SELECT COUNT(*) FROM idempotent_record WHERE status = 'SUCCESS'";
    assert_eq!(kit::number(&db, sql).await, 1, "recorded before it runs");
    claim.tx().await.unwrap().execute(&kit::effect("lost")).await.unwrap();
    panic!("the handler broke, as the test wants");
}
