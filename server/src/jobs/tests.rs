use super::*;
use crate::runtime::SystemClock;
use domain::ports::BoxFuture;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

const SOON: Duration = Duration::from_millis(2);
const NEVER: Duration = Duration::from_secs(3_600);

fn start(period: Duration, work: impl Fn() -> BoxFuture<Result<(), String>> + Send + Sync + 'static) -> Jobs {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Jobs::start(vec![Task { name: "test", period, work: Box::new(work) }], &clock)
}

/// Looks until the only task's status is as wanted; the test's own time limit ends a wrong wait.
async fn until(jobs: &Jobs, wanted: impl Fn(&Status) -> bool) -> Status {
    let looking = async {
        loop {
            let status = jobs.statuses().remove(0);
            if wanted(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.expect("the task never got there")
}

#[tokio::test]
async fn a_task_runs_at_once_then_by_period_and_says_so() {
    let jobs = start(SOON, || Box::pin(async { Ok(()) }));
    let status = until(&jobs, |status| status.runs >= 3).await;
    assert!(status.last_start.is_some() && status.last_duration.is_some());
    assert_eq!(status.last_error, None);
    assert!(jobs.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_signal_wakes_a_task_before_its_period() {
    let jobs = start(NEVER, || Box::pin(async { Ok(()) }));
    until(&jobs, |status| status.runs == 1).await;
    jobs.wake("test");
    until(&jobs, |status| status.runs == 2).await;
    assert!(jobs.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn only_one_activation_runs_at_a_time_however_often_it_is_woken() {
    let (inside, overlapped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flags = (Arc::clone(&inside), Arc::clone(&overlapped));
    let jobs = start(SOON, move || {
        let (inside, overlapped) = flags.clone();
        Box::pin(async move {
            overlapped.fetch_or(inside.swap(true, Ordering::SeqCst), Ordering::SeqCst);
            tokio::time::sleep(SOON).await;
            inside.store(false, Ordering::SeqCst);
            Ok(())
        })
    });
    for _ in 0..50 {
        jobs.wake("test");
        tokio::task::yield_now().await;
    }
    until(&jobs, |status| status.runs >= 3).await;
    assert!(!overlapped.load(Ordering::SeqCst));
    assert!(jobs.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_panicking_task_is_reported_and_tried_again() {
    let jobs = start(SOON, || Box::pin(async { panic!("a defect") }));
    let status = until(&jobs, |status| status.runs >= 2).await;
    assert_eq!(status.last_error.as_deref(), Some("panicked: a defect"));
    assert!(jobs.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn an_error_stays_visible_until_the_task_works_again() {
    let failing = Arc::new(AtomicBool::new(true));
    let answer = Arc::clone(&failing);
    let jobs = start(SOON, move || {
        let fails = answer.load(Ordering::SeqCst);
        Box::pin(async move { if fails { Err("the store is down".to_owned()) } else { Ok(()) } })
    });
    until(&jobs, |status| status.last_error.as_deref() == Some("the store is down")).await;
    failing.store(false, Ordering::SeqCst);
    until(&jobs, |status| status.last_error.is_none()).await;
    assert!(jobs.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn stopping_waits_for_the_running_activation_and_starts_no_other() {
    let runs = Arc::new(AtomicU32::new(0));
    let (go, gate) = tokio::sync::oneshot::channel::<()>();
    let gate = Arc::new(Mutex::new(Some(gate)));
    let counter = Arc::clone(&runs);
    let jobs = start(SOON, move || {
        let (counter, gate) =
            (Arc::clone(&counter), gate.lock().unwrap_or_else(PoisonError::into_inner).take());
        Box::pin(async move {
            if let Some(gate) = gate {
                let _ = gate.await;
            }
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    });
    until(&jobs, |status| status.running).await;
    assert!(!jobs.stop(SOON).await, "the activation is still running");
    go.send(()).unwrap();
    assert!(jobs.stop(Duration::from_secs(5)).await);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
