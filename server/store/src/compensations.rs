//! Intents and outcomes. The document holds what never changes; what moves has columns of its own and wins over it.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use db::{DbError, Row, Tx};
use domain::audit::Draft;
use domain::clock::millis;
use domain::compensation::{Compensation, Ending, Outcome, Phase};
use domain::ports::{Begun, CompensationStore};
use domain::record::RecordId;
use sea_query::{Expr, ExprTrait, InsertStatement, Order, Query, SelectStatement, UpdateStatement};

use crate::codec::{amount, from_json, instant, opt_instant, record_ref, reference, to_json};
use crate::evidence::CHUNK;
use crate::{Store, audit, caches, retrying};

/// How many abandoned compensations or late checks one call takes.
const TAKE: u64 = 100;

#[async_trait]
impl CompensationStore for Store {
    async fn begin(&self, intent: &Compensation, audit: &Draft) -> domain::Result<Begun> {
        retrying!(self, self.begin_once(intent, audit).await)
    }

    async fn find(&self, actor: &str, command_key: &str) -> domain::Result<Option<Compensation>> {
        let select = by_command(&reference(&[actor, command_key]));
        Ok(retrying!(self, self.read_compensations(&select).await)?.pop())
    }

    async fn advance(&self, id: &str, owner: &str, phase: Phase, now: DateTime<Utc>) -> domain::Result<bool> {
        let update = owned(id, owner)
            .value("phase", phase.as_str())
            .and_where(Expr::col("lease_until").gt(millis(now)))
            .to_owned();
        Ok(retrying!(self, self.db.execute(&self.db.query(&update)).await)? == 1)
    }

    async fn finish(
        &self,
        id: &str,
        owner: &str,
        outcome: &Outcome,
        audit: &Draft,
        now: DateTime<Utc>,
        late_check_at: Option<DateTime<Utc>>,
    ) -> domain::Result<bool> {
        let document = to_json(outcome).map_err(crate::told)?;
        let update = owned(id, owner)
            .value("phase", Phase::Done.as_str())
            .value("open_ref", None::<String>)
            .value("finished_at", millis(now))
            .value("ending", outcome.ending.as_str())
            .value("outcome", document)
            .value("late_check_at", late_check_at.map(millis))
            .to_owned();
        retrying!(self, self.finish_once(id, &update, outcome, audit, now).await)
    }

    async fn take_abandoned(
        &self,
        owner: &str,
        now: DateTime<Utc>,
        lease_until: DateTime<Utc>,
    ) -> domain::Result<Vec<Compensation>> {
        let select = compensations()
            .and_where(Expr::col("finished_at").is_null())
            .and_where(Expr::col("lease_until").lt(millis(now)))
            .order_by("lease_until", Order::Asc)
            .limit(TAKE)
            .to_owned();
        let mut taken = Vec::new();
        for mut compensation in retrying!(self, self.read_compensations(&select).await)? {
            let take = owned(&compensation.id, &compensation.owner)
                .and_where(Expr::col("lease_until").eq(millis(compensation.lease_until)))
                .value("owner", owner)
                .value("lease_until", millis(lease_until))
                .to_owned();
            if retrying!(self, self.db.execute(&self.db.query(&take)).await)? == 1 {
                (compensation.owner, compensation.lease_until) = (owner.to_owned(), lease_until);
                taken.push(compensation);
            }
        }
        Ok(taken)
    }

    async fn running(&self, records: &[RecordId]) -> domain::Result<Vec<Compensation>> {
        let mut all = Vec::new();
        for chunk in records.chunks(CHUNK) {
            let select = compensations()
                .and_where(Expr::col("open_ref").is_in(chunk.iter().map(record_ref)))
                .to_owned();
            all.extend(retrying!(self, self.read_compensations(&select).await)?);
        }
        Ok(all)
    }

    async fn history(&self, record: &RecordId, limit: usize) -> domain::Result<Vec<Compensation>> {
        let select = compensations()
            .and_where(Expr::col("record_ref").eq(record_ref(record)))
            .order_by("started_at", Order::Desc)
            .order_by("id", Order::Desc)
            .limit(limit as u64)
            .to_owned();
        retrying!(self, self.read_compensations(&select).await)
    }

    async fn settled_since(&self, since: DateTime<Utc>) -> domain::Result<u64> {
        let select = Query::select()
            .expr(Expr::col("id").count())
            .from("compensations")
            .and_where(Expr::col("finished_at").gte(millis(since)))
            .and_where(
                Expr::col("ending").is_in([Ending::Succeeded, Ending::CachePending].map(Ending::as_str)),
            )
            .to_owned();
        let row = retrying!(self, self.db.fetch_optional(&self.db.query(&select)).await)?;
        row.map_or(Ok(0), |row| amount(&row, 0)).map_err(crate::told)
    }

    async fn recent_reasons(&self, actor: &str, limit: usize) -> domain::Result<Vec<String>> {
        let select = Query::select()
            .column("reason")
            .expr_as(Expr::col("started_at").max(), "last_used")
            .from("compensations")
            .and_where(Expr::col("actor").eq(actor))
            .group_by_col("reason")
            .order_by("last_used", Order::Desc)
            .limit(limit as u64)
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        rows.iter().map(|row| row.text("reason")).collect::<Result<_, _>>().map_err(crate::told)
    }

    async fn take_late_checks(
        &self,
        now: DateTime<Utc>,
        next: DateTime<Utc>,
    ) -> domain::Result<Vec<(RecordId, String)>> {
        let select = compensations()
            .and_where(Expr::col("late_check_at").lte(millis(now)))
            .order_by("late_check_at", Order::Asc)
            .limit(TAKE)
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let mut taken = Vec::new();
        for row in &rows {
            let (compensation, due) = compensation(row)
                .and_then(|found| Ok((found, row.i64("late_check_at")?)))
                .map_err(crate::told)?;
            let take = late_check(&compensation.id, Some(millis(next)))
                .and_where(Expr::col("late_check_at").eq(due))
                .to_owned();
            if retrying!(self, self.db.execute(&self.db.query(&take)).await)? == 1 {
                taken.push((compensation.command.record, compensation.id));
            }
        }
        Ok(taken)
    }

    async fn end_late_check(&self, compensation_id: &str, audit: Option<&Draft>) -> domain::Result<()> {
        let end =
            late_check(compensation_id, None).and_where(Expr::col("late_check_at").is_not_null()).to_owned();
        // Somebody who ended it already wrote the entry, too.
        retrying!(self, self.change_audited(&end, audit).await).map(drop)
    }
}

impl Store {
    async fn begin_once(&self, intent: &Compensation, draft: &Draft) -> Result<Begun, DbError> {
        let mut tx = self.db.begin().await?;
        if tx.insert_if_absent(&insert(intent)?).await? {
            audit::append(&mut tx, draft).await?;
            tx.commit().await?;
            return Ok(Begun::New);
        }
        let earlier = first(&mut tx, &by_command(&command_ref(intent))).await?;
        if let Some(earlier) = earlier {
            return Ok(Begun::Existing(Box::new(earlier)));
        }
        let open = compensations()
            .and_where(Expr::col("open_ref").eq(record_ref(&intent.command.record)))
            .to_owned();
        match first(&mut tx, &open).await? {
            Some(other) => Ok(Begun::RecordBusy { by: other.actor }),
            // What was in the way has just finished.
            None => Err(DbError::Busy("the record was being settled until now".into())),
        }
    }

    /// Stores an outcome with its entry and with what it left to be done in a cache.
    async fn finish_once(
        &self,
        id: &str,
        update: &UpdateStatement,
        outcome: &Outcome,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<bool, DbError> {
        let mut tx = self.db.begin().await?;
        if tx.execute(&tx.query(update)).await? != 1 {
            return Ok(false);
        }
        let select = compensations().and_where(Expr::col("id").eq(id)).to_owned();
        if let Some(finished) = first(&mut tx, &select).await? {
            caches::keep_pending(&mut tx, &finished, outcome, now).await?;
        }
        audit::append(&mut tx, draft).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Changes one row and writes the entry with it; neither when no row matches. Whether one did.
    pub(crate) async fn change_audited(
        &self,
        update: &UpdateStatement,
        draft: Option<&Draft>,
    ) -> Result<bool, DbError> {
        let mut tx = self.db.begin().await?;
        if tx.execute(&tx.query(update)).await? != 1 {
            return Ok(false);
        }
        if let Some(draft) = draft {
            audit::append(&mut tx, draft).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    async fn read_compensations(&self, select: &SelectStatement) -> Result<Vec<Compensation>, DbError> {
        self.db.fetch_all(&self.db.query(select)).await?.iter().map(compensation).collect()
    }
}

async fn first(tx: &mut Tx, select: &SelectStatement) -> Result<Option<Compensation>, DbError> {
    tx.fetch_optional(&tx.query(select)).await?.as_ref().map(compensation).transpose()
}

/// The stored outcome of one compensation.
pub(crate) async fn outcome(tx: &mut Tx, id: &str) -> Result<Option<Outcome>, DbError> {
    let select = compensations().and_where(Expr::col("id").eq(id)).to_owned();
    Ok(first(tx, &select).await?.and_then(|compensation| compensation.outcome))
}

pub(crate) fn by_id(id: &str) -> UpdateStatement {
    Query::update().table("compensations").and_where(Expr::col("id").eq(id)).to_owned()
}

fn command_ref(intent: &Compensation) -> String {
    reference(&[&intent.actor, &intent.command.key])
}

fn compensations() -> SelectStatement {
    Query::select()
        .columns(["id", "phase", "owner", "lease_until", "finished_at", "late_check_at", "intent", "outcome"])
        .from("compensations")
        .to_owned()
}

fn by_command(command_ref: &str) -> SelectStatement {
    compensations().and_where(Expr::col("command_ref").eq(command_ref)).to_owned()
}

/// A change that only the owner of an unfinished compensation makes.
fn owned(id: &str, owner: &str) -> UpdateStatement {
    by_id(id).and_where(Expr::col("owner").eq(owner)).and_where(Expr::col("finished_at").is_null()).to_owned()
}

fn late_check(id: &str, at: Option<i64>) -> UpdateStatement {
    by_id(id).value("late_check_at", at).to_owned()
}

fn insert(intent: &Compensation) -> Result<InsertStatement, DbError> {
    let record = record_ref(&intent.command.record);
    Ok(Query::insert()
        .into_table("compensations")
        .columns([
            "id",
            "command_ref",
            "open_ref",
            "record_ref",
            "actor",
            "reason",
            "phase",
            "owner",
            "lease_until",
            "started_at",
            "intent",
        ])
        .values_panic([
            intent.id.as_str().into(),
            command_ref(intent).into(),
            record.as_str().into(),
            record.as_str().into(),
            intent.actor.as_str().into(),
            intent.command.reason.trim().replace('\0', "\u{fffd}").into(),
            intent.phase.as_str().into(),
            intent.owner.as_str().into(),
            millis(intent.lease_until).into(),
            millis(intent.started_at).into(),
            to_json(intent)?.into(),
        ])
        .to_owned())
}

fn compensation(row: &Row) -> Result<Compensation, DbError> {
    let phase = Phase::parse(&row.text("phase")?)
        .ok_or_else(|| DbError::Decode("a stored phase is none of ours".into()))?;
    let outcome = row.opt_text("outcome")?.map(|text| from_json(&text)).transpose()?;
    Ok(Compensation {
        phase,
        owner: row.text("owner")?,
        lease_until: instant(row, "lease_until")?,
        finished_at: opt_instant(row, "finished_at")?,
        outcome,
        ..from_json(&row.text("intent")?)?
    })
}
