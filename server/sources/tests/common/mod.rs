//! Tables as customers have them, on every database at hand, with a source attached to each.

#![allow(clippy::unwrap_used, dead_code, reason = "a failed step fails the test; each test file uses a part")]

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use db::testkit::{TestDb, each_database};
use db::{Dialect, Query, Value};
use domain::clock::Clock;
use domain::ports::Source;
use domain::record::{RecordDetail, RecordFilter, RecordId, RecordRow};
use sources::{Attached, HttpSettings, SourceConfig};
use std::sync::Arc;

/// A clock that stands an hour off the databases', so that nothing here can lean on it.
pub struct WrongClock;

impl Clock for WrongClock {
    fn now(&self) -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2001, 2, 3, 4, 5, 6).unwrap()
    }
}

/// The eight columns of the native table, times without zone, kept in Shanghai time.
pub const MINIMAL: &str = "zone = \"Asia/Shanghai\"\n";

/// With lease, version and the rest; times in UTC.
pub const EXTENDED: &str = "[columns]\nlease_until = \"lease_until\"\nversion = \"fence\"\nattempts = \"attempts\"\nphase = \"phase\"\nowner = \"owner\"\nresponse_status = \"response_status\"\n";

pub const ORDER: &str = r#"
[[biz]]
type = "ORDER"
[biz.reverse_check]
sql = "SELECT order_no, status, amount, deleted FROM t_order WHERE order_no = :biz_no"
found_when = { status = ["PAID", "CREATED"] }
deleted_when = { deleted = [1] }
compare = { amount = "/amount" }
[biz.response]
template = '{"code":0,"orderNo":"{order_no}","amount":"{amount}"}'
[biz.replay]
url = "http://127.0.0.1:1/"
"#;

pub const ORDERS: &str =
    "CREATE TABLE t_order (order_no VARCHAR(64), status VARCHAR(16), amount DECIMAL(20,2), deleted INT)";

/// One table of its kind; tables of one database share it and differ in their names.
pub struct Table {
    pub test: Arc<TestDb>,
    pub source: Attached,
    /// The database's clock when the table was made.
    pub now: DateTime<Utc>,
    offset: TimeDelta,
    /// Behind the names of the tables in every statement.
    suffix: &'static str,
}

/// One record to insert; what is not named is usual.
#[derive(Clone)]
pub struct Rec<'a> {
    pub key: &'a str,
    pub biz_type: Option<&'a str>,
    pub biz_no: Option<&'a str>,
    pub status: Option<&'a str>,
    pub request: Option<&'a str>,
    /// Milliseconds before `Table::now`; `None` = NULL times.
    pub age_ms: Option<i64>,
    pub lease_ms: Option<i64>,
}

pub fn rec(key: &str, age_ms: i64) -> Rec<'_> {
    Rec {
        key,
        biz_type: Some("ORDER"),
        biz_no: Some("N1"),
        status: Some("PROCESSING"),
        request: Some(r#"{"amount":128.00,"card_no":"6222021234567894"}"#),
        age_ms: Some(age_ms),
        lease_ms: None,
    }
}

/// The native table on every database, with a source of this configuration and business type.
pub async fn tables(config: &str, biz: &str) -> Vec<Table> {
    let mut all = Vec::new();
    for test in each_database().await {
        all.push(make(Arc::new(test), config, biz, "").await);
    }
    all
}

/// The minimal and the extended native table on every database.
pub async fn both(biz: &str) -> Vec<Table> {
    let mut all = Vec::new();
    for test in each_database().await {
        let test = Arc::new(test);
        all.push(make(Arc::clone(&test), MINIMAL, biz, "").await);
        all.push(make(test, EXTENDED, biz, "_x").await);
    }
    all
}

async fn make(test: Arc<TestDb>, config: &str, biz: &str, suffix: &'static str) -> Table {
    let ddl = ddl(test.db.dialect(), config == EXTENDED);
    test.run(&[&suffixed(&ddl, suffix), &suffixed(ORDERS, suffix)]).await;
    let config = format!("table = \"idempotent_record{suffix}\"\n{config}");
    let table = attach(test, &config, &suffixed(biz, suffix)).await;
    Table { suffix, ..table }
}

fn suffixed(sql: &str, suffix: &str) -> String {
    ["idempotent_record", "t_order"]
        .iter()
        .fold(sql.to_owned(), |sql, name| sql.replace(name, &format!("{name}{suffix}")))
}

pub async fn attach(test: impl Into<Arc<TestDb>>, config: &str, biz: &str) -> Table {
    let test = test.into();
    let now = test.db.now().await.unwrap();
    let source = open(&test.url, config, biz);
    let hours = if config.contains("Shanghai") { 8 } else { 0 };
    Table { test, source, now, offset: TimeDelta::hours(hours), suffix: "" }
}

pub fn open(url: &str, config: &str, biz: &str) -> Attached {
    Attached::open(parse(url, config, biz), &HttpSettings::default(), Arc::new(WrongClock)).unwrap()
}

pub fn parse(url: &str, config: &str, biz: &str) -> SourceConfig {
    toml::from_str(&format!("name = \"orders\"\nurl = \"{url}\"\n{config}{biz}")).unwrap()
}

fn ddl(dialect: Dialect, extended: bool) -> String {
    let (key, text, time) = match (dialect, extended) {
        (Dialect::Sqlite, _) => ("VARCHAR(255)", "TEXT", "DATETIME"),
        (Dialect::Postgres, false) => ("VARCHAR(255)", "TEXT", "TIMESTAMP"),
        (Dialect::Postgres, true) => ("VARCHAR(255)", "TEXT", "TIMESTAMPTZ(3)"),
        (Dialect::Mysql, false) => ("VARCHAR(255) COLLATE utf8mb4_bin", "MEDIUMTEXT", "DATETIME"),
        (Dialect::Mysql, true) => ("VARCHAR(255) COLLATE utf8mb4_bin", "MEDIUMTEXT", "DATETIME(3)"),
    };
    let more = match extended {
        true => format!(
            ", fence BIGINT NOT NULL DEFAULT 1, lease_until {time}, attempts INT DEFAULT 1, phase VARCHAR(32), owner VARCHAR(64), response_status INT"
        ),
        false => String::new(),
    };
    format!(
        "CREATE TABLE idempotent_record (idempotent_id {key} UNIQUE, biz_type VARCHAR(64), biz_no {key}, \
         status VARCHAR(16), request_body {text}, response_body {text}, create_time {time}, update_time {time}{more})"
    )
}

impl Table {
    pub fn dialect(&self) -> Dialect {
        self.test.db.dialect()
    }

    /// A time before `now` as this table keeps it.
    fn time(&self, age_ms: Option<i64>) -> Value {
        let at = age_ms.map(|age| self.now + self.offset - TimeDelta::milliseconds(age));
        at.map(|at| at.format("%Y-%m-%d %H:%M:%S%.3f").to_string()).into()
    }

    fn slot(&self) -> &'static str {
        match self.dialect() {
            Dialect::Postgres => "CAST(CAST(? AS TEXT) AS TIMESTAMP)",
            _ => "?",
        }
    }

    pub async fn put(&self, rec: &Rec<'_>) {
        let lease = rec.lease_ms.is_some();
        let slot = self.slot();
        let sql = format!(
            "INSERT INTO idempotent_record (idempotent_id, biz_type, biz_no, status, request_body, create_time, update_time{}) \
             VALUES (?, ?, ?, ?, ?, {slot}, {slot}{})",
            if lease { ", lease_until" } else { "" },
            if lease { format!(", {slot}") } else { String::new() }
        );
        let text = |value: Option<&str>| Value::from(value.map(str::to_owned));
        let mut values = vec![
            rec.key.into(),
            text(rec.biz_type),
            text(rec.biz_no),
            text(rec.status),
            text(rec.request),
            self.time(rec.age_ms),
            self.time(rec.age_ms),
        ];
        if lease {
            values.push(self.time(rec.lease_ms));
        }
        self.test.db.execute(&Query::raw(suffixed(&sql, self.suffix), values)).await.unwrap();
    }

    pub async fn run(&self, sql: &str) {
        self.test.run(&[&suffixed(sql, self.suffix)]).await;
    }

    pub async fn get(&self, key: &str) -> RecordDetail {
        self.source.get(&id(key)).await.unwrap()
    }

    pub async fn list(&self, filter: &RecordFilter) -> Vec<RecordRow> {
        self.source.list(filter, None, 200).await.unwrap_or_else(|e| panic!("{}: {e}", self.dialect()))
    }

    pub async fn keys(&self, filter: &RecordFilter) -> Vec<String> {
        self.list(filter).await.into_iter().map(|row| row.key).collect()
    }

    /// One text cell of the table itself.
    pub async fn cell(&self, key: &str, column: &str) -> Option<String> {
        let sql = format!("SELECT {column} FROM idempotent_record WHERE idempotent_id = ?");
        let sql = suffixed(&sql, self.suffix);
        let row = self.test.db.fetch_optional(&Query::raw(sql, vec![key.into()])).await.unwrap().unwrap();
        row.opt_text(0).unwrap()
    }
}

/// A time limit that no change reaches.
pub fn far() -> DateTime<Utc> {
    DateTime::<Utc>::MAX_UTC
}

pub fn id(key: &str) -> RecordId {
    RecordId::new("orders", vec![key.to_owned()])
}
