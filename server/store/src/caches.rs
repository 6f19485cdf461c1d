//! The caches beside the sources: changes to be confirmed, differences found, and where the comparison goes on.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use db::{DbError, Row, Tx};
use domain::audit::Draft;
use domain::cache::{CacheChange, CacheEnd, Disagreement};
use domain::clock::millis;
use domain::compensation::{Compensation, Outcome};
use domain::ports::CacheStore;
use domain::rates::{Count, Happening};
use domain::record::{Place, RecordId};
use sea_query::{Expr, ExprTrait, Order, Query, SelectStatement, UpdateStatement};

use crate::codec::{amount, from_json, instant, opt_instant, record_ref, to_json};
use crate::{Store, audit, compensations, rates, retrying};

/// How many changes one call takes.
const TAKE: u64 = 100;

#[async_trait]
impl CacheStore for Store {
    async fn take_changes(
        &self,
        now: DateTime<Utc>,
        next: DateTime<Utc>,
    ) -> domain::Result<Vec<CacheChange>> {
        let select = changes()
            .and_where(Expr::col("next_at").lte(millis(now)))
            .order_by("next_at", Order::Asc)
            .limit(TAKE)
            .to_owned();
        let mut taken = Vec::new();
        for change in retrying!(self, self.read_changes(&select).await)? {
            let take = unconfirmed(&change.compensation_id)
                .and_where(Expr::col("next_at").eq(change.next_at.map(millis)))
                .value("next_at", millis(next))
                .to_owned();
            if retrying!(self, self.db.execute(&self.db.query(&take)).await)? == 1 {
                taken.push(change);
            }
        }
        Ok(taken)
    }

    async fn postpone_change(
        &self,
        compensation_id: &str,
        why: &str,
        next: DateTime<Utc>,
    ) -> domain::Result<()> {
        let postpone = unconfirmed(compensation_id)
            .value("attempts", Expr::col("attempts").add(1))
            .value("why", why.replace('\0', "\u{fffd}"))
            .value("next_at", millis(next))
            .to_owned();
        retrying!(self, self.db.execute(&self.db.query(&postpone)).await).map(drop)
    }

    async fn confirm_change(
        &self,
        compensation_id: &str,
        at: DateTime<Utc>,
        audit: &Draft,
    ) -> domain::Result<bool> {
        retrying!(self, self.confirm_once(compensation_id, at, audit).await)
    }

    async fn changes_of(&self, record: &RecordId, limit: usize) -> domain::Result<Vec<CacheChange>> {
        let select = changes()
            .and_where(Expr::col("record_ref").eq(record_ref(record)))
            .order_by("since", Order::Desc)
            .limit(limit as u64)
            .to_owned();
        retrying!(self, self.read_changes(&select).await)
    }

    async fn pending_changes(&self) -> domain::Result<Vec<(String, u64, DateTime<Utc>)>> {
        let select = Query::select()
            .column("source")
            .expr_as(Expr::col("compensation_id").count(), "changes")
            .expr_as(Expr::col("since").min(), "oldest")
            .from("cache_changes")
            .and_where(Expr::col("next_at").is_not_null())
            .group_by_col("source")
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let group = |row: &Row| Ok((row.text("source")?, amount(row, "changes")?, instant(row, "oldest")?));
        rows.iter().map(group).collect::<Result<_, DbError>>().map_err(crate::told)
    }

    async fn note_disagreement(&self, disagreement: &Disagreement) -> domain::Result<bool> {
        retrying!(self, self.note_once(disagreement).await)
    }

    async fn end_disagreement(&self, record: &RecordId) -> domain::Result<()> {
        let end = Query::delete()
            .from_table("cache_disagreements")
            .and_where(Expr::col("record_ref").eq(record_ref(record)))
            .to_owned();
        retrying!(self, self.db.execute(&self.db.query(&end)).await).map(drop)
    }

    async fn disagreements(&self, source: &str, limit: usize) -> domain::Result<Vec<Disagreement>> {
        let select = Query::select()
            .column("document")
            .from("cache_disagreements")
            .and_where(Expr::col("source").eq(source))
            .order_by("seen_at", Order::Desc)
            .order_by("record_ref", Order::Desc)
            .limit(limit as u64)
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let document = |row: &Row| from_json(&row.text("document")?);
        rows.iter().map(document).collect::<Result<_, DbError>>().map_err(crate::told)
    }

    async fn disagreeing(&self) -> domain::Result<Vec<(String, u64)>> {
        let select = Query::select()
            .column("source")
            .expr_as(Expr::col("record_ref").count(), "records")
            .from("cache_disagreements")
            .group_by_col("source")
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let group = |row: &Row| Ok((row.text("source")?, amount(row, "records")?));
        rows.iter().map(group).collect::<Result<_, DbError>>().map_err(crate::told)
    }

    async fn take_walk(
        &self,
        source: &str,
        owner: &str,
        now: DateTime<Utc>,
        lease_until: DateTime<Utc>,
    ) -> domain::Result<Option<Option<Place>>> {
        retrying!(self, self.take_walk_once(source, owner, now, lease_until).await)
    }

    async fn leave_walk(&self, source: &str, owner: &str, place: Option<&Place>) -> domain::Result<()> {
        let place = place.map(to_json).transpose().map_err(crate::told)?;
        let leave = walk(source)
            .and_where(Expr::col("owner").eq(owner))
            .value("place", place)
            .value("lease_until", 0)
            .to_owned();
        retrying!(self, self.db.execute(&self.db.query(&leave)).await).map(drop)
    }
}

impl Store {
    async fn confirm_once(
        &self,
        compensation_id: &str,
        at: DateTime<Utc>,
        draft: &Draft,
    ) -> Result<bool, DbError> {
        let mut tx = self.db.begin().await?;
        let confirm = unconfirmed(compensation_id)
            .value("next_at", None::<i64>)
            .value("confirmed_at", millis(at))
            .to_owned();
        if tx.execute(&tx.query(&confirm)).await? != 1 {
            return Ok(false);
        }
        if let Some(outcome) = compensations::outcome(&mut tx, compensation_id).await? {
            let outcome = outcome.cache_confirmed();
            let update = compensations::by_id(compensation_id)
                .value("ending", outcome.ending.as_str())
                .value("outcome", to_json(&outcome)?)
                .to_owned();
            tx.execute(&tx.query(&update)).await?;
        }
        audit::append(&mut tx, draft).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn note_once(&self, disagreement: &Disagreement) -> Result<bool, DbError> {
        let mut tx = self.db.begin().await?;
        let insert = Query::insert()
            .into_table("cache_disagreements")
            .columns(["record_ref", "source", "seen_at", "document"])
            .values_panic([
                record_ref(&disagreement.record).into(),
                disagreement.record.source.as_str().into(),
                millis(disagreement.seen_at).into(),
                to_json(disagreement)?.into(),
            ])
            .to_owned();
        if !tx.insert_if_absent(&insert).await? {
            return Ok(false);
        }
        let count = Count {
            source: disagreement.record.source.clone(),
            biz_type: disagreement.biz_type.clone().unwrap_or_default(),
            at: disagreement.seen_at,
            outcome: Happening::CacheDisagrees,
            count: 1,
        };
        rates::add_counts(&mut tx, &[count]).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn take_walk_once(
        &self,
        source: &str,
        owner: &str,
        now: DateTime<Utc>,
        lease_until: DateTime<Utc>,
    ) -> Result<Option<Option<Place>>, DbError> {
        let mut tx = self.db.begin().await?;
        let known = Query::insert()
            .into_table("cache_walks")
            .columns(["source", "owner", "lease_until"])
            .values_panic([source.into(), owner.into(), 0.into()])
            .to_owned();
        tx.insert_if_absent(&known).await?;
        let take = walk(source)
            .and_where(Expr::col("lease_until").lt(millis(now)))
            .value("owner", owner)
            .value("lease_until", millis(lease_until))
            .to_owned();
        if tx.execute(&tx.query(&take)).await? != 1 {
            return Ok(None);
        }
        let place = Query::select()
            .column("place")
            .from("cache_walks")
            .and_where(Expr::col("source").eq(source))
            .to_owned();
        let row = tx.fetch_optional(&tx.query(&place)).await?;
        let place = row.map(|row| row.opt_text("place")).transpose()?.flatten();
        tx.commit().await?;
        Ok(Some(place.map(|place| from_json(&place)).transpose()?))
    }

    async fn read_changes(&self, select: &SelectStatement) -> Result<Vec<CacheChange>, DbError> {
        self.db.fetch_all(&self.db.query(select)).await?.iter().map(change).collect()
    }
}

/// Stores what an outcome left pending, in the transaction that stores the outcome.
pub(crate) async fn keep_pending(
    tx: &mut Tx,
    compensation: &Compensation,
    outcome: &Outcome,
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    let Some(CacheEnd::Pending { why }) = &outcome.cache else { return Ok(()) };
    let record = &compensation.command.record;
    let insert = Query::insert()
        .into_table("cache_changes")
        .columns(["compensation_id", "source", "record_ref", "record", "since", "attempts", "why", "next_at"])
        .values_panic([
            compensation.id.as_str().into(),
            record.source.as_str().into(),
            record_ref(record).into(),
            record.to_string().into(),
            millis(now).into(),
            0.into(),
            why.replace('\0', "\u{fffd}").into(),
            millis(now).into(),
        ])
        .to_owned();
    tx.insert_if_absent(&insert).await.map(drop)
}

fn changes() -> SelectStatement {
    Query::select()
        .columns(["compensation_id", "record", "since", "attempts", "why", "next_at", "confirmed_at"])
        .from("cache_changes")
        .to_owned()
}

fn change(row: &Row) -> Result<CacheChange, DbError> {
    let record = row.text("record")?.parse();
    let confirmed_at = opt_instant(row, "confirmed_at")?;
    Ok(CacheChange {
        compensation_id: row.text("compensation_id")?,
        record: record.map_err(|_| DbError::Decode("a stored record's id is none of ours".into()))?,
        since: instant(row, "since")?,
        attempts: u32::try_from(row.i64("attempts")?).unwrap_or(u32::MAX),
        why: row.text("why")?,
        next_at: opt_instant(row, "next_at")?,
        confirmed_at,
    })
}

/// A change that only an unconfirmed row takes.
fn unconfirmed(compensation_id: &str) -> UpdateStatement {
    Query::update()
        .table("cache_changes")
        .and_where(Expr::col("compensation_id").eq(compensation_id))
        .and_where(Expr::col("next_at").is_not_null())
        .to_owned()
}

fn walk(source: &str) -> UpdateStatement {
    Query::update().table("cache_walks").and_where(Expr::col("source").eq(source)).to_owned()
}
