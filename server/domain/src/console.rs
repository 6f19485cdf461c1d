//! Everything the pages and the API stand on: one handle to all services.

use crate::services::{
    alerts::AlertService, audit::AuditService, caches::CacheService, compensations::CompensationService,
    rates::RateService, records::RecordService, stuck::StuckService,
};
use async_trait::async_trait;
use std::sync::Arc;

/// The services, cheap to clone. Each method checks the actor's role itself.
#[derive(Clone)]
pub struct Console {
    pub records: Arc<RecordService>,
    pub compensations: Arc<CompensationService>,
    pub caches: Arc<CacheService>,
    pub stuck: Arc<StuckService>,
    pub audit: Arc<AuditService>,
    pub rates: Arc<RateService>,
    pub alerts: Arc<AlertService>,
    /// Only in the demo.
    pub demo: Option<Arc<dyn DemoControl>>,
}

/// The demo shop's switches.
#[async_trait]
pub trait DemoControl: Send + Sync {
    fn storm_is_on(&self) -> bool;
    /// Starts or stops the retry storm: payment callbacks redelivered far more often than normal.
    async fn set_storm(&self, on: bool);
}
