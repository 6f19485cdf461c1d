//! How runs end, and what is recorded of it.

use std::time::Duration;

use db::testkit::each_database;
use futures::future::join_all;
use guard::{Happening, OnRefusal, Policy};

use crate::common::{Answer, BODY, Mode, OTHER_BODY, Service, process, re_execute, service};

const LEASE_OVER: &str = "lease_until = '2020-01-01 00:00:00'";

#[tokio::test(flavor = "multi_thread")]
async fn c04_a_client_that_hangs_up_cancels_nothing() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        service.close_gate();
        let client = service.pay_in_background("k", BODY);
        service.handler_began().await;
        client.abort();
        assert!(client.await.is_err());
        service.open_gate();
        service.until_status("k", "SUCCESS").await;
        assert!(service.pay("k", BODY).await.replayed());
        assert_eq!(service.effects().await, 1);
    }
}

/// A process dies: its tasks are gone, its record stays.
async fn dies_while_processing(test: &db::testkit::TestDb) {
    let db = test.reopen().await;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let doomed = process(db, "doomed", Mode::Hang, |policy| policy).await;
    let entered = doomed.entered.clone();
    runtime.spawn(async move { doomed.pay("k", BODY).await });
    entered.acquire().await.unwrap().forget();
    let watcher = process(test.db.clone(), "watcher", Mode::Tx, |policy| policy).await;
    let sent = tokio::time::timeout(Duration::from_secs(10), async {
        while watcher.column("k", "phase").await.as_deref() != Some("sent") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    sent.await.unwrap();
    runtime.shutdown_background();
    watcher.set_record("k", LEASE_OVER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c07_c86_after_a_crash_the_record_is_held_and_another_body_is_still_refused() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        dies_while_processing(&test).await;
        assert_eq!(service.pay("k", OTHER_BODY).await.status, 422);
        let held = service.pay("k", BODY).await;
        assert_eq!((held.status, held.code().as_str()), (409, "held"));
        assert_eq!(service.effects().await, 0);
        assert_eq!(service.status("k").await, "PROCESSING");
        assert_eq!(service.counts.of(Happening::StaleProcessing), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c07_after_a_crash_a_route_that_may_runs_again_with_a_higher_fence() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        dies_while_processing(&test).await;
        let service = process(test.db.clone(), "two", Mode::Tx, re_execute).await;
        let answers = join_all((0..20).map(|_| service.pay("k", BODY))).await;
        assert!(answers.iter().all(|answer| answer.status == 200));
        assert_eq!(service.effects().await, 1);
        assert_eq!(service.column("k", "fence").await.as_deref(), Some("2"));
        assert_eq!(service.column("k", "attempts").await.as_deref(), Some("2"));
    }
}

/// Holds a worker while an operator settles its record, then lets it finish.
async fn late_worker(service: &Service, settled: &str) -> Answer {
    service.close_gate();
    let worker = service.pay_in_background("k", BODY);
    service.handler_began().await;
    service.set_record("k", settled).await;
    service.open_gate();
    worker.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn c46_late_worker_is_fenced_and_its_business_write_rolled_back() {
    for test in each_database().await {
        for settled in
            ["status = 'TIMEOUT'", "status = 'SUCCESS', response_body = '{}'", "fence = 2, owner = 'x'"]
        {
            if settled.contains("TIMEOUT") {
                service(&test, Mode::Tx).await;
            }
            let service = process(test.db.clone(), "one", Mode::Tx, |policy| policy).await;
            test.run(&["DELETE FROM idempotent_record"]).await;
            let late = late_worker(&service, settled).await;
            assert_eq!((late.status, late.code().as_str()), (409, "late"), "{settled}");
            assert_eq!(service.effects().await, 0, "{settled}");
            assert_eq!(service.counts.of(Happening::LateCompletion), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c46_a_late_effect_outside_the_transaction_completes_a_timed_out_record() {
    for test in each_database().await {
        let service = service(&test, Mode::Alone).await;
        let late = late_worker(&service, "status = 'TIMEOUT'").await;
        assert_eq!(late.code(), "late");
        assert_eq!(service.status("k").await, "SUCCESS");
        assert_eq!(service.column("k", "phase").await.as_deref(), Some("late"));
        assert!(service.pay("k", BODY).await.replayed());
        assert_eq!(service.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timed_out_record_runs_again_for_the_same_request_only() {
    for test in each_database().await {
        let service = service(&test, Mode::Tx).await;
        dies_while_processing(&test).await;
        service.set_record("k", "status = 'TIMEOUT'").await;
        assert_eq!(service.pay("k", OTHER_BODY).await.status, 422);
        let answers = join_all((0..20).map(|_| service.pay("k", BODY))).await;
        assert!(answers.iter().all(|answer| answer.status == 200));
        assert_eq!(service.effects().await, 1);
        assert_eq!(service.status("k").await, "SUCCESS");
        assert_eq!(service.column("k", "fence").await.as_deref(), Some("2"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c10_a_refusal_is_stored_and_a_proven_rollback_may_run_again() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        let store = |policy| Policy { on_refusal: OnRefusal::Store, ..policy };
        let service = process(test.db.clone(), "one", Mode::Refuse, store).await;
        assert_eq!(service.pay("refused", BODY).await.status, 402);
        service.set(Mode::RollBack);
        assert_eq!(service.pay("rolled-back", BODY).await.status, 503);
        assert_eq!(service.effects().await, 0);
        assert_eq!(service.column("rolled-back", "phase").await.as_deref(), Some("rolled_back"));
        service.set(Mode::Tx);
        let refused = service.pay("refused", BODY).await;
        assert_eq!((refused.status, refused.replayed(), &refused.body[..]), (402, true, &b"no money"[..]));
        let again = service.pay("rolled-back", BODY).await;
        assert_eq!((again.status, again.replayed()), (200, false));
        assert_eq!(service.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c35_an_unknown_outcome_is_kept_and_never_run_again() {
    for test in each_database().await {
        let service = service(&test, Mode::FailAfterEffect).await;
        assert_eq!(service.pay("failed", BODY).await.status, 502);
        service.set(Mode::Panic);
        assert_eq!(service.pay("panicked", BODY).await.code(), "outcome_unknown");
        service.set(Mode::Tx);
        for key in ["failed", "panicked"] {
            assert_eq!(service.pay(key, BODY).await.code(), "held");
            assert_eq!(service.status(key).await, "PROCESSING");
            assert_eq!(service.column(key, "phase").await.as_deref(), Some("unknown"));
        }
        assert_eq!(service.effects().await, 1);
        assert_eq!(service.counts.of(Happening::InDoubt), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_back_that_fails_frees_the_key_only_when_nothing_was_sent() {
    let test = db::testkit::sqlite().await;
    let service = service(&test, Mode::Tx).await;
    test.run(&["CREATE TRIGGER refuse BEFORE UPDATE ON idempotent_record WHEN NEW.status = 'SUCCESS'
        BEGIN SELECT RAISE(ABORT, 'refused'); END"])
        .await;
    assert_eq!(service.pay("kept", BODY).await.code(), "store_unavailable");
    service.set(Mode::SendAndTx);
    assert_eq!(service.pay("sent", BODY).await.code(), "not_recorded");
    test.run(&["DROP TRIGGER refuse"]).await;
    assert_eq!(service.effects().await, 0);
    assert_eq!(service.pay("sent", BODY).await.code(), "held");
    assert_eq!(service.column("sent", "phase").await.as_deref(), Some("sent"));
    assert_eq!(service.pay("kept", BODY).await.status, 200);
    assert_eq!(service.effects().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn c05_a_lease_is_renewed_while_the_handler_lives() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        let short = |policy: Policy| {
            re_execute(Policy {
                lease: Duration::from_millis(300),
                max_wait: Duration::from_millis(900),
                ..policy
            })
        };
        let one = process(test.db.clone(), "one", Mode::Tx, short).await;
        let two = process(test.reopen().await, "two", Mode::Tx, short).await;
        one.close_gate();
        let first = one.pay_in_background("k", BODY);
        one.handler_began().await;
        assert_eq!(two.pay("k", BODY).await.code(), "in_progress");
        one.open_gate();
        assert_eq!(first.await.unwrap().status, 200);
        assert_eq!(one.effects().await, 1);
        assert_eq!(one.column("k", "fence").await.as_deref(), Some("1"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a1_a2_a_settled_record_without_a_response_says_so() {
    for test in each_database().await {
        service(&test, Mode::Tx).await.pay("k", BODY).await;
        let fresh = || process(test.db.clone(), "two", Mode::Tx, |policy| policy);
        let service = fresh().await;
        service.set_record("k", "response_body = NULL").await;
        let lost = service.pay("k", BODY).await;
        assert_eq!((lost.status, lost.replayed(), lost.code().as_str()), (200, true, "response_not_stored"));
        assert_eq!(service.counts.of(Happening::MissingResponse), 1);
        service
            .set_record("k", "response_status = NULL, response_headers = NULL, response_body = '{\"a\":1}'")
            .await;
        let marked = service.pay("k", BODY).await;
        assert_eq!((marked.status, &marked.body[..]), (200, &b"{\"a\":1}"[..]));
        assert_eq!(service.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c10_a_refusal_before_any_effect_may_run_again_and_says_so() {
    for test in each_database().await {
        let service = service(&test, Mode::Refuse).await;
        service.close_gate();
        let first = service.pay_in_background("k", BODY);
        service.handler_began().await;
        let waiting: Vec<_> = (0..5).map(|_| service.pay("k", BODY)).collect();
        let gate = service.clone();
        let (waited, ()) = futures::join!(join_all(waiting), async move { gate.open_gate() });
        for answer in waited.into_iter().chain([first.await.unwrap()]) {
            assert_eq!(answer.status, 402);
            assert_eq!(answer.headers["idempotency-outcome"], "retryable");
        }
        assert_eq!(service.counts.of(Happening::Executed), 1, "those who waited did not run in turn");
        assert_eq!(service.status("k").await, "FAILED");
        service.set(Mode::Tx);
        let again = service.pay("k", BODY).await;
        assert_eq!((again.status, again.replayed()), (200, false));
        assert_eq!(service.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c10_a_failure_after_the_effect_is_unknown_and_says_so() {
    for test in each_database().await {
        let service = service(&test, Mode::FailAfterEffect).await;
        let first = service.pay("k", BODY).await;
        assert_eq!((first.status, &first.headers["idempotency-outcome"]), (502, &"unknown".parse().unwrap()));
        service.set(Mode::Tx);
        let held = service.pay("k", BODY).await;
        assert_eq!(
            (held.code().as_str(), &held.headers["idempotency-outcome"]),
            ("held", &"unknown".parse().unwrap())
        );
        assert_eq!(service.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a9_a_run_longer_than_every_limit_has_one_effect_and_ends_by_itself() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        let short = |policy: Policy| Policy {
            lease: Duration::from_millis(400),
            max_run: Duration::from_millis(500),
            max_wait: Duration::from_millis(50),
            ..policy
        };
        let service = process(test.db.clone(), "one", Mode::Tx, short).await;
        service.close_gate();
        let first = service.pay_in_background("k", BODY);
        service.handler_began().await;
        let processing = service.pay("k", BODY).await;
        assert_eq!(processing.code(), "in_progress");
        assert!(String::from_utf8_lossy(&processing.body).contains("still processing"));
        let held = tokio::time::timeout(Duration::from_secs(20), async {
            while service.pay("k", BODY).await.code() != "held" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        held.await.expect("past its longest run the table tells that nobody renews the lease");
        assert_eq!(service.status("k").await, "PROCESSING");
        service.open_gate();
        service.until_status("k", "SUCCESS").await;
        assert!(matches!(first.await.unwrap().status, 200 | 409));
        let again = service.pay("k", BODY).await;
        assert_eq!((again.status, again.replayed()), (200, true));
        assert_eq!(service.effects().await, 1);
    }
}
