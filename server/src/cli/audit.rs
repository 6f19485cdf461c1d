//! `amends audit`: whether the audit trail is whole.

use super::{ConfigFile, Ended};
use crate::compose::open_store;
use clap::Subcommand;
use domain::services::audit::AuditService;
use std::sync::Arc;
use store::Store;

/// Verify the audit trail
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Verify(Verify),
}

/// Walk the whole hash chain and say where it breaks
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  amends audit verify --config amends.toml

Exit codes: 0 the chain is whole, 1 an entry was changed, removed or added, 2 could not run.")]
struct Verify {
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    let Command::Verify(args) = args.command;
    let db = open_store(&args.config.load()?).await?;
    let verified = AuditService { store: Arc::new(Store::new(db.clone(), rand::random())) }.verify().await?;
    db.close().await;
    Ok(match verified {
        Ok(entries) => {
            println!("{entries} entries, unbroken.");
            Ended::Good
        }
        Err(broken) => {
            println!("The audit trail is broken: {broken}.");
            Ended::FoundProblem
        }
    })
}
