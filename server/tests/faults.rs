//! What becomes of a compensation when something breaks in the middle, on every database: it is resolved by looking,
//! never by repeating, and the same command answers the same afterwards.

mod common;

use chrono::Duration;
use common::{Fault, Point, Scene, command, each_scene, operator, settle, state_of};
use domain::Error;
use domain::actions::Action;
use domain::audit::AuditFilter;
use domain::compensation::{Command, Ending, Phase};
use domain::console::Console;
use domain::page::Limit;
use domain::record::{RecordId, State};
use futures::future::join_all;

/// Longer than any lease of a compensation.
fn past_every_lease() -> Duration {
    Duration::minutes(2)
}

struct Killed {
    action: Action,
    at: Point,
    ending: Ending,
    state: State,
    /// Requests that reached the service, ever.
    sent: u32,
}

const fn killed(action: Action, at: Point, ending: Ending, state: State, sent: u32) -> Killed {
    Killed { action, at, ending, state, sent }
}

const KILLED: [Killed; 13] = {
    use Action::{MarkSucceeded, MarkTimedOut, Replay};
    use Ending::{Failed, InDoubt, Succeeded};
    use Point::{
        AfterAnswer, AfterChange, AfterIntent, AfterOutcome, AfterPhase, BeforeOutcome, BeforePhase,
    };
    use State::{Processing, Success, Timeout};
    [
        killed(MarkSucceeded, AfterIntent, Failed, Processing, 0),
        killed(MarkSucceeded, AfterChange, Succeeded, Success, 0),
        killed(MarkSucceeded, BeforeOutcome, Succeeded, Success, 0),
        killed(MarkSucceeded, AfterOutcome, Succeeded, Success, 0),
        killed(MarkTimedOut, AfterIntent, Failed, Processing, 0),
        killed(MarkTimedOut, AfterChange, Succeeded, Timeout, 0),
        killed(Replay, AfterIntent, Failed, Processing, 0),
        killed(Replay, AfterChange, Failed, Timeout, 0),
        killed(Replay, AfterPhase(Phase::Prepared), Failed, Timeout, 0),
        killed(Replay, BeforePhase(Phase::Sending), Failed, Timeout, 0),
        // Whether the request had left cannot be known from outside: doubt, and no second sending.
        killed(Replay, AfterPhase(Phase::Sending), InDoubt, Timeout, 0),
        killed(Replay, AfterAnswer, Succeeded, Success, 1),
        killed(Replay, BeforeOutcome, Succeeded, Success, 1),
    ]
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_between_any_two_steps_is_resolved_by_looking_and_never_repeated() {
    for scene in each_scene().await {
        for (number, case) in KILLED.iter().enumerate() {
            let what = format!("{} {:?} killed at {:?}", scene.name(), case.action, case.at);
            let sent_before = scene.target.requests();
            let key = format!("order-{number}");
            let record = scene.stuck_order(&key, case.action == Action::MarkSucceeded).await;
            let command = killed_at(&scene, &record, case.at, case.action, &key).await;
            scene.clock.advance(past_every_lease());

            let next = scene.console().await;
            let unfinished = usize::from(case.at != Point::AfterOutcome);
            assert_eq!(next.compensations.recover().await, Ok(unfinished), "{what}");
            assert_eq!(next.compensations.recover().await, Ok(0), "{what}: resolved twice");

            let answer = settle(&next, "mei", &command).await;
            let settled = answer.as_ref().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(settled.outcome, case.ending, "{what}: {}", settled.message);
            assert_eq!(state_of(&next, &record).await, case.state, "{what}");
            assert_eq!(settle(&next, "mei", &command).await, answer, "{what}: another answer");
            assert_eq!(scene.target.requests() - sent_before, case.sent, "{what}: requests sent");
            let changed = i64::from(case.state != State::Processing);
            assert_eq!(scene.changes(&key).await, changed, "{what}: changes of the record");
            assert_unbroken(&next).await;
        }
    }
}

/// Runs a command in a process that dies at this point.
async fn killed_at(scene: &Scene, record: &RecordId, at: Point, action: Action, key: &str) -> Command {
    let console = scene.trapped(at, Fault::Killed).await;
    let command = command(&console, record, action, key).await;
    let told = settle(&console, "mei", &command).await;
    assert!(matches!(told, Err(Error::Internal { .. })), "{at:?} is not on the way: {told:?}");
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_that_changed_nothing_the_operator_settles_anew() {
    for scene in each_scene().await {
        let record = scene.stuck_order("again", true).await;
        killed_at(&scene, &record, Point::AfterIntent, Action::MarkSucceeded, "first").await;
        scene.clock.advance(past_every_lease());
        let next = scene.console().await;
        next.compensations.recover().await.unwrap();
        let again = command(&next, &record, Action::MarkSucceeded, "second").await;
        assert_eq!(settle(&next, "mei", &again).await.unwrap().outcome, Ending::Succeeded);
        assert_eq!(scene.changes("again").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_busy_until_the_killed_process_s_lease_is_over() {
    for scene in each_scene().await {
        let record = scene.stuck_order("busy", true).await;
        killed_at(&scene, &record, Point::AfterIntent, Action::MarkSucceeded, "first").await;
        let next = scene.console().await;
        assert_eq!(next.compensations.recover().await, Ok(0), "{}: not over yet", scene.name());
        let second = command(&next, &record, Action::MarkSucceeded, "second").await;
        let refused = settle(&next, "li", &second).await;
        assert!(matches!(refused, Err(Error::Busy { .. })), "{}: {refused:?}", scene.name());
        assert_eq!(scene.changes("busy").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_goes_away_in_the_middle_loses_nothing() {
    let cases = [
        (Action::MarkSucceeded, Point::AfterChange, Ending::Succeeded, State::Success, 0),
        (Action::MarkSucceeded, Point::BeforeOutcome, Ending::Succeeded, State::Success, 0),
        (Action::Replay, Point::BeforePhase(Phase::Sending), Ending::Failed, State::Timeout, 0),
        (Action::Replay, Point::AfterAnswer, Ending::Succeeded, State::Success, 1),
    ];
    for scene in each_scene().await {
        for (number, (action, point, ending, state, sent)) in cases.into_iter().enumerate() {
            let what = format!("{} {action:?} with the store down at {point:?}", scene.name());
            let sent_before = scene.target.requests();
            let key = format!("down-{number}");
            let record = scene.stuck_order(&key, action == Action::MarkSucceeded).await;
            let console = scene.trapped(point, Fault::StoreDown).await;
            let command = command(&console, &record, action, &key).await;
            let told = settle(&console, "mei", &command).await;
            assert!(matches!(told, Err(Error::Unavailable { .. })), "{what}: {told:?}");

            scene.clock.advance(past_every_lease());
            let next = scene.console().await;
            assert_eq!(next.compensations.recover().await, Ok(1), "{what}");
            let settled = settle(&next, "mei", &command).await.unwrap();
            assert_eq!(settled.outcome, ending, "{what}: {}", settled.message);
            assert_eq!(state_of(&next, &record).await, state, "{what}");
            assert_eq!(scene.target.requests() - sent_before, sent, "{what}: requests sent");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_happens_without_a_stored_intent() {
    for scene in each_scene().await {
        let record = scene.stuck_order("no-intent", false).await;
        let console = scene.trapped(Point::BeforeIntent, Fault::StoreDown).await;
        let command = command(&console, &record, Action::Replay, "no-intent").await;
        let told = settle(&console, "mei", &command).await;
        assert!(matches!(told, Err(Error::Unavailable { .. })), "{}: {told:?}", scene.name());
        assert_eq!((scene.target.requests(), scene.changes("no-intent").await), (0, 0));
        assert_eq!(scene.console().await.compensations.recover().await, Ok(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_operators_on_one_record_one_wins_and_the_others_are_told() {
    for scene in each_scene().await {
        let console = scene.console().await;
        let record = scene.stuck_order("wanted", true).await;
        let template = command(&console, &record, Action::MarkSucceeded, "").await;
        let attempts = (0..50).map(|number| {
            let command = Command { key: format!("command-{number}"), ..template.clone() };
            let console = console.clone();
            async move { settle(&console, &format!("operator-{number}"), &command).await }
        });
        let answers = join_all(attempts).await;
        let (won, told): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "{}", scene.name());
        assert_eq!(won[0].as_ref().unwrap().outcome, Ending::Succeeded);
        for answer in told {
            let honest =
                matches!(answer, Err(Error::Busy { .. } | Error::Moved { .. } | Error::StaleVersion { .. }));
            assert!(honest, "{}: {answer:?}", scene.name());
        }
        assert_eq!(scene.changes("wanted").await, 1, "{}", scene.name());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_command_fifty_times_has_one_effect_and_one_answer() {
    for scene in each_scene().await {
        let console = scene.console().await;
        let record = scene.stuck_order("clicked", false).await;
        let command = command(&console, &record, Action::Replay, "one-click").await;
        let answers = join_all((0..50).map(|_| settle(&console, "mei", &command))).await;
        assert_eq!(answers[0].as_ref().unwrap().outcome, Ending::Succeeded, "{}", scene.name());
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{}", scene.name());
        assert_eq!(scene.target.requests(), 1, "{}", scene.name());
        let filter = AuditFilter { record: Some(record), ..AuditFilter::default() };
        let trail = console.audit.list(&operator("mei"), &filter, None, Limit::default()).await.unwrap();
        let verbs: Vec<&str> = trail.items.iter().map(|entry| entry.draft.action.as_str()).collect();
        assert_eq!(verbs, ["replay.succeeded", "replay.intended"], "{}", scene.name());
        assert_unbroken(&console).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evidence_past_its_life_settles_nothing() {
    for scene in each_scene().await {
        let console = scene.console().await;
        let record = scene.stuck_order("old-evidence", true).await;
        let command = command(&console, &record, Action::MarkSucceeded, "late").await;
        scene.clock.advance(Duration::seconds(61));
        let refused = settle(&console, "mei", &command).await.unwrap_err();
        assert_eq!(refused.code(), "evidence_expired", "{}", scene.name());
        assert_eq!(state_of(&console, &record).await, State::Processing);
        assert_eq!(scene.changes("old-evidence").await, 0);
    }
}

async fn assert_unbroken(console: &Console) {
    console.audit.verify().await.expect("the store").expect("an unbroken audit chain");
}
