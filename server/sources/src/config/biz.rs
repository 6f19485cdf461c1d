//! One `[[source.biz]]`: what a business type means for its records.

use super::check::ReverseCheck;
use super::list::one_or_many;
use super::value::{Rate, Secret, Span};
use domain::actions::Action;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A business type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Biz {
    /// The value of the `biz_type` column, exactly: `type = "ORDER"`.
    #[serde(rename = "type")]
    pub name: String,
    /// How old a PROCESSING record may get: `stuck_after = "10m"`.
    #[serde(default)]
    pub stuck_after: Option<Span>,
    #[serde(default)]
    pub on_unknown: OnUnknown,
    /// `approval = "required"`: one person alone settles nothing of this type.
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

/// How mark-succeeded answers later duplicates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseTemplate {
    /// Text with `{column}` of the business row, `{key}`, `{biz_no}`, `{biz_type}` and `{/pointer}` into the request:
    /// `template = '{"code":0,"orderNo":"{order_no}"}'`.
    pub template: String,
}

/// Where and how a stored request is sent again.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    #[serde(default = "post")]
    pub method: String,
    /// Where the stored request is sent, and nowhere else: `url = "http://orders.internal/api/orders"`.
    pub url: String,
    /// `{ Idempotency-Key = "{key}", Authorization = "Bearer ${TOKEN}" }`; values may hold `{key}`, `{biz_no}`
    /// and whatever else a reverse check may take from the record.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    #[serde(default = "json")]
    pub content_type: String,
    /// What makes the record re-executable first: `"mark_timed_out"` (default), `"delete"` or `"none"`.
    #[serde(default)]
    pub prepare: Prepare,
    #[serde(default = "timeout")]
    pub timeout: Span,
    /// Most replays of this business type: `rate = "5/s"`.
    #[serde(default = "rate")]
    pub rate: Rate,
}

/// What makes the record re-executable before its request is sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepare {
    #[default]
    MarkTimedOut,
    /// The record is removed: for services that run again only where there is no row. Its request goes with it.
    Delete,
    None,
}

impl Prepare {
    /// What is done to the record; `Action::Replay` removes it.
    pub fn action(self) -> Option<Action> {
        match self {
            Self::MarkTimedOut => Some(Action::MarkTimedOut),
            Self::Delete => Some(Action::Replay),
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
