use chrono::TimeDelta;
use domain::cache::{CacheEnd, Disagreement};
use domain::compensation::{Ending, Outcome};
use domain::ports::{AuditStore, CacheStore, CompensationStore, RateStore};
use domain::rates::RateScope;
use domain::record::{Place, State};
use futures::future::{join_all, try_join_all};
use store::Store;

use crate::compensations::{begin, intent, outcome};
use crate::{again, at, draft, record, stores};

async fn finish_pending(store: &Store, id: &str, key: &str, ending: Ending) {
    begin(store, &intent(id, "op", id, key)).await;
    let cache = Some(CacheEnd::Pending { why: "the cache\0 is down".into() });
    let pending = Outcome { cache, ..outcome(ending) };
    let draft = draft("mark_timed_out.cache_pending");
    assert!(store.finish(id, "process-1", &pending, &draft, at(2), None).await.unwrap());
}

async fn entries(store: &Store) -> i64 {
    store.head().await.unwrap().map_or(0, |(seq, _)| seq)
}

#[tokio::test]
async fn a_pending_change_is_stored_with_the_outcome_and_survives_the_process() {
    for (store, test) in stores().await {
        finish_pending(&store, "c1", "k1", Ending::CachePending).await;
        drop(store);
        let next = again(&test, 1).await;
        let kept = next.changes_of(&record("k1"), 10).await.unwrap();
        assert_eq!(kept.len(), 1, "{}", test.db.dialect());
        assert_eq!((kept[0].since, kept[0].attempts, kept[0].confirmed_at), (at(2), 0, None));
        assert_eq!(kept[0].record, record("k1"));
        assert_eq!(next.pending_changes().await.unwrap(), [("orders".to_owned(), 1, at(2))]);
        assert_eq!(next.settled_since(at(2)).await.unwrap(), 1, "its record is settled");
    }
}

#[tokio::test]
async fn a_confirmed_outcome_leaves_nothing_pending() {
    for (store, _test) in stores().await {
        begin(&store, &intent("c1", "op", "c1", "k1")).await;
        let done = Outcome { cache: Some(CacheEnd::Confirmed), ..outcome(Ending::Succeeded) };
        store.finish("c1", "process-1", &done, &draft("x"), at(2), None).await.unwrap();
        assert_eq!(store.pending_changes().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_due_change_is_taken_by_one_of_many_and_put_off_by_its_taker() {
    for (store, test) in stores().await {
        finish_pending(&store, "c1", "k1", Ending::CachePending).await;
        assert_eq!(store.take_changes(at(1), at(60)).await.unwrap(), [], "not due yet");
        let others = [again(&test, 1).await, again(&test, 2).await];
        let takes = (0..6).map(|n| others[n % 2].take_changes(at(2), at(60)));
        let taken: Vec<_> = try_join_all(takes).await.unwrap().into_iter().flatten().collect();
        assert_eq!(taken.len(), 1, "{}", test.db.dialect());
        store.postpone_change("c1", "still down", at(10)).await.unwrap();
        assert_eq!(store.take_changes(at(9), at(60)).await.unwrap(), []);
        let again = store.take_changes(at(10), at(70)).await.unwrap();
        assert_eq!((again[0].attempts, again[0].why.as_str()), (1, "still down"));
        // Its taker died: the change comes back by itself.
        assert_eq!(store.take_changes(at(70), at(130)).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_confirmation_is_written_once_with_its_entry_and_ends_the_compensation() {
    for (store, test) in stores().await {
        finish_pending(&store, "c1", "k1", Ending::CachePending).await;
        finish_pending(&store, "c2", "k2", Ending::Failed).await;
        let before = entries(&store).await;
        let confirmed = draft("cache.confirmed");
        let all = join_all((0..5).map(|_| store.confirm_change("c1", at(30), &confirmed))).await;
        assert_eq!(all.iter().filter(|won| **won == Ok(true)).count(), 1, "{}", test.db.dialect());
        assert!(store.confirm_change("c2", at(30), &confirmed).await.unwrap());
        assert_eq!(entries(&store).await, before + 2);
        let ended = |id: &'static str| {
            let store = &store;
            async move { store.find("op", id).await.unwrap().unwrap().outcome.unwrap() }
        };
        assert_eq!(
            (ended("c1").await.ending, ended("c1").await.cache),
            (Ending::Succeeded, Some(CacheEnd::Confirmed))
        );
        assert_eq!(ended("c2").await.ending, Ending::Failed, "only what waited for the cache has succeeded");
        assert_eq!(store.changes_of(&record("k1"), 10).await.unwrap()[0].confirmed_at, Some(at(30)));
        assert_eq!(store.pending_changes().await.unwrap(), []);
        assert_eq!(store.take_changes(at(9_000), at(9_001)).await.unwrap(), []);
    }
}

fn disagreement(key: &str, seconds: i64) -> Disagreement {
    Disagreement {
        record: record(key),
        key: key.into(),
        biz_type: Some("ORDER".into()),
        biz_no: None,
        record_state: State::Success,
        cached_state: State::Processing,
        seen_at: at(seconds),
    }
}

#[tokio::test]
async fn a_disagreement_is_counted_once_however_many_find_it() {
    for (store, test) in stores().await {
        let other = again(&test, 9).await;
        let found = disagreement("k1", 0);
        let notes = (0..6).map(|n| if n % 2 == 0 { &store } else { &other }.note_disagreement(&found));
        let notes = try_join_all(notes).await.unwrap();
        assert_eq!(notes.iter().filter(|new| **new).count(), 1, "{}", test.db.dialect());
        assert!(store.note_disagreement(&disagreement("k2", 5)).await.unwrap());
        let count = async || {
            let scope = RateScope::default();
            let totals = store.by_biz_type(&scope, at(-60), at(120)).await.unwrap();
            totals.iter().map(|(.., totals)| totals.anomaly).sum::<u64>()
        };
        assert_eq!(count().await, 2);
        assert_eq!(store.disagreements("orders", 10).await.unwrap(), [disagreement("k2", 5), found.clone()]);
        assert_eq!(store.disagreements("other", 10).await.unwrap(), []);
        assert_eq!(store.disagreeing().await.unwrap(), [("orders".to_owned(), 2)]);
        store.end_disagreement(&record("k1")).await.unwrap();
        assert_eq!(store.disagreeing().await.unwrap(), [("orders".to_owned(), 1)]);
        assert!(store.note_disagreement(&found).await.unwrap(), "what comes back counts again");
        assert_eq!(count().await, 3);
    }
}

#[tokio::test]
async fn a_walk_has_one_walker_and_goes_on_where_it_was_left() {
    for (store, test) in stores().await {
        let others = [again(&test, 1).await, again(&test, 2).await];
        let owners: Vec<_> = (0..6).map(|n| format!("walker-{n}")).collect();
        let takes = owners
            .iter()
            .enumerate()
            .map(|(n, owner)| others[n % 2].take_walk("orders", owner, at(0), at(60)));
        let taken = try_join_all(takes).await.unwrap();
        let walker = taken.iter().position(|place| *place == Some(None)).unwrap();
        assert_eq!(taken.iter().flatten().count(), 1, "{}", test.db.dialect());
        let place = Place { created_ms: Some(7), source: "orders".into(), locator: vec!["k\"1".into()] };
        store.leave_walk("orders", "somebody else", None).await.unwrap();
        assert_eq!(store.take_walk("orders", "next", at(60), at(120)).await.unwrap(), None, "still held");
        store.leave_walk("orders", &owners[walker], Some(&place)).await.unwrap();
        let next = store.take_walk("orders", "next", at(1), at(61)).await.unwrap();
        assert_eq!(next, Some(Some(place)));
        // Its walker died.
        let after = at(61) + TimeDelta::milliseconds(1);
        assert!(store.take_walk("orders", "heir", after, at(120)).await.unwrap().is_some());
    }
}
