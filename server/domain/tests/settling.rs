//! The promises of settling, against a world in memory: every step may die or lose its reply.

#![expect(clippy::unwrap_used, reason = "a test's world may panic")]

mod world;

use chrono::Duration;
use domain::actions::Action;
use domain::compensation::{Ending, Settled};
use domain::error::Error;
use domain::record::State;
use domain::roles::{Actor, Role};
use futures::future::join_all;
use proptest::prelude::*;
use std::sync::Arc;
use world::{Fault, World, operator, record_id};

fn run<T>(test: impl Future<Output = T>) -> T {
    // Paused time: waiting costs nothing, and a step that never returns shows at once.
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

#[test]
fn fifty_retries_of_one_command_have_one_effect_and_one_answer() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let command = world.command(&process, "same", Action::MarkSucceeded).await;
        let amy = operator("amy");
        let answers = join_all((0..50).map(|_| process.settle(&amy, command.clone()))).await;
        let first = answers[0].clone().unwrap();
        assert_eq!(first.outcome, Ending::Succeeded);
        assert!(answers.iter().all(|answer| answer.as_ref() == Ok(&first)));
        assert_eq!(world.source.table().changes, 1);
        world.assert_sound();
    });
}

#[test]
fn fifty_operators_at_once_one_wins_and_forty_nine_are_told() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let mut settlings = Vec::new();
        for n in 0..50 {
            let command = world.command(&process, &format!("key-{n}"), Action::MarkSucceeded).await;
            let (process, operator) = (Arc::clone(&process), operator(&format!("op-{n}")));
            settlings.push(async move { process.settle(&operator, command).await });
        }
        let answers = join_all(settlings).await;
        let won = answers.iter().filter(|answer| answer.is_ok()).count();
        let told =
            answers.iter().filter(|a| matches!(a, Err(Error::Moved { .. } | Error::Busy { .. }))).count();
        assert_eq!((won, told), (1, 49));
        world.assert_sound();
    });
}

#[test]
fn the_caller_may_go_away_and_the_command_still_ends() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let command = world.command(&process, "left", Action::MarkSucceeded).await;
        let amy = operator("amy");
        // Polled once, then dropped: the browser closed the tab.
        let _ = futures::poll!(std::pin::pin!(process.settle(&amy, command.clone())));
        let answer = process.settle(&amy, command).await.unwrap();
        assert_eq!(answer.outcome, Ending::Succeeded);
        world.assert_sound();
    });
}

#[test]
fn one_key_cannot_carry_two_commands() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let mut command = world.command(&process, "k", Action::MarkSucceeded).await;
        process.settle(&operator("amy"), command.clone()).await.unwrap();
        command.reason = "something else".into();
        assert_eq!(process.settle(&operator("amy"), command).await, Err(Error::KeyReused));
    });
}

#[test]
fn evidence_must_be_there_fresh_and_of_this_version() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let amy = operator("amy");
        let code = |answer: Result<Settled, Error>| answer.unwrap_err().code().to_owned();

        let mut command = world.command(&process, "1", Action::MarkSucceeded).await;
        command.evidence_id = None;
        assert_eq!(code(process.settle(&amy, command.clone()).await), "no_evidence");
        command.evidence_id = Some("made-up".into());
        assert_eq!(code(process.settle(&amy, command).await), "no_evidence");

        let command = world.command(&process, "2", Action::MarkSucceeded).await;
        world.clock.advance(Duration::seconds(61));
        assert_eq!(code(process.settle(&amy, command).await), "evidence_expired");

        let mut command = world.command(&process, "3", Action::MarkSucceeded).await;
        world.source.table.lock().unwrap().updated_ms += 7;
        assert!(matches!(process.settle(&amy, command.clone()).await, Err(Error::StaleVersion { .. })));
        command.if_version = process.records.view(&amy, &record_id()).await.unwrap().detail.row.version;
        assert_eq!(code(process.settle(&amy, command).await), "no_evidence");
        assert_eq!(world.source.table().changes, 0);
    });
}

#[test]
fn c46_a_record_that_finished_meanwhile_is_shown_and_not_touched() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let command = world.command(&process, "k", Action::MarkSucceeded).await;
        {
            let mut table = world.source.table.lock().unwrap();
            (table.state, table.updated_ms) = (State::Success, 6_000);
        }
        let Err(Error::Moved { current }) = process.settle(&operator("amy"), command).await else { panic!() };
        assert_eq!(current.state, State::Success);
        assert_eq!(world.source.table().changes, 0);
    });
}

#[test]
fn an_effect_that_appears_after_the_check_stops_the_change() {
    run(async {
        for action in [Action::MarkTimedOut, Action::Replay] {
            let world = World::new(false, true);
            let process = world.process("p1");
            let command = world.command(&process, "k", action).await;
            world.source.table.lock().unwrap().effects = 1;
            let refused = process.settle(&operator("amy"), command.clone()).await.unwrap_err();
            assert_eq!(refused.code(), "evidence_changed");
            assert_eq!(process.settle(&operator("amy"), command).await.unwrap_err(), refused);
            world.assert_sound();
            assert_eq!((world.source.table().changes, world.source.table().sends), (0, 0));
        }
    });
}

#[test]
fn a_viewer_settles_nothing() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let command = world.command(&process, "k", Action::MarkSucceeded).await;
        let refused = process.settle(&Actor::new("vic", Role::Viewer), command).await;
        assert!(matches!(refused, Err(Error::Forbidden { .. })));
        assert!(world.store.compensations.lock().unwrap().is_empty());
    });
}

#[test]
fn c48_an_unanswered_replay_is_in_doubt_and_never_sent_again() {
    run(async {
        for service_runs in [true, false] {
            let world = World::new(false, service_runs);
            *world.source.on_replay.lock().unwrap() = Fault::FailsAfter;
            let process = world.process("p1");
            let command = world.command(&process, "k", Action::Replay).await;
            let first = process.settle(&operator("amy"), command.clone()).await.unwrap();
            // The record is the only witness: it reads SUCCESS exactly when the service ran.
            assert_eq!(first.outcome, if service_runs { Ending::Succeeded } else { Ending::InDoubt });
            assert_eq!(process.settle(&operator("amy"), command).await.unwrap(), first);
            assert_eq!(world.source.table().sends, 1);
            world.assert_sound();
        }
    });
}

#[test]
fn a_process_that_was_only_slow_leaves_its_truth_in_the_trail() {
    run(async {
        let world = World::new(true, true);
        let slow = world.process("slow");
        let command = world.command(&slow, "k", Action::MarkSucceeded).await;
        let other = world.process("other");
        world.source.on_apply.lock().unwrap().clone_from(&Fault::CommitsLate);
        let amy = operator("amy");
        let settling = slow.settle(&amy, command.clone());
        let recovering = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            world.clock.advance(Duration::minutes(2));
            assert_eq!(other.recover().await, Ok(1));
        };
        let (answer, ()) = futures::join!(settling, recovering);
        assert_eq!(answer.unwrap().outcome, Ending::Failed, "the first resolution stays the answer");
        let last = world.store.audit.lock().unwrap().last().cloned().unwrap();
        assert_eq!(last.draft.action, "mark_succeeded.late_outcome");
        assert_eq!(world.source.table().state, State::Success);
        world.assert_sound();
    });
}

#[test]
fn a_change_that_is_held_up_is_given_up_before_others_may_judge_it() {
    run(async {
        for action in Action::ALL {
            let world = World::new(action == Action::MarkSucceeded, true);
            let process = world.process("p1");
            let command = world.command(&process, "k", action).await;
            *world.source.on_apply.lock().unwrap() = Fault::Waits;
            let amy = operator("amy");
            let settling = process.settle(&amy, command.clone());
            let recovering = async {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                world.clock.advance(Duration::minutes(2));
                assert_eq!(process.recover().await, Ok(1), "its own process finds it, too");
            };
            let (answer, ()) = futures::join!(settling, recovering);
            assert_eq!(answer.unwrap().outcome, Ending::Failed);
            let table = world.source.table();
            assert_eq!((table.state, table.changes, table.sends), (State::Processing, 0, 0), "{action}");
            world.assert_sound();
        }
    });
}

#[test]
fn a_process_that_resolves_its_own_late_command_takes_it_from_itself() {
    run(async {
        let world = World::new(false, true);
        let process = world.process("p1");
        let command = world.command(&process, "k", Action::Replay).await;
        *world.store.on_advance.lock().unwrap() = Fault::DiesBefore;
        let amy = operator("amy");
        let hanging = tokio::time::timeout(std::time::Duration::from_secs(1), process.settle(&amy, command));
        assert!(hanging.await.is_err());
        world.clock.advance(Duration::minutes(2));
        process.recover().await.unwrap();
        assert!(world.store.compensations.lock().unwrap().iter().all(|c| c.owner != "p1"));
    });
}

/// Where the process dies or a reply is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Apply,
    Advance,
    Cache,
    Replay,
    Finish,
}

fn steps() -> impl Strategy<Value = Step> {
    prop::sample::select(vec![Step::Apply, Step::Advance, Step::Cache, Step::Replay, Step::Finish])
}

fn faults() -> impl Strategy<Value = Fault> {
    prop::sample::select(vec![Fault::DiesBefore, Fault::DiesAfter, Fault::FailsBefore, Fault::FailsAfter])
}

proptest! {
    /// Promises 1, 4, 5 and 6 at once: whatever step of whatever action goes wrong in whatever way, another process
    /// ends it by looking, nothing happens twice, and "succeeded" is said only of what the table says too.
    #[test]
    fn whatever_goes_wrong_nothing_happens_twice_and_every_command_ends(
        action in prop::sample::select(Action::ALL.to_vec()),
        step in steps(),
        fault in faults(),
        service_runs: bool,
        retries_first: bool,
    ) {
        run(async {
            let world = World::new(action == Action::MarkSucceeded, service_runs);
            *world.source.cache.entry.lock().unwrap() = Some(State::Processing);
            let first = world.process("p1");
            let command = world.command(&first, "k", action).await;
            match step {
                Step::Apply => *world.source.on_apply.lock().unwrap() = fault,
                Step::Cache => *world.source.cache.on_change.lock().unwrap() = fault,
                Step::Replay => *world.source.on_replay.lock().unwrap() = fault,
                Step::Advance => *world.store.on_advance.lock().unwrap() = fault,
                Step::Finish => *world.store.on_finish.lock().unwrap() = fault,
            }
            let amy = operator("amy");
            // The operator waits a while, then gives up; the process may hang for ever.
            let waited = tokio::time::timeout(std::time::Duration::from_secs(5), first.settle(&amy, command.clone()));
            let _ = waited.await;
            *world.source.on_apply.lock().unwrap() = Fault::None;
            *world.source.on_replay.lock().unwrap() = Fault::None;
            *world.source.cache.on_change.lock().unwrap() = Fault::None;
            *world.store.on_advance.lock().unwrap() = Fault::None;
            *world.store.on_finish.lock().unwrap() = Fault::None;

            let second = world.process("p2");
            if retries_first {
                // An impatient retry on another replica, before anybody recovered anything.
                let _ = second.settle(&amy, command.clone()).await;
            }
            world.clock.advance(Duration::minutes(2));
            second.recover().await.unwrap();
            world.assert_sound();
            world.caches(&second).retry_pending().await.unwrap();

            let answer = second.settle(&amy, command.clone()).await;
            assert_eq!(second.settle(&amy, command.clone()).await, answer, "one command, one answer");
            world.assert_sound();
            let (table, entry) = (world.source.table(), *world.source.cache.entry.lock().unwrap());
            if let Ok(Settled { outcome: Ending::Succeeded, record, .. }) = answer {
                assert_eq!(record.unwrap().state, table.state);
                assert_ne!(table.state, State::Processing);
            }
            assert!(entry.is_none_or(|state| state == table.state), "the cache says {entry:?}, the table {:?}", table.state);
            assert!(world.store.compensations.lock().unwrap().iter().all(|c| c.outcome.is_some()), "all have ended");
        });
    }
}

#[test]
fn a_cache_that_is_down_leaves_the_change_done_and_pending_until_it_is_read_back() {
    run(async {
        let world = World::new(true, true);
        let cache = &world.source.cache;
        *cache.entry.lock().unwrap() = Some(State::Processing);
        *cache.is_down.lock().unwrap() = true;
        let process = world.process("p1");
        let (amy, tasks) = (operator("amy"), world.caches(&process));
        let command = world.command(&process, "k", Action::MarkSucceeded).await;
        let first = process.settle(&amy, command.clone()).await.unwrap();
        assert_eq!(first.outcome, Ending::CachePending, "{}", first.message);
        assert_eq!(world.source.table().state, State::Success, "the table is not undone");

        assert_eq!(tasks.retry_pending().await, Ok(0));
        let view = process.records.view(&amy, &record_id()).await.unwrap();
        assert_eq!(view.cache_pending.unwrap().attempts, 1);
        assert_eq!(tasks.statuses(&amy).await.unwrap()[0].pending, 1);

        *cache.is_down.lock().unwrap() = false;
        assert_eq!(tasks.retry_pending().await, Ok(0), "not before it is due");
        world.clock.advance(Duration::seconds(6));
        assert_eq!(tasks.retry_pending().await, Ok(1));
        assert_eq!(*cache.entry.lock().unwrap(), None);
        assert_eq!(tasks.retry_pending().await, Ok(0), "confirmed once");
        let again = process.settle(&amy, command).await.unwrap();
        assert_eq!((again.outcome, world.source.table().changes), (Ending::Succeeded, 1));
        let last = world.store.audit.lock().unwrap().last().cloned().unwrap();
        assert_eq!(last.draft.action, "cache.confirmed");
        world.assert_sound();
    });
}

#[test]
fn nothing_is_replayed_into_a_cache_that_still_says_processing() {
    run(async {
        let world = World::new(false, true);
        *world.source.cache.entry.lock().unwrap() = Some(State::Processing);
        *world.source.cache.is_down.lock().unwrap() = true;
        let process = world.process("p1");
        let command = world.command(&process, "k", Action::Replay).await;
        let settled = process.settle(&operator("amy"), command).await.unwrap();
        assert_eq!((settled.outcome, world.source.table().sends), (Ending::Failed, 0), "{}", settled.message);
        *world.source.cache.is_down.lock().unwrap() = false;
        world.clock.advance(Duration::seconds(6));
        assert_eq!(
            world.caches(&process).retry_pending().await,
            Ok(1),
            "the prepared record's entry follows"
        );
        assert_eq!(*world.source.cache.entry.lock().unwrap(), None);
        world.assert_sound();
    });
}

#[test]
fn a_refused_command_leaves_the_cache_alone() {
    run(async {
        let world = World::new(false, true);
        *world.source.cache.entry.lock().unwrap() = Some(State::Success);
        let process = world.process("p1");
        let command = world.command(&process, "k", Action::MarkTimedOut).await;
        world.source.table.lock().unwrap().effects = 1;
        process.settle(&operator("amy"), command).await.unwrap_err();
        assert_eq!(world.source.cache.changes.load(std::sync::atomic::Ordering::SeqCst), 0);
    });
}

#[test]
fn a_difference_counts_once_when_it_lasts_and_is_over_when_it_ends() {
    run(async {
        let world = World::new(true, true);
        let process = world.process("p1");
        let (amy, tasks) = (operator("amy"), world.caches(&process));
        let counted = || world.store.counted.load(std::sync::atomic::Ordering::SeqCst);
        world.source.table.lock().unwrap().state = State::Success;

        // The service is just writing its cache: by the second look the two agree.
        *world.source.cache.entry.lock().unwrap() = Some(State::Processing);
        let service = async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            *world.source.cache.entry.lock().unwrap() = Some(State::Success);
        };
        let (compared, ()) = futures::join!(tasks.compare(), service);
        assert_eq!((compared, counted()), (Ok(()), 0));

        *world.source.cache.entry.lock().unwrap() = Some(State::Processing);
        tasks.compare().await.unwrap();
        tasks.compare().await.unwrap();
        assert_eq!(counted(), 1);
        let listed = tasks.disagreements(&amy, "orders").await.unwrap();
        assert_eq!((listed[0].record_state, listed[0].cached_state), (State::Success, State::Processing));
        assert_eq!(
            *world.source.cache.entry.lock().unwrap(),
            Some(State::Processing),
            "comparing changes nothing"
        );

        *world.source.cache.entry.lock().unwrap() = None;
        tasks.compare().await.unwrap();
        assert!(tasks.disagreements(&amy, "orders").await.unwrap().is_empty());

        *world.source.cache.is_down.lock().unwrap() = true;
        assert!(matches!(tasks.compare().await, Err(Error::Unavailable { .. })));
    });
}
