//! Many at once.

use db::testkit::each_database;
use futures::future::join_all;
use futures::{StreamExt, stream};
use guard::{Cache, Happening, Policy};

use crate::common::{BODY, Mode, process, process_with, service};

#[tokio::test(flavor = "multi_thread")]
async fn c02_c88_two_hundred_identical_requests_have_one_effect_and_one_answer() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        let answers = join_all((0..200).map(|_| service.pay("k", BODY))).await;
        assert_eq!(service.effects().await, 1);
        assert_eq!(answers.iter().filter(|answer| !answer.replayed()).count(), 1);
        for answer in &answers {
            assert_eq!((answer.status, &answer.body), (200, &answers[0].body));
            assert_eq!(answer.headers.get_all("x-order").iter().count(), 2);
            assert_eq!(answer.headers["content-type"], "application/json");
            assert_eq!(answer.headers.contains_key("set-cookie"), !answer.replayed());
        }
        assert_eq!(service.counts.of(Happening::Executed), 1);
        assert_eq!(service.counts.of(Happening::Hit), 199);
        assert_eq!(service.column("k", "biz_no").await.as_deref(), Some("20261201000000000001"));
        assert_eq!(service.column("k", "request_body").await.as_deref(), Some(BODY));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c29_without_its_database_nothing_is_run() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        service.db.close().await;
        let refused = service.pay("k", BODY).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "store_unavailable"));
        assert!(refused.headers.contains_key("retry-after"));
        assert_eq!(service.entered.available_permits(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c87_waiting_duplicates_hold_no_connection() {
    for test in each_database().await {
        let first = service(&test, Mode::Tx).await;
        let small = db::Options { max_connections: 2, ..db::Options::own() };
        let db = db::Db::connect(&test.url, &small).await.unwrap();
        let service = process(db, "small", Mode::Tx, |policy| policy).await;
        let answers = join_all((0..500).map(|_| service.pay("k", BODY))).await;
        assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body));
        assert_eq!(first.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c34_a_retry_storm_is_shed_in_the_process_and_counted() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        let keys: Vec<String> = (0..50).map(|n| format!("storm{n}")).collect();
        let answers = join_all(keys.iter().flat_map(|key| (0..6).map(|_| service.pay(key, BODY)))).await;
        assert!(answers.iter().all(|answer| answer.status == 200));
        assert_eq!(service.effects().await, 50);
        assert_eq!(service.counts.of(Happening::Executed), 50);
        assert_eq!(service.counts.of(Happening::Hit), 250);
        assert!(service.counts.bursts() > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c21_many_keys_and_duplicates_over_two_processes_never_meet_a_server_error() {
    for test in each_database().await {
        let one = service(&test, Mode::Tx).await;
        let two = process_with(test.reopen().await, "two", Mode::Tx, Cache::None, |policy| policy).await;
        let pairs = (0..100).map(|n| {
            let (one, two, key) = (one.clone(), two.clone(), format!("key{n}"));
            async move { futures::join!(one.pay(&key, BODY), two.pay(&key, BODY)) }
        });
        let answers: Vec<_> = stream::iter(pairs).buffer_unordered(20).collect().await;
        assert!(answers.iter().all(|(one, two)| one.status == 200 && two.status == 200));
        assert_eq!(one.effects().await, 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c21_when_the_winner_rolls_back_exactly_one_of_the_others_runs() {
    for test in each_database().await {
        if test.db.dialect() == db::Dialect::Sqlite {
            continue;
        }
        let service = service(&test, Mode::Tx).await;
        let policy = Policy::new("SETTLE", guard::KeySource::Header);
        let call = || guard::Call {
            key: "m",
            tenant: None,
            biz_no: None,
            path: "/settle",
            body: axum::body::Bytes::from_static(b"{}"),
        };
        let mut a = service.db.begin().await.unwrap();
        assert!(matches!(
            service.guard.enter(&mut a, &policy, call()).await.unwrap(),
            guard::Entered::First(_)
        ));
        let others = join_all((0..2).map(|_| async {
            let mut tx = service.db.begin().await.unwrap();
            match service.guard.enter(&mut tx, &policy, call()).await {
                Ok(guard::Entered::First(pending)) => {
                    assert!(pending.finish(&mut tx, "done").await.unwrap());
                    tx.commit().await.unwrap();
                    1
                }
                Ok(_) => 0,
                Err(guard::GuardError::Db(e)) if e.is_retryable() => 0,
                Err(e) => panic!("{e}"),
            }
        }));
        let (ran, rolled_back) = futures::join!(others, async {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            a.rollback().await
        });
        rolled_back.unwrap();
        assert_eq!(ran.iter().sum::<i32>(), 1, "{}", test.db.dialect());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c87_more_waiters_than_allowed_hear_still_processing_at_once() {
    for test in each_database().await {
        let first = service(&test, Mode::Tx).await;
        let settings = guard::Settings { max_waiters: 3, ..guard::Settings::new("small") };
        let guard = guard::Guard::open(test.db.clone(), settings).await.unwrap();
        let one = first.behind(&guard, Policy::new("PAY", guard::KeySource::Header));
        one.close_gate();
        let running = one.pay_in_background("k", BODY);
        one.handler_began().await;
        let mut crowd: Vec<_> = (0..10).map(|_| one.pay_in_background("k", BODY)).collect();
        let mut refused = 0;
        while refused < 7 {
            let (answer, _, rest) = futures::future::select_all(crowd).await;
            let answer = answer.unwrap();
            assert_eq!(answer.code(), "in_progress");
            assert!(answer.headers.contains_key("retry-after"));
            (refused, crowd) = (refused + 1, rest);
        }
        one.open_gate();
        assert_eq!(running.await.unwrap().status, 200);
        assert!(join_all(crowd).await.into_iter().all(|answer| answer.unwrap().status == 200));
    }
}
