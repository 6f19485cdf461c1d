//! `amends serve`: the console over the configured sources.

use super::{ConfigFile, Ended};
use crate::compose::compose;
use crate::runtime::{TokioRuntime, World};
use crate::serving;

/// Serve the console over the sources of a configuration file
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  amends serve --config /etc/amends/amends.toml

Stops on Ctrl-C or SIGTERM: running requests and compensations are finished first.
RUST_LOG chooses what is logged, over the configuration's `log`.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    let config = args.config.load()?;
    let listener = serving::listen(config.listen).await?;
    let runtime = TokioRuntime::default();
    let state = compose(&config, &World::real(&runtime)).await?;
    let address = serving::address(&listener, &config.base_path)?;
    println!("ready {address}");
    serving::serve(listener, state, &runtime).await?;
    Ok(Ended::Good)
}
