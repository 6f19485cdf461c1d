//! Every check, in order: a heading, the time it took, the end of its log when it failed, and one closing line.

mod list;
mod rules;

use crate::process::{self, Stop};
use crate::project::{Project, strip_outer_cargo};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

pub use list::{all, lints};

const SAY_EVERY: Duration = Duration::from_secs(30);
/// How many lines of a failed check's log are shown.
const TAIL: usize = 80;

/// One thing that must hold.
pub struct Check {
    name: &'static str,
    /// The check without which this one cannot say anything.
    after: Option<&'static str>,
    work: Work,
}

/// How a check is carried out.
enum Work {
    /// Another program, whose output goes to a log.
    Command(fn(&Project) -> Result<Command>),
    /// A rule looked at from here; the text says what was seen.
    Rule(fn(&Project) -> Result<String>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Runs the checks and answers with success only when all passed.
pub fn run(project: &Project, checks: &[Check]) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let logs = project.target().join("checks");
    fs::create_dir_all(&logs)?;
    let mut outcomes: Vec<(&str, Outcome)> = Vec::new();
    for (index, check) in checks.iter().enumerate() {
        println!("\n[{}/{}] {}", index + 1, checks.len(), check.name);
        let blocked =
            |name| outcomes.iter().any(|(seen, outcome)| *seen == name && *outcome != Outcome::Passed);
        let outcome = if check.after.is_some_and(blocked) {
            println!("      skipped: it needs `{}`", check.after.unwrap_or_default());
            Outcome::Skipped
        } else {
            perform(project, check, &logs, &stop)
        };
        outcomes.push((check.name, outcome));
        if stop.requested() {
            bail!("interrupted during `{}`", check.name);
        }
    }
    Ok(summary(&outcomes))
}

fn perform(project: &Project, check: &Check, logs: &Path, stop: &Stop) -> Outcome {
    let begun = Instant::now();
    let result = match check.work {
        Work::Rule(rule) => rule(project),
        Work::Command(make) => make(project).and_then(|command| logged(command, &log_of(logs, check), stop)),
    };
    let took = begun.elapsed().as_secs_f32();
    match result {
        Ok(said) => {
            said.lines().for_each(|line| println!("      {line}"));
            println!("      passed in {took:.1} s");
            Outcome::Passed
        }
        Err(error) => {
            println!("{error:#}\n      FAILED after {took:.1} s: {}", check.name);
            Outcome::Failed
        }
    }
}

fn log_of(logs: &Path, check: &Check) -> PathBuf {
    logs.join(format!("{}.log", check.name.replace([' ', ',', ':'], "-")))
}

/// Runs a command into a log; a line now and then says that it is still at work.
fn logged(mut command: Command, log: &Path, stop: &Stop) -> Result<String> {
    strip_outer_cargo(&mut command);
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", process::show(&command)))?;
    let (begun, mut said) = (Instant::now(), 1);
    let status = process::supervise(&mut child, stop, || {
        if begun.elapsed() >= SAY_EVERY * said {
            println!("      … {} s", begun.elapsed().as_secs());
            said += 1;
        }
    })?;
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    match process::succeed(&command, status) {
        Ok(()) => {
            Ok(text.lines().filter(|line| is_count(line)).map(|line| format!("{}\n", line.trim())).collect())
        }
        Err(error) => Err(error.context(format!("the end of {}:\n{}\n", log.display(), tail(&text)))),
    }
}

/// The lines in which test runners say how many tests they ran.
fn is_count(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("Summary [") || line.starts_with("test result:") && !line.contains(" 0 passed")
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

fn summary(outcomes: &[(&str, Outcome)]) -> ExitCode {
    let count = |wanted| outcomes.iter().filter(|(_, outcome)| *outcome == wanted).count();
    let (passed, failed, skipped) = (count(Outcome::Passed), count(Outcome::Failed), count(Outcome::Skipped));
    println!();
    for (name, _) in outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Failed) {
        println!("failed: {name}");
    }
    println!("checks: {passed} passed, {failed} failed, {skipped} skipped");
    if passed == outcomes.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_only_the_end_of_its_log() {
        let text: String = (0..200).map(|line| format!("line {line}\n")).collect();
        let shown = tail(&text);
        assert!(shown.starts_with("line 120\n") && shown.ends_with("line 199"));
        assert_eq!(tail("short"), "short");
    }

    #[test]
    fn a_run_with_anything_not_passed_fails() {
        assert_eq!(summary(&[("a", Outcome::Passed)]), ExitCode::SUCCESS);
        assert_eq!(summary(&[("a", Outcome::Passed), ("b", Outcome::Skipped)]), ExitCode::FAILURE);
        assert_eq!(summary(&[("a", Outcome::Failed)]), ExitCode::FAILURE);
    }
}
