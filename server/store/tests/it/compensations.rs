use chrono::TimeDelta;
use domain::Error;
use domain::actions::Action;
use domain::compensation::{Command, Compensation, Ending, Outcome, Phase, Plan, ReplayAnswer};
use domain::evidence::Verdict;
use domain::ports::{AuditStore, Begun, CompensationStore};
use domain::record::{State, Version};
use store::Store;

use crate::{again, at, draft, record, row, stores};

pub fn intent(id: &str, actor: &str, command_key: &str, key: &str) -> Compensation {
    let command = Command {
        key: command_key.into(),
        record: record(key),
        action: Action::MarkTimedOut,
        reason: " provider says no ".into(),
        if_version: Version::new(State::Processing, "3"),
        evidence_id: Some("e1".into()),
        response_body: None,
    };
    Compensation {
        id: id.into(),
        fingerprint: command.fingerprint(),
        command,
        actor: actor.into(),
        biz_type: Some("ORDER".into()),
        biz_no: None,
        record_key: key.into(),
        verdict: Some(Verdict::Absent),
        phase: Phase::Intended,
        plan: Plan { state: State::Timeout, marker: 1_700_000_000_123, response: None },
        owner: "process-1".into(),
        lease_until: at(30),
        started_at: at(0),
        finished_at: None,
        outcome: None,
    }
}

pub fn outcome(ending: Ending) -> Outcome {
    Outcome {
        ending,
        message: "done".into(),
        record: Some(row("k1", State::Timeout)),
        replay: Some(ReplayAnswer::Answered { status: 200 }),
        error: None,
        cache: None,
    }
}

pub async fn begin(store: &Store, intent: &Compensation) -> Begun {
    store.begin(intent, &draft("mark_timed_out.intended")).await.unwrap()
}

async fn finish(store: &Store, id: &str, outcome: &Outcome) -> bool {
    let draft = draft("mark_timed_out.succeeded");
    store.finish(id, "process-1", outcome, &draft, at(2), Some(at(300))).await.unwrap()
}

async fn entries(store: &Store) -> i64 {
    store.head().await.unwrap().map_or(0, |(seq, _)| seq)
}

#[tokio::test]
async fn of_fifty_begins_with_one_command_key_one_is_new() {
    for (store, test) in stores().await {
        let other = again(&test, 99).await;
        let intents: Vec<_> = (0..50).map(|n| intent(&format!("c{n}"), "op", "cmd", "k1")).collect();
        let work =
            intents.iter().enumerate().map(|(n, one)| begin(if n % 2 == 0 { &store } else { &other }, one));
        let all = futures::future::join_all(work).await;
        assert_eq!(all.iter().filter(|begun| **begun == Begun::New).count(), 1, "{}", test.db.dialect());
        let stored = store.find("op", "cmd").await.unwrap().unwrap();
        assert!(all.iter().all(|begun| match begun {
            Begun::New => true,
            Begun::Existing(earlier) => **earlier == stored,
            Begun::RecordBusy { .. } => false,
        }));
        assert_eq!(entries(&store).await, 1);
    }
}

#[tokio::test]
async fn of_fifty_operators_on_one_record_one_begins() {
    for (store, test) in stores().await {
        let intents: Vec<_> =
            (0..50).map(|n| intent(&format!("c{n}"), &format!("op{n}"), "cmd", "k1")).collect();
        let all = futures::future::join_all(intents.iter().map(|one| begin(&store, one))).await;
        let (new, busy): (Vec<_>, Vec<_>) = all.iter().partition(|begun| **begun == Begun::New);
        assert_eq!((new.len(), busy.len()), (1, 49), "{}", test.db.dialect());
        assert!(busy.iter().all(|begun| matches!(begun, Begun::RecordBusy { by } if by.starts_with("op"))));
        assert_eq!(store.running(&[record("k1"), record("k2")]).await.unwrap().len(), 1);
        assert_eq!(entries(&store).await, 1);
    }
}

#[tokio::test]
async fn the_same_key_of_another_actor_is_another_command() {
    for (store, _test) in stores().await {
        assert_eq!(begin(&store, &intent("c1", "ann", "cmd", "k1")).await, Begun::New);
        assert_eq!(begin(&store, &intent("c2", "bob", "cmd", "k2")).await, Begun::New);
        assert_eq!(begin(&store, &intent("c3", "ann", "CMD", "k3")).await, Begun::New, "keys differ by case");
    }
}

#[tokio::test]
async fn an_outcome_is_stored_once_and_answers_for_ever() {
    for (store, test) in stores().await {
        let begun = intent("c1", "op", "cmd", "k1");
        begin(&store, &begun).await;
        assert!(store.advance("c1", "process-1", Phase::Sending, at(1)).await.unwrap());
        assert!(!store.advance("c1", "process-2", Phase::Sending, at(1)).await.unwrap(), "not the owner");
        assert!(!store.advance("c1", "process-1", Phase::Sending, at(30)).await.unwrap(), "the lease ended");
        let (done, second) = (outcome(Ending::Succeeded), outcome(Ending::Failed));
        let finishes =
            [finish(&store, "c1", &done), finish(&store, "c1", &done), finish(&store, "c1", &done)];
        assert_eq!(futures::future::join_all(finishes).await.iter().filter(|won| **won).count(), 1);
        assert!(!finish(&store, "c1", &second).await);
        // What a process that starts later sees.
        let stored = again(&test, 3).await.find("op", "cmd").await.unwrap().unwrap();
        let expected = Compensation {
            phase: Phase::Done,
            finished_at: Some(at(2)),
            outcome: Some(done),
            ..begun.clone()
        };
        assert_eq!(stored, expected, "{}", test.db.dialect());
        assert_eq!(begin(&store, &begun).await, Begun::Existing(Box::new(expected)));
        assert_eq!(entries(&store).await, 2);
        assert_eq!(
            begin(&store, &intent("c2", "op", "cmd-2", "k1")).await,
            Begun::New,
            "the record is free again"
        );
        assert_eq!(store.settled_since(at(2)).await.unwrap(), 1);
        assert_eq!(store.settled_since(at(3)).await.unwrap(), 0);
        assert_eq!(store.history(&record("k1"), 10).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_refusal_with_the_current_row_comes_back_whole() {
    for (store, _test) in stores().await {
        for (n, error) in [
            Error::Moved { current: Box::new(row("k1", State::Success)) },
            Error::Busy { message: "m".into(), retry_after_seconds: 2 },
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("c{n}");
            begin(&store, &intent(&id, "op", &id, "k1")).await;
            let refused = Outcome { error: Some(error), ..outcome(Ending::Refused) };
            assert!(finish(&store, &id, &refused).await);
            assert_eq!(store.find("op", &id).await.unwrap().unwrap().outcome, Some(refused));
        }
    }
}

#[tokio::test]
async fn what_a_dead_process_left_is_taken_by_one_of_many() {
    for (store, test) in stores().await {
        for n in 0..3 {
            begin(&store, &intent(&format!("c{n}"), "op", &format!("cmd{n}"), &format!("k{n}"))).await;
        }
        assert_eq!(
            store.take_abandoned("early", at(30), at(60)).await.unwrap(),
            [],
            "the lease holds to its end"
        );
        let others = [again(&test, 1).await, again(&test, 2).await];
        let owners: Vec<_> = (0..6).map(|n| format!("heir-{n}")).collect();
        let takes =
            owners.iter().enumerate().map(|(n, owner)| others[n % 2].take_abandoned(owner, at(31), at(60)));
        let taken: Vec<_> =
            futures::future::try_join_all(takes).await.unwrap().into_iter().flatten().collect();
        assert_eq!(taken.len(), 3, "{}", test.db.dialect());
        for heir in &taken {
            assert_eq!((heir.lease_until, heir.phase), (at(60), Phase::Intended));
            assert!(!finish(&store, &heir.id, &outcome(Ending::Succeeded)).await, "the old owner lost it");
            assert_eq!(
                store.running(std::slice::from_ref(&heir.command.record)).await.unwrap(),
                std::slice::from_ref(heir)
            );
        }
    }
}

#[tokio::test]
async fn late_checks_are_taken_once_and_ended_once() {
    for (store, test) in stores().await {
        begin(&store, &intent("c1", "op", "cmd", "k1")).await;
        finish(&store, "c1", &outcome(Ending::Succeeded)).await;
        assert_eq!(store.take_late_checks(at(299), at(900)).await.unwrap(), []);
        let takes = (0..6).map(|_| store.take_late_checks(at(300), at(900)));
        let taken: Vec<_> =
            futures::future::try_join_all(takes).await.unwrap().into_iter().flatten().collect();
        assert_eq!(taken, [(record("k1"), "c1".to_owned())], "{}", test.db.dialect());
        assert_eq!(store.take_late_checks(at(900), at(950)).await.unwrap().len(), 1, "tried again later");
        let before = entries(&store).await;
        for _ in 0..2 {
            store.end_late_check("c1", Some(&draft("late_effect.found"))).await.unwrap();
        }
        assert_eq!(entries(&store).await, before + 1);
        assert_eq!(store.take_late_checks(at(9_000), at(9_001)).await.unwrap(), []);
    }
}

#[tokio::test]
async fn recent_reasons_are_distinct_and_newest_first() {
    for (store, _test) in stores().await {
        for (n, reason) in ["one", "two", " one ", "three"].into_iter().enumerate() {
            let mut next = intent(&format!("c{n}"), "op", &format!("cmd{n}"), &format!("k{n}"));
            next.command.reason = reason.into();
            next.started_at = at(0) + TimeDelta::seconds(n as i64);
            begin(&store, &next).await;
        }
        assert_eq!(store.recent_reasons("op", 2).await.unwrap(), ["three", "one"]);
        assert_eq!(store.recent_reasons("other", 5).await.unwrap(), [""; 0]);
    }
}
