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

/// Findings quote what tables hold, and a terminal obeys control characters and turned directions.
fn harmless(text: &str) -> String {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if obeyed(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "source {}", self.source)?;
        for finding in &self.findings {
            writeln!(f, "  {:<5} {}: {}", finding.level, finding.code, harmless(&finding.message))?;
            if let Some(advice) = &finding.advice {
                writeln!(f, "        → {}", harmless(advice))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_table_holds_never_commands_a_terminal() {
        let mut report = Report::new("orders");
        report.warn("states", "status \u{1b}[2J\r\u{202e}x", "map \u{9b}31m it");
        let shown = report.to_string();
        assert!(
            shown.contains("status \\u{1b}[2J\\u{d}\\u{202e}x") && shown.contains("map \\u{9b}31m it"),
            "{shown}"
        );
    }
}
