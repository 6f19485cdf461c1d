//! From the table to records: which columns are read, and what their cells say.

use crate::catalogue::{Class, Declared};
use crate::config::SourceConfig;
use crate::layout::Layout;
use crate::time_form::TimeForm;
use chrono::{DateTime, Utc};
use db::{Cell, Row};
use domain::record::{Body, RecordId, RecordRow, State, Version};
use sea_query::{Expr, ExprTrait, Query, SelectStatement};

/// Aliases of the result, apart from any name a table may use in its conditions.
mod alias {
    pub const KEY: &str = "r_key";
    pub const BIZ_TYPE: &str = "r_biz_type";
    pub const BIZ_NO: &str = "r_biz_no";
    pub const STATUS: &str = "r_status";
    pub const CREATED: &str = "r_created";
    pub const UPDATED: &str = "r_updated";
    pub const UPDATED_TEXT: &str = "r_updated_text";
    pub const VERSION_TEXT: &str = "r_version_text";
    pub const AGE: &str = "r_age";
    pub const DEADLINE: &str = "r_deadline";
    pub const LEASE: &str = "r_lease";
    pub const ATTEMPTS: &str = "r_attempts";
    pub const REQUEST: &str = "r_request";
    pub const RESPONSE: &str = "r_response";
}

/// The mapping applied to one database's rows.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) config: &'a SourceConfig,
    pub(crate) layout: &'a Layout,
}

/// What was read of a record, as far as a compare-and-set needs it.
pub(crate) struct Seen {
    pub(crate) row: RecordRow,
    /// The update time's cell, for writing the next one in the same shape.
    pub(crate) updated: Cell,
    pub(crate) token: Token,
}

/// The stored representation of everything that is compared: what the operator saw, to the last digit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Token {
    #[serde(rename = "s")]
    pub(crate) status: Option<String>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub(crate) updated: Option<String>,
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
}

impl Reading<'_> {
    /// A SELECT of every mapped column but the bodies, under the source's constant condition.
    pub(crate) fn select(&self) -> SelectStatement {
        let layout = self.layout;
        let mut select = Query::select();
        select.from(self.config.table_ref());
        let mut plain = |declared: Option<&Declared>, alias: &'static str| {
            if let Some(declared) = declared {
                let col = Expr::col(declared.name.clone());
                match declared.class {
                    // The cast drops the blanks.
                    Class::Padded => select.expr_as(layout.dialect.as_text(col), alias),
                    _ => select.expr_as(col, alias),
                };
            }
        };
        plain(Some(&layout.key), alias::KEY);
        plain(layout.biz_type.as_ref(), alias::BIZ_TYPE);
        plain(layout.biz_no.as_ref(), alias::BIZ_NO);
        plain(Some(&layout.status), alias::STATUS);
        plain(layout.attempts.as_ref(), alias::ATTEMPTS);
        let times = [
            (&layout.created_at, alias::CREATED),
            (&layout.updated_at, alias::UPDATED),
            (&layout.age, alias::AGE),
            (&layout.deadline, alias::DEADLINE),
            (&layout.lease_until, alias::LEASE),
        ];
        for (time, alias) in times {
            if let Some(time) = time {
                select.expr_as(Expr::col(time.column.clone()), alias);
            }
        }
        let compared = [
            (layout.updated_at.as_ref().map(|time| &time.column), alias::UPDATED_TEXT),
            (layout.version.as_ref().map(|version| &version.name), alias::VERSION_TEXT),
        ];
        for (column, alias) in compared {
            if let Some(column) = column {
                select.expr_as(layout.dialect.as_text(Expr::col(column.clone())), alias);
            }
        }
        if let Some(predicate) = &self.config.predicate {
            select.and_where(Expr::cust(format!("({})", predicate.sql())));
        }
        select
    }

    /// The same with the bodies and the columns that are only shown.
    pub(crate) fn select_whole(&self) -> SelectStatement {
        let layout = self.layout;
        let mut select = self.select();
        for (body, alias) in [(&layout.request, alias::REQUEST), (&layout.response, alias::RESPONSE)] {
            if let Some(body) = body {
                select.expr_as(Expr::col(body.name.clone()), alias);
            }
        }
        for (at, fact) in layout.facts.iter().enumerate() {
            select.expr_as(Expr::col(fact.name.clone()), fact_alias(at));
        }
        select
    }

    /// The condition that finds a record; `None` when the locator is not of this mapping.
    pub(crate) fn located(&self, id: &RecordId) -> Option<Expr> {
        if id.locator.len() != self.layout.locator.len() {
            return None;
        }
        let parts = self.layout.locator.iter().zip(&id.locator);
        parts.map(|(declared, part)| self.layout.is(declared, part)).reduce(ExprTrait::and)
    }

    /// A row as a record; `now` is the source's clock.
    pub(crate) fn seen(&self, row: &Row, now: DateTime<Utc>) -> Seen {
        let cell = |alias: &str| row.cell(alias).cloned().unwrap_or(Cell::Null);
        let text = |alias: &str| cell(alias).as_text();
        let time =
            |form: &Option<TimeForm>, alias: &str| form.as_ref().and_then(|form| form.read(&cell(alias)));
        let layout = self.layout;
        let native_state = text(alias::STATUS);
        let state = self.config.state_of(native_state.as_deref());
        let token = Token {
            status: native_state.clone(),
            updated: text(alias::UPDATED_TEXT),
            version: text(alias::VERSION_TEXT),
        };
        let biz_type = text(alias::BIZ_TYPE);
        let age = time(&layout.age, alias::AGE).map(|from| now - from);
        let timing = Timing {
            age_ms: age.map(|age| age.num_milliseconds()),
            deadline: time(&layout.deadline, alias::DEADLINE),
            lease_until: time(&layout.lease_until, alias::LEASE),
        };
        let stuck_after = self.config.stuck_after(biz_type.as_deref());
        let key = shown(&cell(alias::KEY));
        let row = RecordRow {
            id: RecordId::new(self.config.name.clone(), vec![key.clone()]),
            source: self.config.name.clone(),
            key,
            stuck: state == State::Processing && timing.is_stuck(stuck_after, now),
            biz_type,
            biz_no: text(alias::BIZ_NO),
            state,
            native_state,
            created_at: time(&layout.created_at, alias::CREATED),
            updated_at: time(&layout.updated_at, alias::UPDATED),
            age_seconds: age.map(|age| age.num_milliseconds().div_euclid(1_000)),
            stuck_after_seconds: stuck_after.as_secs(),
            lease_until: timing.lease_until,
            attempts: cell(alias::ATTEMPTS).as_i64(),
            version: token.version(state),
            verdict: None,
            verdict_at: None,
        };
        Seen { row, updated: cell(alias::UPDATED), token }
    }

    pub(crate) fn request(&self, row: &Row) -> Body {
        body(self.layout.request.as_ref(), row, alias::REQUEST)
    }

    pub(crate) fn response(&self, row: &Row) -> Body {
        body(self.layout.response.as_ref(), row, alias::RESPONSE)
    }

    /// The columns that are only shown, with something in them.
    pub(crate) fn facts(&self, row: &Row) -> Vec<(String, String)> {
        let facts = self.layout.facts.iter().enumerate().filter_map(|(at, fact)| {
            let cell = row.cell(fact_alias(at).as_str()).ok()?;
            (!cell.is_null()).then(|| (fact.name.clone(), shown(cell)))
        });
        facts.collect()
    }
}

impl Token {
    fn version(&self, state: State) -> Version {
        // Options of strings always serialise.
        Version::new(state, serde_json::to_string(self).unwrap_or_default())
    }
}

/// What decides whether a record of its age is stuck.
struct Timing {
    age_ms: Option<i64>,
    deadline: Option<DateTime<Utc>>,
    lease_until: Option<DateTime<Utc>>,
}

impl Timing {
    /// Past its deadline, or older than its biz_type allows; and past its lease where there is one.
    fn is_stuck(&self, stuck_after: std::time::Duration, now: DateTime<Utc>) -> bool {
        let limit = i64::try_from(stuck_after.as_millis()).unwrap_or(i64::MAX);
        let overdue = match self.deadline {
            Some(deadline) => deadline < now,
            None => self.age_ms.is_some_and(|age| age > limit),
        };
        overdue && self.lease_until.is_none_or(|lease| lease < now)
    }
}

fn fact_alias(at: usize) -> String {
    format!("r_fact_{at}")
}

fn body(declared: Option<&Declared>, row: &Row, alias: &str) -> Body {
    if declared.is_none() {
        return Body::NotStored;
    }
    match row.cell(alias) {
        Ok(Cell::Null) | Err(_) => Body::Empty,
        Ok(Cell::Unreadable { type_name }) => {
            Body::Unreadable(format!("a value of type {type_name} cannot be read"))
        }
        Ok(cell) => {
            let bytes =
                cell.as_bytes().map(<[u8]>::to_vec).or_else(|| cell.as_text().map(String::into_bytes));
            match bytes {
                Some(bytes) if bytes.is_empty() => Body::Empty,
                Some(bytes) => Body::Stored(bytes),
                None => Body::Unreadable(format!("{} cannot be shown", cell.kind())),
            }
        }
    }
}

/// A cell for the eye; nothing for NULL.
fn shown(cell: &Cell) -> String {
    cell_text(cell).unwrap_or_default()
}

/// A cell as text: bytes that are no text as `0x…`; `None` for NULL.
pub(crate) fn cell_text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Unreadable { type_name } => Some(format!("(unreadable {type_name})")),
        cell => cell.as_text().or_else(|| cell.to_json().as_str().map(str::to_owned)),
    }
}
