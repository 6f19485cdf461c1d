//! The state rules on the live table: one CASE decides, for filters, pages and compare-and-set alike.

use crate::catalogue::{Class, Declared};
use crate::config::{Scalar, StateRule, ValueTest};
use crate::layout::{Layout, Look};
use crate::sql::{all, always, any, never};
use crate::time_form::TimeForm;
use domain::record::State;
use sea_query::{CaseStatement, Expr, ExprTrait};

/// The rules of a source, in order.
#[derive(Debug, Clone)]
pub(crate) struct States {
    pub(crate) rules: Vec<Rule>,
    /// Columns that the rules read besides the status; compared by every change.
    pub(crate) columns: Vec<Ruled>,
    values_only: bool,
}

/// A column that rules look at.
#[derive(Debug, Clone)]
pub(crate) struct Ruled {
    pub(crate) declared: Declared,
    /// Whether its value counts, or only whether there is one.
    exact: bool,
}

/// What is compared of a column of which only its being there counts.
const SET: &str = "set";

impl Ruled {
    /// What is read and compared of the column.
    pub(crate) fn compared(&self, layout: &Layout) -> Expr {
        match self.exact {
            true => layout.text_of(&self.declared),
            false => {
                let case = CaseStatement::new()
                    .case(self.declared.expr().is_not_null(), Expr::cust(format!("'{SET}'")));
                Expr::Case(Box::new(case))
            }
        }
    }

    /// Whether the column is still as it was read.
    pub(crate) fn is_still(&self, layout: &Layout, seen: Option<&str>) -> Expr {
        match seen {
            None => self.declared.expr().is_null(),
            Some(_) if !self.exact => self.declared.expr().is_not_null(),
            // The database's own comparing may take two texts for one.
            Some(text) if self.declared.class == Class::Text => layout.is(&self.declared, text),
            Some(text) => layout.text_of(&self.declared).eq(text),
        }
    }
}

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) is: State,
    values: Vec<Scalar>,
    equals: Vec<(Declared, ValueTest)>,
    null: Vec<Declared>,
    not_null: Vec<Declared>,
    when: Option<String>,
    /// Where the age of such records is counted from, when not from the source's own column.
    pub(crate) age: Option<Vec<TimeForm>>,
}

impl States {
    /// Puts the rules on the live table.
    pub(crate) fn resolve(look: &mut Look<'_>) -> Self {
        let config = look.config;
        let rules: Vec<Rule> = config.state.iter().map(|rule| Rule::resolve(rule, look)).collect();
        let mut columns: Vec<Ruled> = Vec::new();
        for rule in &rules {
            let valued = rule.equals.iter().map(|(column, _)| (column, true));
            let there = rule.null.iter().chain(&rule.not_null).map(|column| (column, is_short(column)));
            for (column, exact) in valued.chain(there) {
                match columns.iter_mut().find(|known| known.declared == *column) {
                    Some(known) => known.exact |= exact,
                    None => columns.push(Ruled { declared: column.clone(), exact }),
                }
            }
        }
        Self { values_only: config.states_are_values(), rules, columns }
    }

    pub(crate) fn values_only(&self) -> bool {
        self.values_only
    }

    /// Whether a rule looks at a column.
    pub(crate) fn look_at(&self, column: &Declared) -> bool {
        self.columns.iter().any(|ruled| ruled.declared == *column)
    }

    /// What the rules looked at, for tables without a status column.
    pub(crate) fn in_words(&self, ruled: &[Option<String>]) -> Option<String> {
        let each = self.columns.iter().zip(ruled).map(|(column, value)| {
            let value = value.as_deref().unwrap_or("NULL");
            format!("{} {value}", column.declared.name)
        });
        let words: Vec<String> = each.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The number of the rule that matches, or -1: what a row's state is read from.
    pub(crate) fn matched(&self, layout: &Layout) -> Expr {
        let mut case = CaseStatement::new();
        for (at, rule) in (0_i64..).zip(&self.rules) {
            case = case.case(rule.condition(layout), Expr::cust(at.to_string()));
        }
        match self.rules.is_empty() {
            true => Expr::cust("-1"),
            false => Expr::Case(Box::new(case.finally(Expr::cust("-1")))),
        }
    }

    /// The rule of a row's number.
    pub(crate) fn rule(&self, matched: Option<i64>) -> Option<&Rule> {
        self.rules.get(usize::try_from(matched?).ok()?)
    }

    /// Whether a row is in `state`: the rules' own conditions, which indexes serve, and that no earlier rule matches.
    pub(crate) fn are(&self, state: State, layout: &Layout) -> Expr {
        self.matching(layout, |rule| rule.is == state).unwrap_or_else(|| match state {
            State::Unknown => self.unmapped(layout),
            _ => never(),
        })
    }

    /// Whether one of the rules that `wanted` picks is the one that matches; `None` when it picks none.
    pub(crate) fn matching(&self, layout: &Layout, wanted: impl Fn(&Rule) -> bool) -> Option<Expr> {
        let picked: Vec<(usize, &Rule)> =
            self.rules.iter().enumerate().filter(|(_, rule)| wanted(rule)).collect();
        if picked.is_empty() {
            return None;
        }
        let own = any(picked.iter().map(|(_, rule)| rule.condition(layout)));
        // Values are in one rule each, so nothing earlier can match.
        if self.values_only {
            return Some(own);
        }
        let numbers = picked.iter().map(|(at, _)| Expr::cust(at.to_string()));
        Some(own.and(self.matched(layout).is_in(numbers)))
    }

    fn unmapped(&self, layout: &Layout) -> Expr {
        match (&layout.status, self.values_only) {
            (Some(status), true) => {
                let mapped = any(self.rules.iter().map(|rule| rule.condition(layout)));
                status.expr().is_null().or(mapped.not())
            }
            _ => self.matched(layout).eq(Expr::cust("-1")),
        }
    }
}

impl Rule {
    fn resolve(rule: &StateRule, look: &mut Look<'_>) -> Self {
        let part = "state";
        let mut columns = |names: &[String]| -> Vec<Declared> {
            names.iter().filter_map(|name| look.required(part, name)).collect()
        };
        let (null, not_null) = (columns(&rule.null), columns(&rule.not_null));
        let equals = rule
            .equals
            .iter()
            .filter_map(|(name, test)| Some((look.required(part, name)?, test.clone())))
            .collect();
        Self {
            is: rule.is.state(),
            values: rule.values.clone(),
            equals,
            null,
            not_null,
            when: rule.when.as_ref().map(|when| when.sql().to_owned()),
            age: rule.age_from.as_ref().map(|age| look.times("state.age_from", &age.0)),
        }
    }

    fn condition(&self, layout: &Layout) -> Expr {
        let mut conditions = Vec::new();
        if !self.values.is_empty() {
            conditions.push(match &layout.status {
                Some(status) => any(self.values.iter().map(|value| layout.says(status, value))),
                None => never(),
            });
        }
        conditions.extend(self.equals.iter().map(|(column, test)| tested(layout, column, test)));
        conditions.extend(self.null.iter().map(|column| layout.is_empty(column)));
        conditions.extend(self.not_null.iter().map(|column| layout.is_empty(column).not()));
        conditions.extend(self.when.iter().map(|sql| Expr::cust(format!("({sql})"))));
        match conditions.is_empty() {
            true => always(),
            false => all(conditions),
        }
    }
}

/// Whether a column's value is short enough to be compared whole: never a body.
fn is_short(column: &Declared) -> bool {
    matches!(column.class, Class::Integer | Class::Bit | Class::Uuid | Class::Time { .. })
}

fn tested(layout: &Layout, column: &Declared, test: &ValueTest) -> Expr {
    match test {
        ValueTest::OneOf(values) => any(values.iter().map(|value| layout.says(column, value))),
        ValueTest::Null => column.expr().is_null(),
        ValueTest::NotNull => column.expr().is_not_null(),
    }
}
