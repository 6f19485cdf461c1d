//! `amends audit`: whether the audit trail is whole.

use super::{ConfigFile, Ended};
use crate::compose::open_store;
use clap::Subcommand;
use domain::audit::{Anchor, Break};
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
#[command(after_help = "Examples:
  amends audit verify --config amends.toml
  amends audit verify --config amends.toml --noted 33:ba877fb8…   the entry an earlier run printed is still there

Somebody who may write the whole store can write the whole chain anew. Note the newest entry somewhere else from time
to time and verify against it.

Exit codes: 0 the chain is whole, 1 an entry was changed, removed or added, 2 could not run.")]
struct Verify {
    #[command(flatten)]
    config: ConfigFile,
    /// An entry as an earlier run printed it, which must still be there
    #[arg(long, value_name = "SEQ:HASH")]
    noted: Option<Anchor>,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    let Command::Verify(args) = args.command;
    let db = open_store(&args.config.load()?).await?;
    let audit = AuditService { store: Arc::new(Store::new(db.clone(), rand::random())) };
    let verified = verify(&audit, args.noted.as_ref()).await;
    db.close().await;
    Ok(match verified? {
        Ok((entries, newest)) => {
            println!("{entries} entries, unbroken.");
            newest.iter().for_each(|newest| println!("The newest is {newest}"));
            Ended::Good
        }
        Err(broken) => {
            println!("The audit trail is broken: {broken}.");
            Ended::FoundProblem
        }
    })
}

/// How many entries there are and the newest, or where the chain breaks.
async fn verify(
    audit: &AuditService,
    noted: Option<&Anchor>,
) -> domain::Result<Result<(i64, Option<Anchor>), Break>> {
    let entries = match audit.verify().await? {
        Ok(entries) => entries,
        Err(broken) => return Ok(Err(broken)),
    };
    if let Some(noted) = noted
        && audit.anchor(noted.seq).await?.as_ref() != Some(noted)
    {
        return Ok(Err(Break::NotAsNoted { seq: noted.seq }));
    }
    Ok(Ok((entries, audit.anchor(entries).await?)))
}
