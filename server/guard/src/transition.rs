//! State transitions of business rows under an optimistic version: a row moves only from where it may, once.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use db::{DbError, Tx, Value};
use sea_query::{Expr, ExprTrait, IntoTableRef, Query as Sql, TableRef};
use serde_json::json;

/// One move of a state machine: `from` any of some states `to` another.
///
/// ```
/// # use guard::{Transition, Seen};
/// let pay = Transition::new("t_order", "order_no", "status", ["PENDING"], "PAID").version("version");
/// # let _ = (pay, Seen::Any);
/// ```
#[derive(Debug, Clone)]
pub struct Transition {
    table: String,
    id: String,
    status: String,
    from: Vec<State>,
    to: State,
    version: Option<String>,
    moved_by: Option<String>,
}

/// A state as its column keeps it: a word or a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Word(String),
    Number(i64),
}

impl From<&str> for State {
    fn from(word: &str) -> State {
        State::Word(word.to_owned())
    }
}

impl From<i64> for State {
    fn from(number: i64) -> State {
        State::Number(number)
    }
}

impl From<i32> for State {
    fn from(number: i32) -> State {
        State::Number(number.into())
    }
}

impl State {
    fn value(&self) -> Expr {
        match self {
            State::Word(word) => Expr::val(word.as_str()),
            State::Number(number) => Expr::val(*number),
        }
    }

    fn is(&self, text: &str) -> bool {
        match self {
            State::Word(word) => word == text,
            State::Number(number) => text.parse() == Ok(*number),
        }
    }
}

/// The version of the row that the caller decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The state alone decides.
    Any,
    Version(i64),
}

/// A row that is where it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// This call moved it.
    Now,
    /// The same key had moved it before: nothing was changed.
    Before,
}

/// Why a row was not moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// There is no such row.
    #[error("there is no such row")]
    Missing,
    /// The row is in a state from which this move does not start.
    #[error("the row is in state {}", state.as_deref().unwrap_or("NULL"))]
    WrongState { state: Option<String>, version: Option<i64> },
    /// The row is in the right state, yet somebody changed it after it was read.
    #[error("the row was changed meanwhile")]
    Stale { state: Option<String>, version: Option<i64> },
    #[error(transparent)]
    Database(#[from] DbError),
}

/// The row as it is after a move that changed nothing.
struct Current {
    state: Option<String>,
    version: Option<i64>,
    moved_by: Option<String>,
}

impl Transition {
    /// A move of rows of `table` (`schema.table` works too), found by column `id`, whose state is in column `status`.
    /// It starts in any state of `from` and ends in `to`.
    pub fn new<S: Into<State>>(
        table: impl Into<String>,
        id: impl Into<String>,
        status: impl Into<String>,
        from: impl IntoIterator<Item = S>,
        to: impl Into<State>,
    ) -> Transition {
        Transition {
            table: table.into(),
            id: id.into(),
            status: status.into(),
            from: from.into_iter().map(Into::into).collect(),
            to: to.into(),
            version: None,
            moved_by: None,
        }
    }

    /// The column of the row's version, which every move increments.
    pub fn version(mut self, column: impl Into<String>) -> Transition {
        self.version = Some(column.into());
        self
    }

    /// The column that remembers which key moved the row. Without it a row already in the target state is refused:
    /// who brought it there is not known.
    pub fn moved_by(mut self, column: impl Into<String>) -> Transition {
        self.moved_by = Some(column.into());
        self
    }

    /// Moves the row `id` for the request `key`, in the transaction of the claim. One conditional update, so of two
    /// that try at once one is refused. Errors leave the transaction usable.
    pub async fn apply(
        &self,
        tx: &mut Tx,
        key: &str,
        id: impl Into<Value>,
        seen: Seen,
    ) -> Result<Moved, TransitionError> {
        let id = id.into();
        let mut update = Sql::update();
        update
            .table(self.table_ref())
            .value(self.status.clone(), self.to.value())
            .and_where(Expr::col(self.id.clone()).eq(Expr::val(id.clone())))
            .and_where(Expr::col(self.status.clone()).is_in(self.from.iter().map(State::value)));
        if let Some(version) = &self.version {
            update.value(version.clone(), Expr::col(version.clone()).add(1i64));
            if let Seen::Version(seen) = seen {
                update.and_where(Expr::col(version.clone()).eq(seen));
            }
        }
        if let Some(column) = &self.moved_by {
            update.value(column.clone(), key);
        }
        let update = tx.query(&update);
        if tx.execute(&update).await? == 1 {
            return Ok(Moved::Now);
        }
        let current = self.current(tx, id).await?.ok_or(TransitionError::Missing)?;
        self.judge(current, key)
    }

    fn judge(&self, current: Current, key: &str) -> Result<Moved, TransitionError> {
        let Current { state, version, moved_by } = current;
        let in_state = |wanted: &State| state.as_deref().is_some_and(|state| wanted.is(state));
        if in_state(&self.to) && moved_by.as_deref() == Some(key) {
            return Ok(Moved::Before);
        }
        match self.from.iter().any(in_state) {
            true => Err(TransitionError::Stale { state, version }),
            false => Err(TransitionError::WrongState { state, version }),
        }
    }

    async fn current(&self, tx: &mut Tx, id: Value) -> Result<Option<Current>, DbError> {
        let null = || Expr::cust("NULL");
        let column = |name: &Option<String>| name.clone().map_or_else(null, Expr::col);
        let mut select = Sql::select();
        select
            .expr_as(Expr::col(self.status.clone()), "state")
            .expr_as(column(&self.version), "version")
            .expr_as(column(&self.moved_by), "moved_by")
            .from(self.table_ref())
            .and_where(Expr::col(self.id.clone()).eq(Expr::val(id)));
        let select = tx.query(&select);
        let Some(row) = tx.fetch_optional(&select).await? else { return Ok(None) };
        Ok(Some(Current {
            state: row.opt_text("state")?,
            version: row.opt_i64("version")?,
            moved_by: row.opt_text("moved_by")?,
        }))
    }

    fn table_ref(&self) -> TableRef {
        match self.table.split_once('.') {
            Some((schema, table)) => (schema.to_owned(), table.to_owned()).into_table_ref(),
            None => self.table.clone().into_table_ref(),
        }
    }
}

impl IntoResponse for TransitionError {
    /// 404 or 409 with the row's present state; a failure of the database is a 500, whose outcome is unknown.
    fn into_response(self) -> Response {
        match self {
            TransitionError::Missing => problem(
                StatusCode::NOT_FOUND,
                json!({
                    "code": "no_such_row", "title": "Not found",
                    "detail": "What should change state does not exist."
                }),
            ),
            TransitionError::WrongState { state, version } => problem(
                StatusCode::CONFLICT,
                json!({
                    "code": "wrong_state", "title": "Not in this state",
                    "detail": "From its present state this change is not allowed; nothing was changed.",
                    "current_state": state, "current_version": version
                }),
            ),
            TransitionError::Stale { state, version } => problem(
                StatusCode::CONFLICT,
                json!({
                    "code": "changed_meanwhile", "title": "Changed meanwhile",
                    "detail": "It was changed after you read it; nothing was changed now. Read it again and decide anew.",
                    "current_state": state, "current_version": version
                }),
            ),
            TransitionError::Database(error) => {
                tracing::warn!(%error, "a state transition could not be made");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

fn problem(status: StatusCode, mut body: serde_json::Value) -> Response {
    body["type"] = "about:blank".into();
    body["status"] = status.as_u16().into();
    let kind = HeaderValue::from_static("application/problem+json");
    (status, [(CONTENT_TYPE, kind)], body.to_string()).into_response()
}
