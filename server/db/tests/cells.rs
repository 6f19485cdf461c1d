//! Awkward columns: one bad cell spoils itself and nothing else.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use chrono::{TimeZone, Utc};
use db::testkit::{TestDb, each_database};
use db::{Cell, Dialect, Query, Row, TimeKind};

async fn only_on(dialect: Dialect) -> Option<TestDb> {
    each_database().await.into_iter().find(|test| test.db.dialect() == dialect)
}

async fn row(test: &TestDb, sql: &str) -> Row {
    test.db.fetch_optional(&Query::raw(sql, vec![])).await.unwrap().unwrap()
}

fn unreadable(row: &Row, column: &str) -> bool {
    matches!(row.cell(column).unwrap(), Cell::Unreadable { .. })
}

fn text(s: &str) -> Cell {
    Cell::Text(s.into())
}

#[tokio::test]
async fn sqlite_values_are_read_by_what_they_are_not_by_declaration() {
    let Some(test) = only_on(Dialect::Sqlite).await else { return };
    test.run(&[
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, d DATETIME, b BOOLEAN, x BLOB, m DECIMAL(10,2))",
        "INSERT INTO t VALUES (1, 'not a number', 1760000000000, 'yes', x'ff00', '12.50')",
        "INSERT INTO t VALUES (2, 7, '2026-01-02 03:04:05', 1, 'text', NULL)",
    ])
    .await;
    let first = row(&test, "SELECT * FROM t WHERE id = 1").await;
    assert_eq!(first.cell("n").unwrap(), &text("not a number"));
    assert_eq!(first.i64("d").unwrap(), 1_760_000_000_000);
    assert_eq!(first.timestamp("d", TimeKind::EpochMillis).unwrap().timestamp(), 1_760_000_000);
    assert_eq!(first.cell("b").unwrap(), &text("yes"));
    assert_eq!(first.bytes("x").unwrap(), [0xff, 0]);
    let second = row(&test, "SELECT *, CAST(x'ff' AS TEXT) AS broken FROM t WHERE id = 2").await;
    assert_eq!(second.i64("n").unwrap(), 7);
    assert!(second.bool("b").unwrap());
    assert_eq!(second.opt_text("m").unwrap(), None);
    assert_eq!(second.cell("broken").unwrap(), &Cell::Bytes(vec![0xff]));
    let zone = TimeKind::Calendar(chrono_tz::Asia::Shanghai);
    assert_eq!(second.timestamp("d", zone).unwrap(), Utc.with_ymd_and_hms(2026, 1, 1, 19, 4, 5).unwrap());
}

#[tokio::test]
async fn postgres_types_are_read_or_named_unreadable() {
    let Some(test) = only_on(Dialect::Postgres).await else { return };
    test.run(&[
        "CREATE TYPE state AS ENUM ('PROCESSING', 'DONE')",
        "CREATE DOMAIN money_amount AS NUMERIC(12,2)",
        "CREATE TABLE t (s state, a money_amount, u UUID, j JSONB, j0 JSON, l TEXT[], n INT[], at TIMESTAMPTZ, wall TIMESTAMP,
         far TIMESTAMPTZ, day DATE, tod TIME, raw BYTEA, flag BOOLEAN, code CHAR(4), small SMALLINT, real4 REAL, ip INET,
         span INTERVAL, place POINT, nothing TEXT, big NUMERIC)",
        "INSERT INTO t VALUES ('PROCESSING', 12.50, '6f1c2b1e-0000-4000-8000-00000000abcd', '{\"a\": 1.10}', '{ }',
         '{x,NULL,\"y z\"}', '{1,2}', '2026-01-02 03:04:05.678+08', '2026-01-02 03:04:05', 'infinity', '2026-01-02',
         '03:04:05', '\\xff00', true, 'ab', -3, 0.1, '10.0.0.1', '1 day', '(1,2)', NULL, 'NaN')",
    ])
    .await;
    let row = row(&test, "SELECT * FROM t").await;
    assert_eq!(row.cell("s").unwrap(), &text("PROCESSING"));
    assert_eq!(row.cell("a").unwrap(), &Cell::Decimal("12.50".into()));
    assert_eq!(row.cell("u").unwrap(), &Cell::Uuid("6f1c2b1e-0000-4000-8000-00000000abcd".into()));
    assert_eq!(row.cell("j").unwrap(), &Cell::Json("{\"a\": 1.10}".into()));
    assert_eq!(row.text("j0").unwrap(), "{ }");
    assert_eq!(row.text("l").unwrap(), "[\"x\",null,\"y z\"]");
    assert_eq!(row.json("n").unwrap(), serde_json::json!([1, 2]));
    let zone = TimeKind::Calendar(chrono_tz::Asia::Shanghai);
    assert_eq!(row.timestamp("at", zone).unwrap().to_rfc3339(), "2026-01-01T19:04:05.678+00:00");
    assert_eq!(row.timestamp("wall", zone).unwrap().to_rfc3339(), "2026-01-01T19:04:05+00:00");
    assert_eq!(row.cell("day").unwrap(), &text("2026-01-02"));
    assert_eq!(row.cell("tod").unwrap(), &text("03:04:05"));
    assert_eq!(row.bytes("raw").unwrap(), [0xff, 0]);
    assert!(row.bool("flag").unwrap());
    assert_eq!(row.text("code").unwrap(), "ab");
    assert_eq!(row.i64("small").unwrap(), -3);
    assert_eq!(row.cell("real4").unwrap(), &Cell::Float(0.1));
    assert_eq!(row.opt_text("nothing").unwrap(), None);
    assert_eq!(row.cell("big").unwrap(), &text("NaN"));
    for column in ["far", "ip", "span", "place"] {
        assert!(unreadable(&row, column), "{column}");
    }
}

#[tokio::test]
async fn mysql_types_are_read_or_named_unreadable() {
    let Some(test) = only_on(Dialect::Mysql).await else { return };
    test.run(&[
        "CREATE TABLE t (k VARCHAR(40) COLLATE utf8mb4_bin, tiny TINYINT(1), utiny TINYINT UNSIGNED, one BIT(1), many BIT(12),
         big BIGINT UNSIGNED, amount DECIMAL(12,2), e ENUM('A','B'), s SET('x','y'), doc JSON, at TIMESTAMP(3) NULL,
         wall DATETIME(3), zero DATETIME, half DATE, day DATE, tod TIME, yr YEAR, raw VARBINARY(8), id16 BINARY(4),
         long_text LONGTEXT COLLATE utf8mb4_bin, f FLOAT, place POINT, nothing INT)",
    ])
    .await;
    let mut tx = test.db.begin().await.unwrap();
    for sql in [
        "SET SESSION sql_mode = ''",
        "INSERT INTO t VALUES ('键', 2, 255, 1, 2049, 18446744073709551615, 12.50, 'B', 'x,y', '{\"a\": 1.10}',
         '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.678', '0000-00-00', '2026-00-10', '2026-01-02', '-25:00:01', 2026,
         x'ff00', 'abcd', 'body', 0.1, POINT(1, 2), NULL)",
        "SET SESSION sql_mode = DEFAULT",
    ] {
        tx.execute(&Query::raw(sql, vec![])).await.unwrap();
    }
    tx.commit().await.unwrap();
    let row = row(&test, "SELECT * FROM t").await;
    assert_eq!(row.cell("k").unwrap(), &text("键"));
    assert_eq!(row.i64("tiny").unwrap(), 2);
    assert_eq!(row.i64("utiny").unwrap(), 255);
    assert!(row.bool("one").unwrap());
    assert_eq!(row.i64("many").unwrap(), 2049);
    assert_eq!(row.cell("big").unwrap(), &Cell::UInt(u64::MAX));
    assert_eq!(row.cell("amount").unwrap(), &Cell::Decimal("12.50".into()));
    assert_eq!(row.cell("e").unwrap(), &text("B"));
    assert_eq!(row.text("s").unwrap(), "x,y");
    assert_eq!(row.text("doc").unwrap(), "{\"a\": 1.10}");
    let zone = TimeKind::Calendar(chrono_tz::Asia::Shanghai);
    assert_eq!(row.timestamp("at", zone).unwrap().to_rfc3339(), "2026-01-02T03:04:05.678+00:00");
    assert_eq!(row.timestamp("wall", zone).unwrap().to_rfc3339(), "2026-01-01T19:04:05.678+00:00");
    assert_eq!(row.cell("day").unwrap(), &text("2026-01-02"));
    assert_eq!(row.text("tod").unwrap(), "-25:00:01");
    assert_eq!(row.i64("yr").unwrap(), 2026);
    assert_eq!(row.cell("raw").unwrap(), &Cell::Bytes(vec![0xff, 0]));
    assert_eq!(row.cell("id16").unwrap(), &Cell::Bytes(b"abcd".to_vec()));
    assert_eq!(row.cell("long_text").unwrap(), &text("body"));
    assert_eq!(row.cell("f").unwrap(), &Cell::Float(0.1));
    assert!(row.cell("nothing").unwrap().is_null());
    for column in ["zero", "half", "place"] {
        assert!(unreadable(&row, column), "{column}: {:?}", row.cell(column));
    }
}

#[tokio::test]
async fn sums_and_counts_are_whole_numbers_everywhere() {
    for test in &each_database().await {
        test.run(&["CREATE TABLE n (v BIGINT)", "INSERT INTO n VALUES (1), (2)"]).await;
        let row = row(test, "SELECT SUM(v) AS s, COUNT(*) AS c, MAX(v) AS m FROM n").await;
        assert_eq!((row.i64("s").unwrap(), row.i64("c").unwrap(), row.i64("m").unwrap()), (3, 2, 2));
    }
}
