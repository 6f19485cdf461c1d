//! `amends check`: what the configured sources look like from here.

use super::{ConfigFile, Ended};
use crate::runtime::SystemClock;
use domain::clock::Clock;
use futures::future::join_all;
use sources::{Level, Report, check};
use std::sync::Arc;

/// Check a configuration and every source it names; changes nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  amends check --config amends.toml
  amends check --config amends.toml --json | jq '.[].findings[] | select(.level == \"error\")'

Exit codes: 0 no error found (warnings may be), 1 an error was found, 2 could not run.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigFile,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    let config = args.config.load()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let checks = config.sources.iter().map(|source| check(source, Arc::clone(&clock)));
    let reports: Vec<Report> = join_all(checks).await;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    } else if reports.is_empty() {
        println!("The configuration is fine and names no [[source]] yet.");
    } else {
        reports.iter().for_each(|report| println!("{report}"));
    }
    let bad = reports.iter().any(|report| report.level() == Level::Error);
    Ok(if bad { Ended::FoundProblem } else { Ended::Good })
}
