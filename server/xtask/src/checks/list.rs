//! Which checks there are. Cheap ones first; the optimised build is made once, for the budget and the browser.

use super::rules;
use super::{Check, Work};
use crate::front::budget;
use crate::process;
use crate::project::Project;
use crate::provision::wasm;
use anyhow::{Context, Result};
use std::env;
use std::process::Command;

const BUILD: &str = "release build";

/// All checks, or those whose name contains one of the words.
pub fn all(only: &[String]) -> Vec<Check> {
    let mut checks = vec![
        rule("dependency rule", rules::dependencies),
        rule("migrations are the same on every database", rules::migrations),
    ];
    checks.extend(lints());
    checks.extend([
        command("tests: unit, contract on every database, API", tests),
        command("examples in the documentation", doc_tests),
        command(BUILD, |_| own(&["build"])),
        Check { after: Some(BUILD), ..rule("size budget of the first load", budget::check) },
        Check { after: Some(BUILD), ..command("browser", browser) },
    ]);
    checks.retain(|check| only.is_empty() || only.iter().any(|word| check.name.contains(word.as_str())));
    checks
}

/// Formatting and lints.
pub fn lints() -> Vec<Check> {
    vec![command("format", format), command("clippy, native", clippy), command("clippy, wasm", clippy_wasm)]
}

fn command(name: &'static str, make: fn(&Project) -> Result<Command>) -> Check {
    Check { name, after: None, work: Work::Command(make) }
}

fn rule(name: &'static str, rule: fn(&Project) -> Result<String>) -> Check {
    Check { name, after: None, work: Work::Rule(rule) }
}

fn cargo(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.cargo();
    command.args(arguments);
    command
}

/// This program again, so that its output too goes to a log.
fn own(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(env::current_exe().context("cannot find this program")?);
    command.args(arguments);
    Ok(command)
}

fn format(project: &Project) -> Result<Command> {
    Ok(cargo(project, &["fmt", "--all", "--check"]))
}

fn clippy(project: &Project) -> Result<Command> {
    Ok(cargo(project, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
}

fn clippy_wasm(project: &Project) -> Result<Command> {
    let mut command = project.cargo_with(wasm::toolchain(project)?);
    command.args([
        "clippy",
        "--locked",
        "--package",
        "app",
        "--lib",
        "--no-default-features",
        "--features",
        "hydrate",
    ]);
    // The profile of the release, so that macros and build scripts are compiled once for both.
    command.args(["--profile", "front", "--target", wasm::TARGET, "--target-dir"]).arg(project.front());
    command.args(["--", "-D", "warnings"]);
    Ok(command)
}

fn tests(project: &Project) -> Result<Command> {
    let mut command = own(&["services", "--", "cargo"])?;
    // A database that is not there fails the run instead of being left out.
    command.current_dir(project.root()).env("AMENDS_TEST_ALL", "1");
    if process::find("cargo-nextest").is_some() {
        command.args(["nextest", "run"]);
    } else {
        command.args(["test", "--lib", "--bins", "--tests", "--no-fail-fast"]);
    }
    command.args(["--workspace", "--locked"]);
    Ok(command)
}

fn doc_tests(project: &Project) -> Result<Command> {
    Ok(cargo(project, &["test", "--workspace", "--doc", "--locked"]))
}

fn browser(project: &Project) -> Result<Command> {
    let mut command = Command::new("npx");
    command.current_dir(project.root().join("end2end")).args(["--no-install", "playwright", "test"]);
    command.env("AMENDS_BIN", project.release_binary());
    Ok(command)
}
