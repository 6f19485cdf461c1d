//! What caches may say, and what becomes of them.

use std::time::Duration;

use db::testkit::{TestDb, each_database};
use futures::future::join_all;
use guard::{Cache, Happening, Policy};

use crate::common::{BODY, Mode, OTHER_BODY, Service, caches, process_with, service};
use crate::redis::PrivateRedis;

/// A process that has met the key `k` and remembers nothing about it but that.
async fn acquainted(test: &TestDb, cache: &Cache) -> Service {
    let one = process_with(test.db.clone(), "one", Mode::Tx, cache.clone(), |policy| policy).await;
    one.pay("k", BODY).await;
    one
}

async fn until_kept(redis: &PrivateRedis, key: &str) {
    let kept = tokio::time::timeout(Duration::from_secs(10), async {
        while !redis
            .client()
            .get(key)
            .await
            .unwrap()
            .is_some_and(|value| value.starts_with(b"{\"status\":\"SUCCESS"))
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    kept.await.expect("the answer reaches Redis");
}

#[tokio::test(flavor = "multi_thread")]
async fn c85_c88_whatever_the_cache_a_duplicate_gets_the_first_bytes() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        for (n, cache) in caches().into_iter().enumerate() {
            let key = format!("k{n}");
            let one = process_with(test.db.clone(), "one", Mode::Tx, cache.clone(), |policy| policy).await;
            let two = process_with(test.reopen().await, "two", Mode::Tx, cache, |policy| policy).await;
            let first = one.pay(&key, BODY).await;
            for _ in 0..3 {
                for service in [&one, &two] {
                    let again = service.pay(&key, BODY).await;
                    assert!(again.replayed());
                    assert_eq!((again.status, &again.body), (first.status, &first.body));
                    assert_eq!(again.headers.get_all("x-order").iter().count(), 2);
                    assert!(!again.headers.contains_key("set-cookie"));
                    assert_eq!(service.pay(&key, OTHER_BODY).await.status, 422);
                }
            }
            assert_eq!(one.effects().await, n as i64 + 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c34_a_known_answer_needs_no_database() {
    for test in each_database().await {
        let one = service(&test, Mode::Tx).await;
        let first = one.pay("k", BODY).await;
        one.db.close().await;
        let again = one.pay("k", BODY).await;
        assert_eq!((again.status, again.body), (200, first.body));
        assert_eq!(one.pay("k", OTHER_BODY).await.status, 422);
        assert_eq!(one.pay("new", BODY).await.code(), "store_unavailable");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c34_copies_of_a_held_request_hear_one_answer_and_are_counted_as_a_burst() {
    for test in each_database().await {
        let one = service(&test, Mode::FailAfterEffect).await;
        one.pay("k", BODY).await;
        let answers = join_all((0..30).map(|_| one.pay("k", BODY))).await;
        assert!(answers.iter().all(|answer| answer.code() == "held"));
        assert!(one.counts.bursts() > 0);
        assert_eq!(one.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c46_an_operator_who_settles_a_record_is_not_contradicted_by_memory() {
    for test in each_database().await {
        for cache in caches() {
            service(&test, Mode::Tx).await;
            test.run(&["DELETE FROM idempotent_record", "DELETE FROM biz_order"]).await;
            let one =
                process_with(test.db.clone(), "one", Mode::FailAfterEffect, cache, |policy| policy).await;
            one.pay("k", BODY).await;
            assert_eq!(one.pay("k", BODY).await.code(), "held");
            one.set_record("k", "status = 'SUCCESS', response_body = '{\"orderNo\":1}'").await;
            let marked = one.pay("k", BODY).await;
            assert_eq!((marked.status, &marked.body[..]), (200, &b"{\"orderNo\":1}"[..]));
            test.run(&["DROP TABLE biz_order"]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c09_c11_what_redis_lost_comes_from_the_table() {
    let Some(redis) = PrivateRedis::start().await else { return };
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        let one = acquainted(&test, &redis.cache()).await;
        until_kept(&redis, "idem:k").await;
        redis.flush().await;
        let again = one.pay("k", BODY).await;
        assert_eq!((again.status, again.replayed()), (200, true));
        assert_eq!(one.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_answers_a_duplicate_without_the_table() {
    let Some(redis) = PrivateRedis::start().await else { return };
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        redis.flush().await;
        let one = acquainted(&test, &redis.cache()).await;
        until_kept(&redis, "idem:k").await;
        test.run(&["DELETE FROM idempotent_record"]).await;
        let again = one.pay("k", BODY).await;
        assert_eq!((again.status, again.replayed()), (200, true));
        assert_eq!(one.pay("k", OTHER_BODY).await.status, 422);
        assert_eq!(one.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_success_in_redis_and_no_record_says_that_the_response_is_not_stored() {
    let Some(redis) = PrivateRedis::start().await else { return };
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        redis.flush().await;
        let one = acquainted(&test, &redis.cache()).await;
        until_kept(&redis, "idem:k").await;
        // As another writer keeps it.
        redis.client().set("idem:k", b"SUCCESS", Duration::from_secs(60)).await.unwrap();
        assert_eq!(one.pay("k", BODY).await.status, 200);
        test.run(&["DELETE FROM idempotent_record"]).await;
        let lost = one.pay("k", BODY).await;
        assert_eq!((lost.status, lost.code().as_str()), (200, "response_not_stored"));
        assert_eq!(one.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a5_c05_redis_flushed_while_a_request_runs_lets_nobody_else_run() {
    let Some(redis) = PrivateRedis::start().await else { return };
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        redis.flush().await;
        let short = |policy: Policy| Policy {
            lease: Duration::from_millis(600),
            max_wait: Duration::from_millis(100),
            ..policy
        };
        let one = process_with(test.db.clone(), "one", Mode::Tx, redis.cache(), short).await;
        let two = process_with(test.reopen().await, "two", Mode::Tx, redis.cache(), short).await;
        one.close_gate();
        let first = one.pay_in_background("k", BODY);
        one.handler_began().await;
        let announced = tokio::time::timeout(Duration::from_secs(10), async {
            loop {
                if let Some(entry) = redis.client().entry("idem:k").await.unwrap() {
                    break entry;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let entry = announced.await.expect("long work is announced");
        assert!(entry.value.starts_with(b"{\"status\":\"PROCESSING"));
        assert!(entry.ttl.unwrap() <= Duration::from_millis(600), "never longer than the lease");
        for _ in 0..3 {
            redis.flush().await;
            assert_eq!(two.pay("k", BODY).await.code(), "in_progress");
        }
        one.open_gate();
        assert_eq!(first.await.unwrap().status, 200);
        assert!(two.pay("k", BODY).await.replayed());
        assert_eq!(one.effects().await, 1);
        until_kept(&redis, "idem:k").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_goes_when_the_work_was_rolled_back() {
    let Some(redis) = PrivateRedis::start().await else { return };
    let test = db::testkit::sqlite().await;
    service(&test, Mode::Tx).await;
    let one = process_with(test.db.clone(), "one", Mode::Refuse, redis.cache(), |policy| policy).await;
    one.close_gate();
    let first = one.pay_in_background("k", BODY);
    one.handler_began().await;
    let announced = tokio::time::timeout(Duration::from_secs(10), async {
        while redis.client().get("idem:k").await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    announced.await.unwrap();
    one.open_gate();
    assert_eq!(first.await.unwrap().status, 402);
    assert_eq!(redis.client().get("idem:k").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn c29_redis_stopped_and_started_again_under_load_costs_nothing_but_speed() {
    let Some(mut redis) = PrivateRedis::start().await else { return };
    for test in each_database().await {
        let small = service(&test, Mode::Tx).await;
        let one = process_with(test.db.clone(), "one", Mode::Tx, redis.cache(), |policy| policy).await;
        let two = process_with(test.reopen().await, "two", Mode::Tx, redis.cache(), |policy| policy).await;
        let round = async |name: &str| {
            let keys: Vec<String> = (0..10).map(|n| format!("{name}{n}")).collect();
            let all =
                keys.iter().flat_map(|key| [one.pay(key, BODY), two.pay(key, BODY), one.pay(key, BODY)]);
            let answers = join_all(all).await;
            assert!(answers.iter().all(|answer| answer.status == 200), "{name}");
        };
        round("up").await;
        redis.stop();
        round("down").await;
        round("up").await;
        redis.start_again().await;
        round("again").await;
        round("down").await;
        assert_eq!(small.effects().await, 30);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unique_request_costs_redis_one_command() {
    let Some(redis) = PrivateRedis::start().await else { return };
    let test = db::testkit::sqlite().await;
    service(&test, Mode::Tx).await;
    let one = process_with(test.db.clone(), "one", Mode::Tx, redis.cache(), |policy| policy).await;
    for n in 0..20 {
        let key = format!("k{n}");
        assert_eq!(one.pay(&key, BODY).await.status, 200);
        until_stored(&redis, n + 1).await;
    }
    assert_eq!(redis.commands("set").await, 20);
    assert_eq!(redis.commands("get").await, 0);
    assert_eq!(one.counts.of(Happening::Executed), 20);
}

async fn until_stored(redis: &PrivateRedis, sets: u64) {
    let stored = tokio::time::timeout(Duration::from_secs(10), async {
        while redis.commands("set").await < sets {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    stored.await.expect("the answer reaches Redis");
}
