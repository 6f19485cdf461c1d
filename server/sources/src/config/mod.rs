//! One `[[source]]` of the configuration file: what it says, and whether it makes sense.

mod beside;
mod biz;
mod body;
mod cache;
mod check;
mod columns;
mod http_check;
mod key;
mod list;
mod shards;
mod state;
mod steps;
mod time;
mod value;
mod verify;

pub use crate::named::Param;
pub use beside::{Archive, Join, Shard, ShardRange};
pub use biz::{Approval, Biz, OnUnknown, Prepare, Replay, ResponseTemplate};
pub use cache::{After, CacheConfig, CacheFormat, CacheState, CacheValues, Compare};
pub use check::{Ask, Home, ReverseCheck, RowsExpected};
pub use columns::{
    AgeFrom, BizNo, BodyColumn, BodyFrom, Charset, Columns, DecodeBy, Decoder, KeyColumns, KeyTransform,
    Sentinel, TimeColumn, TimeUnit,
};
pub use http_check::{Algorithm, AnswerField, AnswerRule, Encoding, HttpCheck, SecretEncoding, Sign};
pub use shards::{Fallback, Hash, Route, RouteBy, ShardSet, ShardTable, Sharding, Tables};
pub use state::{MappedState, StateRule};
pub use steps::{Bound, Step, Steps};
pub use value::{
    Pattern, Pointer, Predicate, Rate, Scalar, Secret, Span, Table, ValueTest, WriteValue, Zone,
};
pub use verify::Problem;

use domain::actions::Action;
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
    /// Instead of `table`: tables that share the records between them.
    #[serde(default)]
    pub shard: Vec<Shard>,
    /// Tables that finished rows are moved to.
    #[serde(default)]
    pub archive: Vec<Archive>,
    /// Further tables whose columns belong to a record.
    #[serde(default)]
    pub join: Vec<Join>,
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
    /// What makes a row which state; without any rule, the native table's four words.
    #[serde(default = "native_states")]
    pub state: Vec<StateRule>,
    #[serde(default)]
    pub write: Writes,
    /// The cache that services keep beside the table.
    #[serde(default)]
    pub cache: Option<CacheConfig>,
    #[serde(default)]
    pub biz: Vec<Biz>,
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

    /// All values of the status column that mean `state` by themselves; for `Unknown`, none.
    pub fn native_values(&self, state: State) -> Vec<&Scalar> {
        let rules = self.state.iter().filter(|rule| rule.is.state() == state && rule.is_values_only());
        rules.flat_map(|rule| &rule.values).collect()
    }

    /// Whether values of the status column alone decide every state.
    pub fn states_are_values(&self) -> bool {
        self.columns.status.is_some() && self.state.iter().all(StateRule::is_values_only)
    }

    /// The state that marking a record makes: FAILED stands for TIMEOUT where the table has no value for it and
    /// `write.mark_timed_out` says what to set.
    pub fn marked(&self, action: Action) -> State {
        let has = |state: MappedState| self.state.iter().any(|rule| rule.is == state);
        match action {
            Action::MarkSucceeded => State::Success,
            Action::MarkTimedOut | Action::Replay => {
                let fails = !has(MappedState::Timeout) && has(MappedState::Failed);
                if fails && !self.write.mark_timed_out.is_empty() { State::Failed } else { State::Timeout }
            }
        }
    }

    /// Every SQL condition on the record's own table, with its key.
    pub fn expressions(&self) -> Vec<(String, &str)> {
        let own = self.predicate.iter().map(|predicate| ("where".to_owned(), predicate.sql()));
        let rules = self.state.iter().enumerate().filter_map(|(place, rule)| {
            Some((format!("state {} ({}): when", place + 1, rule.is.state()), rule.when.as_ref()?.sql()))
        });
        own.chain(rules).collect()
    }

    /// Whether any row can be PROCESSING: where rows are written only when work is done, nothing can be seen stuck.
    pub fn sees_processing(&self) -> bool {
        self.state.iter().any(|rule| rule.is == MappedState::Processing)
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
    let word = |is: MappedState| StateRule::of_values(is, vec![Scalar::Text(is.state().as_str().to_owned())]);
    MappedState::NATIVE.into_iter().map(word).collect()
}
