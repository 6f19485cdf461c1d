//! What the handlers share beyond the application's own state.

use super::sign_in::Gate;
use crate::state::AppState;
use axum::extract::FromRef;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Live streams that may be open at once; each holds one task and one backlog.
const LIVE_STREAMS: usize = 1_000;

/// The router's state: the application, and what only HTTP needs. Cheap to clone.
#[derive(Clone)]
pub struct Web(Arc<Parts>);

pub struct Parts {
    pub app: AppState,
    pub gate: Gate,
    pub streams: Arc<Semaphore>,
}

impl Web {
    pub fn new(app: AppState) -> Self {
        Self(Arc::new(Parts { app, gate: Gate::default(), streams: Arc::new(Semaphore::new(LIVE_STREAMS)) }))
    }

    /// The base path without a slash at its end: empty at the root.
    pub fn base_path(&self) -> &str {
        self.app.settings.base_path.trim_end_matches('/')
    }
}

impl Deref for Web {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl FromRef<Web> for AppState {
    fn from_ref(web: &Web) -> Self {
        web.app.clone()
    }
}
