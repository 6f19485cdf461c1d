//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// One thing to correct. The message says what was found and what to write; it never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1; `None` = the file as a whole.
    pub line: Option<usize>,
    pub key: Option<String>,
    pub message: String,
}

impl Fault {
    pub(super) fn of_file(message: impl Into<String>) -> Self {
        Self { line: None, key: None, message: message.into() }
    }
}

/// A file that cannot be used, with everything to correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    file: PathBuf,
    faults: Vec<Fault>,
}

impl ConfigError {
    pub(super) fn new(file: &Path, faults: Vec<Fault>) -> Self {
        Self { file: file.to_owned(), faults }
    }
}

impl fmt::Display for ConfigError {
    /// One fault a line, as compilers write them: `file:line: key: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.faults.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.file.display())?;
            if let Some(line) = fault.line {
                write!(f, ":{line}")?;
            }
            if let Some(key) = &fault.key {
                write!(f, ": {key}")?;
            }
            write!(f, ": {}", fault.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
