//! Findings about a source.

use serde::Serialize;
use std::fmt;

/// Everything found about one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub source: String,
    pub findings: Vec<Finding>,
}

/// One thing found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// A stable word for programs.
    pub code: &'static str,
    pub message: String,
    /// What to do next; nothing when all is well.
    pub advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    Warn,
    Error,
}

impl Report {
    pub(super) fn new(source: &str) -> Self {
        Self { source: source.to_owned(), findings: Vec::new() }
    }

    /// The worst level found.
    pub fn level(&self) -> Level {
        self.findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }

    pub(super) fn ok(&mut self, code: &'static str, message: impl Into<String>) {
        self.findings.push(Finding { level: Level::Ok, code, message: message.into(), advice: None });
    }

    pub(super) fn warn(&mut self, code: &'static str, message: impl Into<String>, advice: impl Into<String>) {
        self.add(Level::Warn, code, message.into(), advice.into());
    }

    pub(super) fn error(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Level::Error, code, message.into(), advice.into());
    }

    fn add(&mut self, level: Level, code: &'static str, message: String, advice: String) {
        self.findings.push(Finding { level, code, message, advice: Some(advice) });
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Error => "error",
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "source {}", self.source)?;
        for finding in &self.findings {
            writeln!(f, "  {:<5} {}: {}", finding.level, finding.code, finding.message)?;
            if let Some(advice) = &finding.advice {
                writeln!(f, "        → {advice}")?;
            }
        }
        Ok(())
    }
}
