//! One `[[source.biz]]`: what a business type means for its records.

use super::value::{Pointer, Rate, Secret, Span, ValueTest};
use domain::actions::Action;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A business type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Biz {
    #[serde(rename = "type")]
    pub name: String,
    #[serde(default)]
    pub stuck_after: Option<Span>,
    #[serde(default)]
    pub on_unknown: OnUnknown,
    #[serde(default)]
    pub approval: Approval,
    /// One table `[source.biz.reverse_check]`, or several `[[source.biz.reverse_check]]`.
    #[serde(default, deserialize_with = "one_or_many")]
    pub reverse_check: Vec<ReverseCheck>,
    #[serde(default)]
    pub response: Option<ResponseTemplate>,
    #[serde(default)]
    pub replay: Option<Replay>,
}

/// What the guard does about an unknown outcome after the deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    #[default]
    Hold,
    ReExecute,
}

impl OnUnknown {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::ReExecute => "re_execute",
        }
    }
}

/// Whether every action needs a second person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    #[default]
    None,
    Required,
}

/// One question to the business data.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseCheck {
    /// What people call it; by default its place in the list.
    #[serde(default)]
    pub name: Option<String>,
    /// A SELECT with `:biz_no`, `:key`, `:biz_type` and `:"/json/pointer"`.
    pub sql: String,
    /// Another database than the source's.
    #[serde(default)]
    pub url: Option<Secret>,
    /// A row outside it is a mismatch.
    #[serde(default)]
    pub found_when: BTreeMap<String, ValueTest>,
    /// A row inside it is there and marked deleted: a mismatch, never absence.
    #[serde(default)]
    pub deleted_when: BTreeMap<String, ValueTest>,
    /// Business column ↔ place in the request.
    #[serde(default)]
    pub compare: BTreeMap<String, Pointer>,
    /// How many rows make the effect complete.
    #[serde(default)]
    pub rows: Option<RowsExpected>,
}

/// How many rows make the effect complete: a number, or the length of a list in the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a number of rows or { pointer = \"/items\" }")]
pub enum RowsExpected {
    Exactly(u32),
    Counted { pointer: Pointer },
}

/// How mark-succeeded answers later duplicates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseTemplate {
    /// Text with `{column}` of the business row, `{key}`, `{biz_no}`, `{biz_type}` and `{/pointer}` into the request.
    pub template: String,
}

/// Where and how a stored request is sent again.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    #[serde(default = "post")]
    pub method: String,
    pub url: String,
    /// Values may hold `{key}`, `{biz_no}` and `{biz_type}`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default = "json")]
    pub content_type: String,
    #[serde(default)]
    pub prepare: Prepare,
    #[serde(default = "timeout")]
    pub timeout: Span,
    #[serde(default = "rate")]
    pub rate: Rate,
}

/// What makes the record re-executable before its request is sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepare {
    #[default]
    MarkTimedOut,
    None,
}

impl Prepare {
    pub fn action(self) -> Option<Action> {
        match self {
            Self::MarkTimedOut => Some(Action::MarkTimedOut),
            Self::None => None,
        }
    }
}

fn post() -> String {
    "POST".into()
}

fn json() -> String {
    "application/json".into()
}

fn timeout() -> Span {
    Span::new(Duration::from_secs(10))
}

fn rate() -> Rate {
    Rate { count: 5, per: Duration::from_secs(1) }
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ReverseCheck>, D::Error> {
    struct Checks;

    impl<'de> Visitor<'de> for Checks {
        type Value = Vec<ReverseCheck>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table [source.biz.reverse_check] or several [[source.biz.reverse_check]]")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let one = ReverseCheck::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
            Ok(vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut checks = Vec::new();
            while let Some(check) = seq.next_element()? {
                checks.push(check);
            }
            Ok(checks)
        }
    }

    deserializer.deserialize_any(Checks)
}
