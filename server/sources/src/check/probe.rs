//! The business side of a source: does every reverse check run, and does its result hold what the configuration names.

use super::Report;
use crate::attached::Attached;
use crate::config::Biz;
use crate::judge::combine;
use crate::named::{Param, Statement};
use crate::reverse::{Check, Subject, is_primary};
use db::{Db, DbError, Tx};
use domain::evidence::Verdict;
use domain::ports::Source;
use domain::record::{RecordDetail, RecordFilter};

/// Checks every configured biz_type with one of its own records, where there is one.
pub(super) async fn biz_types(source: &Attached, report: &mut Report) {
    for biz in &source.config.biz {
        if biz.reverse_check.is_empty() {
            report.warn(
                "reverse_check",
                format!("{} has no reverse check, so its verdict is always unavailable", biz.name),
                "add [source.biz.reverse_check]",
            );
            continue;
        }
        let record = newest(source, biz).await;
        let mut columns = Vec::new();
        for check in source.checks_of(&biz.name) {
            columns.extend(probe(source, biz, check, record.as_ref(), report).await);
        }
        template(source, biz, &columns, report);
    }
}

async fn newest(source: &Attached, biz: &Biz) -> Option<RecordDetail> {
    let filter = RecordFilter { biz_type: Some(biz.name.clone()), ..RecordFilter::default() };
    let rows = source.list(&filter, None, 1).await.ok()?;
    source.get(&rows.first()?.id).await.ok()
}

/// Runs one check and looks at the columns of its result.
async fn probe(
    source: &Attached,
    biz: &Biz,
    check: &Check,
    record: Option<&RecordDetail>,
    report: &mut Report,
) -> Vec<String> {
    let name = format!("{} / {}", biz.name, check.label);
    if check.statements(&source.db).is_empty() {
        return endpoint(source, check, &name, record, report).await;
    }
    match columns(source, check, record).await {
        Ok(columns) => {
            let config = &check.config;
            let named =
                config.found_when.keys().chain(config.deleted_when.keys()).chain(config.compare.keys());
            let missing: Vec<&String> = named.filter(|column| !columns.contains(column)).collect();
            if missing.is_empty() {
                report.ok("reverse_check", format!("{name} runs"));
            }
            for column in missing {
                report.error(
                    "reverse_check",
                    format!("{name}: the result has no column {column}"),
                    "select it, or correct found_when, deleted_when and compare",
                );
            }
            columns
        }
        Err(Trouble::Untried(why)) => {
            report.warn(
                "reverse_check",
                format!("{name} could not be tried: {why}"),
                "check again when there are records",
            );
            Vec::new()
        }
        Err(Trouble::Failed(error)) => {
            report.error(
                "reverse_check",
                format!("{name} fails: {error}"),
                "correct its sql; parameters are bound as text, cast them where a column is not",
            );
            Vec::new()
        }
        Err(Trouble::Replica) => {
            report.warn(
                "reverse_check",
                format!("{name} reads a replica, so absence can never be proved"),
                "point it at the primary",
            );
            Vec::new()
        }
    }
}

/// Asks a query endpoint about a record: only its own answer shows whether the rules fit.
async fn endpoint(
    source: &Attached,
    check: &Check,
    name: &str,
    record: Option<&RecordDetail>,
    report: &mut Report,
) -> Vec<String> {
    let place = check.servers(&source.db).join(", ");
    match record {
        None => report.warn(
            "reverse_check",
            format!("{name} could not be tried: there is no record of this biz_type yet"),
            format!("check again when there are records to ask {place} about"),
        ),
        Some(record) => {
            let finding = combine(vec![check.ask(&source.db, &Subject::of(record)).await], place.clone());
            let said = format!("{name} asks {place}: {} ({})", finding.verdict, finding.explanation());
            match finding.verdict {
                Verdict::Unavailable => report.warn(
                    "reverse_check",
                    said,
                    "correct url, headers and sign, or add a rule for this answer",
                ),
                _ => report.ok("reverse_check", said),
            }
        }
    }
    check.answered_columns()
}

enum Trouble {
    Untried(String),
    Failed(DbError),
    Replica,
}

/// The columns of the result: every database and every shard must give the same question an answer.
async fn columns(
    source: &Attached,
    check: &Check,
    record: Option<&RecordDetail>,
) -> Result<Vec<String>, Trouble> {
    let mut columns = Vec::new();
    for (statement, db) in check.statements(&source.db) {
        columns = asked(check, statement, db, record).await?;
    }
    Ok(columns)
}

async fn asked(
    check: &Check,
    statement: &Statement,
    db: &Db,
    record: Option<&RecordDetail>,
) -> Result<Vec<String>, Trouble> {
    let mut tx = db.begin_read().await.map_err(Trouble::Failed)?;
    if !is_primary(&mut tx).await.map_err(Trouble::Failed)? {
        return Err(Trouble::Replica);
    }
    match record {
        Some(record) => {
            let subject = Subject::of(record);
            let query = statement.probe().bind(|param| check.bound(&subject, param));
            let query = query.map_err(|reason| Trouble::Untried(reason.to_string()))?;
            result_columns(&mut tx, &query).await.map_err(Trouble::Failed)
        }
        None => {
            // Any value shows whether the statement is right, unless it is cast to something the value is not.
            let sample = |_: &Param| Ok::<_, Trouble>("0".into());
            let tried = result_columns(&mut tx, &statement.probe().bind(sample)?).await;
            tried.map_err(|error| {
                Trouble::Untried(format!("there is no record of this biz_type yet ({error})"))
            })
        }
    }
}

async fn result_columns(tx: &mut Tx, query: &db::Query) -> Result<Vec<String>, DbError> {
    let row = tx.fetch_optional(query).await?;
    Ok(row.map(|row| row.columns().to_vec()).unwrap_or_default())
}

/// A template's placeholders must be columns of a check, or parts of the record.
fn template(source: &Attached, biz: &Biz, columns: &[String], report: &mut Report) {
    let Some(template) = source.template_of(&biz.name) else { return };
    let of_record = |name: &str| matches!(name, "key" | "biz_no" | "biz_type") || name.starts_with('/');
    for name in template.names().filter(|name| !of_record(name)) {
        if !columns.is_empty() && !columns.iter().any(|column| column == name) {
            report.error(
                "response_template",
                format!("{}: no reverse check gives a column {name}", biz.name),
                "select it in the check, or drop {…} from the template",
            );
        }
    }
}
