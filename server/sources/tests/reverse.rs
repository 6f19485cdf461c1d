//! Reverse checks on every database.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{MINIMAL, ORDER, Rec, Table, open, rec, tables};
use db::{Dialect, Query};
use domain::evidence::{Finding, Reason, Verdict};
use domain::ports::Source;

async fn finding(table: &Table) -> Finding {
    table.source.reverse_check(&table.get("k").await).await
}

async fn with_record(biz: &str) -> Vec<Table> {
    let all = tables(MINIMAL, biz).await;
    for table in &all {
        table.put(&rec("k", 3_600_000)).await;
    }
    all
}

#[tokio::test]
async fn every_verdict_comes_from_the_business_rows() {
    for table in with_record(ORDER).await {
        for (row, verdict) in [
            (None, Verdict::Absent),
            (Some("('N1', 'PAID', 128.00, 0)"), Verdict::Found),
            (Some("('N1', 'PAID', 127.99, 0)"), Verdict::Mismatch),
            (Some("('N1', 'CLOSED', 128.00, 0)"), Verdict::Mismatch),
            (Some("('N1', 'PAID', 128.00, 1)"), Verdict::Mismatch),
            (Some("('N1', 'PAID', NULL, 0)"), Verdict::Mismatch),
            (Some("('N1', 'PAID', 128.00, 0), ('N1', 'PAID', 128.00, 0)"), Verdict::Mismatch),
            (Some("('N2', 'PAID', 128.00, 0)"), Verdict::Absent),
        ] {
            table.run("DELETE FROM t_order").await;
            if let Some(row) = row {
                table.run(&format!("INSERT INTO t_order VALUES {row}")).await;
            }
            let finding = finding(&table).await;
            assert_eq!(finding.verdict, verdict, "{} {row:?} {}", table.dialect(), finding.explanation());
        }
    }
}

#[tokio::test]
async fn c67_a_number_with_leading_zeros_finds_only_itself() {
    for table in tables(MINIMAL, &ORDER.replace("compare = { amount = \"/amount\" }", "")).await {
        table.run("INSERT INTO t_order VALUES ('12', 'PAID', 1, 0), ('12abc', 'PAID', 2, 0), ('0012', 'PAID', 3, 0)").await;
        for (key, amount) in [("0012", "3"), ("12", "1"), ("12abc", "2")] {
            table.put(&Rec { biz_no: Some(key), ..rec(key, 3_600_000) }).await;
            let finding = table.source.reverse_check(&table.get(key).await).await;
            assert_eq!(finding.verdict, Verdict::Found, "{} {key}", table.dialect());
            assert!(finding.rows[0].rows[0][2].as_deref().unwrap().starts_with(amount));
        }
    }
}

#[tokio::test]
async fn c69_soft_deleted_is_said_so_however_it_is_marked() {
    for (column, config, live, dead) in [
        ("bit", "{ gone = [true] }", "0", "1"),
        ("int", "{ gone = 1 }", "0", "1"),
        ("time", "{ gone = { not_null = true } }", "NULL", "'2026-01-01 00:00:00'"),
    ] {
        let biz = format!(
            "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nsql = \"SELECT gone FROM t_soft WHERE no = :biz_no\"\ndeleted_when = {config}\n"
        );
        for table in with_record(&biz).await {
            let (kind, live, dead) = match (column, table.dialect()) {
                ("bit", Dialect::Mysql) => ("BIT(1)", "b'0'", "b'1'"),
                ("bit", Dialect::Postgres) => ("BOOLEAN", "FALSE", "TRUE"),
                ("time", Dialect::Mysql) => ("DATETIME", live, dead),
                ("time", _) => ("TIMESTAMP", live, dead),
                _ => ("SMALLINT", live, dead),
            };
            table.run(&format!("CREATE TABLE t_soft (no VARCHAR(64), gone {kind})")).await;
            for (value, verdict) in [(live, Verdict::Found), (dead, Verdict::Mismatch)] {
                table.run("DELETE FROM t_soft").await;
                table.run(&format!("INSERT INTO t_soft VALUES ('N1', {value})")).await;
                let finding = finding(&table).await;
                assert_eq!(
                    finding.verdict,
                    verdict,
                    "{} {column} {}",
                    table.dialect(),
                    finding.explanation()
                );
                let said = finding.reasons.iter().any(|reason| matches!(reason, Reason::SoftDeleted { .. }));
                assert_eq!(said, verdict == Verdict::Mismatch);
            }
        }
    }
}

#[tokio::test]
async fn c70_numbers_beyond_2_to_the_53_are_compared_digit_by_digit() {
    const BIZ: &str = "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nsql = 'SELECT uid, fee FROM t_big WHERE no = :\"/no\"'\ncompare = { uid = \"/uid\", fee = \"/fee\" }\n";
    for table in tables(MINIMAL, BIZ).await {
        let request = r#"{"no":"00N","uid":4634343214213523454,"fee":0.10,"e":1E400}"#;
        table.put(&Rec { request: Some(request), biz_no: None, ..rec("k", 3_600_000) }).await;
        table.run("CREATE TABLE t_big (no VARCHAR(64), uid BIGINT, fee DECIMAL(30,20))").await;
        table.run("INSERT INTO t_big VALUES ('00N', 4634343214213523454, 0.1)").await;
        assert_eq!(finding(&table).await.verdict, Verdict::Found, "{}", table.dialect());
        table.run("UPDATE t_big SET uid = 4634343214213523455").await;
        assert_eq!(finding(&table).await.verdict, Verdict::Mismatch, "{}", table.dialect());
        assert_eq!(table.get("k").await.request.bytes().unwrap(), request.as_bytes());
    }
}

#[tokio::test]
async fn two_effects_of_which_one_is_there_are_partial() {
    let second = "\n[[biz.reverse_check]]\nname = \"flow\"\nsql = \"SELECT order_no FROM t_flow WHERE order_no = :biz_no\"\n";
    let biz = format!(
        "{}{second}",
        ORDER.replace("[biz.reverse_check]", "[[biz.reverse_check]]\nname = \"order\"")
    );
    // The template and the replay stand after both checks.
    let (head, tail) = biz.split_once("[biz.response]").unwrap();
    let tail_end = tail.find("\n[[biz.reverse_check]]").unwrap();
    let biz = format!("{head}{}[biz.response]{}", &tail[tail_end..], &tail[..tail_end]);
    for table in with_record(&biz).await {
        table.run("CREATE TABLE t_flow (order_no VARCHAR(64))").await;
        assert_eq!(finding(&table).await.verdict, Verdict::Absent);
        table.run("INSERT INTO t_order VALUES ('N1', 'PAID', 128.00, 0)").await;
        let partial = finding(&table).await;
        assert_eq!(partial.verdict, Verdict::Partial, "{}", table.dialect());
        assert_eq!(
            partial.rows.iter().map(|rows| rows.check.as_str()).collect::<Vec<_>>(),
            ["order", "flow"]
        );
        table.run("INSERT INTO t_flow VALUES ('N1')").await;
        assert_eq!(finding(&table).await.verdict, Verdict::Found);
    }
}

#[tokio::test]
async fn whatever_keeps_a_check_from_an_answer_is_unavailable() {
    let check = |sql: &str| format!("[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nsql = '{sql}'\n");
    for table in with_record("").await {
        let record = table.get("k").await;
        let slow = match table.dialect() {
            Dialect::Sqlite => {
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
            }
            Dialect::Postgres => "SELECT pg_sleep(30)",
            Dialect::Mysql => "SELECT SLEEP(30)",
        };
        for (biz, expected) in [
            (String::new(), "no reverse check is configured for ORDER"),
            (check("SELECT 1 FROM nowhere WHERE a = :biz_no"), "query failed"),
            (check("SELECT :\"/payer/id\""), "/payer/id"),
            (check(slow), "time limit"),
            (check("SELECT 1") + "url = \"postgres://me:s3cret@127.0.0.1:1/x\"\n", "cannot be reached"),
        ] {
            let source = open(
                &table.test.url,
                &format!("statement_timeout = \"200ms\"\nconnect_timeout = \"500ms\"\n{MINIMAL}"),
                &biz,
            );
            let finding = source.reverse_check(&record).await;
            let said = finding.explanation();
            assert_eq!(finding.verdict, Verdict::Unavailable, "{} {biz}", table.dialect());
            assert!(said.contains(expected) && !said.contains("s3cret"), "{} {said}", table.dialect());
            assert!(!finding.read_from.contains("s3cret"));
        }
        let mut nameless = record.clone();
        nameless.row.biz_no = None;
        let source = open(&table.test.url, MINIMAL, ORDER);
        assert_eq!(source.reverse_check(&nameless).await.reasons, [Reason::NoBizNo]);
    }
}

#[tokio::test]
async fn a_check_cannot_write() {
    let biz = "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nsql = \"WITH gone AS (DELETE FROM t_order RETURNING order_no) SELECT order_no FROM gone\"\n";
    for table in with_record(biz).await {
        table.run("INSERT INTO t_order VALUES ('N1', 'PAID', 128.00, 0)").await;
        assert_eq!(finding(&table).await.verdict, Verdict::Unavailable, "{}", table.dialect());
        let count = Query::raw("SELECT COUNT(*) FROM t_order", vec![]);
        assert_eq!(table.test.db.fetch_optional(&count).await.unwrap().unwrap().i64(0).unwrap(), 1);
    }
}

#[tokio::test]
async fn hostile_numbers_are_bound_and_secrets_in_rows_are_masked() {
    let biz = "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nsql = \"SELECT order_no, status AS card_no FROM t_order WHERE order_no = :biz_no\"\n";
    for table in tables(MINIMAL, biz).await {
        table.run("INSERT INTO t_order VALUES ('N1', '6222021234567894', 1, 0)").await;
        for (key, number, verdict) in [("a", "' OR '1'='1", Verdict::Absent), ("b", "N1", Verdict::Found)] {
            table.put(&Rec { biz_no: Some(number), ..rec(key, 3_600_000) }).await;
            let finding = table.source.reverse_check(&table.get(key).await).await;
            assert_eq!(finding.verdict, verdict, "{}", table.dialect());
            assert!(!format!("{finding:?}").contains("6222021234567894"));
        }
    }
}

#[tokio::test]
async fn absence_on_a_replica_proves_nothing_and_presence_does() {
    for table in with_record(ORDER).await {
        if table.dialect() != Dialect::Postgres {
            continue;
        }
        // A server that says of itself what a replica says.
        table.run("CREATE SCHEMA replica").await;
        table
            .run("CREATE FUNCTION replica.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'")
            .await;
        let url = format!("{}?options[search_path]=replica,pg_catalog,public", table.test.url);
        let source = open(&url, MINIMAL, ORDER);
        let record = table.get("k").await;
        let finding = source.reverse_check(&record).await;
        assert_eq!(finding.verdict, Verdict::Unavailable);
        assert!(matches!(finding.reasons[..], [Reason::NotPrimary { .. }]), "{finding:?}");
        table.run("INSERT INTO t_order VALUES ('N1', 'PAID', 128.00, 0)").await;
        assert_eq!(source.reverse_check(&record).await.verdict, Verdict::Found);
    }
}
