//! The guard of one table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use db::Db;
use tokio::time::Instant;

use crate::answer::{Refusal, Stored};
use crate::breaker::Breaker;
use crate::error::GuardError;
use crate::flight::Flights;
use crate::happening::Happening;
use crate::heat::{Beat, Heat};
use crate::layer::GuardLayer;
use crate::memory::Memory;
use crate::policy::Policy;
use crate::settings::Settings;
use crate::shared::SharedCache;
use crate::table::{Hold, TABLE, Table};
use crate::ticket::Ticket;

/// Protects routes with one table; cheap to clone.
#[derive(Clone)]
pub struct Guard(Arc<Inner>);

struct Inner {
    table: Arc<Table>,
    settings: Settings,
    warnings: Vec<String>,
    flights: Flights,
    memory: Memory,
    shared: Option<SharedCache>,
    heat: Heat,
    breaker: Breaker,
    claims: AtomicU64,
}

impl Guard {
    /// A guard over the table `idempotent_record` of `db` (see [`crate::schema::create`]), measured as it is now.
    /// Errors: the table is missing, lacks columns, or would grant two claims of one key.
    pub async fn open(db: Db, settings: Settings) -> Result<Guard, GuardError> {
        let table = Table::open(db).await?;
        let longest_owner = format!("{}-{}", settings.instance, u64::MAX);
        if !table.columns.owner.fits(&longest_owner) {
            let what = "does not fit the column owner; take a shorter one of plain letters";
            return Err(GuardError::Table(format!(
                "the instance name {:?} {what} ({TABLE})",
                settings.instance
            )));
        }
        let warnings = table.columns.warnings();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(Guard(Arc::new(Inner {
            table: Arc::new(table),
            warnings,
            flights: Flights::new(settings.max_waiters),
            memory: Memory::new(&settings.cache),
            shared: SharedCache::of(&settings.cache),
            heat: Heat::new(),
            breaker: Breaker::new(Instant::now()),
            claims: AtomicU64::new(0),
            settings,
        })))
    }

    /// What works with this table, but not as well as it could; each with what to do. They were logged too.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// The layer for one route. Errors: a policy that contradicts itself or does not fit the table.
    pub fn protect(&self, policy: Policy) -> Result<GuardLayer, GuardError> {
        self.check(&policy)?;
        Ok(GuardLayer::new(self.clone(), policy))
    }

    pub(crate) fn check(&self, policy: &Policy) -> Result<(), GuardError> {
        policy.check(self.0.settings.retention)?;
        if !self.table().columns.biz_type.fits(&policy.biz_type) {
            let what = "does not fit the column biz_type; take a shorter name or widen the column";
            return Err(GuardError::Policy(format!("biz_type {:?} {what}", policy.biz_type)));
        }
        Ok(())
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.0.table
    }

    pub(crate) fn flights(&self) -> &Flights {
        &self.0.flights
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    pub(crate) fn shared(&self) -> Option<&SharedCache> {
        self.0.shared.as_ref()
    }

    pub(crate) fn heat(&self) -> &Heat {
        &self.0.heat
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        &self.0.breaker
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

    /// Counts a duplicate of a key; a hot key's answer lives longer in Redis.
    pub(crate) fn beat(&self, policy: &Policy, key: &str, scoped: &str) {
        match self.0.heat.beat(scoped, Instant::now()) {
            Beat::Ordinary => {}
            Beat::Burst => self.0.settings.meter.burst(&policy.biz_type),
            Beat::Hot => {
                if let Some(shared) = self.shared().cloned() {
                    let (key, life) = (key.to_owned(), policy.remember.shared);
                    tokio::spawn(async move { shared.extend(&key, life).await });
                }
            }
        }
    }

    /// Keeps a recorded answer where duplicates find it sooner; nobody waits for Redis.
    pub(crate) fn remember(&self, policy: &Policy, hold: &Hold, ticket: &Ticket, stored: &Arc<Stored>) {
        if stored.is_failure() {
            return;
        }
        if stored.body.is_some() {
            self.0.memory.remember(ticket, stored, policy.remember.here);
        }
        if let Some(shared) = self.shared().cloned() {
            let (hold, ticket, stored) = (hold.clone(), ticket.clone(), stored.clone());
            let (biz_type, life) = (policy.biz_type.clone(), policy.remember.shared);
            tokio::spawn(async move { shared.keep(&hold, &ticket, &biz_type, &stored, life).await });
        }
    }
}
