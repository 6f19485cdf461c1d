//! One scene a database: a store, a source with stuck orders, a service that takes replays, a clock set by hand.

mod target;
mod trap;

pub use target::Target;
pub use trap::{Fault, Point};

use chrono::{DateTime, Duration, Utc};
use db::Query;
use db::testkit::{TestDb, each_database};
use domain::actions::Action;
use domain::clock::Clock;
use domain::compensation::{Command, Settled};
use domain::console::Console;
use domain::ports::Sources;
use domain::record::{RecordId, State};
use domain::roles::{Actor, Role};
use server::compose::{Ports, assemble, open_sources, open_store};
use server::config::Config;
use server::runtime::{RandomIds, TokioRuntime, World};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use store::Store;
use trap::{Trap, TrappedCompensations, TrappedSource};

/// A clock that moves when a test says so.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        domain::clock::from_millis(self.0.load(Ordering::SeqCst))
    }
}

pub struct Scene {
    pub clock: Arc<ManualClock>,
    pub target: Target,
    pub source: TestDb,
    store: TestDb,
    config: Config,
}

/// A fresh scene on every kind of database at hand.
pub async fn each_scene() -> Vec<Scene> {
    each_scene_with("").await
}

/// The same with further settings of the source.
pub async fn each_scene_with(more: &str) -> Vec<Scene> {
    let mut scenes = Vec::new();
    for (store, source) in each_database().await.into_iter().zip(each_database().await) {
        guard::schema::create(&source.db).await.expect("the native table");
        source
            .run(&["CREATE TABLE t_order (order_no VARCHAR(64) PRIMARY KEY, amount VARCHAR(32), status VARCHAR(16))"])
            .await;
        let target = Target::start(source.reopen().await).await;
        let text = settings(&store.url, &source.url, &target.url()) + more;
        let config = Config::read(&text, Path::new("/"), &|_| None).expect("the scene's configuration");
        let clock = Arc::new(ManualClock(AtomicI64::new(1_780_000_000_000)));
        scenes.push(Scene { clock, target, source, store, config });
    }
    scenes
}

fn settings(store: &str, source: &str, target: &str) -> String {
    format!(
        r#"
store = {store:?}
[[source]]
name = "shop"
url = {source:?}
[source.columns]
version = "fence"
[[source.biz]]
type = "ORDER"
[source.biz.reverse_check]
sql = "SELECT order_no, amount, status FROM t_order WHERE order_no = :biz_no"
found_when = {{ status = ["PAID"] }}
compare = {{ amount = "/amount" }}
[source.biz.response]
template = '{{"code":0,"orderNo":"{{order_no}}"}}'
[source.biz.replay]
url = {target:?}
headers = {{ Idempotency-Key = "{{key}}" }}
timeout = "5s"
rate = "1000/s"
"#
    )
}

impl Scene {
    /// The console as a new process would start it, over the same databases.
    pub async fn console(&self) -> Console {
        self.compose(None).await
    }

    /// A console whose process meets a fault at one point.
    pub async fn trapped(&self, point: Point, fault: Fault) -> Console {
        self.compose(Some(Arc::new(Trap::new(point, fault)))).await
    }

    async fn compose(&self, trap: Option<Arc<Trap>>) -> Console {
        let world = World {
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::new(RandomIds),
            runtime: Arc::new(TokioRuntime::default()),
        };
        let db = open_store(&self.config).await.expect("the store");
        let sources = open_sources(&self.config, &world).expect("the sources");
        let mut ports = Ports::over(&Store::new(db.clone(), rand::random()), sources);
        if let Some(trap) = trap {
            let sources = ports.sources.iter().map(|source| TrappedSource::over(source, &trap) as _);
            ports.sources = Sources(sources.collect());
            ports.compensations = Arc::new(TrappedCompensations::over(&ports.compensations, &trap));
        }
        assemble(&self.config, &world, db, ports).expect("the console").console
    }

    /// A stuck order, with its business row (`found`) or without (`absent`).
    pub async fn stuck_order(&self, key: &str, effect: bool) -> RecordId {
        let insert = format!(
            "INSERT INTO idempotent_record (idempotent_id, biz_type, biz_no, status, request_body, create_time, update_time, fence) \
             VALUES ('{key}', 'ORDER', '{key}', 'PROCESSING', '{{\"orderNo\":\"{key}\",\"amount\":\"128.00\"}}', \
             '2026-01-01 08:00:00.000', '2026-01-01 08:00:00.000', 1)"
        );
        self.source.run(&[&insert]).await;
        if effect {
            self.source.run(&[&format!("INSERT INTO t_order VALUES ('{key}', '128.00', 'PAID')")]).await;
        }
        RecordId::new("shop", vec![key.to_owned()])
    }

    /// How often the record was changed since it got stuck, as its version column counts.
    pub async fn changes(&self, key: &str) -> i64 {
        let query =
            Query::raw("SELECT fence FROM idempotent_record WHERE idempotent_id = ?", vec![key.into()]);
        let row = self.source.db.fetch_optional(&query).await.expect("the record");
        row.expect("the record").i64("fence").expect("a number") - 1
    }

    /// Which database the scene plays on, for messages.
    pub fn name(&self) -> String {
        self.store.db.dialect().to_string()
    }
}

pub fn operator(name: &str) -> Actor {
    Actor::new(name, Role::Operator)
}

/// Checks a record and makes the command that its operator would send now.
pub async fn command(console: &Console, record: &RecordId, action: Action, key: &str) -> Command {
    let checked = console.records.reverse_check(&operator("mei"), record).await.expect("a reverse check");
    Command {
        key: key.to_owned(),
        record: record.clone(),
        action,
        reason: "a test".into(),
        if_version: checked.evidence.version,
        evidence_id: Some(checked.evidence.id),
        response_body: None,
    }
}

pub async fn settle(console: &Console, who: &str, command: &Command) -> domain::Result<Settled> {
    console.compensations.settle(&operator(who), command.clone()).await
}

pub async fn state_of(console: &Console, record: &RecordId) -> State {
    console.records.view(&operator("mei"), record).await.expect("the record").detail.row.state
}
