//! The configuration file: read, checked, and explained when it is wrong.

mod document;
mod fault;
mod value;

pub use fault::{ConfigError, Fault};

use chrono_tz::Tz;
use document::{Document, Places};
use serde::Deserialize;
use sources::config::{Problem, Secret, SourceConfig, Span, Zone};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use value::{Address, BasePath, Hours, LogFilter, Origin};

/// Everything the console can be told; `docs/configuration.md` explains every key.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    /// `/`, or the path behind a proxy without a slash at its end.
    pub base_path: String,
    /// URL of the database with the console's own tables.
    pub store: Secret,
    /// The zone of people who chose none.
    pub display_zone: Tz,
    /// How long the answer of a reverse check counts.
    pub evidence_life: Duration,
    /// How long after a mark-timed-out to look for a late effect.
    pub late_check_after: Duration,
    pub session_hours: u32,
    pub secure_cookies: bool,
    /// Origins beside the console's own that may send changes.
    pub allowed_origins: Vec<String>,
    /// What is logged, in the syntax of `RUST_LOG`.
    pub log: String,
    pub sources: Vec<SourceConfig>,
}

/// The file as written; defaults are here and nowhere else.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    listen: Address,
    #[serde(default)]
    base_path: BasePath,
    store: Option<Spanned<Secret>>,
    #[serde(default)]
    display_zone: Zone,
    #[serde(default = "evidence_life")]
    evidence_life: Span,
    #[serde(default = "late_check_after")]
    late_check_after: Span,
    #[serde(default)]
    session_hours: Hours,
    #[serde(default)]
    secure_cookies: bool,
    #[serde(default)]
    allowed_origins: Vec<Origin>,
    #[serde(default)]
    log: LogFilter,
    #[serde(default)]
    source: Vec<Spanned<SourceConfig>>,
}

fn evidence_life() -> Span {
    Span::new(Duration::from_secs(60))
}

fn late_check_after() -> Span {
    Span::new(Duration::from_secs(300))
}

impl Config {
    /// Reads and checks a file; `${NAME}` in its values is taken from the environment, and relative SQLite paths
    /// start at the file's folder. The error says file, line and key, and never shows a secret.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            let message = format!("cannot be read: {error}; give its path with --config");
            ConfigError::new(file, vec![Fault::of_file(message)])
        })?;
        let folder = std::path::absolute(file).ok().and_then(|file| file.parent().map(Path::to_owned));
        let folder = folder.unwrap_or_default();
        Self::read(&text, &folder, &|name| std::env::var(name).ok())
            .map_err(|faults| ConfigError::new(file, faults))
    }

    /// The same from text, with the environment as an argument.
    pub fn read(
        text: &str,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<Fault>> {
        let document = Document::parse(text, folder, environment).map_err(|fault| vec![fault])?;
        let (file, places): (File, Places) = document.read().map_err(|fault| vec![fault])?;
        let mut faults = store_fault(&file, &places).into_iter().collect::<Vec<_>>();
        faults.extend(source_faults(&file.source, &places));
        match file.store {
            Some(store) if faults.is_empty() => Ok(Self {
                listen: file.listen.0,
                base_path: file.base_path.0,
                store: store.into_inner(),
                display_zone: file.display_zone.0,
                evidence_life: file.evidence_life.get(),
                late_check_after: file.late_check_after.get(),
                session_hours: file.session_hours.0,
                secure_cookies: file.secure_cookies,
                allowed_origins: file.allowed_origins.into_iter().map(|origin| origin.0).collect(),
                log: file.log.0,
                sources: file.source.into_iter().map(Spanned::into_inner).collect(),
            }),
            _ => Err(faults),
        }
    }
}

fn store_fault(file: &File, places: &Places) -> Option<Fault> {
    let Some(store) = &file.store else {
        let message =
            "is missing; write where the console keeps its own tables, like store = \"sqlite://amends.db\"";
        return Some(Fault { line: None, key: Some("store".into()), message: message.into() });
    };
    let error = db::Dialect::of_url(store.get_ref().expose()).err()?;
    Some(Fault {
        line: Some(places.line(store.span().start)),
        key: Some("store".into()),
        message: error.to_string(),
    })
}

fn source_faults(sources: &[Spanned<SourceConfig>], places: &Places) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (index, source) in sources.iter().enumerate() {
        let line = places.line(source.span().start);
        let config = source.get_ref();
        if let Some(first) = names.insert(&config.name, line) {
            let message =
                format!("{:?} is already the source of line {first}; give this one another", config.name);
            faults.push(Fault { line: Some(line), key: Some("source.name".into()), message });
        }
        faults.extend(config.problems().into_iter().map(|problem| {
            let line = problem_line(index, config, &problem, places).unwrap_or(line);
            Fault { line: Some(line), key: Some(problem.key), message: problem.message }
        }));
    }
    faults
}

/// Where a problem is: its key says `source "orders".biz "ORDER".replay.url`, the file counts instead of naming.
fn problem_line(index: usize, source: &SourceConfig, problem: &Problem, places: &Places) -> Option<usize> {
    let (_, inside) = problem.key.split_once("\".")?;
    let path = match inside.strip_prefix("biz \"").and_then(|named| named.split_once("\".")) {
        Some((name, rest)) => {
            let biz = source.biz.iter().position(|biz| biz.name == name)?;
            format!("source[{index}].biz[{biz}].{rest}")
        }
        None => format!("source[{index}].{inside}"),
    };
    places.line_of(path.split(' ').next()?)
}

#[cfg(test)]
mod tests;
