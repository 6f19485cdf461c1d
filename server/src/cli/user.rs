//! `amends user`: the people who may sign in.

use super::{ConfigFile, Ended};
use crate::accounts;
use crate::compose::open_store;
use anyhow::{Context, bail};
use clap::Subcommand;
use domain::roles::Role;
use std::io::Read;
use store::Store;

/// Add and list the people who may sign in
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(Add),
    List(List),
}

/// Add a user, or give an existing one another role and password
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  amends user add mei --role operator --password-stdin --config amends.toml < password.txt
  read -rs P; printf %s \"$P\" | amends user add mei --role admin --password-stdin --config amends.toml")]
struct Add {
    /// How the person signs in
    name: String,
    /// viewer, operator, approver or admin
    #[arg(long)]
    role: Role,
    /// Read the password from standard input, where neither history nor process list keeps it
    #[arg(long, required = true)]
    password_stdin: bool,
    #[command(flatten)]
    config: ConfigFile,
}

/// List users and their roles
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  amends user list --config amends.toml")]
struct List {
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Ended> {
    match args.command {
        Command::Add(args) => add(args).await,
        Command::List(args) => list(args).await,
    }
}

async fn add(args: Add) -> anyhow::Result<Ended> {
    accounts::check_name(&args.name)?;
    let password = read_password(std::io::stdin().lock())?;
    let db = open_store(&args.config.load()?).await?;
    accounts::put_user(&Store::new(db.clone(), rand::random()), &args.name, args.role, &password).await?;
    println!("{} may sign in as {}.", args.name, args.role);
    db.close().await;
    Ok(Ended::Good)
}

async fn list(args: List) -> anyhow::Result<Ended> {
    let db = open_store(&args.config.load()?).await?;
    for user in domain::ports::UserStore::users(&Store::new(db.clone(), rand::random())).await? {
        println!("{}\t{}", user.name, user.role);
    }
    db.close().await;
    Ok(Ended::Good)
}

/// Everything on `input` up to its last line end: what a pipe or `< file` brings.
fn read_password(input: impl Read) -> anyhow::Result<String> {
    let mut text = String::new();
    input
        .take(4_096)
        .read_to_string(&mut text)
        .context("the password on standard input is not UTF-8 text")?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.chars().count() < accounts::PASSWORD_MIN {
        bail!("the password on standard input is shorter than {} characters", accounts::PASSWORD_MIN);
    }
    Ok(password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::read_password;

    #[test]
    fn a_password_is_taken_without_its_line_end_and_never_too_short() {
        assert_eq!(read_password("correct horse\n".as_bytes()).unwrap(), "correct horse");
        assert_eq!(read_password("correct horse\r\n".as_bytes()).unwrap(), "correct horse");
        assert_eq!(read_password(" spaces stay ".as_bytes()).unwrap(), " spaces stay ");
        assert!(read_password("short\n".as_bytes()).is_err());
        assert!(read_password(&[0xff; 20][..]).is_err());
    }
}
