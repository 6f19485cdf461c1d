//! Counters per minute, and samples of how much was stuck.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use db::{DbError, Dialect, Row, Tx};
use domain::clock::millis;
use domain::ports::RateStore;
use domain::rates::{BizTypeSeries, Bucket, Count, Happening, RateScope, Report, Span, StuckSample, Totals};
use sea_query::{Condition, Expr, ExprTrait, OnConflict, Order, Query, SelectStatement};

use crate::codec::{amount, minute_of, minute_start};
use crate::{Store, retrying};

/// Rows per insert: well below every database's limit on parameters.
const ROWS_PER_INSERT: usize = 500;

#[async_trait]
impl RateStore for Store {
    async fn report(&self, report: &Report) -> domain::Result<bool> {
        retrying!(self, self.report_once(report).await)
    }

    async fn series(&self, scope: &RateScope, span: Span) -> domain::Result<Vec<Bucket>> {
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&series(scope, span))).await)?;
        let mut buckets: BTreeMap<i64, Totals> = BTreeMap::new();
        for row in &rows {
            let (minute, outcome, happened) = point(row).map_err(crate::told)?;
            buckets.entry(minute).or_default().add(totals(outcome, happened));
        }
        Ok(as_buckets(buckets))
    }

    async fn by_biz_type(
        &self,
        scope: &RateScope,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
    ) -> domain::Result<Vec<(String, String, Totals)>> {
        let select = Query::select()
            .columns(["source", "biz_type", "outcome"])
            .expr_as(Expr::col("happened").sum(), "happened")
            .from("rate_counts")
            .cond_where(within(scope, from, to))
            .group_by_columns(["source", "biz_type", "outcome"])
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let mut all: BTreeMap<(String, String), Totals> = BTreeMap::new();
        for row in &rows {
            let (names, part) = named(row).map_err(crate::told)?;
            all.entry(names).or_default().add(part);
        }
        Ok(all.into_iter().map(|((source, biz_type), totals)| (source, biz_type, totals)).collect())
    }

    async fn series_by_biz_type(&self, scope: &RateScope, span: Span) -> domain::Result<Vec<BizTypeSeries>> {
        let select = series(scope, span)
            .columns(["source", "biz_type"])
            .group_by_columns(["source", "biz_type"])
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let mut all: BTreeMap<(String, String), BTreeMap<i64, Totals>> = BTreeMap::new();
        for row in &rows {
            let (minute, outcome, happened) = point(row).map_err(crate::told)?;
            let names = named(row).map_err(crate::told)?.0;
            all.entry(names).or_default().entry(minute).or_default().add(totals(outcome, happened));
        }
        let series = all.into_iter().map(|((source, biz_type), buckets)| BizTypeSeries {
            source,
            biz_type,
            buckets: as_buckets(buckets),
        });
        Ok(series.collect())
    }

    async fn sample_stuck(&self, samples: &[StuckSample]) -> domain::Result<()> {
        retrying!(self, self.sample_once(samples).await)
    }

    async fn stuck_series(
        &self,
        scope: &RateScope,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
    ) -> domain::Result<Vec<(DateTime<Utc>, u64, u64)>> {
        let select = Query::select()
            .column("minute_no")
            .expr_as(Expr::col("stuck").sum(), "stuck")
            .expr_as(Expr::col("oldest_seconds").max(), "oldest")
            .from("stuck_samples")
            .cond_where(within(scope, from, to))
            .group_by_col("minute_no")
            .order_by("minute_no", Order::Asc)
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let sample = |row: &Row| {
            Ok((minute_start(row.i64("minute_no")?), amount(row, "stuck")?, amount(row, "oldest")?))
        };
        rows.iter().map(sample).collect::<Result<_, DbError>>().map_err(crate::told)
    }

    async fn biz_types(&self) -> domain::Result<Vec<(String, String)>> {
        let select = Query::select()
            .columns(["source", "biz_type"])
            .from("rate_biz_types")
            .order_by("source", Order::Asc)
            .order_by("biz_type", Order::Asc)
            .to_owned();
        let rows = retrying!(self, self.db.fetch_all(&self.db.query(&select)).await)?;
        let pair = |row: &Row| Ok((row.text("source")?, row.text("biz_type")?));
        rows.iter().map(pair).collect::<Result<_, DbError>>().map_err(crate::told)
    }
}

impl Store {
    async fn report_once(&self, report: &Report) -> Result<bool, DbError> {
        let mut tx = self.db.begin().await?;
        let seen = Query::insert()
            .into_table("rate_reports")
            .columns(["producer", "sequence_no"])
            .values_panic([report.producer.as_str().into(), report.sequence.into()])
            .to_owned();
        if !tx.insert_if_absent(&seen).await? {
            return Ok(false);
        }
        add_counts(&mut tx, &report.counts).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn sample_once(&self, samples: &[StuckSample]) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        let replaced: BTreeSet<(i64, &str)> =
            samples.iter().map(|sample| (minute_of(sample.at), sample.source.as_str())).collect();
        for (minute, source) in replaced {
            let delete = Query::delete()
                .from_table("stuck_samples")
                .and_where(Expr::col("minute_no").eq(minute))
                .and_where(Expr::col("source").eq(source))
                .to_owned();
            tx.execute(&tx.query(&delete)).await?;
        }
        for chunk in samples.chunks(ROWS_PER_INSERT) {
            tx.execute(&tx.query(&insert_samples(chunk))).await?;
        }
        tx.commit().await
    }
}

/// Adds counts, in one order for all reporters, so that they queue instead of deadlocking.
pub(crate) async fn add_counts(tx: &mut Tx, reported: &[Count]) -> Result<(), DbError> {
    let mut counts: BTreeMap<(i64, &str, &str, Happening), i64> = BTreeMap::new();
    let mut biz_types: BTreeSet<(&str, &str)> = BTreeSet::new();
    for count in reported {
        let key = (minute_of(count.at), count.source.as_str(), count.biz_type.as_str(), count.outcome);
        *counts.entry(key).or_default() += i64::from(count.count);
        biz_types.insert((&count.source, &count.biz_type));
    }
    let rows: Vec<_> = counts.into_iter().collect();
    for chunk in rows.chunks(ROWS_PER_INSERT) {
        let mut insert = Query::insert()
            .into_table("rate_counts")
            .columns(["minute_no", "source", "biz_type", "outcome", "happened"])
            .on_conflict(adding(tx.dialect()))
            .to_owned();
        for ((minute, source, biz_type, outcome), happened) in chunk {
            insert.values_panic([
                (*minute).into(),
                (*source).into(),
                (*biz_type).into(),
                outcome.as_str().into(),
                (*happened).into(),
            ]);
        }
        tx.execute(&tx.query(&insert)).await?;
    }
    for (source, biz_type) in biz_types {
        let known = Query::insert()
            .into_table("rate_biz_types")
            .columns(["source", "biz_type"])
            .values_panic([source.into(), biz_type.into()])
            .to_owned();
        tx.insert_if_absent(&known).await?;
    }
    Ok(())
}

/// On a row that is there already, adds the new count to it.
fn adding(dialect: Dialect) -> OnConflict {
    let arriving = match dialect {
        Dialect::Mysql => "rate_counts.happened + VALUES(happened)",
        Dialect::Sqlite | Dialect::Postgres => "rate_counts.happened + excluded.happened",
    };
    OnConflict::columns(["minute_no", "source", "biz_type", "outcome"])
        .value("happened", Expr::cust(arriving))
        .to_owned()
}

/// A sample that another process took of the same minute meanwhile is replaced.
fn insert_samples(samples: &[StuckSample]) -> sea_query::InsertStatement {
    let mut insert = Query::insert()
        .into_table("stuck_samples")
        .columns(["minute_no", "source", "biz_type", "stuck", "oldest_seconds"])
        .on_conflict(
            OnConflict::columns(["minute_no", "source", "biz_type"])
                .update_columns(["stuck", "oldest_seconds"])
                .to_owned(),
        )
        .to_owned();
    for sample in samples {
        insert.values_panic([
            minute_of(sample.at).into(),
            sample.source.as_str().into(),
            sample.biz_type.as_str().into(),
            i64::try_from(sample.stuck).unwrap_or(i64::MAX).into(),
            i64::try_from(sample.oldest_seconds).unwrap_or(i64::MAX).into(),
        ]);
    }
    insert
}

fn series(scope: &RateScope, span: Span) -> SelectStatement {
    let since_start = Expr::col("minute_no").sub(minute_of(span.from));
    let step = Expr::col("minute_no").sub(since_start.modulo(i64::from(span.step_minutes)));
    Query::select()
        .expr_as(step, "step_start")
        .column("outcome")
        .expr_as(Expr::col("happened").sum(), "happened")
        .from("rate_counts")
        .cond_where(within(scope, span.from, span.to))
        .group_by_columns(["step_start", "outcome"])
        .to_owned()
}

/// Whole minutes from `from` to `to`, of the scope.
fn within(scope: &RateScope, from: DateTime<Utc>, to: DateTime<Utc>) -> Condition {
    let end = millis(to).div_euclid(60_000) + i64::from(millis(to).rem_euclid(60_000) > 0);
    Condition::all()
        .add(Expr::col("minute_no").gte(minute_of(from)))
        .add(Expr::col("minute_no").lt(end))
        .add_option(scope.source.as_ref().map(|source| Expr::col("source").eq(source.as_str())))
        .add_option(scope.biz_type.as_ref().map(|biz_type| Expr::col("biz_type").eq(biz_type.as_str())))
}

fn as_buckets(minutes: BTreeMap<i64, Totals>) -> Vec<Bucket> {
    minutes.into_iter().map(|(minute, totals)| Bucket { at: minute_start(minute), totals }).collect()
}

fn point(row: &Row) -> Result<(i64, Happening, u64), DbError> {
    Ok((row.i64("step_start")?, outcome(row)?, amount(row, "happened")?))
}

fn named(row: &Row) -> Result<((String, String), Totals), DbError> {
    let names = (row.text("source")?, row.text("biz_type")?);
    Ok((names, totals(outcome(row)?, amount(row, "happened")?)))
}

fn outcome(row: &Row) -> Result<Happening, DbError> {
    Happening::parse(&row.text("outcome")?)
        .ok_or_else(|| DbError::Decode("a stored outcome is none of ours".into()))
}

fn totals(outcome: Happening, happened: u64) -> Totals {
    match outcome {
        Happening::Executed => Totals { executed: happened, ..Totals::default() },
        Happening::Hit => Totals { hit: happened, ..Totals::default() },
        _ => Totals { anomaly: happened, ..Totals::default() },
    }
}
