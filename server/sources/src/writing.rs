//! What an action writes, and the compare-and-set that writes it.

use crate::catalogue::Declared;
use crate::config::{TimeColumn, WriteValue};
use crate::reading::{Reading, Seen, Token};
use crate::sql::all;
use crate::time_form::TimeForm;
use chrono::{DateTime, Utc};
use db::Cell;
use domain::actions::Action;
use domain::clock::from_millis;
use domain::compensation::Plan;
use domain::unable::Unable;
use sea_query::{DeleteStatement, Expr, ExprTrait, Query, UpdateStatement};
use std::collections::BTreeMap;

/// What a successful response is recorded as, where the table keeps the status.
const OK: &str = "200";

/// Column → value, in the order written.
type Sets = Vec<(String, Expr)>;

impl<'a> Reading<'a> {
    /// Whether this table can say what the action means; the error says what to configure.
    pub(crate) fn can_write(&self, action: Action) -> Result<(), Unable> {
        if let Some(reason) = &self.layout.read_only {
            return Err(reason.clone().into());
        }
        if !self.config.sees_processing() {
            return Err(Unable::OnlyWhenDone);
        }
        if action == Action::Replay {
            // A removal sets nothing and is recognised by the record being gone.
            return Ok(());
        }
        let response = (action == Action::MarkSucceeded && self.layout.response.is_some()).then(String::new);
        let plan = Plan { state: self.config.marked(action), marker: 1, response };
        self.sets(action, &plan, &Cell::Null)?;
        self.is_recognised(action)
    }

    /// A change must be told from everybody else's after a crash: by a time it sets, or by the response it stores.
    fn is_recognised(&self, action: Action) -> Result<(), Unable> {
        let answers = action == Action::MarkSucceeded && self.layout.response.is_some();
        if answers || !self.marked_by(action)?.is_empty() {
            return Ok(());
        }
        Err(Unable::NotRecognised { action })
    }

    /// The columns that carry the instant of this action's change.
    fn marked_by(&self, action: Action) -> Result<Vec<TimeForm>, String> {
        let mut forms: Vec<TimeForm> = self.layout.updated_at.iter().map(TimeForm::as_stored).collect();
        for (column, value) in self.configured(action) {
            let form = match value {
                WriteValue::Now => self.time_of(column)?,
                _ => continue,
            };
            if !forms.iter().any(|known| known.column == form.column) {
                forms.push(form);
            }
        }
        Ok(forms)
    }

    /// The columns that a change of ours may have left its instant in, in a fixed order.
    pub(crate) fn mark_columns(&self) -> Vec<TimeForm> {
        let mut forms: Vec<TimeForm> = Vec::new();
        for action in [Action::MarkSucceeded, Action::MarkTimedOut] {
            for form in self.marked_by(action).unwrap_or_default() {
                if !forms.iter().any(|known| known.column == form.column) {
                    forms.push(form);
                }
            }
        }
        forms
    }

    /// The instant that a change is to write, different from every one the record already carries; `Plan::UNMARKED` where
    /// the table keeps none.
    pub(crate) fn marker(
        &self,
        action: Action,
        now: DateTime<Utc>,
        seen: &Seen,
        marks: &[i64],
    ) -> Result<i64, String> {
        if let Some(updated) = &self.layout.updated_at {
            return Ok(updated.marker(now, &seen.updated).timestamp_millis());
        }
        let forms = self.marked_by(action)?;
        let Some(form) = forms.first() else { return Ok(Plan::UNMARKED) };
        let mut marker = form.marker(now, &Cell::Null);
        while marks.contains(&marker.timestamp_millis()) {
            let later = marker + chrono::TimeDelta::milliseconds(1);
            let next = form.marker(later + chrono::TimeDelta::seconds(1), &Cell::Null);
            marker = next.max(later);
        }
        Ok(marker.timestamp_millis())
    }

    /// The UPDATE that carries out `plan` if the record is still as seen.
    pub(crate) fn update(&self, action: Action, plan: &Plan, seen: &Seen) -> Result<UpdateStatement, String> {
        let located = self.located(&seen.row.id).ok_or("the record's locator is not of this table")?;
        let mut update = Query::update();
        update.table(self.layout.table_ref()).and_where(located);
        for (column, value) in self.sets(action, plan, &seen.updated).map_err(|unable| unable.to_string())? {
            update.value(column, value);
        }
        if let Some(predicate) = &self.config.predicate {
            update.and_where(Expr::cust(format!("({})", predicate.sql())));
        }
        update.and_where(self.unchanged(&seen.token));
        Ok(update)
    }

    /// The DELETE that takes the record away if it is still as seen.
    pub(crate) fn removal(&self, seen: &Seen) -> Result<DeleteStatement, String> {
        let located = self.located(&seen.row.id).ok_or("the record's locator is not of this table")?;
        let mut delete = Query::delete();
        delete.from_table(self.layout.table_ref()).and_where(located);
        if let Some(predicate) = &self.config.predicate {
            delete.and_where(Expr::cust(format!("({})", predicate.sql())));
        }
        delete.and_where(self.unchanged(&seen.token));
        Ok(delete)
    }

    /// Status, update time, version and whatever the state rules look at are, to the last digit, what was seen.
    fn unchanged(&self, token: &Token) -> Expr {
        let layout = self.layout;
        let same = |column: &Declared, seen: &Option<String>| match seen {
            Some(text) => layout.text_of(column).eq(text.as_str()),
            None => column.expr().is_null(),
        };
        let status = layout.status.as_ref().map(|status| match &token.status {
            Some(native) => layout.is(status, native),
            None => status.expr().is_null(),
        });
        let updated = layout.updated_at.as_ref().map(|time| same(&time.declared, &token.updated));
        let version = layout.version.as_ref().map(|version| same(version, &token.version));
        let ruled = layout.states.columns.iter().zip(&token.ruled);
        let ruled = ruled.map(|(column, seen)| column.is_still(layout, seen.as_deref()));
        let matched =
            token.matched.map(|matched| layout.states.matched(layout).eq(Expr::cust(matched.to_string())));
        all([status, updated, version, matched].into_iter().flatten().chain(ruled))
    }

    /// The action's own values, then the configured ones over them.
    fn sets(&self, action: Action, plan: &Plan, updated: &Cell) -> Result<Sets, Unable> {
        let mut sets = self.own_sets(action, plan, updated)?;
        for (column, value) in self.configured(action) {
            let declared = self.written_column(action, column)?;
            let value = match value {
                WriteValue::Literal(value) => self.layout.typed_scalar(declared, value),
                WriteValue::Null if !declared.nullable => {
                    return Err(format!(
                        "[source.write.{action}] sets {column} to NULL, which the table does not allow."
                    )
                    .into());
                }
                WriteValue::Null => Expr::cust("NULL"),
                WriteValue::Add(by) => increased(&declared.name, *by),
                WriteValue::Response => match &plan.response {
                    Some(response) => self.layout.typed(declared, response),
                    None => {
                        return Err(format!(
                            "[source.write.{action}] sets {column} to the response, and there is none."
                        )
                        .into());
                    }
                },
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

    fn written_column(&self, action: Action, column: &str) -> Result<&'a Declared, String> {
        let declared = self.layout.catalogue.find(column).ok_or_else(|| {
            format!("{} has no column {column}, which [source.write.{action}] sets.", self.layout.table)
        })?;
        match declared.is_writable() {
            true => Ok(declared),
            false => {
                Err(format!("{column} is computed by the database; drop it from [source.write.{action}]."))
            }
        }
    }

    fn own_sets(&self, action: Action, plan: &Plan, updated: &Cell) -> Result<Sets, Unable> {
        let layout = self.layout;
        let mut sets = Sets::new();
        match (&layout.status, self.config.native_of(self.config.marked(action))) {
            (Some(status), Some(native)) if status.is_writable() => {
                sets.push((status.name.clone(), layout.typed_scalar(status, native)));
            }
            _ if self.configured(action).is_empty() => return Err(self.needs_template(action)),
            _ => {}
        }
        if let Some(updated_at) = layout.updated_at.as_ref().filter(|time| time.declared.is_writable()) {
            sets.push((updated_at.column.clone(), updated_at.written(from_millis(plan.marker), updated)));
        }
        if let (Some(body), Some(response)) = (&layout.response, &plan.response) {
            let column = body.written()?;
            sets.push((column.name.clone(), layout.typed(column, response)));
            if let Some(status) = self.column(&self.config.columns.response_status) {
                sets.push((status.name.clone(), layout.typed(status, OK)));
            }
        }
        if let Some(version) = layout.version.as_ref().filter(|version| version.is_writable()) {
            sets.push((version.name.clone(), increased(&version.name, 1)));
        }
        let lease = layout.lease_until.as_ref().map(|lease| &lease.declared);
        if let Some(lease) = lease.filter(|lease| lease.nullable && lease.is_writable()) {
            sets.push((lease.name.clone(), Expr::cust("NULL")));
        }
        Ok(sets)
    }

    fn needs_template(&self, action: Action) -> Unable {
        let state = self.config.marked(action);
        match self.layout.status {
            Some(_) => Unable::StateNotMapped { state, action },
            None => Unable::NoStatusColumn { state, action },
        }
    }

    fn configured(&self, action: Action) -> &'a BTreeMap<String, WriteValue> {
        match action {
            Action::MarkSucceeded => &self.config.write.mark_succeeded,
            Action::MarkTimedOut | Action::Replay => &self.config.write.mark_timed_out,
        }
    }

    fn column(&self, name: &Option<String>) -> Option<&'a Declared> {
        self.layout.catalogue.find(name.as_deref()?).filter(|column| column.is_writable())
    }

    fn is_updated_at(&self, column: &str) -> bool {
        self.layout.updated_at.as_ref().is_some_and(|time| time.column == column)
    }

    /// How a column keeps time: as mapped, else as its type says.
    fn time_of(&self, column: &str) -> Result<TimeForm, String> {
        let layout = self.layout;
        if let Some(form) =
            layout.times().find(|form| form.declared.joined.is_none() && form.column == column)
        {
            return Ok(form.as_stored());
        }
        let declared = layout.catalogue.find(column).ok_or_else(|| format!("there is no column {column}"))?;
        TimeForm::of(&TimeColumn::plain(column), declared, None, self.config.zone, layout.dialect)
    }
}

fn increased(column: &str, by: i64) -> Expr {
    Expr::col(column.to_owned()).if_null(0).add(by)
}
