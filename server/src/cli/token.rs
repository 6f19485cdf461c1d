//! `amends token`: bearer tokens for programs.

use super::{ConfigFile, Ended};
use crate::accounts;
use crate::compose::open_store;
use crate::runtime::RandomIds;
use clap::Subcommand;
use domain::roles::Role;
use store::Store;

/// Create bearer tokens for programs
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
}

/// Create a token and print it once
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  TOKEN=$(amends token create shop-counters --role operator --config amends.toml)
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:3000/api/v1/sources

Only a digest is stored: a lost token cannot be shown again, create another.")]
struct Create {
    /// Who acts with it, as the audit trail will name it
    name: String,
    /// viewer, operator, approver or admin
    #[arg(long)]
    role: Role,
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    let Command::Create(args) = args.command;
    accounts::check_name(&args.name)?;
    let db = open_store(&args.config.load()?).await?;
    let token =
        accounts::create_token(&Store::new(db.clone(), rand::random()), &RandomIds, &args.name, args.role)
            .await?;
    println!("{token}");
    eprintln!("This token acts as {} with the role {}. It is shown only now.", args.name, args.role);
    db.close().await;
    Ok(Ended::Good)
}
