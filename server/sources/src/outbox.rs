//! Reading the outbox that the guard keeps beside the records, in the source's own database.

use crate::attached::Attached;
use crate::catalogue::Catalogue;
use crate::config::Table;
use crate::join::table_ref;
use chrono::{DateTime, TimeDelta};
use db::{DbError, Row};
use domain::outbox::{Delivery, Undelivered};
use sea_query::{Expr, ExprTrait, Order, Query};

const NAME: &str = "idempotency_outbox";
const PENDING: &str = "PENDING";
const DEAD: &str = "DEAD";

impl Attached {
    /// Messages with a number above `after` that have not arrived, oldest first; none where there is no outbox.
    pub(crate) async fn read_outbox(
        &self,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Undelivered>, DbError> {
        let table = Table { schema: self.config.table.schema.clone(), name: NAME.to_owned() };
        if Catalogue::read(&self.db, &table).await?.find("message_key").is_none() {
            return Ok(Vec::new());
        }
        let mut select = Query::select();
        select
            .columns(["id", "message_key", "biz_type", "biz_no", "kind", "target", "status", "attempts"])
            .columns(["last_error", "created_at"])
            .expr_as(self.db.dialect().now_ms(), "now_ms")
            .from(table_ref(&table))
            .and_where(Expr::col("status").is_in([PENDING, DEAD]))
            .and_where(Expr::col("id").gt(after.unwrap_or(0)))
            .order_by("id", Order::Asc)
            .limit(limit as u64);
        let rows = self.db.fetch_all(&self.db.query(&select)).await?;
        rows.iter().map(|row| undelivered(&self.config.name, row)).collect()
    }
}

fn undelivered(source: &str, row: &Row) -> Result<Undelivered, DbError> {
    let attempts = u32::try_from(row.i64("attempts")?).unwrap_or(u32::MAX);
    let delivery = match (row.text("status")?.as_str(), attempts) {
        (DEAD, _) => Delivery::GivenUp,
        (_, 0) => Delivery::Waiting,
        _ => Delivery::Failing,
    };
    let (created, now) = (row.i64("created_at")?, row.i64("now_ms")?);
    Ok(Undelivered {
        source: source.to_owned(),
        number: row.i64("id")?,
        key: row.text("message_key")?,
        biz_type: row.text("biz_type")?,
        biz_no: row.opt_text("biz_no")?,
        kind: row.text("kind")?,
        target: row.text("target")?,
        delivery,
        attempts,
        staged_at: DateTime::from_timestamp_millis(created).unwrap_or_default(),
        age_seconds: TimeDelta::milliseconds(now - created).num_seconds(),
        last_error: row.opt_text("last_error")?,
    })
}
