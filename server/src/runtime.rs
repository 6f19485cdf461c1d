//! The real clock, real randomness and real timers: what the domain takes as arguments.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use domain::clock::{Clock, Ids};
use domain::ports::{BoxFuture, Runtime};
use futures::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// The system's clock, and the only reader of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one clock everybody else is given")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// 144 random bits as 24 URL-safe characters.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn next(&self) -> String {
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 18]>())
    }
}

/// Tokio's timers and tasks. Clones share the work in flight.
#[derive(Debug, Clone, Default)]
pub struct TokioRuntime {
    detached: TaskTracker,
}

impl TokioRuntime {
    /// Waits until all detached work has ended, at most `limit`; `false` = some was still running.
    pub async fn finish(&self, limit: Duration) -> bool {
        self.detached.close();
        tokio::time::timeout(limit, self.detached.wait()).await.is_ok()
    }
}

#[async_trait]
impl Runtime for TokioRuntime {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn detach(&self, work: BoxFuture<()>) {
        self.detached.spawn(async move {
            if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
                tracing::error!(panic = panic_text(panic.as_ref()), "detached work panicked");
            }
        });
    }
}

/// What a panic said, when it said it in words.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Everything the composition takes from outside, so that tests can bring their own.
#[derive(Clone)]
pub struct World {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub runtime: Arc<dyn Runtime>,
}

impl World {
    /// The system's clock and randomness; detached work runs on `runtime`.
    pub fn real(runtime: &TokioRuntime) -> Self {
        Self { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds), runtime: Arc::new(runtime.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tokio::sync::oneshot;

    #[test]
    fn ids_are_url_safe_short_and_never_the_same() {
        let ids: HashSet<String> = (0..1_000).map(|_| RandomIds.next()).collect();
        assert_eq!(ids.len(), 1_000);
        for id in ids {
            assert!(id.len() <= 32);
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        }
    }

    #[tokio::test]
    async fn detached_work_ends_although_a_neighbour_panics() {
        let runtime = TokioRuntime::default();
        let (done, seen) = oneshot::channel();
        runtime.detach(Box::pin(async { panic!("a defect") }));
        runtime.detach(Box::pin(async move {
            let _ = done.send(());
        }));
        seen.await.unwrap();
        assert!(runtime.finish(Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn finishing_is_bounded() {
        let runtime = TokioRuntime::default();
        runtime.detach(Box::pin(std::future::pending()));
        assert!(!runtime.finish(Duration::from_millis(5)).await);
    }
}
