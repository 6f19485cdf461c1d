//! One task: what it does and when, and the loop that runs it.

use crate::runtime::panic_text;
use chrono::{DateTime, Utc};
use domain::clock::Clock;
use domain::ports::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One activation; the error is one line for the log and the status.
pub type Work = Box<dyn Fn() -> BoxFuture<Result<(), String>> + Send + Sync>;

/// Wake signals closer together than this are answered by one activation.
const CALM: Duration = Duration::from_secs(1);

/// What to run and how often.
pub struct Task {
    /// One word or two, as the log and the metrics name it.
    pub name: &'static str,
    /// From the end of one activation to the start of the next, when nothing wakes it before.
    pub period: Duration,
    pub work: Work,
}

/// How a task is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub name: &'static str,
    pub period: Duration,
    /// An activation is running now.
    pub running: bool,
    /// Activations that ended.
    pub runs: u64,
    pub last_start: Option<DateTime<Utc>>,
    pub last_duration: Option<Duration>,
    /// Why the last activation failed; `None` = it did not.
    pub last_error: Option<String>,
}

/// A started task.
pub(super) struct Running {
    work: Work,
    clock: Arc<dyn Clock>,
    wake: Notify,
    status: Mutex<Status>,
}

impl Running {
    pub(super) fn new(task: Task, clock: Arc<dyn Clock>) -> Self {
        let status = Status {
            name: task.name,
            period: task.period,
            running: false,
            runs: 0,
            last_start: None,
            last_duration: None,
            last_error: None,
        };
        Self { work: task.work, clock, wake: Notify::new(), status: Mutex::new(status) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.lock().name
    }

    pub(super) fn status(&self) -> Status {
        self.lock().clone()
    }

    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Activates by period and signal until stopped; an activation that has begun is never cut short.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let period = self.lock().period;
        while !stop.is_cancelled() {
            self.activate().await;
            let started = Instant::now();
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(period) => {}
                () = self.wake.notified() => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep_until(started + CALM.min(period)) => {}
            }
        }
    }

    async fn activate(&self) {
        let (start, started) = (self.clock.now(), Instant::now());
        {
            let mut status = self.lock();
            status.running = true;
            status.last_start = Some(start);
        }
        // A task of its own, so that a panic ends the activation and nothing else.
        let result = match tokio::spawn((self.work)()).await {
            Ok(result) => result,
            Err(ended) if ended.is_panic() => {
                Err(format!("panicked: {}", panic_text(ended.into_panic().as_ref())))
            }
            Err(_) => Err("was stopped with the process".to_owned()),
        };
        self.note(result.err(), started.elapsed());
    }

    /// Keeps the status; logs an error when it is new and its end when it ends, not at every activation.
    fn note(&self, error: Option<String>, duration: Duration) {
        let mut status = self.lock();
        let name = status.name;
        match (&status.last_error, &error) {
            (before, Some(now)) if before.as_ref() != Some(now) => {
                tracing::warn!(task = name, error = %now, "background task failed; it is tried again");
            }
            (Some(_), None) => tracing::info!(task = name, "background task works again"),
            _ => {}
        }
        metrics::counter!("amends_task_runs_total", "task" => name).increment(1);
        metrics::gauge!("amends_task_failing", "task" => name).set(f64::from(u8::from(error.is_some())));
        metrics::gauge!("amends_task_last_duration_seconds", "task" => name).set(duration.as_secs_f64());
        status.running = false;
        status.runs += 1;
        status.last_duration = Some(duration);
        status.last_error = error;
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
