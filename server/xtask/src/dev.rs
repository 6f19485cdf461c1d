//! Rebuilds on change and restarts the demo; a build that fails leaves the running one alone.

use crate::front::{self, Mode};
use crate::process::{self, Stop};
use crate::project::{Project, strip_outer_cargo};
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use walkdir::WalkDir;

const LOOK_EVERY: Duration = Duration::from_millis(400);
const WATCHED: [&str; 6] = ["app", "server", "style", "migrations", "Cargo.toml", "Cargo.lock"];

/// Runs until interrupted.
pub fn watch(project: &Project, args: &[String]) -> Result<()> {
    let stop = Stop::on_signals()?;
    let mut seen = None;
    let mut running: Option<Child> = None;
    while !stop.requested() {
        let now = latest_change(project.root());
        if seen != Some(now) {
            seen = Some(now);
            match build(project) {
                Ok(()) => restart(project, args, &mut running)?,
                Err(error) => eprintln!("» not restarted: {error:#}"),
            }
        }
        sleep(LOOK_EVERY);
    }
    running.iter_mut().for_each(|child| process::end(child, Signal::TERM));
    Ok(())
}

fn build(project: &Project) -> Result<()> {
    front::build(project, Mode::Debug)?;
    process::run(project.cargo().args(["build", "--package", "server"]))
}

fn restart(project: &Project, args: &[String], running: &mut Option<Child>) -> Result<()> {
    running.iter_mut().for_each(|child| process::end(child, Signal::TERM));
    let mut command = Command::new(project.target().join("debug/amends"));
    strip_outer_cargo(&mut command);
    command.arg("demo").args(args).current_dir(project.root());
    *running = Some(command.spawn().context("cannot start the demo")?);
    Ok(())
}

fn latest_change(root: &Path) -> Option<SystemTime> {
    let files = WATCHED.iter().flat_map(|name| WalkDir::new(root.join(name)).into_iter().flatten());
    files.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}
