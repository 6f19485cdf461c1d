//! One question to one database.

use super::own_rows::own_rows;
use super::subject::Subject;
use crate::config::ReverseCheck;
use crate::judge::{Outcome, Rows, SHOWN_ROWS, expected_rows, judge};
use crate::named::{Param, Statement};
use db::{Db, DbError, Dialect, Query, Tx};
use domain::evidence::{Reason, Verdict};

/// A check and the record it is asked about.
pub(super) struct Question<'a> {
    pub(super) check: &'a ReverseCheck,
    pub(super) label: &'a str,
    pub(super) subject: &'a Subject<'a>,
    /// How many rows make the effect complete.
    expected: usize,
}

/// What one database answered.
pub(super) struct Answer {
    pub(super) rows: Rows,
    pub(super) is_primary: bool,
}

impl<'a> Question<'a> {
    pub(super) fn new(
        check: &'a ReverseCheck,
        label: &'a str,
        subject: &'a Subject<'a>,
    ) -> Result<Self, Reason> {
        let expected = expected_rows(check, subject.request())?;
        Ok(Self { check, label, subject, expected })
    }

    /// The statement with the record's values in it.
    pub(super) fn query(&self, statement: &Statement) -> Result<Query, Reason> {
        statement.bind(|param| self.subject.bound(self.check, self.label, param))
    }

    /// Asks in a read-only transaction of its own.
    pub(super) async fn ask(&self, statement: &Statement, db: &Db) -> Result<Outcome, Reason> {
        let query = self.query(statement)?;
        let answer = self.answer(&query, db).await.map_err(|error| self.trouble(error))?;
        self.outcome(answer, &statement.params, db.shown_url())
    }

    /// Asks inside a transaction that is open already.
    pub(super) async fn ask_within(
        &self,
        statement: &Statement,
        tx: &mut Tx,
        server: &str,
    ) -> Result<Outcome, Reason> {
        let query = self.query(statement)?;
        let answer = self.answer_within(&query, tx).await.map_err(|error| self.trouble(error))?;
        self.outcome(answer, &statement.params, server)
    }

    pub(super) async fn answer(&self, query: &Query, db: &Db) -> Result<Answer, DbError> {
        let mut tx = db.begin_read().await?;
        self.answer_within(query, &mut tx).await
    }

    async fn answer_within(&self, query: &Query, tx: &mut Tx) -> Result<Answer, DbError> {
        let is_primary = is_primary(tx).await?;
        let limit = self.expected.max(SHOWN_ROWS) + 1;
        let rows = Rows::read(&tx.fetch_at_most(query, limit).await?);
        Ok(Answer { rows, is_primary })
    }

    /// The verdict on rows that are all there is.
    pub(super) fn judged(&self, rows: Rows, params: &[Param]) -> Result<Outcome, Reason> {
        let value = |param: &Param| self.subject.value(param);
        let rows = own_rows(rows, self.check, self.label, params, value)?;
        Ok(judge(self.check, self.label, rows, self.expected, self.subject.request()))
    }

    fn outcome(&self, answer: Answer, params: &[Param], server: &str) -> Result<Outcome, Reason> {
        let outcome = self.judged(answer.rows, params)?;
        if !answer.is_primary && matches!(outcome.verdict, Verdict::Absent | Verdict::Partial) {
            return Err(Reason::NotPrimary { server: server.to_owned() });
        }
        Ok(outcome)
    }

    fn trouble(&self, error: DbError) -> Reason {
        let check = self.label.to_owned();
        match error {
            DbError::Unavailable(message) => Reason::SourceDown { message },
            DbError::Timeout(_) => Reason::TimedOut { check },
            other => Reason::QueryFailed { check, message: with_advice(other.to_string()) },
        }
    }
}

/// PostgreSQL compares no number with a text; what to write is not obvious from its words.
fn with_advice(message: String) -> String {
    let is_typed = message.starts_with("operator does not exist:")
        && ["bigint = text", "integer = text", "smallint = text", "numeric = text"]
            .iter()
            .any(|pair| message.contains(pair));
    match is_typed {
        true => format!("{message}; bind the number as one: params = {{ biz_no = \"integer\" }}"),
        false => message,
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
