//! What an action writes, and the compare-and-set that writes it.

use crate::config::{TimeColumn, WriteValue};
use crate::reading::{Reading, Seen, Token};
use crate::time_form::TimeForm;
use db::Cell;
use domain::actions::Action;
use domain::clock::from_millis;
use domain::compensation::Plan;
use domain::record::State;
use sea_query::{Expr, ExprTrait, Query, UpdateStatement};
use std::collections::BTreeMap;

/// What a successful response is recorded as, where the table keeps the status.
const OK: &str = "200";

/// Column → value, in the order written.
type Sets = Vec<(String, Expr)>;

impl Reading<'_> {
    /// Whether this table can say what the action means; the error says what to configure.
    pub(crate) fn can_write(&self, action: Action) -> Result<(), String> {
        let plan = Plan { state: target(action), marker: 0, response: None };
        self.sets(action, &plan, &Cell::Null).map(drop)
    }

    /// The UPDATE that carries out `plan` if the record is still as seen.
    pub(crate) fn update(&self, action: Action, plan: &Plan, seen: &Seen) -> Result<UpdateStatement, String> {
        let located = self.located(&seen.row.id).ok_or("the record's locator is not of this table")?;
        let mut update = Query::update();
        update.table(self.config.table_ref()).and_where(located);
        for (column, value) in self.sets(action, plan, &seen.updated)? {
            update.value(column, value);
        }
        if let Some(predicate) = &self.config.predicate {
            update.and_where(Expr::cust(format!("({})", predicate.sql())));
        }
        for condition in self.unchanged(&seen.token) {
            update.and_where(condition);
        }
        Ok(update)
    }

    /// Status, update time and version are, to the last digit, what was seen.
    fn unchanged(&self, token: &Token) -> Vec<Expr> {
        let layout = self.layout;
        let status = match &token.status {
            Some(native) => layout.is(&layout.status, native),
            None => Expr::col(layout.status.name.clone()).is_null(),
        };
        let same = |column: &str, seen: &Option<String>| match seen {
            Some(text) => layout.dialect.as_text(Expr::col(column.to_owned())).eq(text.as_str()),
            None => Expr::col(column.to_owned()).is_null(),
        };
        let updated = layout.updated_at.as_ref().map(|time| same(&time.column, &token.updated));
        let version = layout.version.as_ref().map(|version| same(&version.name, &token.version));
        [Some(status), updated, version].into_iter().flatten().collect()
    }

    /// The action's own values, then the configured ones over them.
    fn sets(&self, action: Action, plan: &Plan, updated: &Cell) -> Result<Sets, String> {
        let mut sets = self.own_sets(action, plan, updated)?;
        for (column, value) in self.configured(action) {
            let declared = self.layout.catalogue.find(column).ok_or_else(|| {
                format!("{} has no column {column}, which [source.write.{action}] sets", self.config.table)
            })?;
            let value = match value {
                WriteValue::Literal(value) => self.layout.typed(declared, &value.to_string()),
                WriteValue::Null => Expr::cust("NULL"),
                WriteValue::Add(by) => increased(&declared.name, *by),
                WriteValue::Now => {
                    let form = self.time_of(column)?;
                    let seen = if self.is_updated_at(&declared.name) { updated } else { &Cell::Null };
                    form.written(from_millis(plan.marker), seen)
                }
            };
            sets.retain(|(set, _)| *set != declared.name);
            sets.push((declared.name.clone(), value));
        }
        Ok(sets)
    }

    fn own_sets(&self, action: Action, plan: &Plan, updated: &Cell) -> Result<Sets, String> {
        let layout = self.layout;
        let state = target(action);
        let native = self.native_written(action).ok_or_else(|| {
            format!(
                "This table has no value for {state}; map one under [[source.state]] is = \"{state}\" to make this possible."
            )
        })?;
        let updated_at = layout.updated_at.as_ref().ok_or(
            "This table has no update time, so a change could not be recognised afterwards; map updated_at to make this possible.",
        )?;
        let mut sets = vec![
            (layout.status.name.clone(), layout.typed(&layout.status, &native)),
            (updated_at.column.clone(), updated_at.written(from_millis(plan.marker), updated)),
        ];
        if let (Some(column), Some(response)) = (&layout.response, &plan.response) {
            sets.push((column.name.clone(), layout.typed(column, response)));
            if let Some(status) = self.column(&self.config.columns.response_status) {
                sets.push((status.name.clone(), layout.typed(status, OK)));
            }
        }
        if let Some(version) = &layout.version {
            sets.push((version.name.clone(), increased(&version.name, 1)));
        }
        let lease = layout.lease_until.as_ref().and_then(|lease| layout.catalogue.find(&lease.column));
        if let Some(lease) = lease.filter(|lease| lease.nullable) {
            sets.push((lease.name.clone(), Expr::cust("NULL")));
        }
        Ok(sets)
    }

    /// The native value of the state the action sets: the configured one, else the first that is mapped onto it.
    fn native_written(&self, action: Action) -> Option<String> {
        match self.configured(action).get(&self.config.columns.status) {
            Some(WriteValue::Literal(value)) => Some(value.to_string()),
            _ => self.config.native_of(target(action)),
        }
    }

    fn configured(&self, action: Action) -> &BTreeMap<String, WriteValue> {
        match action {
            Action::MarkSucceeded => &self.config.write.mark_succeeded,
            Action::MarkTimedOut | Action::Replay => &self.config.write.mark_timed_out,
        }
    }

    fn column(&self, name: &Option<String>) -> Option<&crate::catalogue::Declared> {
        self.layout.catalogue.find(name.as_deref()?)
    }

    fn is_updated_at(&self, column: &str) -> bool {
        self.layout.updated_at.as_ref().is_some_and(|time| time.column == column)
    }

    /// How a column keeps time: as mapped, else as its type says.
    fn time_of(&self, column: &str) -> Result<TimeForm, String> {
        let layout = self.layout;
        let mapped =
            [&layout.created_at, &layout.updated_at, &layout.lease_until, &layout.deadline, &layout.age];
        if let Some(form) = mapped.into_iter().flatten().find(|form| form.column == column) {
            return Ok(form.clone());
        }
        let declared = layout.catalogue.find(column).ok_or_else(|| format!("there is no column {column}"))?;
        TimeForm::of(&TimeColumn::plain(column), declared, self.config.zone, layout.dialect)
    }
}

/// The state that an action sets; a replay's preparation is a time-out.
pub(crate) fn target(action: Action) -> State {
    match action {
        Action::MarkSucceeded => State::Success,
        Action::MarkTimedOut | Action::Replay => State::Timeout,
    }
}

fn increased(column: &str, by: i64) -> Expr {
    Expr::col(column.to_owned()).if_null(0).add(by)
}
