//! Business data beside the records: other databases, links that point back, numbers in integer columns.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{MINIMAL, Rec, Table, attach, rec, tables};
use db::Dialect;
use db::testkit::{TestDb, each_database};
use domain::actions::Action;
use domain::evidence::{Finding, Reason, Verdict};
use domain::ports::{Applied, Change, Source};

async fn finding(table: &Table, key: &str) -> Finding {
    table.source.reverse_check(&table.get(key).await).await
}

fn check(toml: &str) -> String {
    format!("[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\n{toml}\n")
}

/// Records in SQLite, business rows in another database of each kind.
async fn with_business(toml: impl Fn(&TestDb) -> String) -> Vec<(Table, TestDb)> {
    let mut all = Vec::new();
    for business in each_database().await {
        let records = db::testkit::sqlite().await;
        records.run(&["CREATE TABLE idempotent_record (idempotent_id TEXT PRIMARY KEY, biz_type TEXT, biz_no TEXT, status TEXT, request_body TEXT, response_body TEXT, create_time TEXT, update_time TEXT)"]).await;
        let table = attach(records, MINIMAL, &check(&toml(&business))).await;
        all.push((table, business));
    }
    all
}

#[tokio::test]
async fn business_rows_in_another_database_decide_also_at_the_change() {
    let toml = |business: &TestDb| {
        format!(
            "sql = \"SELECT order_no, status FROM t_order WHERE order_no = :biz_no\"\nfound_when = {{ status = \"PAID\" }}\nurl = \"{}\"\ntimeout = \"3s\"\n[biz.response]\ntemplate = '{{\"no\":\"{{order_no}}\"}}'",
            business.url
        )
    };
    for (table, business) in with_business(toml).await {
        let dialect = business.db.dialect();
        business.run(&["CREATE TABLE t_order (order_no VARCHAR(64), status VARCHAR(16))"]).await;
        table.put(&rec("k", 3_600_000)).await;
        let absent = finding(&table, "k").await;
        assert_eq!(absent.verdict, Verdict::Absent, "{dialect} {}", absent.explanation());
        let record = table.get("k").await;
        let change = |action| Change { action, record: &record, finding: None, response_body: None };
        let plan = table.source.plan(change(Action::MarkTimedOut)).await.unwrap();
        // The effect appears between the check and the change.
        business.run(&["INSERT INTO t_order VALUES ('N1', 'PAID')"]).await;
        let applied = table
            .source
            .apply(&record, &record.row.version, Action::MarkTimedOut, &plan, common::far())
            .await;
        assert!(matches!(applied.unwrap(), Applied::EvidenceChanged(now) if now.verdict == Verdict::Found));
        assert_eq!(table.cell("k", "status").await.as_deref(), Some("PROCESSING"));
        let plan = table.source.plan(change(Action::MarkSucceeded)).await.unwrap();
        assert_eq!(plan.response.as_deref(), Some("{\"no\":\"N1\"}"));
        let applied = table
            .source
            .apply(&record, &record.row.version, Action::MarkSucceeded, &plan, common::far())
            .await;
        assert_eq!(applied.unwrap(), Applied::Changed, "{dialect}");
        let found = finding(&table, "k").await;
        assert_eq!(found.read_from, business.db.shown_url());
    }
}

#[tokio::test]
async fn c67_an_integer_column_takes_plain_digits_and_coerces_nothing() {
    const SQL: &str = "sql = \"SELECT order_no, note FROM t_int WHERE order_no = :biz_no\"\n";
    let declared = check(&format!("{SQL}params = {{ biz_no = \"integer\" }}"));
    let naive = check(SQL);
    let padded = check(&format!("{SQL}params = {{ biz_no = [\"trim\", \"strip_zeros\", \"integer\"] }}"));
    for table in tables(MINIMAL, &declared).await {
        let dialect = table.dialect();
        table.run("CREATE TABLE t_int (order_no BIGINT, note VARCHAR(8))").await;
        table.run("INSERT INTO t_int VALUES (12, 'a'), (9007199254740992, 'b')").await;
        let mut nine = 0;
        for (number, wanted) in [
            ("12", Verdict::Found),
            ("13", Verdict::Absent),
            ("0012", Verdict::Unavailable),
            ("12abc", Verdict::Unavailable),
            ("9007199254740993", Verdict::Absent),
            ("9007199254740992", Verdict::Found),
        ] {
            nine += 1;
            let key = format!("k{nine}");
            table.put(&Rec { biz_no: Some(number), ..rec(&key, 3_600_000) }).await;
            let record = table.get(&key).await;
            let seen = table.source.reverse_check(&record).await;
            assert_eq!(seen.verdict, wanted, "{dialect} {number} {}", seen.explanation());
            // Without the declaration nothing wrong is ever found, whatever the database makes of the text.
            let seen = common::open(&table.test.url, MINIMAL, &naive).reverse_check(&record).await;
            let right = seen.verdict == Verdict::Unavailable || seen.verdict == wanted;
            let never = matches!(number, "0012" | "12abc") && seen.verdict == Verdict::Absent;
            assert!(right || never, "{dialect} {number} {}", seen.explanation());
        }
        let record = table.get("k3").await;
        let seen = common::open(&table.test.url, MINIMAL, &padded).reverse_check(&record).await;
        assert_eq!(seen.verdict, Verdict::Found, "{dialect}");
    }
}

#[tokio::test]
async fn c67_a_collation_that_ignores_case_finds_nobody_elses_row() {
    let sql = check("sql = \"SELECT order_no FROM t_ci WHERE order_no = :biz_no\"");
    for table in tables(MINIMAL, &sql).await {
        let collation = match table.dialect() {
            Dialect::Mysql => "COLLATE utf8mb4_general_ci",
            Dialect::Sqlite => "COLLATE NOCASE",
            Dialect::Postgres => continue,
        };
        table.run(&format!("CREATE TABLE t_ci (order_no VARCHAR(64) {collation})")).await;
        table.run("INSERT INTO t_ci VALUES ('ord-A')").await;
        table.put(&Rec { biz_no: Some("ord-a"), ..rec("k", 3_600_000) }).await;
        let other = finding(&table, "k").await;
        assert_eq!(other.verdict, Verdict::Unavailable, "{} {}", table.dialect(), other.explanation());
        assert!(matches!(other.reasons[..], [Reason::NumberDiffers { .. }]));
        table.run("INSERT INTO t_ci VALUES ('ord-a')").await;
        let own = finding(&table, "k").await;
        assert_eq!((own.verdict, own.rows[0].rows.len()), (Verdict::Found, 1), "{}", table.dialect());
    }
}

#[tokio::test]
async fn c67_blank_padded_columns_hold_what_was_written() {
    let biz = check(
        "sql = \"SELECT order_no, status FROM t_char WHERE order_no = :biz_no\"\nfound_when = { status = \"PAID\" }",
    );
    for table in tables(MINIMAL, &biz).await {
        table.run("CREATE TABLE t_char (order_no CHAR(32), status CHAR(10))").await;
        table.run("INSERT INTO t_char VALUES ('N1', 'PAID'), ('N2', 'OPEN')").await;
        table.put(&rec("k", 3_600_000)).await;
        let found = finding(&table, "k").await;
        assert_eq!(found.verdict, Verdict::Found, "{} {}", table.dialect(), found.explanation());
    }
}

#[tokio::test]
async fn s02_a_business_row_points_back_at_the_record() {
    let biz = check(
        "sql = \"SELECT r.ride_no, r.fence FROM t_ride r WHERE r.record_id = :id AND r.fence = :column.fence\"\nparams = { \"column.fence\" = \"integer\" }",
    );
    for table in tables(common::EXTENDED, &biz).await {
        table.run("CREATE TABLE t_ride (ride_no INT, record_id VARCHAR(64), fence BIGINT)").await;
        table.put(&Rec { biz_no: None, ..rec("k", 3_600_000) }).await;
        assert_eq!(finding(&table, "k").await.verdict, Verdict::Absent, "{}", table.dialect());
        table.run("INSERT INTO t_ride VALUES (1, 'k', 2), (2, 'other', 1)").await;
        assert_eq!(finding(&table, "k").await.verdict, Verdict::Absent, "{}", table.dialect());
        table.run("INSERT INTO t_ride VALUES (3, 'k', 1)").await;
        let found = finding(&table, "k").await;
        assert_eq!(found.verdict, Verdict::Found, "{} {}", table.dialect(), found.explanation());
        assert_eq!(found.rows[0].rows[0][0].as_deref(), Some("3"));
    }
}

#[tokio::test]
async fn s19_the_key_stands_on_the_business_row_itself() {
    let biz = check("sql = \"SELECT seq FROM t_log WHERE ledger = 'main' AND idempotency_key = :key\"");
    for table in tables(MINIMAL, &biz).await {
        table.run("CREATE TABLE t_log (seq INT, ledger VARCHAR(8), idempotency_key VARCHAR(64))").await;
        table.run("INSERT INTO t_log VALUES (1, 'main', NULL), (2, 'other', 'k')").await;
        table.put(&Rec { biz_no: None, ..rec("k", 3_600_000) }).await;
        assert_eq!(finding(&table, "k").await.verdict, Verdict::Absent, "{}", table.dialect());
        table.run("INSERT INTO t_log VALUES (3, 'main', 'k')").await;
        assert_eq!(finding(&table, "k").await.verdict, Verdict::Found, "{}", table.dialect());
    }
}

#[tokio::test]
async fn s58_numbers_are_unique_per_merchant_and_success_is_an_expression() {
    let biz = check(
        "sql = 'SELECT mch_order_no, amount, state IN (2, 5) AND amount > 0 AS paid FROM t_pay_order WHERE mch_no = :\"/mch\" AND mch_order_no = :biz_no'\nfound_when = { paid = true }\ncompare = { amount = \"/cents\" }",
    );
    for table in tables(MINIMAL, &biz).await {
        table.run("CREATE TABLE t_pay_order (mch_no VARCHAR(16), mch_order_no VARCHAR(64), state SMALLINT, amount BIGINT)").await;
        table.run("INSERT INTO t_pay_order VALUES ('M2', 'N1', 2, 12800)").await;
        table.put(&Rec { request: Some(r#"{"mch":"M1","cents":12800}"#), ..rec("k", 3_600_000) }).await;
        assert_eq!(finding(&table, "k").await.verdict, Verdict::Absent, "{}", table.dialect());
        for (state, verdict) in
            [(1, Verdict::Mismatch), (2, Verdict::Found), (5, Verdict::Found), (6, Verdict::Mismatch)]
        {
            table.run("DELETE FROM t_pay_order WHERE mch_no = 'M1'").await;
            table.run(&format!("INSERT INTO t_pay_order VALUES ('M1', 'N1', {state}, 12800)")).await;
            let seen = finding(&table, "k").await;
            assert_eq!(seen.verdict, verdict, "{} {state} {}", table.dialect(), seen.explanation());
        }
    }
}

#[tokio::test]
async fn c80_money_that_came_after_the_order_was_closed_is_a_mismatch() {
    let biz = "[[biz]]\ntype = \"ORDER\"\n[[biz.reverse_check]]\nname = \"order\"\nsql = \"SELECT order_no, status FROM t_order WHERE order_no = :biz_no\"\nfound_when = { status = \"PAID\" }\n[[biz.reverse_check]]\nname = \"payment\"\nsql = \"SELECT order_no, state FROM t_payment WHERE order_no = :biz_no\"\nfound_when = { state = \"SUCCESS\" }\n";
    for table in tables(MINIMAL, biz).await {
        table.run("CREATE TABLE t_payment (order_no VARCHAR(64), state VARCHAR(16))").await;
        table.run("INSERT INTO t_order VALUES ('N1', 'CLOSED', 128.00, 0)").await;
        table.run("INSERT INTO t_payment VALUES ('N1', 'SUCCESS')").await;
        table.put(&Rec { status: Some("TIMEOUT"), ..rec("k", 3_600_000) }).await;
        let late = finding(&table, "k").await;
        assert_eq!(late.verdict, Verdict::Mismatch, "{}", table.dialect());
        let said = late.explanation();
        assert!(
            said.contains("order: status is CLOSED") && said.contains("payment: the row exists"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn the_sources_own_database_by_another_key_is_asked_inside_the_change() {
    let test = db::testkit::sqlite().await;
    test.run(&[
        "CREATE TABLE idempotent_record (idempotent_id TEXT PRIMARY KEY, biz_type TEXT, biz_no TEXT, status TEXT, request_body TEXT, response_body TEXT, create_time TEXT, update_time TEXT)",
        common::ORDERS,
    ])
    .await;
    let toml =
        format!("sql = \"SELECT order_no FROM t_order WHERE order_no = :biz_no\"\nurl = \"{}\"", test.url);
    let table = attach(test, MINIMAL, &check(&toml)).await;
    table.put(&rec("k", 3_600_000)).await;
    let record = table.get("k").await;
    let change = Change { action: Action::MarkTimedOut, record: &record, finding: None, response_body: None };
    let plan = table.source.plan(change).await.unwrap();
    let applied =
        table.source.apply(&record, &record.row.version, Action::MarkTimedOut, &plan, common::far()).await;
    assert_eq!(applied.unwrap(), Applied::Changed);
}
