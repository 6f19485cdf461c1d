//! `[source.cache]`: the cache that services keep beside the table, and how a state is read from its entries.

use super::value::{Pointer, Rate, Scalar, Secret, Span};
use crate::cache::problems;
use domain::record::State;
use serde::Deserialize;
use std::time::Duration;

/// Slower than this, a cache is no help to anybody.
const TIMEOUT: Duration = Duration::from_millis(500);
const COMPARED_FOR: Duration = Duration::from_secs(3_600);

/// The cache beside the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    pub url: Secret,
    /// With `{key}`, `{biz_type}` and `{biz_no}` of the record.
    pub key: String,
    #[serde(default)]
    pub format: CacheFormat,
    #[serde(default)]
    pub state: CacheState,
    /// What becomes of an entry that says something else than a settled record.
    #[serde(default)]
    pub after: After,
    /// The entry of a record marked succeeded; also `{response}`.
    #[serde(default)]
    pub mark_succeeded: Option<String>,
    #[serde(default)]
    pub mark_timed_out: Option<String>,
    /// How long a written entry lives.
    #[serde(default)]
    pub ttl: Option<Span>,
    /// Longest to wait for an answer.
    #[serde(default = "timeout")]
    pub timeout: Span,
    #[serde(default)]
    pub compare: Compare,
    /// Most records compared in a second.
    #[serde(default = "compare_rate")]
    pub compare_rate: Rate,
}

/// What kind of value an entry is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheFormat {
    #[default]
    Json,
    Text,
    Hash,
}

/// Where in an entry the state is, and which values mean which; without any values, the four words themselves.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheState {
    /// Of a JSON entry; `/status` when absent.
    pub pointer: Option<Pointer>,
    /// Of a hash.
    pub field: Option<String>,
    pub values: CacheValues,
    /// What every other value means.
    pub otherwise: Option<State>,
}

/// Values by the state they mean. One value may mean several: a cache often knows fewer states than the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "SCREAMING_SNAKE_CASE")]
pub struct CacheValues {
    pub processing: Vec<Scalar>,
    pub success: Vec<Scalar>,
    pub failed: Vec<Scalar>,
    pub timeout: Vec<Scalar>,
}

impl CacheValues {
    pub fn each(&self) -> [(State, &[Scalar]); 4] {
        [
            (State::Processing, &self.processing),
            (State::Success, &self.success),
            (State::Failed, &self.failed),
            (State::Timeout, &self.timeout),
        ]
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// The entry goes, and the table decides.
    #[default]
    Delete,
    /// The entry is replaced by the template of the action, for services that ask only their cache.
    Write,
}

/// Records created in this span are compared with their entries in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Compare {
    Off,
    For(Duration),
}

impl Default for Compare {
    fn default() -> Self {
        Self::For(COMPARED_FOR)
    }
}

impl TryFrom<String> for Compare {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let span = Span::try_from(text).map_err(|message| format!("{message}, or \"off\""))?;
        Ok(Self::For(span.get()))
    }
}

impl CacheConfig {
    /// Everything wrong with it as written: key below `cache`, and what to write.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        problems(self)
    }
}

fn timeout() -> Span {
    Span::new(TIMEOUT)
}

fn compare_rate() -> Rate {
    Rate { count: 100, per: Duration::from_secs(1) }
}
