//! Who gets a key, and what the others hear.

use std::time::Duration;

use db::testkit::each_database;
use futures::future::join_all;
use guard::{Call, Entered, Happening, KeySource, Policy};

use crate::common::{BODY, Mode, OTHER_BODY, SAME_BODY, caches, process, process_with, service};

#[tokio::test(flavor = "multi_thread")]
async fn c85_the_same_request_again_and_again_is_answered_from_the_record() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        let first = service.pay("k", BODY).await;
        for _ in 0..9 {
            let again = service.pay("k", SAME_BODY).await;
            assert!(again.replayed());
            assert_eq!((again.status, again.body), (first.status, first.body.clone()));
        }
        assert_eq!(service.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_over_one_database_have_one_effect() {
    for test in each_database().await {
        let one = service(&test, Mode::Tx).await;
        let two = process(test.reopen().await, "two", Mode::Tx, |policy| policy).await;
        let answers =
            join_all((0..40).map(|n| if n % 2 == 0 { one.pay("k", BODY) } else { two.pay("k", BODY) })).await;
        assert_eq!(one.effects().await, 1);
        assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c03_another_body_under_the_same_key_is_refused_even_while_processing() {
    for test in each_database().await {
        let one = service(&test, Mode::Tx).await;
        let two = process(test.reopen().await, "two", Mode::Tx, |policy| policy).await;
        one.close_gate();
        let first = one.pay_in_background("k", BODY);
        one.handler_began().await;
        for service in [&one, &two] {
            let other = service.pay("k", OTHER_BODY).await;
            assert_eq!((other.status, other.code().as_str()), (422, "key_reused"));
            assert_eq!(service.counts.of(Happening::PayloadMismatch), 1);
        }
        one.open_gate();
        assert_eq!(first.await.unwrap().status, 200);
        assert_eq!(one.pay("k", OTHER_BODY).await.status, 422);
        assert_eq!(one.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a6_one_key_of_two_business_types_is_two_requests() {
    for test in each_database().await {
        let one = service(&test, Mode::Tx).await;
        let two = process(test.reopen().await, "two", Mode::Tx, |policy| policy).await;
        for service in [&one, &two] {
            let first = std::ptr::eq(service, &one);
            assert_eq!(service.pay("k", BODY).await.replayed(), !first);
            assert_eq!(service.post("/other", &["k"], BODY).await.replayed(), !first);
            // As the console sends it, which knows the record by its id.
            assert!(service.post("/other", &["k@OTHER"], BODY).await.replayed());
            assert_eq!(service.post("/other", &["k"], OTHER_BODY).await.status, 422);
        }
        assert_eq!(one.effects().await, 2);
        assert_eq!(one.column("k", "biz_type").await.as_deref(), Some("PAY"));
        assert_eq!(one.column("k@OTHER", "biz_type").await.as_deref(), Some("OTHER"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a4_c33_past_its_wait_a_duplicate_hears_still_processing() {
    for test in each_database().await {
        let impatient = |policy: Policy| Policy { max_wait: Duration::from_millis(50), ..policy };
        service(&test, Mode::Tx).await;
        let one = process(test.db.clone(), "one", Mode::Tx, impatient).await;
        let two = process(test.reopen().await, "two", Mode::Tx, impatient).await;
        one.close_gate();
        let first = one.pay_in_background("k", BODY);
        one.handler_began().await;
        for service in [&one, &two] {
            let waited = service.pay("k", BODY).await;
            assert_eq!((waited.status, waited.code().as_str()), (409, "in_progress"));
            assert_eq!(waited.headers["content-type"], "application/problem+json");
            let retry_after: u64 = waited.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=60).contains(&retry_after));
            assert!(String::from_utf8_lossy(&waited.body).contains("still processing"));
        }
        one.open_gate();
        assert_eq!(first.await.unwrap().status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c17_keys_are_checked_and_case_matters() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        assert_eq!(service.post("/pay", &[], BODY).await.status, 400);
        assert_eq!(service.post("/pay", &["a", "b"], BODY).await.status, 400);
        assert_eq!(service.pay(&"a".repeat(256), BODY).await.status, 400);
        assert_eq!(service.effects().await, 0);
        let long = "a".repeat(255);
        let emoji = "😂".repeat(64);
        for key in ["ABC", "abc", "'; DROP TABLE biz_order; --", "%", &long, &emoji] {
            let answer = service.pay(key, BODY).await;
            assert_eq!((answer.status, answer.replayed()), (200, false), "{key}");
        }
        assert_eq!(service.effects().await, 6);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c02_the_loser_of_a_race_waits_for_the_first_answer_with_any_cache() {
    for test in each_database().await {
        let first = service(&test, Mode::Tx).await;
        for (n, cache) in caches().into_iter().enumerate() {
            let key = format!("race{n}");
            let one = process_with(test.db.clone(), "one", Mode::Tx, cache.clone(), |policy| policy).await;
            let two = process_with(test.reopen().await, "two", Mode::Tx, cache, |policy| policy).await;
            let all = (0..40).map(|n| if n % 2 == 0 { one.pay(&key, BODY) } else { two.pay(&key, BODY) });
            let answers = join_all(all).await;
            assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body));
            assert_eq!(first.effects().await, n as i64 + 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a6_tenants_never_meet_and_a_request_without_one_is_refused() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        let by_shop =
            |policy: Policy| Policy { tenant: Some(guard::Pick::Pointer("/shop".to_owned())), ..policy };
        let one = process(test.db.clone(), "one", Mode::Tx, by_shop).await;
        let [a, b] = ["a", "b"].map(|shop| format!("{{\"shop\":\"{shop}\",\"orderNo\":\"1\"}}"));
        assert!(!one.pay("k", &a).await.replayed());
        assert!(!one.pay("k", &b).await.replayed());
        let two = process(test.reopen().await, "two", Mode::Tx, by_shop).await;
        assert!(two.pay("k", &a).await.replayed() && two.pay("k", &b).await.replayed());
        assert_eq!(two.pay("k", BODY).await.code(), "no_tenant");
        assert_eq!(two.effects().await, 2);
        assert_eq!(two.column("k@PAY@b", "tenant").await.as_deref(), Some("b"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scoped_record_stays_the_key_s_record_when_the_plain_one_is_purged() {
    for test in each_database().await {
        let one = service(&test, Mode::Tx).await;
        one.pay("k", BODY).await;
        one.post("/other", &["k"], BODY).await;
        test.run(&["DELETE FROM idempotent_record WHERE idempotent_id = 'k'"]).await;
        let two = process(test.reopen().await, "two", Mode::Tx, |policy| policy).await;
        assert!(two.post("/other", &["k"], BODY).await.replayed());
        assert_eq!(two.effects().await, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c19_a_duplicate_leaves_the_caller_s_transaction_usable() {
    for test in each_database().await {
        let one = service(&test, Mode::Tx).await;
        let policy = Policy::new("SETTLE", KeySource::Header);
        let call = |path| Call {
            key: "m1",
            tenant: None,
            biz_no: Some("1".to_owned()),
            path,
            body: axum::body::Bytes::from_static(b"{\"n\":1.0}"),
        };
        let write = db::Query::raw("INSERT INTO biz_order (order_no) VALUES ('x')", vec![]);
        for round in 0..3 {
            let mut tx = one.db.begin().await.unwrap();
            tx.execute(&write).await.unwrap();
            match one.guard.enter(&mut tx, &policy, call("/settle")).await.unwrap() {
                Entered::First(pending) => {
                    assert!(round < 2);
                    assert!(pending.finish(&mut tx, "done").await.unwrap());
                }
                Entered::Done { status, body } => {
                    assert_eq!((round, status.as_u16(), body.as_deref()), (2, 200, Some(&b"done"[..])));
                }
                Entered::Refused(problem) => panic!("{problem:?}"),
            }
            // What was rolled back never was.
            if round == 0 { tx.rollback().await.unwrap() } else { tx.commit().await.unwrap() }
        }
        assert_eq!(one.effects().await, 2);
        let mut tx = one.db.begin().await.unwrap();
        let other = one.guard.enter(&mut tx, &policy, call("/other")).await.unwrap();
        assert!(matches!(other, Entered::Refused(problem) if problem.code == "key_reused"));
        tx.execute(&write).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(one.effects().await, 3);
    }
}
