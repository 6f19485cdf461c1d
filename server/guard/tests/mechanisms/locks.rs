use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use db::Db;
use db::testkit::each_database;
use futures::future::join_all;
use guard::{Claim, KeySource, LockRules, Locks, Outcome, Policy, Serial};
use tokio::sync::Semaphore;

use crate::kit::{self, prepare, request, send, until};

fn rules() -> LockRules {
    LockRules { max_wait: Duration::from_secs(20), ..LockRules::default() }
}

fn short(lease_ms: u64, max_hold_ms: u64) -> LockRules {
    LockRules {
        lease: Duration::from_millis(lease_ms),
        max_hold: Duration::from_millis(max_hold_ms),
        max_wait: Duration::ZERO,
    }
}

/// Two processes' locks in the table, and in Redis where there is one.
fn stores(one: &Db, two: &Db) -> Vec<[Locks; 2]> {
    let table = [Locks::in_table(one.clone(), "one"), Locks::in_table(two.clone(), "two")];
    let redis = kit::redis().map(|(redis, prefix)| {
        ["one", "two"].map(|instance| Locks::in_redis(redis.clone(), &prefix, instance))
    });
    [Some(table), redis].into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_holder_at_a_time_and_fences_that_only_grow() {
    for test in each_database().await {
        prepare(&test).await;
        for [one, two] in stores(&test.db, &test.reopen().await) {
            let (inside, highest) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
            let work = (0..16).map(|n| {
                let (locks, inside, highest) = ([&one, &two][n % 2].clone(), inside.clone(), highest.clone());
                async move {
                    let lease = locks.acquire("order:1", rules()).await.unwrap().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    assert!(highest.swap(lease.fence(), Ordering::SeqCst) < lease.fence());
                    tokio::task::yield_now().await;
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    lease.release().await.unwrap();
                    assert!(!lease.is_held());
                }
            });
            join_all(work).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fences_grow_even_when_their_memory_is_lost() {
    for test in each_database().await {
        prepare(&test).await;
        let locks = Locks::in_table(test.db.clone(), "one");
        let first = locks.acquire("a", rules()).await.unwrap().unwrap();
        first.release().await.unwrap();
        test.run(&["DELETE FROM idempotency_lock"]).await;
        assert!(locks.acquire("a", rules()).await.unwrap().unwrap().fence() > first.fence());
    }
    let Some((redis, prefix)) = kit::redis() else { return };
    let locks = Locks::in_redis(redis.clone(), &prefix, "one");
    let first = locks.acquire("a", rules()).await.unwrap().unwrap();
    first.release().await.unwrap();
    assert!(redis.delete(&format!("{prefix}fence:{{a}}")).await.unwrap());
    assert!(locks.acquire("a", rules()).await.unwrap().unwrap().fence() > first.fence());
}

#[tokio::test(flavor = "multi_thread")]
async fn c05_a_lease_shorter_than_the_work_is_renewed_and_ends_when_its_holder_hangs() {
    for test in each_database().await {
        prepare(&test).await;
        for [one, two] in stores(&test.db, &test.reopen().await) {
            let holder = one.acquire("a", short(600, 60_000)).await.unwrap().unwrap();
            let began = tokio::time::Instant::now();
            while began.elapsed() < Duration::from_millis(1500) {
                assert!(two.acquire("a", short(600, 60_000)).await.unwrap().is_none());
                assert!(holder.is_held());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            drop(holder);
            // Dropping gives it back. Renewals of the next one end at once, so it can be taken from its holder.
            let hung =
                one.acquire("a", LockRules { max_hold: Duration::ZERO, ..rules_of(600) }).await.unwrap();
            let hung = hung.unwrap();
            let next = two.acquire("a", rules()).await.unwrap().unwrap();
            assert!(next.fence() > hung.fence());
            assert!(!hung.is_held());
            // A late release takes nothing from the next holder.
            hung.release().await.unwrap();
            assert!(one.acquire("a", short(600, 60_000)).await.unwrap().is_none());
        }
    }
}

fn rules_of(lease_ms: u64) -> LockRules {
    LockRules { lease: Duration::from_millis(lease_ms), ..rules() }
}

/// Handlers that tell when they are in and wait for a permit.
#[derive(Clone)]
struct Desk {
    db: Db,
    entered: Arc<Semaphore>,
    gate: Arc<Semaphore>,
}

impl Desk {
    fn new(db: &Db) -> Desk {
        Desk { db: db.clone(), entered: Arc::new(Semaphore::new(0)), gate: Arc::new(Semaphore::new(0)) }
    }

    async fn app(&self, instance: &str, locks: Locks, rules: LockRules) -> Router {
        let policy = Policy::new("PAY", KeySource::Header).biz_no_from("/no").with(Serial::new(locks, rules));
        let layer = kit::guard(&self.db, instance).await.protect(policy).unwrap();
        Router::new().route("/pay", post(handle).layer(layer)).with_state(self.clone())
    }
}

async fn handle(State(desk): State<Desk>, claim: Extension<Claim>) -> Response {
    desk.entered.add_permits(1);
    desk.gate.acquire().await.unwrap().forget();
    assert!(claim.lock_fence().is_some());
    match claim.tx().await {
        Ok(mut tx) => {
            tx.execute(&kit::effect(claim.key())).await.unwrap();
            "paid".into_response()
        }
        Err(lost) => (Extension(Outcome::RolledBack), lost.to_string()).into_response(),
    }
}

async fn pay(app: &Router, key: &str) -> kit::Answer {
    send(app, request("/pay", &[("idempotency-key", key)], r#"{"no":"P1"}"#)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_one_number_take_turns_across_processes() {
    for test in each_database().await {
        prepare(&test).await;
        let other = test.reopen().await;
        for (nth, [one, two]) in stores(&test.db, &other).into_iter().enumerate() {
            let desk = Desk::new(&test.db);
            let desk_two = Desk { db: other.clone(), ..desk.clone() };
            let (app_one, app_two) =
                (desk.app("one", one, rules()).await, desk_two.app("two", two, rules()).await);
            let (first, second) = (format!("k{nth}-1"), format!("k{nth}-2"));
            let first = tokio::spawn(async move { pay(&app_one, &first).await });
            desk.entered.acquire().await.unwrap().forget();
            let second = tokio::spawn(async move { pay(&app_two, &second).await });
            until("the second is claimed", async || {
                kit::number(&test.db, "SELECT COUNT(*) FROM idempotent_record WHERE status = 'PROCESSING'")
                    .await
                    == 2
            })
            .await;
            assert_eq!(desk.entered.available_permits(), 0, "the second waits for its turn");
            desk.gate.add_permits(2);
            assert_eq!((first.await.unwrap().status, second.await.unwrap().status), (200, 200));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_get_the_lock_in_time_leaves_nothing_behind() {
    for test in each_database().await {
        prepare(&test).await;
        let [locks, others] = stores(&test.db, &test.reopen().await).remove(0);
        let desk = Desk::new(&test.db);
        desk.gate.add_permits(1);
        let app = desk.app("one", locks, short(5_000, 60_000)).await;
        let held = others.acquire("PAY:P1", rules()).await.unwrap().unwrap();
        let refused = pay(&app, "k").await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "in_turn"));
        assert_eq!(refused.headers["retry-after"], "1");
        assert_eq!(kit::number(&test.db, "SELECT COUNT(*) FROM idempotent_record").await, 0);
        held.release().await.unwrap();
        assert_eq!(pay(&app, "k").await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c05_work_whose_lock_was_lost_is_rolled_back_and_may_run_again() {
    for test in each_database().await {
        prepare(&test).await;
        for (nth, [one, two]) in stores(&test.db, &test.reopen().await).into_iter().enumerate() {
            let desk = Desk::new(&test.db);
            // Never renewed in this test's time: the lease ends while the handler waits.
            let rules = LockRules { max_hold: Duration::ZERO, ..rules_of(300) };
            let app = desk.app("one", one, rules).await;
            let key = format!("k{nth}");
            let late = tokio::spawn({
                let (app, key) = (app.clone(), key.clone());
                async move { pay(&app, &key).await }
            });
            desk.entered.acquire().await.unwrap().forget();
            let taken = two.acquire("PAY:P1", self::rules()).await.unwrap().unwrap();
            desk.gate.add_permits(1);
            let late = late.await.unwrap();
            assert!(String::from_utf8_lossy(&late.body).contains("lock of this work was lost"), "{late:?}");
            assert_eq!(kit::effects(&test.db).await, nth as i64);
            taken.release().await.unwrap();
            desk.gate.add_permits(1);
            assert_eq!(pay(&app, &key).await.status, 200);
            assert_eq!(kit::effects(&test.db).await, nth as i64 + 1);
        }
    }
}

/// The lock is lost after the handler began its transaction: only the end of the transaction can notice.
#[tokio::test(flavor = "multi_thread")]
async fn c05_a_transaction_does_not_end_well_under_a_lock_that_was_taken_over() {
    for test in each_database().await {
        prepare(&test).await;
        let locks = Locks::in_table(test.db.clone(), "one");
        let serial = Serial::new(locks, LockRules { lease: Duration::from_secs(600), ..rules() });
        let policy = Policy::new("PAY", KeySource::Header).biz_no_from("/no").with(serial);
        let layer = kit::guard(&test.db, "one").await.protect(policy).unwrap();
        let steal = |claim: Extension<Claim>| async move {
            let mut tx = claim.tx().await.unwrap();
            tx.execute(&kit::effect("late")).await.unwrap();
            // As if the lease had ended and somebody else had come, without this process noticing.
            let steal = "UPDATE idempotency_lock SET owner = 'other', fence = fence + 1";
            tx.execute(&db::Query::raw(steal, vec![])).await.unwrap();
            "paid"
        };
        let app = Router::new().route("/pay", post(steal).layer(layer));
        let answer = pay(&app, "k").await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "lock_lost"));
        assert_eq!(kit::effects(&test.db).await, 0);
        let state = kit::text(&test.db, "SELECT phase FROM idempotent_record").await;
        assert_eq!(state.as_deref(), Some("rolled_back"));
    }
}
