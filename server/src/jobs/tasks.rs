//! The console's own background tasks.

use super::Task;
use crate::state::AppState;
use domain::ports::{Events, Topic};
use domain::services::records::RecordService;
use domain::source::{Health, SourceStatus};
use futures::future::join_all;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Store;
use store::sessions::Sessions;

/// The task that reads the stuck board; woken when records change.
pub(super) const BOARD: &str = "stuck board";

/// How often the walk through the caches goes on.
pub(crate) const COMPARES_EVERY: Duration = Duration::from_secs(10);

/// Every task, over the services of this process.
pub fn all(state: &AppState) -> Vec<Task> {
    let console = &state.console;
    vec![
        // First: what another process left unfinished is resolved before anything new is judged by it.
        every("recovery", 5, &console.compensations, |settling| async move { settling.recover().await }),
        every(BOARD, 3, &console.stuck, |stuck| async move { stuck.refresh().await }),
        every("checks", 5, &console.stuck, |stuck| async move { stuck.check_unchecked().await }),
        every("stuck samples", 60, &console.stuck, |stuck| async move { stuck.sample().await }),
        every("alerts", 10, &console.alerts, |alerts| async move { alerts.evaluate().await }),
        every("late effects", 10, &console.compensations, |settling| async move {
            settling.check_late_effects().await
        }),
        every("cache changes", 2, &console.caches, |caches| async move { caches.retry_pending().await }),
        every("cache comparison", COMPARES_EVERY.as_secs(), &console.caches, |caches| async move {
            caches.compare().await
        }),
        every("source watch", 15, &Arc::new(SourceWatch::over(state)), |watch| async move {
            watch.look().await;
            Ok(())
        }),
        every("expired sessions", 600, &Arc::new(sessions(state)), |sessions| async move {
            sessions.delete_expired().await
        }),
    ]
}

fn sessions(state: &AppState) -> Sessions {
    Sessions::new(Store::new(state.store.clone(), rand::random()), Arc::clone(&state.clock))
}

/// A task that calls one service every `seconds`.
fn every<S, F, T>(
    name: &'static str,
    seconds: u64,
    service: &Arc<S>,
    work: impl Fn(Arc<S>) -> F + Send + Sync + 'static,
) -> Task
where
    S: Send + Sync + 'static,
    F: Future<Output = domain::Result<T>> + Send + 'static,
{
    let service = Arc::clone(service);
    let work = move || {
        let activation = work(Arc::clone(&service));
        Box::pin(async move { activation.await.map(drop).map_err(|error| error.to_string()) }) as _
    };
    Task { name, period: Duration::from_secs(seconds), work: Box::new(work) }
}

/// Tells live pages when a source came up, went down or changed its complaint.
struct SourceWatch {
    records: Arc<RecordService>,
    events: Arc<dyn Events>,
    known: Mutex<Vec<(String, Health, String)>>,
}

impl SourceWatch {
    fn over(state: &AppState) -> Self {
        Self {
            records: Arc::clone(&state.console.records),
            events: Arc::new(state.hub.clone()),
            known: Mutex::default(),
        }
    }

    async fn look(&self) {
        let statuses = join_all(self.records.sources.iter().map(|source| source.status())).await;
        let now: Vec<_> = statuses
            .into_iter()
            .map(|SourceStatus { name, status, detail, .. }| (name, status, detail))
            .collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == now {
            return;
        }
        for (name, status, detail) in now.iter().filter(|source| !known.contains(source)) {
            tracing::info!(source = %name, ?status, %detail, "source");
        }
        *known = now;
        self.events.changed(Topic::Sources);
    }
}
