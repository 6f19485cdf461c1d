//! Compensations of records that a cache repeats: the table first, the cache after it, whatever dies between.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(dead_code, reason = "each test file uses a part of what is common")]

mod common;

use chrono::Duration;
use common::{Fault, Point, Scene, command, each_scene_with, operator, settle, state_of};
use domain::actions::Action;
use domain::cache::Standing;
use domain::compensation::Ending;
use domain::console::Console;
use domain::record::{RecordId, State};
use domain::services::records::Event;
use futures::future::join_all;
use kv::Redis;

const PROCESSING: &[u8] = br#"{"status":"PROCESSING"}"#;
const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

struct Cached {
    scene: Scene,
    redis: Redis,
    prefix: String,
}

/// A scene on every database, with a cache beside its table; none without Redis.
async fn each() -> Vec<Cached> {
    let Some(url) = std::env::var("AMENDS_TEST_REDIS").ok().filter(|url| !url.is_empty()) else {
        assert!(std::env::var("AMENDS_TEST_ALL").is_err(), "AMENDS_TEST_REDIS is not set");
        eprintln!("skipped: AMENDS_TEST_REDIS is not set");
        return vec![];
    };
    let prefix = format!("amends-test:{:x}", rand::random::<u64>());
    let more = format!("[source.cache]\nurl = {url:?}\nkey = \"{prefix}:{{key}}\"\ncompare = \"366d\"\n");
    let scenes = each_scene_with(&more).await.into_iter();
    let redis = Redis::open(&url, kv::Options::default()).unwrap();
    scenes.map(|scene| Cached { scene, redis: redis.clone(), prefix: prefix.clone() }).collect()
}

impl Cached {
    fn key(&self, key: &str) -> String {
        format!("{}:{key}", self.prefix)
    }

    /// A stuck record whose entry says PROCESSING; its key is of this database alone.
    async fn stuck(&self, key: &str, effect: bool) -> (RecordId, String) {
        let key = format!("{key}-{}", self.scene.name());
        self.redis.set(&self.key(&key), PROCESSING, DAY).await.unwrap();
        (self.scene.stuck_order(&key, effect).await, key)
    }

    async fn entry(&self, key: &str) -> Option<Vec<u8>> {
        self.redis.get(&self.key(key)).await.unwrap()
    }

    async fn unbroken(&self, console: &Console) {
        console.audit.verify().await.unwrap().expect("an unbroken audit chain");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_ends_when_record_and_cache_were_read_back() {
    for cached in each().await {
        for (action, state) in [
            (Action::MarkSucceeded, State::Success),
            (Action::MarkTimedOut, State::Timeout),
            (Action::Replay, State::Success),
        ] {
            let console = cached.scene.console().await;
            let (record, key) = cached.stuck(action.as_str(), action == Action::MarkSucceeded).await;
            let view = console.records.view(&operator("mei"), &record).await.unwrap();
            assert_eq!(view.cached.unwrap().standing(State::Processing), Standing::Agrees);
            let order = command(&console, &record, action, &key).await;
            let settled = settle(&console, "mei", &order).await.unwrap();
            assert_eq!(settled.outcome, Ending::Succeeded, "{}: {}", cached.scene.name(), settled.message);
            assert_eq!(state_of(&console, &record).await, state);
            assert_eq!(cached.entry(&key).await, None, "{action:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_between_commit_and_cache_change_is_made_good_by_the_next_process() {
    for cached in each().await {
        for (number, point) in [Point::AfterChange, Point::BeforeOutcome].into_iter().enumerate() {
            let (record, key) = cached.stuck(&format!("killed-{number}"), true).await;
            let console = cached.scene.trapped(point, Fault::Killed).await;
            let order = command(&console, &record, Action::MarkSucceeded, &key).await;
            settle(&console, "mei", &order).await.unwrap_err();
            assert_eq!(cached.entry(&key).await.is_some(), point == Point::AfterChange);
            cached.scene.clock.advance(Duration::minutes(10));
            let next = cached.scene.console().await;
            assert_eq!(next.compensations.recover().await, Ok(1));
            let settled = settle(&next, "mei", &order).await.unwrap();
            assert_eq!(settled.outcome, Ending::Succeeded, "{point:?}: {}", settled.message);
            assert_eq!((cached.entry(&key).await, cached.scene.changes(&key).await), (None, 1));
            cached.unbroken(&next).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_cannot_be_confirmed_outlives_its_process_and_is_confirmed_by_the_next() {
    for cached in each().await {
        let (record, key) = cached.stuck("pending", true).await;
        // Somebody's list is where the entry should be: not ours to touch.
        cached.redis.delete(&cached.key(&key)).await.unwrap();
        let push = kv::Script::new("return redis.call('RPUSH', KEYS[1], 'x')");
        let _: i64 = cached.redis.call(&push, &[&cached.key(&key)], &[]).await.unwrap();
        let console = cached.scene.console().await;
        let order = command(&console, &record, Action::MarkSucceeded, &key).await;
        let settled = settle(&console, "mei", &order).await.unwrap();
        assert_eq!(settled.outcome, Ending::CachePending, "{}", settled.message);
        assert_eq!(state_of(&console, &record).await, State::Success, "the table is not undone");
        drop(console);

        let next = cached.scene.console().await;
        let mei = operator("mei");
        assert_eq!(next.caches.retry_pending().await, Ok(0));
        let pending = next.records.view(&mei, &record).await.unwrap().cache_pending.unwrap();
        assert!(pending.why.contains("list") && pending.attempts == 1, "{pending:?}");
        let statuses = next.caches.statuses(&mei).await.unwrap();
        assert_eq!((statuses[0].pending, statuses[0].oldest_pending), (1, Some(pending.since)));
        assert_eq!(cached.redis.kind(&cached.key(&key)).await.unwrap().as_deref(), Some("list"));

        cached.redis.delete(&cached.key(&key)).await.unwrap();
        cached.scene.clock.advance(Duration::minutes(1));
        let (one, other) = futures::join!(next.caches.retry_pending(), next.caches.retry_pending());
        assert_eq!(one.unwrap() + other.unwrap(), 1, "{}: confirmed once", cached.scene.name());
        let view = next.records.view(&mei, &record).await.unwrap();
        assert!(view.cache_pending.is_none());
        assert!(view.history.iter().any(|line| matches!(line.what, Event::CacheChangeConfirmed { .. })));
        assert_eq!(settle(&next, "mei", &order).await.unwrap().outcome, Ending::Succeeded);
        assert_eq!(cached.scene.changes(&key).await, 1);
        cached.unbroken(&next).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_comparison_counts_a_difference_once_and_changes_nothing() {
    let compared = each().await.into_iter().map(|cached| async move {
        let (record, key) = cached.stuck("differs", true).await;
        let (_, alike) = cached.stuck("alike", true).await;
        let done = format!("UPDATE idempotent_record SET status = 'SUCCESS' WHERE idempotent_id = '{key}'");
        cached.scene.source.run(&[&done]).await;
        let (one, other) = (cached.scene.console().await, cached.scene.console().await);
        let (first, second) = futures::join!(one.caches.compare(), other.caches.compare());
        first.and(second).unwrap();
        other.caches.compare().await.unwrap();
        let mei = operator("mei");
        let listed = other.caches.disagreements(&mei, "shop").await.unwrap();
        assert_eq!(listed.len(), 1, "{}: {listed:?}", cached.scene.name());
        assert_eq!((&listed[0].record, listed[0].cached_state), (&record, State::Processing));
        let view = other.records.view(&mei, &record).await.unwrap();
        assert_eq!(view.cached.unwrap().standing(State::Success), Standing::Disagrees);
        assert_eq!(anomalies(&cached.scene, &other).await, 1);
        assert!(cached.entry(&key).await.is_some() && cached.entry(&alike).await.is_some());
        cached.redis.delete(&cached.key(&key)).await.unwrap();
        one.caches.compare().await.unwrap();
        assert!(one.caches.disagreements(&mei, "shop").await.unwrap().is_empty());
    });
    join_all(compared).await;
}

async fn anomalies(scene: &Scene, console: &Console) -> u64 {
    use domain::clock::Clock;
    let now = scene.clock.now();
    let minute = Duration::minutes(5);
    let totals =
        console.rates.store.by_biz_type(&Default::default(), now - minute, now + minute).await.unwrap();
    totals.iter().map(|(.., totals)| totals.anomaly).sum()
}
