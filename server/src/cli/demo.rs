//! `amends demo`: a shop with stuck records and a console over it, with nothing else installed.

use super::Ended;
use crate::accounts;
use crate::compose::compose;
use crate::config::Config;
use crate::demo::{self, DemoOptions, Ingest};
use crate::runtime::{RandomIds, TokioRuntime, World};
use crate::serving;
use crate::state::AppState;
use crate::telemetry;
use anyhow::Context;
use async_trait::async_trait;
use clap::ValueEnum;
use domain::clock::Ids;
use domain::ports::Topic;
use domain::rates::{Count, Report, StuckSample};
use domain::roles::{Actor, Role};
use domain::services::rates::RateService;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PASSWORD_VARIABLE: &str = "AMENDS_DEMO_PASSWORD";
/// A demo's terminal is for the person who tries it: only what goes wrong.
const LOG: &str = "warn";
/// Counters handed to the store in one transaction.
const CHUNK: usize = 5_000;

/// Start a shop with stuck records and the console over it; nothing else is needed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  amends demo
  amends demo --listen 127.0.0.1:8080 --data /tmp/shop
  amends demo --traffic off --stuck 3 --seed 7     the same quiet shop every time

Sign in as viewer, operator, approver or admin. AMENDS_DEMO_PASSWORD sets their password; unset, a new one is
generated at every start and printed. Every other command works on DIR/amends.toml.")]
pub(super) struct Args {
    /// Where the console listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// The folder of all the demo's files; delete it to start over
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data: PathBuf,
    /// Whether customers keep ordering and things keep going wrong by themselves
    #[arg(long, value_enum, default_value_t = Switch::On)]
    traffic: Switch,
    /// Stage exactly so many stuck records of each verdict (in new data)
    #[arg(long, value_name = "N")]
    stuck: Option<u32>,
    /// The same records every time (in new data)
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    telemetry::init(LOG);
    // First of all, so that a taken address leaves no half-made data behind.
    let listener = serving::listen(args.listen).await?;
    let runtime = TokioRuntime::default();
    let world = World::real(&runtime);
    let options = DemoOptions {
        data: args.data.clone(),
        listen: listener.local_addr()?,
        traffic: args.traffic == Switch::On,
        stuck: args.stuck,
        seed: args.seed,
    };
    let prepared = demo::prepare(&options, Arc::clone(&world.clock)).await?;
    let config = Config::load(prepared.config_path())?;
    let mut state = compose(&config, &world).await?;
    let password = Password::choose()?;
    add_users(&state, password.text()).await?;
    let ingest = Arc::new(IntoConsole { rates: Arc::clone(&state.console.rates) });
    let shop = prepared.start(ingest).await?;
    state.console.demo = Some(Arc::clone(&shop.control));
    state.settings = Arc::new(crate::state::HttpSettings { demo: true, ..(*state.settings).clone() });
    let address = serving::address(&listener, &config.base_path)?;
    print!("{}", greeting(&address, &args.data, &password));
    println!("ready {address}");
    let served = serving::serve(listener, state, &runtime).await;
    shop.shutdown().await;
    served.map(|()| Ended::Good)
}

/// What a newcomer needs to know.
fn greeting(address: &str, data: &Path, password: &Password) -> String {
    let shown = match password {
        Password::Given(_) => format!("the one in {PASSWORD_VARIABLE}"),
        Password::Generated(text) => format!("{text}    (new at every start; {PASSWORD_VARIABLE} sets it)"),
    };
    let config = data.join("amends.toml");
    format!(
        "\nAmends demo: a shop, its customers, and what went wrong\n\n  Console   {address}\n  Sign in   operator (or viewer, approver, admin)\n  Password  {shown}\n  Data      {} (configuration: {})\n  Stop      Ctrl-C\n\n",
        data.display(),
        config.display(),
    )
}

enum Password {
    Given(String),
    Generated(String),
}

impl Password {
    fn choose() -> anyhow::Result<Self> {
        match std::env::var(PASSWORD_VARIABLE) {
            Ok(text) if text.chars().count() >= accounts::PASSWORD_MIN => Ok(Self::Given(text)),
            Ok(_) => {
                anyhow::bail!("{PASSWORD_VARIABLE} is shorter than {} characters", accounts::PASSWORD_MIN)
            }
            Err(std::env::VarError::NotPresent) => Ok(Self::Generated(RandomIds.next()[..16].to_owned())),
            Err(other) => Err(other).context(PASSWORD_VARIABLE),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Given(text) | Self::Generated(text) => text,
        }
    }
}

async fn add_users(state: &AppState, password: &str) -> anyhow::Result<()> {
    for role in Role::ALL {
        accounts::ensure_user(state.users.as_ref(), role.as_str(), role, password).await?;
    }
    Ok(())
}

/// The shop's counters, on their way into the console as any producer's.
struct IntoConsole {
    rates: Arc<RateService>,
}

#[async_trait]
impl Ingest for IntoConsole {
    async fn report(&self, report: Report) -> domain::Result<()> {
        let shop = Actor::new("demo-shop", Role::Operator);
        self.rates.report(&shop, &report).await.map(drop)
    }

    async fn seed(&self, counts: Vec<Count>, samples: Vec<StuckSample>) -> domain::Result<()> {
        for (sequence, counts) in (0..).zip(counts.chunks(CHUNK)) {
            let report = Report { producer: "demo-history".into(), sequence, counts: counts.to_vec() };
            self.rates.store.report(&report).await?;
        }
        // All at once: what is stored of a minute is replaced, so no minute may come in two parts.
        self.rates.store.sample_stuck(&samples).await?;
        self.rates.events.changed(Topic::Rates);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_password_is_shown_and_a_given_one_is_not() {
        let greet = |password| greeting("http://127.0.0.1:3000/", Path::new("data"), &password);
        assert!(greet(Password::Generated("made-up-just-now".into())).contains("made-up-just-now"));
        let given = greet(Password::Given("correct-horse".into()));
        assert!(!given.contains("correct-horse"));
        assert!(given.contains("http://127.0.0.1:3000/") && given.contains("data/amends.toml"));
    }
}
