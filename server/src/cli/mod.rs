//! The command line: one file a sub-command.

mod audit;
mod check;
mod demo;
mod migrate;
mod serve;
mod token;
mod user;

use crate::config::Config;
use crate::telemetry;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// The console for requests that must take effect exactly once.
#[derive(Debug, Parser)]
#[command(name = "amends", version, after_help = EXAMPLES, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  amends demo                                   a shop with stuck records, nothing else needed
  amends check --config amends.toml             what your tables would look like to the console
  amends serve --config amends.toml             the console over your own tables

Exit codes: 0 good, 1 found a problem, 2 could not run.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    Check(check::Args),
    Migrate(migrate::Args),
    User(user::Args),
    Token(token::Args),
    Audit(audit::Args),
}

/// How a command that could run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Good,
    FoundProblem,
}

/// Where the configuration is.
#[derive(Debug, clap::Args)]
struct ConfigFile {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl ConfigFile {
    /// Reads the configuration and starts logging as it says.
    fn load(&self) -> anyhow::Result<Config> {
        let config = Config::load(&self.config)?;
        telemetry::init(&config.log);
        Ok(config)
    }
}

/// Rendering pages is work for the processor: with fewer threads one slow page would hold up all others.
const LEAST_THREADS: usize = 4;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    let threads = std::thread::available_parallelism().map_or(LEAST_THREADS, usize::from).max(LEAST_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(command)),
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(Ended::Good) => ExitCode::SUCCESS,
        Ok(Ended::FoundProblem) => ExitCode::from(1),
        Err(error) => {
            eprintln!("amends: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(command: Command) -> anyhow::Result<Ended> {
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::Serve(args) => serve::run(args).await,
        Command::Check(args) => check::run(args).await,
        Command::Migrate(args) => migrate::run(args).await,
        Command::User(args) => user::run(args).await,
        Command::Token(args) => token::run(args).await,
        Command::Audit(args) => audit::run(args).await,
    }
}

#[cfg(test)]
mod tests;
