//! `cargo xtask`: provisioning, the browser half of the build, private databases for tests, and every check in order.

mod checks;
mod dev;
mod front;
mod process;
mod project;
mod provision;
mod services;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use project::Project;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds and checks Amends.")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing for running (`run`) or for every check (`test`)
    Provision {
        #[arg(value_enum, default_value = "run")]
        scope: Scope,
    },
    /// Build the browser half: wasm, JavaScript, styles
    Front {
        /// Optimise, minify and precompress
        #[arg(long)]
        release: bool,
    },
    /// Build `target/release/amends`, its assets inside
    Build,
    /// Rebuild and restart the demo on every change; arguments go to `amends demo`
    Dev {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run a command beside private PostgreSQL, MariaDB and Redis servers
    Services {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Check the size of the first load against its budget
    Budget,
    /// Check formatting and lints, native and wasm
    Lint,
    /// Run every check
    Test {
        /// Run only the checks whose name contains one of these words
        only: Vec<String>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    Run,
    Test,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    let project = Project::locate()?;
    match cli.command {
        Task::Provision { scope } => provision::provision(&project, scope == Scope::Test)?,
        Task::Front { release } => front::build(&project, front::Mode::of(release))?,
        Task::Build => front::build_server(&project)?,
        Task::Dev { args } => dev::watch(&project, &args)?,
        Task::Services { command } => return services::run(&command),
        Task::Budget => println!("{}", front::budget::check(&project)?),
        Task::Lint => return checks::run(&project, &checks::lints()),
        Task::Test { only } => return checks::run(&project, &checks::all(&only)),
    }
    Ok(ExitCode::SUCCESS)
}
