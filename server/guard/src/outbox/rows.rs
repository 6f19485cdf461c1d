//! The statements on the outbox's table. A message that is being sent is due again when its sender's time is over, so
//! a sender that died needs no clearing up.

use std::time::Duration;

use db::{Db, DbError, Row};
use sea_query::{Alias, Expr, ExprTrait, Order, Query as Sql, SelectStatement, UpdateStatement};

use super::{DEAD, DISCARDED, PENDING, SENT, TABLE};

/// Longest note about a failure, in characters.
const MAX_ERROR: usize = 255;

const COLUMNS: [&str; 9] =
    ["id", "message_key", "biz_type", "biz_no", "kind", "target", "content_type", "body", "attempts"];

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    pub id: i64,
    /// Sent as `Idempotency-Key`: the same however often the message is sent.
    pub key: String,
    pub biz_type: String,
    pub biz_no: Option<String>,
    pub kind: String,
    pub target: String,
    pub content_type: String,
    pub body: String,
    /// How often it was tried, this time included.
    pub attempts: i64,
}

/// A message that has not arrived, for whoever has to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    pub id: i64,
    pub key: String,
    pub biz_type: String,
    pub biz_no: Option<String>,
    pub kind: String,
    pub target: String,
    /// Given up: nothing more happens by itself.
    pub dead: bool,
    pub attempts: i64,
    pub age: Duration,
    pub last_error: Option<String>,
}

#[derive(Clone)]
pub(super) struct Rows {
    pub db: Db,
    /// Who sends: tells this process from all others.
    pub owner: String,
}

impl Rows {
    /// Messages that may be sent now to one of `targets`: due, and the oldest undelivered of their business number.
    pub async fn due(&self, targets: &[String], limit: u64) -> Result<Vec<Parcel>, DbError> {
        let mut select = Sql::select();
        select
            .columns(COLUMNS.map(|column| ("m", column)))
            .from_as(TABLE, Alias::new("m"))
            .and_where(Expr::col(("m", "status")).eq(PENDING))
            .and_where(Expr::col(("m", "due_at")).lte(self.db.dialect().now_ms()))
            .and_where(Expr::col(("m", "target")).is_in(targets.iter().map(String::as_str)))
            .and_where(Expr::not_exists(earlier()))
            .order_by(("m", "id"), Order::Asc)
            .limit(limit);
        let rows = self.db.fetch_all(&self.db.query(&select)).await?;
        rows.iter().map(parcel).collect()
    }

    /// Takes a message for sending, for at most `lease`; `false`: somebody else did.
    pub async fn take(&self, parcel: &mut Parcel, lease: Duration) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("owner", self.owner.as_str())
            .value("attempts", Expr::col("attempts").add(1i64))
            .value("due_at", self.after(lease))
            .and_where(Expr::col("due_at").lte(self.db.dialect().now_ms()));
        parcel.attempts += 1;
        self.change(update, parcel.id, parcel.attempts - 1).await
    }

    pub async fn sent(&self, parcel: &Parcel) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("status", SENT)
            .value("settled_at", self.db.dialect().now_ms())
            .value("last_error", Expr::cust("NULL"))
            .and_where(Expr::col("owner").eq(self.owner.as_str()));
        self.change(update, parcel.id, parcel.attempts).await
    }

    /// To be tried again after `pause`.
    pub async fn postpone(&self, parcel: &Parcel, error: &str, pause: Duration) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("due_at", self.after(pause))
            .value("last_error", short(error))
            .and_where(Expr::col("owner").eq(self.owner.as_str()));
        self.change(update, parcel.id, parcel.attempts).await
    }

    /// Not to be tried again by itself.
    pub async fn give_up(&self, parcel: &Parcel, error: &str) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("status", DEAD)
            .value("last_error", short(error))
            .and_where(Expr::col("owner").eq(self.owner.as_str()));
        self.change(update, parcel.id, parcel.attempts).await
    }

    async fn change(&self, mut update: UpdateStatement, id: i64, attempts: i64) -> Result<bool, DbError> {
        update
            .and_where(Expr::col("id").eq(id))
            .and_where(Expr::col("status").eq(PENDING))
            .and_where(Expr::col("attempts").eq(attempts));
        Ok(self.db.execute(&self.db.query(&update)).await? == 1)
    }

    fn after(&self, span: Duration) -> Expr {
        self.db.dialect().now_ms().add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4))
    }
}

/// An older message about the same thing that has not arrived.
fn earlier() -> SelectStatement {
    let same = |column| Expr::col(("e", column)).eq(Expr::col(("m", column)));
    let mut select = Sql::select();
    select
        .expr(Expr::val(1))
        .from_as(TABLE, Alias::new("e"))
        .and_where(same("biz_type"))
        .and_where(same("biz_no"))
        .and_where(Expr::col(("e", "id")).lt(Expr::col(("m", "id"))))
        .and_where(Expr::col(("e", "status")).is_in([PENDING, DEAD]));
    select
}

fn parcel(row: &Row) -> Result<Parcel, DbError> {
    Ok(Parcel {
        id: row.i64("id")?,
        key: row.text("message_key")?,
        biz_type: row.text("biz_type")?,
        biz_no: row.opt_text("biz_no")?,
        kind: row.text("kind")?,
        target: row.text("target")?,
        content_type: row.text("content_type")?,
        body: row.text("body")?,
        attempts: row.i64("attempts")?,
    })
}

fn short(error: &str) -> String {
    error.chars().take(MAX_ERROR).collect()
}

/// Messages that have not arrived, oldest first, at most `limit` with an id above `after`: given up, failing, waiting
/// behind another, or not yet sent. Errors: the database's own, also when it has no outbox.
pub async fn undelivered(db: &Db, after: i64, limit: u64) -> Result<Vec<Undelivered>, DbError> {
    let mut select = Sql::select();
    select
        .columns(["id", "message_key", "biz_type", "biz_no", "kind", "target", "status", "attempts"])
        .columns(["last_error", "created_at"])
        .expr_as(db.dialect().now_ms(), "now_ms")
        .from(TABLE)
        .and_where(Expr::col("status").is_in([PENDING, DEAD]))
        .and_where(Expr::col("id").gt(after))
        .order_by("id", Order::Asc)
        .limit(limit);
    let rows = db.fetch_all(&db.query(&select)).await?;
    rows.iter()
        .map(|row| {
            let age = row.i64("now_ms")? - row.i64("created_at")?;
            Ok(Undelivered {
                id: row.i64("id")?,
                key: row.text("message_key")?,
                biz_type: row.text("biz_type")?,
                biz_no: row.opt_text("biz_no")?,
                kind: row.text("kind")?,
                target: row.text("target")?,
                dead: row.text("status")? == DEAD,
                attempts: row.i64("attempts")?,
                age: Duration::from_millis(u64::try_from(age).unwrap_or(0)),
                last_error: row.opt_text("last_error")?,
            })
        })
        .collect()
}

/// What a person decides about a message that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Try again from the beginning, under the same key.
    SendAgain,
    /// It will not be sent; what waits behind it goes on.
    Discard,
}

/// Carries out `decision` on a message that was given up; `false`: it is not given up (any more), nothing was done.
pub async fn decide(db: &Db, id: i64, decision: Decision) -> Result<bool, DbError> {
    let mut update = Sql::update();
    update.table(TABLE).and_where(Expr::col("id").eq(id)).and_where(Expr::col("status").eq(DEAD));
    match decision {
        Decision::SendAgain => {
            update.value("status", PENDING).value("attempts", 0i64).value("due_at", db.dialect().now_ms())
        }
        Decision::Discard => update.value("status", DISCARDED).value("settled_at", db.dialect().now_ms()),
    };
    Ok(db.execute(&db.query(&update)).await? == 1)
}

/// Removes messages that arrived or were discarded more than `age` ago, at most `limit`; how many.
pub async fn purge(db: &Db, age: Duration, limit: u64) -> Result<u64, DbError> {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 4);
    let mut old = Sql::select();
    old.column("id")
        .from(TABLE)
        .and_where(Expr::col("status").is_in([SENT, DISCARDED]))
        .and_where(Expr::col("settled_at").add(age).lt(db.dialect().now_ms()))
        .order_by("id", Order::Asc)
        .limit(limit);
    let rows = db.fetch_all(&db.query(&old)).await?;
    let ids = rows.iter().map(|row| row.i64(0)).collect::<Result<Vec<_>, _>>()?;
    if ids.is_empty() {
        return Ok(0);
    }
    let mut delete = Sql::delete();
    delete.from_table(TABLE).and_where(Expr::col("id").is_in(ids));
    db.execute(&db.query(&delete)).await
}
