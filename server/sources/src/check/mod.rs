//! `amends check`: what is right and wrong about a source, before it is used.

mod cache;
mod indexes;
mod probe;
mod report;

pub use report::{Finding, Level, Report};

use crate::attached::Attached;
use crate::catalogue::Class;
use crate::config::SourceConfig;
use crate::layout::Layout;
use crate::replay::HttpSettings;
use chrono::{DateTime, Utc};
use db::{Db, Dialect};
use domain::actions::Action;
use domain::clock::Clock;
use domain::error::Error;
use domain::record::State;
use indexes::Index;
use sea_query::{Expr, Func, Query};
use std::sync::Arc;

/// A clock that differs by more than this is worth a warning, in milliseconds.
const CLOCK_TOLERANCE_MS: i64 = 5_000;
/// How many records are looked at for the native states there are.
const SAMPLE: u64 = 10_000;

/// Looks at a source from all sides; changes nothing. Whatever cannot be looked at is a finding, never an error.
pub async fn check(config: &SourceConfig, clock: Arc<dyn Clock>) -> Report {
    let mut report = Report::new(&config.name);
    let problems = config.problems();
    for problem in &problems {
        report.error("configuration", &problem.key, &problem.message);
    }
    if !problems.is_empty() {
        return report;
    }
    match Attached::open(config.clone(), &HttpSettings::default(), Arc::clone(&clock)) {
        Ok(source) => check_open(&source, &mut report).await,
        Err(error) => report.error("configuration", error.to_string(), "correct the configuration"),
    }
    report
}

async fn check_open(source: &Attached, report: &mut Report) {
    let db = &source.db;
    match db.now().await {
        Ok(theirs) => connected(db, theirs, source.clock.now(), report),
        Err(error) => {
            let message = format!("{} does not answer: {error}", db.shown_url());
            return report.error("unreachable", message, "check the server, the URL and the user's rights");
        }
    }
    match source.read_layout().await {
        Ok(layout) => {
            let columns = source.config.columns.mapped().len();
            report.ok("mapping", format!("{} has all {columns} mapped columns", source.config.table));
            check_table(source, &layout, report).await;
            probe::biz_types(source, report).await;
            cache::look(source, report).await;
        }
        Err(Error::Unavailable { message, .. }) => {
            for line in message.split("; ") {
                report.error("mapping", line, "correct [source.columns] or the table's name");
            }
        }
        Err(other) => report.error("mapping", other.to_string(), "correct [source.columns]"),
    }
}

fn connected(db: &Db, theirs: DateTime<Utc>, ours: DateTime<Utc>, report: &mut Report) {
    report.ok("connected", format!("{} answers", db.shown_url()));
    let offset = (theirs - ours).num_milliseconds();
    if offset.abs() > CLOCK_TOLERANCE_MS {
        report.warn(
            "clock",
            format!("the database's clock differs from this machine's by {offset} ms"),
            "ages are told by the database's clock; set both by NTP",
        );
    } else {
        report.ok("clock", format!("the database's clock differs from this machine's by {offset} ms"));
    }
}

async fn check_table(source: &Attached, layout: &Layout, report: &mut Report) {
    match indexes::read(&source.db, &source.config.table).await {
        Ok(indexes) => {
            unique_key(layout, &indexes, report);
            stuck_index(layout, &indexes, report);
            key_collation(layout, &indexes, report);
        }
        Err(error) => {
            report.warn("indexes", format!("cannot be read: {error}"), "give the user the right to see them")
        }
    }
    for action in [Action::MarkSucceeded, Action::MarkTimedOut] {
        if let Err(reason) = source.reading(layout).can_write(action) {
            report.warn(
                "actions",
                format!("{action} is not possible: {reason}"),
                "extend the mapping if it should be",
            );
        }
    }
    native_states(source, layout, report).await;
}

fn unique_key(layout: &Layout, indexes: &[Index], report: &mut Report) {
    let table = &layout.table;
    let columns: Vec<&str> = layout.key.iter().map(|column| column.name.as_str()).collect();
    let key = columns.join("_");
    if indexes.iter().any(|index| index.unique && index.is_on(&columns)) {
        report.ok("unique_key", format!("{} is unique", columns.join(", ")));
    } else {
        report.error(
            "unique_key",
            format!("nothing makes {key} unique, so one key may have several records"),
            format!("CREATE UNIQUE INDEX {0}_{key} ON {table} ({1})", table.name, columns.join(", ")),
        );
    }
}

fn stuck_index(layout: &Layout, indexes: &[Index], report: &mut Report) {
    let Some(age) = layout.deadline.as_ref().or(layout.age.first()) else {
        return report.warn(
            "stuck_index",
            "no time column is mapped, so nothing counts as stuck",
            "map created_at",
        );
    };
    let Some(status) = layout.status.as_ref().map(|status| &status.name) else { return };
    let table = &layout.table;
    let best = [vec![status.as_str(), age.column.as_str()], vec![status], vec![age.column.as_str()]];
    let served = best.iter().find_map(|columns| indexes.iter().find(|index| index.starts_with(columns)));
    match served {
        Some(index) => report.ok("stuck_index", format!("{} serves the list of stuck records", index.name)),
        None => report.warn(
            "stuck_index",
            format!("no index starts with {status} or {}, so every list reads the whole table", age.column),
            format!("consider CREATE INDEX {0}_stuck ON {table} ({status}, {1})", table.name, age.column),
        ),
    }
}

fn key_collation(layout: &Layout, indexes: &[Index], report: &mut Report) {
    let [key] = layout.key.as_slice() else { return };
    let declared = key.collation.as_deref();
    let collation = match layout.dialect {
        Dialect::Mysql if key.class == Class::Text => declared.filter(|name| !name.ends_with("_bin")),
        Dialect::Sqlite => indexes
            .iter()
            .find(|index| index.unique && index.is_on(&[&key.name]))
            .and_then(|index| index.collation.as_deref())
            .filter(|name| *name != "BINARY"),
        _ => None,
    };
    if let Some(collation) = collation {
        report.warn(
            "key_collation",
            format!("{} is compared by {collation}, which may take two keys for one", key.name),
            "give the column a binary collation (utf8mb4_bin, BINARY)",
        );
    }
}

/// Which native states there are, in a sample bounded in rows and time.
async fn native_states(source: &Attached, layout: &Layout, report: &mut Report) {
    let Some(declared) = &layout.status else { return };
    let mut sample = Query::select();
    sample
        .expr_as(declared.expr(), "status")
        .expr_as(layout.states.matched(layout), "rule")
        .from(layout.table_ref())
        .limit(SAMPLE);
    if let Some(predicate) = &source.config.predicate {
        sample.and_where(Expr::cust(format!("({})", predicate.sql())));
    }
    let counts = Query::select()
        .column("status")
        .expr(Func::count(Expr::cust("*")))
        .column("rule")
        .from_subquery(sample, "sample")
        .add_group_by([Expr::col("status"), Expr::col("rule")])
        .to_owned();
    let rows = match source.db.fetch_at_most(&source.db.query(&counts), 50).await {
        Ok(rows) => rows,
        Err(error) => return report.warn("states", format!("could not be sampled: {error}"), "try again"),
    };
    for row in rows {
        let native = row.cell(0).ok().and_then(db::Cell::as_text);
        let count = row.i64(1).unwrap_or_default();
        let shown = native.as_deref().unwrap_or("NULL");
        let rule = layout.states.rule(row.i64(2).ok());
        match rule.map_or(State::Unknown, |rule| rule.is) {
            State::Unknown => report.warn(
                "states",
                format!("{count} of the records sampled have status {shown}, which is not mapped and shows as UNKNOWN"),
                "map it under [[source.state]]",
            ),
            state => report.ok("states", format!("{shown} means {state} ({count} in the sample)")),
        }
    }
}
