use axum::Router;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use db::Db;
use db::testkit::{TestDb, each_database};
use futures::future::join_all;
use guard::{Claim, KeySource, Moved, Policy, Seen, Transition, TransitionError};

use crate::kit::{self, prepare, request, send};

fn pay() -> Transition {
    Transition::new("t_order", "order_no", "status", ["PENDING"], "PAID")
        .version("version")
        .moved_by("moved_by")
}

async fn order(test: &TestDb, status: &str) {
    prepare(test).await;
    test.run(&[&format!("INSERT INTO t_order VALUES ('O1', '{status}', 3, NULL)")]).await;
}

async fn handler(State(seen): State<Seen>, claim: Extension<Claim>) -> Response {
    let mut tx = claim.tx().await.unwrap();
    match pay().apply(&mut tx, claim.key(), "O1", seen).await {
        Ok(_) => "paid".into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn app(db: &Db, instance: &str, seen: Seen) -> Router {
    let layer = kit::guard(db, instance).await.protect(Policy::new("PAY", KeySource::Header)).unwrap();
    Router::new().route("/pay", post(handler).layer(layer)).with_state(seen)
}

async fn pay_with(app: &Router, key: &str) -> kit::Answer {
    send(app, request("/pay", &[("idempotency-key", key)], "{}")).await
}

async fn version(db: &Db) -> i64 {
    kit::number(db, "SELECT version FROM t_order").await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_keys_that_pay_one_order_move_it_once() {
    for test in each_database().await {
        order(&test, "PENDING").await;
        let app = app(&test.db, "one", Seen::Any).await;
        let keys: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
        let answers = join_all(keys.iter().map(|key| pay_with(&app, key))).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            assert_eq!((refused.status, refused.code().as_str()), (409, "wrong_state"));
            assert_eq!(refused.json()["current_state"], "PAID");
            assert_eq!(refused.json()["current_version"], 4);
            assert!(!refused.headers.contains_key("retry-after"), "a terminal conflict is not retried");
        }
        assert_eq!(version(&test.db).await, 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_in_another_state_or_another_version_is_not_moved() {
    for test in each_database().await {
        order(&test, "CLOSED").await;
        let wrong = pay_with(&app(&test.db, "one", Seen::Any).await, "k1").await;
        assert_eq!((wrong.status, wrong.json()["current_state"].as_str()), (409, Some("CLOSED")));
        test.run(&["UPDATE t_order SET status = 'PENDING'"]).await;
        let stale = pay_with(&app(&test.db, "two", Seen::Version(2)).await, "k2").await;
        assert_eq!((stale.status, stale.code().as_str()), (409, "changed_meanwhile"));
        assert_eq!(version(&test.db).await, 3);
        assert_eq!(pay_with(&app(&test.db, "three", Seen::Version(3)).await, "k3").await.status, 200);
        test.run(&["DELETE FROM t_order"]).await;
        assert_eq!(pay_with(&app(&test.db, "four", Seen::Any).await, "k4").await.code(), "no_such_row");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_that_moved_a_row_finds_it_moved() {
    for test in each_database().await {
        order(&test, "PENDING").await;
        let mut tx = test.db.begin().await.unwrap();
        assert_eq!(pay().apply(&mut tx, "k", "O1", Seen::Any).await, Ok(Moved::Now));
        assert_eq!(pay().apply(&mut tx, "k", "O1", Seen::Any).await, Ok(Moved::Before));
        let refused = pay().apply(&mut tx, "other", "O1", Seen::Any).await;
        let state = Some("PAID".to_owned());
        assert_eq!(refused, Err(TransitionError::WrongState { state, version: Some(4) }));
        tx.commit().await.unwrap();
        assert_eq!(version(&test.db).await, 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn states_may_be_numbers_and_tables_in_schemas() {
    for test in each_database().await {
        test.run(&[
            "CREATE TABLE t_ship (id BIGINT PRIMARY KEY, state SMALLINT)",
            "INSERT INTO t_ship VALUES (7, 1)",
        ])
        .await;
        let schema = match test.db.dialect() {
            db::Dialect::Sqlite => "main".to_owned(),
            db::Dialect::Postgres => "public".to_owned(),
            db::Dialect::Mysql => kit::text(&test.db, "SELECT DATABASE()").await.unwrap(),
        };
        let ship = Transition::new(format!("{schema}.t_ship"), "id", "state", [0, 1], 2);
        let mut tx = test.db.begin().await.unwrap();
        assert_eq!(ship.apply(&mut tx, "k", 7i64, Seen::Any).await, Ok(Moved::Now));
        let again = ship.apply(&mut tx, "k", 7i64, Seen::Any).await;
        let state = Some("2".to_owned());
        assert_eq!(again, Err(TransitionError::WrongState { state, version: None }));
        tx.commit().await.unwrap();
        assert_eq!(kit::number(&test.db, "SELECT state FROM t_ship").await, 2);
    }
}
