//! A shop to try the console on: real tables behind the real guard, with customers and faults, on SQLite alone.
//!
//! [`prepare`] creates or opens the data, starts the shop's own HTTP server and writes the configuration that every
//! other command can use; [`Prepared::start`] brings the customers once the console can take their counters.

mod clock_text;
mod history;
mod kind;
mod rows;
mod sale;
mod settings_file;
mod shop;
mod staging;
mod tables;
mod tally;
mod traffic;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use async_trait::async_trait;
use domain::clock::{Clock, millis};
use domain::console::DemoControl;
use domain::rates::{Count, Report, StuckSample};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use shop::Shop;
use tables::Databases;
use tally::Tally;

/// How the demo is started.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The folder of all its files; created when missing.
    pub data: PathBuf,
    /// Where the console will listen; goes into the configuration.
    pub listen: SocketAddr,
    /// Off: nothing moves by itself, but the shop answers replays.
    pub traffic: bool,
    /// Exactly so many stuck records of each verdict; otherwise a believable mix. Only new data is staged.
    pub stuck: Option<u32>,
    /// The same keys, numbers and amounts every time.
    pub seed: Option<u64>,
}

/// Where the shop's counters go.
#[async_trait]
pub trait Ingest: Send + Sync {
    /// Takes in a report; the same sequence again changes nothing.
    async fn report(&self, report: Report) -> domain::Result<()>;
    /// Takes in the days before the first start; the same again changes nothing.
    async fn seed(&self, counts: Vec<Count>, samples: Vec<StuckSample>) -> domain::Result<()>;
}

/// The shop is open; its customers wait for [`Prepared::start`].
pub struct Prepared {
    config_path: PathBuf,
    address: SocketAddr,
    databases: Databases,
    tally: Arc<Tally>,
    clock: Arc<dyn Clock>,
    traffic: bool,
    seed: u64,
    control: Arc<Storm>,
    running: Running,
}

/// The demo at work; dropping it stops everything.
pub struct Demo {
    pub config_path: PathBuf,
    /// Where the shop answers.
    pub shop: SocketAddr,
    pub control: Arc<dyn DemoControl>,
    running: Running,
}

/// Background tasks, ended together.
struct Running {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Running {
    /// Runs `work` until it ends or the demo does.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }
}

#[derive(Default)]
struct Storm(AtomicBool);

#[async_trait]
impl DemoControl for Storm {
    fn storm_is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    async fn set_storm(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}

/// Creates or opens the data, opens the shop and writes `DIR/amends.toml`. New data is staged; old data is used as it is.
pub async fn prepare(options: &DemoOptions, clock: Arc<dyn Clock>) -> anyhow::Result<Prepared> {
    std::fs::create_dir_all(&options.data).with_context(|| {
        format!("the folder {} for the demo's data cannot be created", options.data.display())
    })?;
    let databases = Databases::open(&options.data).await?;
    let seed = options.seed.unwrap_or_else(rand::random);
    if !databases.is_staged().await? {
        stage(&databases, seed, options.stuck, clock.as_ref()).await?;
    }
    let running = Running { tasks: TaskTracker::new(), stop: CancellationToken::new() };
    let tally = Arc::new(Tally::new(clock.clone()));
    let shop = Shop::new(&databases, &tally, clock.clone()).await?;
    let address = shop.open(&running).await?;
    let config_path = options.data.join("amends.toml");
    let text = settings_file::render(options.listen, address);
    std::fs::write(&config_path, text)
        .with_context(|| format!("{} cannot be written", config_path.display()))?;
    Ok(Prepared {
        config_path,
        address,
        databases,
        tally,
        clock,
        traffic: options.traffic,
        seed,
        control: Arc::new(Storm::default()),
        running,
    })
}

/// Fills new tables: the last hours' settled records and what got stuck. All or nothing.
async fn stage(
    databases: &Databases,
    seed: u64,
    stuck: Option<u32>,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    let now = clock.now();
    let mut rng = StdRng::seed_from_u64(seed);
    let stuck = staging::stuck(&mut rng, now, stuck);
    let rows = std::iter::once(stuck).chain(history::settled(&mut rng, now));
    databases.stage(rows, seed, now).await.context("the shop's tables cannot be filled")
}

impl Prepared {
    /// The configuration file.
    pub fn config_path(&self) -> &Path {
        &self.config_path
    }

    /// Starts what moves by itself. At the first start ever the days before are handed over first.
    pub async fn start(self, ingest: Arc<dyn Ingest>) -> anyhow::Result<Demo> {
        if let Some((seed, started)) = self.databases.unseeded_history().await? {
            let days = history::days(&mut StdRng::seed_from_u64(seed), started);
            ingest.seed(days.counts, days.samples).await.context("the demo's history cannot be stored")?;
            self.databases.history_is_seeded().await?;
        }
        self.running.spawn(self.tally.clone().keep_reporting(ingest));
        if self.traffic {
            // A second start must not send the first start's requests again.
            let seed = self.seed ^ millis(self.clock.now()).unsigned_abs();
            let traffic = traffic::Traffic::new(
                self.address,
                self.control.clone(),
                &self.databases,
                self.clock.clone(),
            )?;
            self.running.spawn(traffic.run(StdRng::seed_from_u64(seed)));
            self.running.spawn(tables::keep_purging(self.databases, self.clock));
        }
        Ok(Demo {
            config_path: self.config_path,
            shop: self.address,
            control: self.control,
            running: self.running,
        })
    }
}

impl Demo {
    /// Stops the customers, closes the shop and waits for both.
    pub async fn shutdown(self) {
        self.running.stop.cancel();
        self.running.tasks.close();
        self.running.tasks.wait().await;
    }
}
