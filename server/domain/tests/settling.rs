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
        world.source.on_apply.lock().unwrap().clone_from(&Fault::Waits);
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

/// Where the process dies or a reply is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Apply,
    Advance,
    Replay,
    Finish,
}

fn steps() -> impl Strategy<Value = Step> {
    prop::sample::select(vec![Step::Apply, Step::Advance, Step::Replay, Step::Finish])
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
            let first = world.process("p1");
            let command = world.command(&first, "k", action).await;
            match step {
                Step::Apply => *world.source.on_apply.lock().unwrap() = fault,
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

            let answer = second.settle(&amy, command.clone()).await;
            assert_eq!(second.settle(&amy, command.clone()).await, answer, "one command, one answer");
            world.assert_sound();
            let table = world.source.table();
            if let Ok(Settled { outcome: Ending::Succeeded, record, .. }) = answer {
                assert_eq!(record.unwrap().state, table.state);
                assert_ne!(table.state, State::Processing);
            }
            assert!(world.store.compensations.lock().unwrap().iter().all(|c| c.outcome.is_some()), "all have ended");
        });
    }
}
