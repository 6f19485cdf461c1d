//! The store's promises, on every database.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod alerts;
mod audit;
mod caches;
mod compensations;
mod evidence;
mod rates;
mod sessions;
mod users;

use chrono::{DateTime, TimeDelta, Utc};
use db::testkit::{TestDb, each_database};
use domain::audit::Draft;
use domain::record::{RecordId, RecordRow, State, Version};
use store::{Store, migrate};

/// A fresh, migrated store on each database at hand.
async fn stores() -> Vec<(Store, TestDb)> {
    let mut stores = Vec::new();
    for test in each_database().await {
        migrate(&test.db).await.unwrap();
        stores.push((Store::new(test.db.clone(), 7), test));
    }
    stores
}

/// The same store as another process sees it.
async fn again(test: &TestDb, seed: u64) -> Store {
    Store::new(test.reopen().await, seed)
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::seconds(seconds)
}

fn draft(action: &str) -> Draft {
    Draft::new(at(0), "op", action)
}

fn record(key: &str) -> RecordId {
    RecordId::new("orders", vec![key.to_owned()])
}

fn row(key: &str, state: State) -> RecordRow {
    RecordRow {
        id: record(key),
        source: "orders".into(),
        key: key.into(),
        biz_type: Some("ORDER".into()),
        biz_no: Some("O-1".into()),
        state,
        native_state: Some(state.as_str().into()),
        created_at: Some(at(-700)),
        updated_at: None,
        age_seconds: Some(700),
        stuck_after_seconds: 600,
        stuck: true,
        lease_until: None,
        attempts: Some(2),
        version: Version::new(state, "7"),
        verdict: None,
        verdict_at: None,
    }
}
