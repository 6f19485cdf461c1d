use std::time::Duration;

use axum::Router;
use db::Db;
use db::testkit::each_database;
use futures::future::join_all;
use guard::{Policy, SubjectFrom, TokenGate, TokenRules, Tokens};

use crate::kit::{self, entropy, prepare, request, send};

fn rules() -> TokenRules {
    TokenRules { subject: SubjectFrom::Header("x-user".parse().unwrap()), ..TokenRules::default() }
}

/// In the table, and in Redis where there is one.
fn stores(db: &Db, rules: &TokenRules) -> Vec<Tokens> {
    let table = Tokens::in_table(db.clone(), entropy, rules.clone());
    let redis = kit::redis().map(|(redis, prefix)| Tokens::in_redis(redis, prefix, entropy, rules.clone()));
    [Some(table), redis].into_iter().flatten().collect()
}

async fn app(db: &Db, instance: &str, tokens: &Tokens) -> Router {
    let gate = TokenGate::new(tokens.clone(), "ORDER");
    let policy = Policy::new("ORDER", TokenGate::key()).with(gate);
    kit::counting(&kit::guard(db, instance).await, policy).route("/tokens", tokens.issuer("ORDER"))
}

async fn issue(app: &Router, user: &str) -> String {
    let answer = send(app, request("/tokens", &[("x-user", user)], "")).await;
    assert_eq!((answer.status, &answer.headers["cache-control"]), (200, &"no-store".parse().unwrap()));
    answer.json()["token"].as_str().unwrap().to_owned()
}

async fn submit(app: &Router, token: &str, user: &str, body: &str) -> kit::Answer {
    send(app, request("/work", &[("idempotency-token", token), ("x-user", user)], body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn c32_a_hundred_submits_of_one_token_have_one_effect_and_one_answer() {
    for test in each_database().await {
        prepare(&test).await;
        let other = test.reopen().await;
        for (nth, tokens) in stores(&test.db, &rules()).into_iter().enumerate() {
            let (one, two) = (app(&test.db, "one", &tokens).await, app(&other, "two", &tokens).await);
            let token = issue(&one, "ann").await;
            let submits =
                (0..100).map(|n| submit(if n % 2 == 0 { &one } else { &two }, &token, "ann", "form"));
            for answer in join_all(submits).await {
                assert_eq!((answer.status, &answer.body[..]), (200, &b"done form"[..]));
            }
            assert_eq!(kit::effects(&test.db).await, nth as i64 + 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c32_a_token_is_of_no_use_to_others_and_cannot_be_made_up() {
    for test in each_database().await {
        prepare(&test).await;
        for tokens in stores(&test.db, &rules()) {
            let app = app(&test.db, "one", &tokens).await;
            let token = issue(&app, "ann").await;
            let forged = format!("{}{}", "00".repeat(16), &token[32..]);
            let elsewhere = tokens.issue("REFUND", "ann").await.unwrap();
            for (token, user) in [(&token, "bob"), (&forged, "ann"), (&elsewhere, "ann")] {
                let answer = submit(&app, token, user, "form").await;
                assert_eq!((answer.status, answer.code().as_str()), (403, "token_refused"));
            }
            let none = send(&app, request("/work", &[("x-user", "ann")], "form")).await;
            assert_eq!((none.status, none.code().as_str()), (400, "token_missing"));
            let nobody = send(&app, request("/tokens", &[], "")).await;
            assert_eq!((nobody.status, nobody.code().as_str()), (401, "who_are_you"));
            assert_eq!(kit::effects(&test.db).await, 0);
            assert_eq!(kit::number(&test.db, "SELECT COUNT(*) FROM idempotent_record").await, 0);
            // Still good for the one it was issued to, whose answer nobody else gets.
            assert_eq!(submit(&app, &token, "ann", "form").await.status, 200);
            assert_eq!(submit(&app, &token, "bob", "form").await.status, 403);
            kit_clear(&test.db).await;
        }
    }
}

async fn kit_clear(db: &Db) {
    for table in ["effect", "idempotent_record"] {
        db.execute(&db::Query::raw(format!("DELETE FROM {table}"), vec![])).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_made_itself_up_is_unknown_to_the_store() {
    for test in each_database().await {
        prepare(&test).await;
        for tokens in stores(&test.db, &rules()) {
            // Well-formed and bound to the right user, yet never issued here.
            let strange = Tokens::in_table(test.db.clone(), entropy, rules());
            let token = strange.issue("ORDER", "ann").await.unwrap();
            test.run(&["DELETE FROM idempotency_token"]).await;
            let app = app(&test.db, "one", &tokens).await;
            let answer = submit(&app, &token, "ann", "form").await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "token_refused"));
            assert_eq!(kit::effects(&test.db).await, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_comes_too_late_does_nothing_and_a_used_one_still_answers() {
    for test in each_database().await {
        prepare(&test).await;
        let tokens = Tokens::in_table(test.db.clone(), entropy, rules());
        let app = app(&test.db, "one", &tokens).await;
        let (late, used) = (issue(&app, "ann").await, issue(&app, "ann").await);
        let first = submit(&app, &used, "ann", "form").await;
        test.run(&["UPDATE idempotency_token SET expires_at = 1"]).await;
        let answer = submit(&app, &late, "ann", "form").await;
        assert_eq!((answer.status, answer.code().as_str()), (410, "token_expired"));
        let again = submit(&app, &used, "ann", "form").await;
        assert!(again.replayed());
        assert_eq!((again.status, again.body), (200, first.body));
        // Its record was removed: nothing begins anew with a token used long ago.
        test.run(&["DELETE FROM idempotent_record"]).await;
        let fresh = self::app(&test.db, "two", &tokens).await;
        assert_eq!(submit(&fresh, &used, "ann", "form").await.code(), "token_refused");
        assert_eq!(kit::effects(&test.db).await, 1);
        assert_eq!(tokens.purge(1).await.unwrap(), 1);
        assert_eq!(tokens.purge(10).await.unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_redis_that_comes_too_late_is_gone() {
    let Some((redis, prefix)) = kit::redis() else { return };
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    let short = TokenRules { life: Duration::from_millis(30), ..rules() };
    let tokens = Tokens::in_redis(redis.clone(), &prefix, entropy, short);
    let app = app(&test.db, "one", &tokens).await;
    let token = issue(&app, "ann").await;
    let entry = format!("{prefix}{token}");
    kit::until("the token is gone", async || redis.get(&entry).await.unwrap().is_none()).await;
    assert_eq!(submit(&app, &token, "ann", "form").await.code(), "token_refused");
    assert_eq!(kit::effects(&test.db).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn c29_tokens_whose_store_is_down_begin_nothing() {
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    let redis = kv::Redis::open("redis://127.0.0.1:1/0", kv::Options::default()).unwrap();
    let tokens = Tokens::in_redis(redis, "x:", entropy, rules());
    let app = app(&test.db, "one", &tokens).await;
    let issued = send(&app, request("/tokens", &[("x-user", "ann")], "")).await;
    assert_eq!((issued.status, issued.code().as_str()), (503, "tokens_unavailable"));
    let token = Tokens::in_table(test.db.clone(), entropy, rules()).issue("ORDER", "ann").await.unwrap();
    let answer = submit(&app, &token, "ann", "form").await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "tokens_unavailable"));
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(kit::effects(&test.db).await, 0);
}
