//! `amends migrate`: brings the console's own tables up to date.

use super::{ConfigFile, Ended};
use crate::compose::open_store;

/// Create or update the console's own tables (serve does it by itself); never touches a source
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  amends migrate --config amends.toml")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    let db = open_store(&args.config.load()?).await?;
    println!("The tables in {} are up to date.", db.shown_url());
    db.close().await;
    Ok(Ended::Good)
}
