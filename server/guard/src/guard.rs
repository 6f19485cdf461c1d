//! The guard of one table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use db::Db;

use crate::answer::Refusal;
use crate::error::GuardError;
use crate::flight::Flights;
use crate::happening::Happening;
use crate::layer::GuardLayer;
use crate::policy::Policy;
use crate::settings::Settings;
use crate::table::Table;

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
    /// A guard over the table `idempotent_record` of `db` (see [`crate::schema::create`]), measured as it is now.
    pub async fn open(db: Db, settings: Settings) -> Result<Guard, GuardError> {
        Ok(Guard(Arc::new(Inner {
            table: Table { db },
            settings,
            flights: Flights::default(),
            claims: AtomicU64::new(0),
        })))
    }

    /// The layer for one route. Errors: a policy that contradicts itself or does not fit the table.
    pub fn protect(&self, policy: Policy) -> Result<GuardLayer, GuardError> {
        policy.check(self.settings().retention)?;
        Ok(GuardLayer::new(self.clone(), policy))
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
