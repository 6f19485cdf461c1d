//! The guard of one table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use db::Db;

use crate::answer::Refusal;
use crate::flight::Flights;
use crate::happening::{Happening, Meter, NoMeter};
use crate::layer::GuardLayer;
use crate::policy::Policy;
use crate::table::Table;

/// What one guard needs besides its database.
#[derive(Clone)]
pub struct Settings {
    /// Tells this process from all others that ever shared the table: claims are signed with it.
    pub instance: String,
    pub meter: Arc<dyn Meter>,
    /// Longest request body, in bytes.
    pub max_request: usize,
    /// Longest response body kept for duplicates, in bytes; a longer one leaves only its status.
    pub max_response: usize,
}

impl Settings {
    /// Bodies of at most one MiB, nothing counted.
    pub fn new(instance: impl Into<String>) -> Settings {
        Settings {
            instance: instance.into(),
            meter: Arc::new(NoMeter),
            max_request: 1 << 20,
            max_response: 1 << 20,
        }
    }
}

/// Protects routes with one table; cheap to clone.
#[derive(Clone)]
pub struct Guard(Arc<Inner>);

struct Inner {
    table: Table,
    settings: Settings,
    flights: Flights,
    claims: AtomicU64,
}

impl Guard {
    /// A guard over the table `idempotent_record` of `db`; see [`crate::schema::create`].
    pub fn new(db: Db, settings: Settings) -> Guard {
        Guard(Arc::new(Inner {
            table: Table { db },
            settings,
            flights: Flights::default(),
            claims: AtomicU64::new(0),
        }))
    }

    /// The layer for one route.
    pub fn protect(&self, policy: Policy) -> GuardLayer {
        GuardLayer::new(self.clone(), policy)
    }

    pub(crate) fn table(&self) -> &Table {
        &self.0.table
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn flights(&self) -> &Flights {
        &self.0.flights
    }

    /// A name no other claim has.
    pub(crate) fn next_owner(&self) -> String {
        format!("{}-{}", self.0.settings.instance, self.0.claims.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn count(&self, policy: &Policy, happening: Happening) {
        self.0.settings.meter.count(&policy.biz_type, happening);
    }

    pub(crate) fn count_refusal(&self, policy: &Policy, refusal: &Refusal) {
        if let Some(happening) = refusal.happening() {
            self.count(policy, happening);
        }
    }
}
