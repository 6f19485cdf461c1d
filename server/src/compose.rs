//! Puts everything together: the store, the attached sources, and the services over them.

use crate::config::Config;
use crate::defaults;
use crate::http::events::EventHub;
use crate::http::metrics::CountedCompensations;
use crate::jobs::tasks;
use crate::runtime::World;
use crate::state::{AppState, HttpSettings};
use crate::telemetry;
use anyhow::Context;
use chrono::Duration;
use db::{Db, Options};
use domain::console::Console;
use domain::ports::{
    AlertStore, AuditStore, CacheStore, CompensationStore, Events, EvidenceStore, RateStore, Source, Sources,
    UserStore,
};
use domain::services::alerts::AlertService;
use domain::services::audit::AuditService;
use domain::services::caches::CacheService;
use domain::services::compensations::CompensationService;
use domain::services::rates::RateService;
use domain::services::records::RecordService;
use domain::services::stuck::StuckService;
use sources::Attached;
use std::path::Path;
use std::sync::Arc;
use store::Store;

/// The step that only a brand-new store has before it.
const FIRST_MIGRATION: &str = "0001_console";

/// What the services stand on; tests put their own between.
#[derive(Clone)]
pub struct Ports {
    pub evidence: Arc<dyn EvidenceStore>,
    pub compensations: Arc<dyn CompensationStore>,
    pub caches: Arc<dyn CacheStore>,
    pub audit: Arc<dyn AuditStore>,
    pub rates: Arc<dyn RateStore>,
    pub alerts: Arc<dyn AlertStore>,
    pub users: Arc<dyn UserStore>,
    pub sources: Sources,
}

impl Ports {
    /// Everything that is remembered, in one store.
    pub fn over(store: &Store, sources: Sources) -> Self {
        let store = Arc::new(store.clone());
        Self {
            evidence: Arc::clone(&store) as _,
            compensations: Arc::clone(&store) as _,
            caches: Arc::clone(&store) as _,
            audit: Arc::clone(&store) as _,
            rates: Arc::clone(&store) as _,
            alerts: Arc::clone(&store) as _,
            users: store,
            sources,
        }
    }
}

/// The console as configured, ready to serve. A source that is down is no error: it is shown as down.
pub async fn compose(config: &Config, world: &World) -> anyhow::Result<AppState> {
    let sources = open_sources(config, world)?;
    let db = open_store(config).await?;
    let store = Store::new(db.clone(), rand::random());
    assemble(config, world, db, Ports::over(&store, sources))
}

/// The services over these ports.
pub fn assemble(config: &Config, world: &World, db: Db, ports: Ports) -> anyhow::Result<AppState> {
    let hub = EventHub::new();
    let events: Arc<dyn Events> = Arc::new(hub.clone());
    Ok(AppState {
        console: console(config, world, &ports, &events)?,
        users: ports.users,
        audit: ports.audit,
        store: db,
        hub,
        clock: Arc::clone(&world.clock),
        ids: Arc::clone(&world.ids),
        settings: Arc::new(http_settings(config)),
        metrics: telemetry::metrics()?,
    })
}

fn console(
    config: &Config,
    world: &World,
    ports: &Ports,
    events: &Arc<dyn Events>,
) -> anyhow::Result<Console> {
    let World { clock, ids, runtime } = world;
    let records = Arc::new(RecordService {
        sources: ports.sources.clone(),
        evidence: Arc::clone(&ports.evidence),
        compensations: Arc::new(CountedCompensations(Arc::clone(&ports.compensations))),
        caches: Arc::clone(&ports.caches),
        audit: Arc::clone(&ports.audit),
        events: Arc::clone(events),
        clock: Arc::clone(clock),
        ids: Arc::clone(ids),
        evidence_life: Duration::from_std(config.evidence_life)?,
    });
    let owner = ids.next();
    let caches = CacheService {
        records: Arc::clone(&records),
        runtime: Arc::clone(runtime),
        owner: owner.clone(),
        compares_every: tasks::COMPARES_EVERY,
    };
    let compensations = CompensationService {
        records: Arc::clone(&records),
        runtime: Arc::clone(runtime),
        owner,
        late_check_after: Duration::from_std(config.late_check_after)?,
    };
    let stuck =
        Arc::new(StuckService::new(Arc::clone(&records), Arc::clone(&ports.rates), Arc::clone(runtime)));
    let alerts = AlertService {
        store: Arc::clone(&ports.alerts),
        rates: Arc::clone(&ports.rates),
        stuck: Arc::clone(&stuck),
        events: Arc::clone(events),
        clock: Arc::clone(clock),
        ids: Arc::clone(ids),
    };
    let rates =
        RateService { store: Arc::clone(&ports.rates), events: Arc::clone(events), clock: Arc::clone(clock) };
    Ok(Console {
        records,
        compensations: Arc::new(compensations),
        caches: Arc::new(caches),
        stuck,
        audit: Arc::new(AuditService { store: Arc::clone(&ports.audit) }),
        rates: Arc::new(rates),
        alerts: Arc::new(alerts),
        demo: None,
    })
}

fn http_settings(config: &Config) -> HttpSettings {
    HttpSettings {
        base_path: config.base_path.clone(),
        display_zone: config.display_zone,
        secure_cookies: config.secure_cookies,
        session_hours: config.session_hours,
        demo: false,
        allowed_origins: config.allowed_origins.clone(),
    }
}

/// The configured sources, not yet connected.
pub fn open_sources(config: &Config, world: &World) -> anyhow::Result<Sources> {
    let http = sources::HttpSettings::default();
    let open = |source: &sources::SourceConfig| -> anyhow::Result<Arc<dyn Source>> {
        Ok(Arc::new(Attached::open(source.clone(), &http, Arc::clone(&world.clock))?))
    };
    let opened: anyhow::Result<Vec<Arc<dyn Source>>> = config.sources.iter().map(open).collect();
    Ok(Sources(opened?.into()))
}

/// The console's own database, created where it is a file, brought up to date, with the first alert rules in a new one.
pub async fn open_store(config: &Config) -> anyhow::Result<Db> {
    let url = config.store.expose();
    create_folder(url)?;
    let shown = db::redact_url(url);
    let db = Db::connect(url, &Options::own())
        .await
        .with_context(|| format!("the store {shown} cannot be opened; check `store` in the configuration"))?;
    let applied = store::migrate(&db).await.with_context(|| format!("in the store {shown}"))?;
    if applied.contains(&FIRST_MIGRATION) {
        defaults::seed_alert_rules(&Store::new(db.clone(), rand::random())).await?;
    }
    Ok(db)
}

/// SQLite creates the file but not its folder.
fn create_folder(url: &str) -> anyhow::Result<()> {
    let Some(rest) = url.strip_prefix("sqlite:") else { return Ok(()) };
    let path = rest.strip_prefix("//").unwrap_or(rest).split('?').next().unwrap_or_default();
    match Path::new(path).parent() {
        Some(folder) if !path.starts_with(':') => std::fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} for the store cannot be created", folder.display())),
        _ => Ok(()),
    }
}
