//! Background tasks. A task is an idempotent function without input: the framework runs one activation at a
//! time, by period or by a wake signal, survives its panics, and keeps a status that can be looked at.

mod task;
pub(crate) mod tasks;

pub use task::{Status, Task, Work};

use crate::state::AppState;
use domain::clock::Clock;
use domain::ports::Topic;
use std::sync::Arc;
use std::time::Duration;
use task::Running;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of this process, running until stopped.
pub struct Jobs {
    running: Vec<Arc<Running>>,
    stop: CancellationToken,
    loops: TaskTracker,
}

/// Starts the console's own tasks over the services of this process.
pub fn run(state: &AppState) -> Jobs {
    let jobs = Jobs::start(tasks::all(state), &state.clock);
    // A settled record leaves the board at once, not at the board's next turn.
    jobs.wake_on(state.hub.subscribe(), Topic::Records, tasks::BOARD);
    jobs
}

impl Jobs {
    /// Starts every task; each runs for the first time at once.
    pub fn start(tasks: Vec<Task>, clock: &Arc<dyn Clock>) -> Self {
        let (stop, loops) = (CancellationToken::new(), TaskTracker::new());
        let running: Vec<Arc<Running>> =
            tasks.into_iter().map(|task| Arc::new(Running::new(task, Arc::clone(clock)))).collect();
        for task in &running {
            loops.spawn(Arc::clone(task).run(stop.clone()));
        }
        Self { running, stop, loops }
    }

    /// How each task is doing, in the order they were given.
    pub fn statuses(&self) -> Vec<Status> {
        self.running.iter().map(|task| task.status()).collect()
    }

    /// Asks a task to run again soon, whatever its period; many asks before it starts are one.
    pub fn wake(&self, name: &str) {
        for task in self.running.iter().filter(|task| task.name() == name) {
            task.wake();
        }
    }

    /// Wakes a task whenever `topic` changed.
    pub fn wake_on(&self, mut changes: Receiver<Topic>, topic: Topic, name: &str) {
        let Some(task) = self.running.iter().find(|task| task.name() == name).cloned() else { return };
        let stop = self.stop.clone();
        self.loops.spawn(async move {
            loop {
                let change = tokio::select! {
                    () = stop.cancelled() => return,
                    change = changes.recv() => change,
                };
                match change {
                    Err(RecvError::Closed) => return,
                    // Among what was missed the topic may have been.
                    Err(RecvError::Lagged(_)) => task.wake(),
                    Ok(changed) if changed == topic => task.wake(),
                    Ok(_) => {}
                }
            }
        });
    }

    /// Starts no further activation and waits for those that run, at most `limit`; `false` = some still ran.
    pub async fn stop(&self, limit: Duration) -> bool {
        self.stop.cancel();
        self.loops.close();
        tokio::time::timeout(limit, self.loops.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests;
