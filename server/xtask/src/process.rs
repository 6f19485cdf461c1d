//! Running other programs: one way to start, wait, stop and explain a failure.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(40);
/// How long a program may take to stop when asked before it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// Runs a command to its end with the terminal as it is.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", show(command)))?;
    succeed(command, status)
}

/// Runs a command and returns what it printed on standard output; the rest is shown only on failure.
pub fn capture(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", show(command)))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}\n{}",
            show(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Turns a bad exit status into an error that names the command.
pub fn succeed(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { bail!("{} failed: {status}", show(command)) }
}

/// The command as one would type it.
pub fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The full path of a program on PATH or in one of the folders where Debian keeps servers.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(extra).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// True for the superuser.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Set once the person or the system asked this program to stop.
#[derive(Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over Ctrl-C, SIGTERM and SIGHUP so that what was started can be stopped first.
    pub fn on_signals() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot listen for signals")?;
        }
        Ok(Self(flag))
    }

    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Waits for a child, calling `tick` now and then; stops the child and fails when a stop is requested.
pub fn supervise(child: &mut Child, stop: &Stop, mut tick: impl FnMut()) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.requested() {
            end(child, Signal::TERM);
            bail!("interrupted");
        }
        tick();
        sleep(POLL);
    }
}

/// Asks a child to stop and kills it when it does not.
pub fn end(child: &mut Child, signal: Signal) {
    let asked = Instant::now();
    signal_child(child, signal);
    while asked.elapsed() < GRACE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        sleep(POLL);
    }
    signal_child(child, Signal::KILL);
    if let Err(error) = child.wait() {
        eprintln!("could not wait for process {}: {error}", child.id());
    }
}

/// Waits until `ready` holds; false when `limit` passed first.
pub fn wait_until(limit: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if ready() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        sleep(POLL);
    }
}

/// A child that has already gone needs no signal, so a failure here is no news.
fn signal_child(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_process(pid, signal).unwrap_or_default();
    }
}
