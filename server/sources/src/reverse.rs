//! Reverse checks: the configured questions, asked of the business data, read-only and on the primary.

use crate::config::{Biz, ReverseCheck, SourceConfig};
use crate::judge::{Outcome, Rows, SHOWN_ROWS, expected_rows, judge};
use crate::named::{Param, Statement};
use crate::reading::cell_text;
use db::{Db, DbError, Dialect, Query, Row, Tx};
use domain::evidence::{Reason, Verdict};
use domain::record::RecordDetail;
use serde_json::Value;

/// One configured check, ready to run.
pub(crate) struct Check {
    pub(crate) label: String,
    pub(crate) config: ReverseCheck,
    pub(crate) statement: Statement,
    /// Another database than the source's.
    pub(crate) elsewhere: Option<Db>,
}

/// What a check takes from the record.
pub(crate) struct Subject<'a> {
    key: &'a str,
    biz_type: Option<&'a str>,
    biz_no: Option<&'a str>,
    request: Option<Value>,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(record: &'a RecordDetail) -> Self {
        let text = record.request.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok());
        Self {
            key: &record.row.key,
            biz_type: record.row.biz_type.as_deref(),
            biz_no: record.row.biz_no.as_deref().filter(|number| !number.is_empty()),
            request: text.and_then(domain::json::parse),
        }
    }

    /// The value of a template's placeholder that is not a business column.
    pub(crate) fn named(&self, name: &str) -> Option<String> {
        match name {
            "key" => Some(self.key.to_owned()),
            "biz_no" => self.biz_no.map(str::to_owned),
            "biz_type" => self.biz_type.map(str::to_owned),
            pointer => self.at(pointer),
        }
    }

    fn at(&self, pointer: &str) -> Option<String> {
        domain::json::scalar_at(self.request.as_ref()?, pointer)
    }

    /// The value a parameter takes from the record.
    pub(crate) fn value(&self, param: &Param) -> Option<String> {
        match param {
            Param::Key => Some(self.key.to_owned()),
            Param::BizNo => self.biz_no.map(str::to_owned),
            Param::BizType => self.biz_type.map(str::to_owned),
            Param::Request(pointer) => self.at(pointer.as_str()),
        }
    }

    /// Why a parameter has no value.
    pub(crate) fn lacks(&self, param: Param) -> Reason {
        match param {
            Param::BizNo => Reason::NoBizNo,
            Param::Request(pointer) => Reason::RequestLacks { pointer: pointer.as_str().to_owned() },
            Param::Key | Param::BizType => Reason::NotConfigured { biz_type: None },
        }
    }
}

impl Check {
    /// The checks of a biz_type; the error names what cannot be understood.
    pub(crate) fn all(
        source: &SourceConfig,
        biz: &Biz,
        open: impl Fn(&str) -> Result<Db, DbError>,
    ) -> Result<Vec<Self>, String> {
        let each = biz.reverse_check.iter().enumerate().map(|(place, config)| {
            let url = config.url.as_ref().unwrap_or(&source.url).expose();
            let dialect = Dialect::of_url(url).map_err(|error| error.to_string())?;
            Ok(Self {
                label: config.label(place),
                statement: Statement::parse(&config.sql, dialect)?,
                elsewhere: match &config.url {
                    Some(url) => Some(open(url.expose()).map_err(|error| error.to_string())?),
                    None => None,
                },
                config: config.clone(),
            })
        });
        each.collect()
    }

    /// Asks in a read-only transaction of its own.
    pub(crate) async fn ask(&self, own: &Db, subject: &Subject<'_>) -> Outcome {
        let db = self.elsewhere.as_ref().unwrap_or(own);
        match db.begin_read().await {
            Ok(mut tx) => self.ask_within(&mut tx, db.shown_url(), subject).await,
            Err(error) => Outcome::unavailable(&self.label, self.trouble(error)),
        }
    }

    /// Asks inside a transaction that is open already.
    pub(crate) async fn ask_within(&self, tx: &mut Tx, server: &str, subject: &Subject<'_>) -> Outcome {
        match self.outcome(tx, server, subject).await {
            Ok(outcome) => outcome,
            Err(reason) => Outcome::unavailable(&self.label, reason),
        }
    }

    async fn outcome(&self, tx: &mut Tx, server: &str, subject: &Subject<'_>) -> Result<Outcome, Reason> {
        let query =
            self.statement.bind(|param| subject.value(param)).map_err(|param| subject.lacks(param))?;
        let request = subject.request.as_ref();
        let expected = expected_rows(&self.config, request)?;
        let primary = is_primary(tx).await.map_err(|error| self.trouble(error))?;
        let limit = expected.max(SHOWN_ROWS) + 1;
        let rows = tx.fetch_at_most(&query, limit).await.map_err(|error| self.trouble(error))?;
        let outcome = judge(&self.config, &self.label, as_text(&rows), expected, request);
        if !primary && matches!(outcome.verdict, Verdict::Absent | Verdict::Partial) {
            return Err(Reason::NotPrimary { server: server.to_owned() });
        }
        Ok(outcome)
    }

    fn trouble(&self, error: DbError) -> Reason {
        match error {
            DbError::Unavailable(message) => Reason::SourceDown { message },
            DbError::Timeout(_) => Reason::TimedOut { check: self.label.clone() },
            other => Reason::QueryFailed { check: self.label.clone(), message: other.to_string() },
        }
    }
}

/// Whether the server takes writes: on a replica a missing row may only be late.
pub(crate) async fn is_primary(tx: &mut Tx) -> Result<bool, DbError> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => return Ok(true),
        Dialect::Postgres => "SELECT CAST(pg_is_in_recovery() AS TEXT)",
        Dialect::Mysql => "SELECT CAST(@@global.read_only AS CHAR), CAST(@@global.innodb_read_only AS CHAR)",
    };
    let row = tx.fetch_optional(&Query::raw(sql, vec![])).await?;
    let reading_only = |cell: &db::Cell| !matches!(cell.as_text().as_deref(), Some("0" | "OFF" | "false"));
    Ok(row.is_some_and(|row| !row.cells().iter().any(reading_only)))
}

fn as_text(rows: &[Row]) -> Rows {
    Rows {
        columns: rows.first().map(|row| row.columns().to_vec()).unwrap_or_default(),
        rows: rows.iter().map(|row| row.cells().iter().map(cell_text).collect()).collect(),
    }
}
