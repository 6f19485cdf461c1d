//! The shop's two databases.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use db::{Db, DbError, Options, Query};
use domain::clock::{Clock, from_millis, millis};

use super::clock_text;
use super::kind::SHOP;
use super::rows::{self, Row};

const SHOP_TABLES: [&str; 6] = [
    "CREATE TABLE IF NOT EXISTS t_order (order_no TEXT PRIMARY KEY, user_id INTEGER NOT NULL, amount TEXT NOT NULL,
        phone TEXT, status TEXT NOT NULL, deleted INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS t_payment (payment_no TEXT PRIMARY KEY, order_no TEXT NOT NULL,
        user_id INTEGER NOT NULL, amount TEXT NOT NULL, channel TEXT, card_no TEXT, status TEXT NOT NULL,
        created_at TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS t_refund (refund_no TEXT PRIMARY KEY, payment_no TEXT NOT NULL,
        user_id INTEGER NOT NULL, amount TEXT NOT NULL, reason TEXT, status TEXT NOT NULL, created_at TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS t_account_flow (flow_no TEXT PRIMARY KEY, biz_no TEXT NOT NULL,
        direction TEXT NOT NULL, amount TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS t_account_flow_biz_no ON t_account_flow (biz_no)",
    "CREATE TABLE IF NOT EXISTS demo_state (started_ms INTEGER NOT NULL, seed INTEGER NOT NULL,
        history_seeded INTEGER NOT NULL)",
];

const PROMO_TABLES: [&str; 1] =
    ["CREATE TABLE IF NOT EXISTS t_coupon (coupon_no TEXT PRIMARY KEY, user_id INTEGER NOT NULL,
        campaign TEXT NOT NULL, amount TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL)"];

/// Settled records and business rows older than this are removed, so that the demo can run for days.
const KEPT: TimeDelta = TimeDelta::hours(24);
const PURGE_EVERY: Duration = Duration::from_secs(600);

/// `shop.db` and `promo.db`.
#[derive(Clone)]
pub(super) struct Databases {
    pub shop: Db,
    pub promo: Db,
}

impl Databases {
    /// Opens both, making files and tables that are missing.
    pub(super) async fn open(folder: &Path) -> anyhow::Result<Databases> {
        let shop = open(folder, "shop.db", &SHOP_TABLES).await?;
        let promo = open(folder, "promo.db", &PROMO_TABLES).await?;
        Ok(Databases { shop, promo })
    }

    pub(super) async fn is_staged(&self) -> Result<bool, DbError> {
        Ok(self.shop.fetch_optional(&raw("SELECT 1 FROM demo_state")).await?.is_some())
    }

    /// Inserts the first rows, batch by batch. The mark goes in with the shop's own, last, so that an interrupted
    /// start begins anew.
    pub(super) async fn stage(
        &self,
        batches: impl Iterator<Item = Vec<Row>>,
        seed: u64,
        now: DateTime<Utc>,
    ) -> Result<(), DbError> {
        let mut promo = self.promo.begin().await?;
        let mut shop = self.shop.begin().await?;
        for table in ["t_coupon", guard::TABLE] {
            promo.execute(&raw(&format!("DELETE FROM {table}"))).await?;
        }
        for batch in batches {
            let (of_shop, of_promo) = batch.into_iter().partition(|row| row.source == SHOP);
            rows::insert(&mut shop, of_shop).await?;
            rows::insert(&mut promo, of_promo).await?;
        }
        let mark = "INSERT INTO demo_state (started_ms, seed, history_seeded) VALUES (?, ?, 0)";
        shop.execute(&Query::raw(mark, vec![millis(now).into(), seed.cast_signed().into()])).await?;
        promo.commit().await?;
        shop.commit().await
    }

    /// Seed and time of the first start, while its history is not handed over.
    pub(super) async fn unseeded_history(&self) -> Result<Option<(u64, DateTime<Utc>)>, DbError> {
        let query = raw("SELECT seed, started_ms FROM demo_state WHERE history_seeded = 0");
        let row = self.shop.fetch_optional(&query).await?;
        row.map(|row| Ok((row.i64(0)?.cast_unsigned(), from_millis(row.i64(1)?)))).transpose()
    }

    pub(super) async fn history_is_seeded(&self) -> Result<(), DbError> {
        self.shop.execute(&raw("UPDATE demo_state SET history_seeded = 1")).await.map(drop)
    }

    /// Records without an end, in the shop's own table.
    pub(super) async fn open_records(&self) -> Result<i64, DbError> {
        let count = "SELECT COUNT(*) FROM idempotent_record WHERE status = 'PROCESSING'";
        self.shop.fetch_optional(&raw(count)).await?.map_or(Ok(0), |row| row.i64(0))
    }

    async fn purge(&self, now: DateTime<Utc>) -> Result<(), DbError> {
        let before = || vec![clock_text::text(now - KEPT).into()];
        let records = "DELETE FROM idempotent_record WHERE status <> 'PROCESSING' AND create_time < ?";
        for db in [&self.shop, &self.promo] {
            db.execute(&Query::raw(records, before())).await?;
        }
        for table in ["t_order", "t_payment", "t_refund", "t_account_flow"] {
            // The evidence of a record that is still open stays as long as the record.
            let sql = format!(
                "DELETE FROM {table} WHERE created_at < ? AND NOT EXISTS (SELECT 1 FROM idempotent_record
                    WHERE status = 'PROCESSING' AND create_time <= {table}.created_at AND biz_no = {table}.{})",
                number_column(table)
            );
            self.shop.execute(&Query::raw(sql, before())).await?;
        }
        self.promo.execute(&Query::raw("DELETE FROM t_coupon WHERE created_at < ?", before())).await.map(drop)
    }
}

fn number_column(table: &str) -> &'static str {
    match table {
        "t_order" => "order_no",
        "t_payment" => "payment_no",
        "t_refund" => "refund_no",
        _ => "biz_no",
    }
}

/// Removes what is old, now and then, for ever.
pub(super) async fn keep_purging(databases: Databases, clock: Arc<dyn Clock>) {
    loop {
        if let Err(error) = databases.purge(clock.now()).await {
            tracing::warn!(%error, "the demo's old records could not be removed");
        }
        tokio::time::sleep(PURGE_EVERY).await;
    }
}

async fn open(folder: &Path, file: &str, tables: &[&str]) -> anyhow::Result<Db> {
    let path = folder.join(file);
    let doing = || format!("the demo's database {} cannot be used", path.display());
    let db =
        Db::connect(&format!("sqlite://{}", path.display()), &Options::own()).await.with_context(doing)?;
    guard::schema::create(&db).await.with_context(doing)?;
    for table in tables {
        db.execute(&raw(table)).await.with_context(doing)?;
    }
    Ok(db)
}

fn raw(sql: &str) -> Query {
    Query::raw(sql, vec![])
}
