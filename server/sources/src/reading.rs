//! From the table to records: which columns are read, and what their cells say.

use crate::catalogue::{Class, Declared};
use crate::config::SourceConfig;
use crate::layout::{Layout, Number};
use crate::locator::{self, shown};
use crate::states::Rule;
use crate::time_form::TimeForm;
use chrono::{DateTime, Utc};
use db::{Cell, Dialect, Row};
use domain::record::{Body, RecordId, RecordRow, State, Version};
use sea_query::{Expr, ExprTrait, Query, SelectStatement};

/// Aliases of the result, apart from any name a table may use in its conditions.
mod alias {
    pub const KEY: &str = "r_key";
    pub const LOCATOR: &str = "r_locator";
    pub const BIZ_TYPE: &str = "r_biz_type";
    pub const BIZ_NO: &str = "r_biz_no";
    pub const STATUS: &str = "r_status";
    pub const RULE: &str = "r_rule";
    pub const STATE: &str = "r_state";
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
    pub const FACT: &str = "r_fact";
    pub const MARK: &str = "r_mark";
}

/// The mapping applied to one table's rows.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) config: &'a SourceConfig,
    pub(crate) layout: &'a Layout,
    /// What tells this table's records from those of the source's other tables, where it has several.
    pub(crate) label: Option<&'a str>,
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
    /// Further columns that the state rules look at, in their order.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ruled: Vec<Option<String>>,
    /// The rule that matched.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(crate) matched: Option<i64>,
}

impl<'a> Reading<'a> {
    /// A SELECT of every mapped column but the bodies, under the source's constant condition.
    pub(crate) fn select(&self) -> SelectStatement {
        let layout = self.layout;
        let mut select = Query::select();
        select.from(layout.table_ref());
        for (columns, alias) in [(&layout.key, alias::KEY), (&layout.locator.columns, alias::LOCATOR)] {
            for (at, column) in columns.iter().enumerate() {
                select.expr_as(layout.plain(column), numbered(alias, at));
            }
        }
        let plain = [(&layout.biz_type, alias::BIZ_TYPE), (&layout.status, alias::STATUS)];
        for (column, alias) in plain {
            if let Some(column) = column {
                select.expr_as(layout.plain(column), alias);
            }
        }
        if let Some(attempts) = &layout.attempts {
            select.expr_as(attempts.expr(), alias::ATTEMPTS);
        }
        match &layout.biz_no {
            Some(Number::Column(column)) => drop(select.expr_as(layout.plain(column), alias::BIZ_NO)),
            Some(Number::Json(path)) => drop(select.expr_as(path.expr(), alias::BIZ_NO)),
            Some(Number::Key(_) | Number::Request) | None => {}
        }
        select.expr_as(layout.states.matched(layout), alias::RULE);
        for (at, ruled) in layout.states.columns.iter().enumerate() {
            select.expr_as(ruled.compared(layout), numbered(alias::STATE, at));
        }
        self.select_times(&mut select);
        let compared = [
            (layout.updated_at.as_ref().map(|time| &time.declared), alias::UPDATED_TEXT),
            (layout.version.as_ref(), alias::VERSION_TEXT),
        ];
        for (column, alias) in compared {
            if let Some(column) = column {
                select.expr_as(layout.text_of(column), alias);
            }
        }
        if let Some(predicate) = &self.config.predicate {
            select.and_where(Expr::cust(format!("({})", predicate.sql())));
        }
        select
    }

    fn select_times(&self, select: &mut SelectStatement) {
        let layout = self.layout;
        let times = [
            (&layout.created_at, alias::CREATED),
            (&layout.updated_at, alias::UPDATED),
            (&layout.deadline, alias::DEADLINE),
            (&layout.lease_until, alias::LEASE),
        ];
        for (time, alias) in times {
            if let Some(time) = time {
                select.expr_as(time.selected(), alias);
            }
        }
        for (rule, ages) in self.ages() {
            for (at, age) in ages.iter().enumerate() {
                select.expr_as(age.selected(), age_alias(rule, at));
            }
        }
    }

    /// The source's own age columns, then those of the rules that have their own, with the rule's number.
    fn ages(&self) -> impl Iterator<Item = (Option<usize>, &'a [TimeForm])> + use<'a> {
        let layout = self.layout;
        let own = layout.states.rules.iter().enumerate();
        let own = own.filter_map(|(at, rule)| Some((Some(at), rule.age.as_deref()?)));
        std::iter::once((None, layout.age.as_slice())).chain(own)
    }

    /// The same with the bodies and the columns that are only shown.
    pub(crate) fn select_whole(&self) -> SelectStatement {
        let layout = self.layout;
        let mut select = self.select();
        for (body, alias) in [(&layout.request, alias::REQUEST), (&layout.response, alias::RESPONSE)] {
            if let Some(body) = body {
                body.select(&mut select, alias);
            }
        }
        for (at, fact) in layout.facts.iter().enumerate() {
            select.expr_as(layout.plain(fact), numbered(alias::FACT, at));
        }
        for (at, mark) in self.mark_columns().iter().enumerate() {
            select.expr_as(mark.selected(), numbered(alias::MARK, at));
        }
        select
    }

    /// The condition that finds a record; `None` when the locator is not of this table.
    pub(crate) fn located(&self, id: &RecordId) -> Option<Expr> {
        let layout = self.layout;
        let parts = self.own_part(&id.locator)?;
        if parts.len() != layout.locator.columns.len() {
            return None;
        }
        let each = layout.locator.columns.iter().zip(parts).map(|(column, part)| {
            Some(match layout.locator.unmarked(column, part)? {
                Some(value) => layout.is_located(column, value),
                None => column.expr().is_null(),
            })
        });
        each.collect::<Option<Vec<_>>>()?.into_iter().reduce(ExprTrait::and)
    }

    /// What the locator's columns hold, for reverse checks: bytes are no text, so nothing may be compared with them.
    pub(crate) fn located_by(&self, id: &RecordId) -> Vec<Option<String>> {
        let layout = self.layout;
        let parts = self.own_part(&id.locator).unwrap_or_default();
        let each = layout.locator.columns.iter().zip(parts);
        let value = |(column, part): (&Declared, &String)| match column.class {
            Class::Binary => None,
            _ => layout.locator.unmarked(column, part).flatten().map(str::to_owned),
        };
        each.map(value).collect()
    }

    /// The locator without the table's label; `None` when it is another table's.
    pub(crate) fn own_part<'l>(&self, locator: &'l [String]) -> Option<&'l [String]> {
        match (self.label, locator) {
            (None, parts) => Some(parts),
            (Some(label), [first, parts @ ..]) if first == label => Some(parts),
            (Some(_), _) => None,
        }
    }

    /// A row as a record; `now` is the source's clock.
    pub(crate) fn seen(&self, row: &Row, now: DateTime<Utc>) -> Seen {
        let cells = Cells(row);
        let layout = self.layout;
        let native = cells.text(alias::STATUS);
        let matched = cells.cell(alias::RULE).as_i64();
        let rule = layout.states.rule(matched);
        let state = rule.map_or(State::Unknown, |rule| rule.is);
        let ruled: Vec<Option<String>> =
            (0..layout.states.columns.len()).map(|at| cells.text(&numbered(alias::STATE, at))).collect();
        let native_state = match layout.status {
            Some(_) => native.clone(),
            None => layout.states.in_words(&ruled),
        };
        let token = Token {
            status: native,
            updated: cells.text(alias::UPDATED_TEXT),
            version: cells.text(alias::VERSION_TEXT),
            ruled,
            matched: matched.filter(|_| !layout.states.values_only()),
        };
        let biz_type = match &self.config.columns.biz_type_value {
            Some(value) => Some(value.clone()),
            None => cells.text(alias::BIZ_TYPE),
        };
        let age = self.age_from(&cells, rule, matched).map(|from| now - from);
        let timing = Timing {
            age_ms: age.map(|age| age.num_milliseconds()),
            deadline: cells.time(&layout.deadline, alias::DEADLINE),
            lease_until: cells.time(&layout.lease_until, alias::LEASE),
        };
        let stuck_after = self.config.stuck_after(biz_type.as_deref());
        let key = self.key(&cells);
        let row = RecordRow {
            id: RecordId::new(self.config.name.clone(), self.locator(&cells)),
            source: self.config.name.clone(),
            stuck: state == State::Processing
                && layout.read_only.is_none()
                && timing.is_stuck(stuck_after, now),
            biz_type,
            biz_no: self.biz_no(&cells, &key),
            key,
            state,
            native_state,
            created_at: cells.time(&layout.created_at, alias::CREATED),
            updated_at: cells.time(&layout.updated_at, alias::UPDATED),
            age_seconds: age.map(|age| age.num_milliseconds().div_euclid(1_000)),
            stuck_after_seconds: stuck_after.as_secs(),
            lease_until: timing.lease_until,
            attempts: cells.cell(alias::ATTEMPTS).as_i64(),
            version: token.version(state),
            verdict: None,
            verdict_at: None,
        };
        Seen { row, updated: cells.cell(alias::UPDATED).clone(), token }
    }

    fn key(&self, cells: &Cells<'_>) -> String {
        let parts: Vec<Option<String>> =
            (0..self.layout.key.len()).map(|at| shown(cells.cell(&numbered(alias::KEY, at)))).collect();
        locator::rendered(&parts)
    }

    fn locator(&self, cells: &Cells<'_>) -> Vec<String> {
        let own = &self.layout.locator;
        let parts = own
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| own.part(column, cells.cell(&numbered(alias::LOCATOR, at))));
        self.label.map(str::to_owned).into_iter().chain(parts).collect()
    }

    fn biz_no(&self, cells: &Cells<'_>, key: &str) -> Option<String> {
        match self.layout.biz_no.as_ref()? {
            Number::Column(_) | Number::Json(_) => cells.text(alias::BIZ_NO),
            Number::Key(pattern) => pattern.first_group(key).map(str::to_owned),
            Number::Request => None,
        }
    }

    /// The latest of the times that age is counted from.
    fn age_from(
        &self,
        cells: &Cells<'_>,
        rule: Option<&Rule>,
        matched: Option<i64>,
    ) -> Option<DateTime<Utc>> {
        let own = rule.and_then(|rule| rule.age.as_deref());
        let place = own.and(matched).and_then(|at| usize::try_from(at).ok());
        let forms = own.unwrap_or(&self.layout.age);
        let times =
            forms.iter().enumerate().filter_map(|(at, form)| form.read(cells.cell(&age_alias(place, at))));
        times.max()
    }

    pub(crate) fn request(&self, row: &Row) -> Body {
        self.layout.request.as_ref().map_or(Body::NotStored, |body| body.read(row, alias::REQUEST))
    }

    pub(crate) fn response(&self, row: &Row) -> Body {
        self.layout.response.as_ref().map_or(Body::NotStored, |body| body.read(row, alias::RESPONSE))
    }

    /// The instants that a change of ours may have left its marker in.
    pub(crate) fn marks(&self, row: &Row) -> Vec<i64> {
        let cells = Cells(row);
        let marks = self.mark_columns().into_iter().enumerate();
        marks
            .filter_map(|(at, form)| form.read(cells.cell(&numbered(alias::MARK, at))))
            .map(|at| at.timestamp_millis())
            .collect()
    }

    /// The columns that are only shown, with something in them.
    pub(crate) fn facts(&self, row: &Row) -> Vec<(String, String)> {
        let cells = Cells(row);
        let facts = self.layout.facts.iter().enumerate().filter_map(|(at, fact)| {
            Some((fact.name.clone(), cell_text(cells.cell(&numbered(alias::FACT, at)))?))
        });
        let table = self.label.map(|label| ("table".to_owned(), label.to_owned()));
        facts.chain(table).collect()
    }
}

impl Layout {
    /// A column as it is read: as text where its own form would lose or add something.
    fn plain(&self, column: &Declared) -> Expr {
        match (&column.class, self.dialect) {
            // The cast drops the blanks of padded text and keeps the digits that a time is compared by.
            (Class::Padded | Class::Time { .. }, _) => self.dialect.as_text(column.expr()),
            // PostgreSQL spells types that nobody else knows.
            (Class::Other(_), Dialect::Postgres) => self.dialect.as_text(column.expr()),
            _ => column.expr(),
        }
    }

    /// A column as a text that comes back the same.
    pub(crate) fn text_of(&self, column: &Declared) -> Expr {
        match column.class {
            Class::Binary | Class::Bit => self.dialect.as_text(self.bytes(column)),
            _ => self.dialect.as_text(column.expr()),
        }
    }
}

/// The cells of a row; what was not selected reads as NULL.
struct Cells<'r>(&'r Row);

impl<'r> Cells<'r> {
    fn cell(&self, alias: &str) -> &'r Cell {
        self.0.cell(alias).unwrap_or(&Cell::Null)
    }

    fn text(&self, alias: &str) -> Option<String> {
        self.cell(alias).as_text()
    }

    fn time(&self, form: &Option<TimeForm>, alias: &str) -> Option<DateTime<Utc>> {
        form.as_ref()?.read(self.cell(alias))
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

fn numbered(alias: &str, at: usize) -> String {
    format!("{alias}_{at}")
}

fn age_alias(rule: Option<usize>, at: usize) -> String {
    match rule {
        None => numbered(alias::AGE, at),
        Some(rule) => format!("{}_of_{rule}_{at}", alias::AGE),
    }
}

/// A cell as text: bytes that are no text as `0x…`; `None` for NULL.
pub(crate) fn cell_text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Unreadable { type_name } => Some(format!("(unreadable {type_name})")),
        cell => cell.as_text().or_else(|| cell.to_json().as_str().map(str::to_owned)),
    }
}
