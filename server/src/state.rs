//! What every request handler and page may reach: services, ports and settings, built once by the composition root.

use crate::http::events::EventHub;
use domain::clock::{Clock, Ids};
use domain::console::Console;
use domain::ports::{AuditStore, UserStore};
use std::sync::Arc;

/// Renders the Prometheus text of this process.
pub type MetricsHandle = metrics_exporter_prometheus::PrometheusHandle;

/// Everything a request needs; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The services behind pages and API.
    pub console: Console,
    /// People and tokens.
    pub users: Arc<dyn UserStore>,
    /// For entries that belong to no service: sign-ins and their refusals.
    pub audit: Arc<dyn AuditStore>,
    /// The console's own store: sessions live there, and readiness asks it.
    pub store: db::Db,
    /// Live events; the same hub the services tell about changes.
    pub hub: EventHub,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub settings: Arc<HttpSettings>,
    pub metrics: MetricsHandle,
}

/// What the configuration says about serving.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSettings {
    /// Where the console lives behind a proxy: `/`, or `/amends`.
    pub base_path: String,
    /// The zone new users see times in.
    pub display_zone: chrono_tz::Tz,
    /// Cookies with `Secure`, and HSTS: for consoles served over HTTPS.
    pub secure_cookies: bool,
    /// How long a session lives at most, in hours.
    pub session_hours: u32,
    /// The demo: its switches exist, and pages say so.
    pub demo: bool,
    /// Origins other than the console's own that may send changes, such as `https://ops.example.com`.
    pub allowed_origins: Vec<String>,
}
