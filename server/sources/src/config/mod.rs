//! One `[[source]]` of the configuration file: what it says, and whether it makes sense.

mod biz;
mod check;
mod columns;
mod http_check;
mod list;
mod shards;
mod steps;
mod value;
mod verify;

pub use crate::named::Param;
pub use biz::{Approval, Biz, OnUnknown, Prepare, Replay, ResponseTemplate};
pub use check::{Ask, Home, ReverseCheck, RowsExpected};
pub use columns::{Columns, TimeColumn, TimeUnit};
pub use http_check::{Algorithm, AnswerField, AnswerRule, Encoding, HttpCheck, SecretEncoding, Sign};
pub use shards::{Fallback, Hash, Route, RouteBy, ShardSet, ShardTable, Sharding, Tables};
pub use steps::{Bound, Step, Steps};
pub use value::{Pointer, Predicate, Rate, Scalar, Secret, Span, Table, ValueTest, WriteValue, Zone};
pub use verify::Problem;

use domain::record::State;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// How old a record may get when neither its biz_type nor its source says so.
const STUCK_AFTER: Duration = Duration::from_secs(600);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages wait so long for a source that is down, and operators for a free connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: u32 = 8;

/// An attached table, as configured. `docs/configuration.md` explains every key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// What people call it; unique in the file.
    pub name: String,
    pub url: Secret,
    #[serde(default)]
    pub table: Table,
    /// The zone of time columns that name none.
    #[serde(default)]
    pub zone: Zone,
    /// A constant condition on every statement.
    #[serde(default, rename = "where")]
    pub predicate: Option<Predicate>,
    /// For biz_types that do not say otherwise.
    #[serde(default = "stuck_after")]
    pub stuck_after: Span,
    /// Longest one statement may run.
    #[serde(default = "statement_timeout")]
    pub statement_timeout: Span,
    /// Longest to wait for a connection.
    #[serde(default = "connect_timeout")]
    pub connect_timeout: Span,
    #[serde(default = "max_connections")]
    pub max_connections: u32,
    #[serde(default)]
    pub columns: Columns,
    /// Native values and what they mean; without any, the native table's four words.
    #[serde(default = "native_states")]
    pub state: Vec<StateRule>,
    #[serde(default)]
    pub write: Writes,
    #[serde(default)]
    pub biz: Vec<Biz>,
}

/// Native values that mean one state. The first value is the one written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateRule {
    pub is: MappedState,
    pub values: Vec<Scalar>,
}

/// The states a native value can be mapped onto; everything else reads UNKNOWN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MappedState {
    Processing,
    Success,
    Failed,
    Timeout,
}

impl MappedState {
    pub const ALL: [Self; 4] = [Self::Processing, Self::Success, Self::Failed, Self::Timeout];

    pub fn state(self) -> State {
        match self {
            Self::Processing => State::Processing,
            Self::Success => State::Success,
            Self::Failed => State::Failed,
            Self::Timeout => State::Timeout,
        }
    }
}

/// What an action sets besides, or instead of, what it sets by itself: column → value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Writes {
    pub mark_succeeded: BTreeMap<String, WriteValue>,
    pub mark_timed_out: BTreeMap<String, WriteValue>,
}

impl SourceConfig {
    /// The configuration of a biz_type, if the file names it.
    pub fn biz(&self, biz_type: Option<&str>) -> Option<&Biz> {
        let name = biz_type?;
        self.biz.iter().find(|biz| biz.name == name)
    }

    /// How old a record of this biz_type may get before it counts as stuck.
    pub fn stuck_after(&self, biz_type: Option<&str>) -> Duration {
        self.biz(biz_type).and_then(|biz| biz.stuck_after).unwrap_or(self.stuck_after).get()
    }

    /// The state a native value means.
    pub fn state_of(&self, native: Option<&str>) -> State {
        let Some(native) = native else { return State::Unknown };
        let rule = self.state.iter().find(|rule| rule.values.iter().any(|value| value.is(native)));
        rule.map_or(State::Unknown, |rule| rule.is.state())
    }

    /// All native values that mean `state`; for `Unknown`, none.
    pub fn native_values(&self, state: State) -> Vec<String> {
        let rules = self.state.iter().filter(|rule| rule.is.state() == state);
        rules.flat_map(|rule| rule.values.iter().map(Scalar::to_string)).collect()
    }
}

fn stuck_after() -> Span {
    Span::new(STUCK_AFTER)
}

fn statement_timeout() -> Span {
    Span::new(STATEMENT_TIMEOUT)
}

fn connect_timeout() -> Span {
    Span::new(CONNECT_TIMEOUT)
}

fn max_connections() -> u32 {
    MAX_CONNECTIONS
}

fn native_states() -> Vec<StateRule> {
    MappedState::ALL
        .into_iter()
        .map(|is| StateRule { is, values: vec![Scalar::Text(is.state().as_str().to_owned())] })
        .collect()
}
