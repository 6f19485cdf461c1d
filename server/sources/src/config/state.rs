//! Ordered rules from a row to a state; the first that matches wins.

use super::columns::AgeFrom;
use super::value::{Predicate, Scalar, ValueTest};
use domain::record::State;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One rule. Everything it says must hold; the first value of the first rule of a state is the one written.
///
/// ```toml
/// [[source.state]]
/// is = "PROCESSING"
/// null = ["response_code"]
/// not_null = ["locked_at"]
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateRule {
    pub is: MappedState,
    /// The status column holds one of these: `values = [0, 1]`, `values = ["DONE"]`, `values = [true]`.
    #[serde(default)]
    pub values: Vec<Scalar>,
    /// Other columns hold certain values: `equals = { trigger_code = 200, handle_code = [0] }`.
    #[serde(default)]
    pub equals: BTreeMap<String, ValueTest>,
    /// All of these columns are NULL (or one of their times' `none` values): `null = ["completed_at"]`.
    #[serde(default)]
    pub null: Vec<String>,
    /// None of these columns is NULL: `not_null = ["locked_at"]`.
    #[serde(default)]
    pub not_null: Vec<String>,
    /// A SQL condition over the table's own columns: `when = "retries >= 3 AND last_error <> ''"`.
    #[serde(default)]
    pub when: Option<Predicate>,
    /// The row's existence is enough; for tables that write a row only when the work is done.
    #[serde(default)]
    pub always: bool,
    /// Where the age of such records is counted from, instead of `columns.age_from`.
    #[serde(default)]
    pub age_from: Option<AgeFrom>,
}

impl StateRule {
    /// A rule of nothing but values of the status column.
    pub fn of_values(is: MappedState, values: Vec<Scalar>) -> Self {
        Self {
            is,
            values,
            equals: BTreeMap::new(),
            null: Vec::new(),
            not_null: Vec::new(),
            when: None,
            always: false,
            age_from: None,
        }
    }

    /// Whether values of the status column alone decide.
    pub fn is_values_only(&self) -> bool {
        !self.values.is_empty()
            && self.equals.is_empty()
            && self.null.is_empty()
            && self.not_null.is_empty()
            && self.when.is_none()
            && !self.always
    }

    /// Whether it says anything at all.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
            && self.equals.is_empty()
            && self.null.is_empty()
            && self.not_null.is_empty()
            && self.when.is_none()
            && !self.always
    }

    /// The columns it reads besides the status; a `when` expression may read more.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let named = self.equals.keys().chain(&self.null).chain(&self.not_null);
        named.map(String::as_str)
    }

    /// The rule in words, for pages.
    pub fn in_words(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        if !self.values.is_empty() {
            words.push(self.values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        }
        words.extend(
            self.equals.iter().map(|(column, test)| format!("{column} = {}", test.expected().join(" or "))),
        );
        words.extend(self.null.iter().map(|column| format!("{column} is empty")));
        words.extend(self.not_null.iter().map(|column| format!("{column} is set")));
        words.extend(self.when.iter().map(|when| when.sql().to_owned()));
        if self.always {
            words.push("every row".into());
        }
        words.join(" and ")
    }
}

/// The states a row can be mapped onto; everything else reads UNKNOWN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MappedState {
    Processing,
    Success,
    Failed,
    Timeout,
    /// A state of the service's own that is neither stuck nor failed (awaiting approval, cancelled): shown, never acted on.
    #[serde(alias = "IGNORED")]
    Ignore,
}

impl MappedState {
    /// The native table's own words.
    pub const NATIVE: [Self; 4] = [Self::Processing, Self::Success, Self::Failed, Self::Timeout];

    pub fn state(self) -> State {
        match self {
            Self::Processing => State::Processing,
            Self::Success => State::Success,
            Self::Failed => State::Failed,
            Self::Timeout => State::Timeout,
            Self::Ignore => State::Ignored,
        }
    }
}
