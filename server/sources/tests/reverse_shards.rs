//! Business data spread over 2 databases × 16 tables, as in S61.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{MINIMAL, ORDERS, Rec, Table, attach, rec};
use db::testkit::{TestDb, each_database};
use domain::actions::{Action, by_verdict};
use domain::evidence::{Finding, Reason, Verdict};
use domain::ports::Source;

/// The records and both databases, all of one kind.
struct Set {
    table: Table,
    ds: [TestDb; 2],
}

const SQL: &str = "sql = \"SELECT order_no, status FROM {table} WHERE order_no = :biz_no\"\nfound_when = { status = \"PAID\" }\n";

fn biz(urls: [&str; 2], more: &str) -> String {
    format!(
        "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nname = \"order\"\n{SQL}timeout = \"5s\"\nshards = [{{ url = \"{}\", name = \"ds_0\", table = \"t_order_{{0..15}}\" }}, {{ url = \"{}\", name = \"ds_1\", table = \"t_order_{{16..31}}\" }}]\n{more}",
        urls[0], urls[1]
    )
}

/// Like the first, on an address where nobody answers.
fn unreachable(set: &Set) -> String {
    let url = &set.ds[1].url;
    let mut parsed = url::Url::parse(url).unwrap();
    match parsed.set_port(Some(1)) {
        Ok(()) => parsed.into(),
        Err(()) => format!("{url}.gone"),
    }
}

async fn sets(more: &str) -> Vec<Set> {
    let mut all = Vec::new();
    for ((records, first), second) in
        each_database().await.into_iter().zip(each_database().await).zip(each_database().await)
    {
        let ds = [first, second];
        let each = ds.iter().zip([0..16, 16..32]).flat_map(|(database, tables)| {
            tables.map(move |n| async move {
                database.run(&[&ORDERS.replace("t_order", &format!("t_order_{n}"))]).await;
            })
        });
        futures::future::join_all(each).await;
        records.run(&["CREATE TABLE idempotent_record (idempotent_id VARCHAR(64) PRIMARY KEY, biz_type VARCHAR(64), biz_no VARCHAR(64), status VARCHAR(16), request_body TEXT, response_body TEXT, create_time TIMESTAMP NULL, update_time TIMESTAMP NULL)"]).await;
        let table = attach(records, "zone = \"UTC\"\n", &biz([&ds[0].url, &ds[1].url], more)).await;
        table.put(&rec("k", 3_600_000)).await;
        all.push(Set { table, ds });
    }
    all
}

impl Set {
    async fn put(&self, shard: usize, number: &str, status: &str) {
        let sql = format!("INSERT INTO t_order_{shard} VALUES ('{number}', '{status}', 128.00, 0)");
        self.ds[shard / 16].run(&[&sql]).await;
    }

    async fn finding(&self) -> Finding {
        self.table.source.reverse_check(&self.table.get("k").await).await
    }

    /// The same with the second database gone.
    async fn finding_without_ds_1(&self, more: &str) -> Finding {
        let url = unreachable(self);
        let source = common::open(
            &self.table.test.url,
            "connect_timeout = \"1s\"\n",
            &biz([&self.ds[0].url, &url], more),
        );
        source.reverse_check(&self.table.get("k").await).await
    }
}

#[tokio::test]
async fn c68_every_shard_is_asked_and_says_where_the_row_is() {
    for set in sets("").await {
        let dialect = set.table.dialect();
        let absent = set.finding().await;
        assert_eq!(absent.verdict, Verdict::Absent, "{dialect} {}", absent.explanation());
        set.put(17, "N1", "PAID").await;
        let found = set.finding().await;
        assert_eq!(found.verdict, Verdict::Found, "{dialect} {}", found.explanation());
        assert_eq!(found.rows[0].places, ["ds_1/t_order_17"]);
        assert!(found.read_from.contains(", "), "{}", found.read_from);
        set.put(3, "N1", "PAID").await;
        let twice = set.finding().await;
        assert_eq!(twice.verdict, Verdict::Mismatch, "{dialect}");
        assert_eq!(twice.rows[0].places, ["ds_0/t_order_3", "ds_1/t_order_17"]);
    }
}

#[tokio::test]
async fn c68_shards_that_were_not_reached_prove_nothing() {
    for set in sets("").await {
        let dialect = set.table.dialect();
        let nothing = set.finding_without_ds_1("").await;
        assert_eq!(nothing.verdict, Verdict::Unavailable, "{dialect}");
        let said = nothing.explanation();
        assert!(
            said.contains("16 of 32 shards not reached (ds_1/t_order_16 … t_order_31)"),
            "{dialect} {said}"
        );
        assert!(!said.contains("no row"), "{said}");
        for action in [Action::MarkTimedOut, Action::Replay] {
            assert!(!by_verdict(action, nothing.verdict).is_allowed());
        }
        // A row elsewhere could still be its double, so a row is shown and proves nothing.
        set.put(3, "N1", "PAID").await;
        let seen = set.finding_without_ds_1("").await;
        assert_eq!(seen.verdict, Verdict::Unavailable, "{dialect}");
        assert_eq!(seen.rows[0].places, ["ds_0/t_order_3"]);
        assert!(!by_verdict(Action::MarkSucceeded, seen.verdict).is_allowed());
        // What disagrees disagrees whatever the others hold.
        set.ds[0].run(&["UPDATE t_order_3 SET status = 'CLOSED'"]).await;
        let wrong = set.finding_without_ds_1("").await;
        assert_eq!(wrong.verdict, Verdict::Mismatch, "{dialect}");
        assert!(
            wrong
                .reasons
                .iter()
                .any(|reason| matches!(reason, Reason::ShardsMissing { missed: 16, total: 32, .. }))
        );
    }
}

#[tokio::test]
async fn c68_a_table_that_is_missing_is_a_shard_not_reached() {
    for set in sets("").await {
        set.ds[0].run(&["DROP TABLE t_order_5"]).await;
        let seen = set.finding().await;
        assert_eq!(seen.verdict, Verdict::Unavailable);
        assert!(
            seen.explanation().contains("1 of 32 shards not reached (ds_0/t_order_5)"),
            "{}",
            seen.explanation()
        );
    }
}

#[tokio::test]
async fn s61_a_route_leads_to_the_shard_and_a_wrong_one_misses_nothing() {
    // The suffix 000017 as text: Math.abs("000017".hashCode()) % 32.
    const ROUTED: usize = 17;
    const NUMBER: &str = "1674355207000017";
    for set in sets("route = { last = 6, hash = \"number\" }\n").await {
        let dialect = set.table.dialect();
        set.table.put(&Rec { biz_no: Some(NUMBER), ..rec("r", 3_600_000) }).await;
        let record = set.table.get("r").await;
        set.put(ROUTED, NUMBER, "PAID").await;
        // The routed shard answers alone: the other database may be down.
        let url = unreachable(&set);
        let biz = biz([&url, &set.ds[1].url], "route = { last = 6, hash = \"number\" }\n");
        let source = common::open(&set.table.test.url, MINIMAL, &biz);
        let found = source.reverse_check(&record).await;
        assert_eq!(found.verdict, Verdict::Found, "{dialect} {}", found.explanation());
        assert_eq!(found.rows[0].places, ["ds_1/t_order_17"]);
        // A row where the route does not lead is found by the others.
        set.ds[1].run(&["DELETE FROM t_order_17"]).await;
        set.put(2, NUMBER, "PAID").await;
        let strayed = set.table.source.reverse_check(&record).await;
        assert_eq!(strayed.verdict, Verdict::Found, "{dialect} {}", strayed.explanation());
        assert_eq!(strayed.rows[0].places, ["ds_0/t_order_2"]);
    }
}

#[tokio::test]
async fn s61_a_route_may_be_an_expression_and_may_be_believed() {
    const ROUTE: &str =
        "route = { sql = \"SELECT CAST(SUBSTR(:biz_no, 2) AS DECIMAL(10, 0)) + 16\", fallback = \"none\" }\n";
    let integer = |dialect| match dialect {
        // SQLite's decimal of a text is what the text looks like.
        db::Dialect::Sqlite => ROUTE.replace("DECIMAL(10, 0)", "INTEGER"),
        _ => ROUTE.to_owned(),
    };
    for set in sets("").await {
        let dialect = set.table.dialect();
        let biz = biz([&unreachable(&set), &set.ds[1].url], &integer(dialect));
        let source = common::open(&set.table.test.url, MINIMAL, &biz);
        let record = set.table.get("k").await;
        let absent = source.reverse_check(&record).await;
        assert_eq!(absent.verdict, Verdict::Absent, "{dialect} {}", absent.explanation());
        set.put(17, "N1", "PAID").await;
        assert_eq!(source.reverse_check(&record).await.verdict, Verdict::Found, "{dialect}");
    }
}

#[tokio::test]
async fn c68_a_database_that_accepts_and_stays_silent_costs_one_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("mysql://root@{}/ds", listener.local_addr().unwrap());
    let records = db::testkit::sqlite().await;
    records.run(&["CREATE TABLE idempotent_record (idempotent_id TEXT PRIMARY KEY, biz_type TEXT, biz_no TEXT, status TEXT, request_body TEXT, response_body TEXT, create_time TEXT, update_time TEXT)"]).await;
    let config =
        biz([&silent, &silent], "concurrency = 64\n").replace("timeout = \"5s\"", "timeout = \"300ms\"");
    let table = attach(records, MINIMAL, &config).await;
    table.put(&rec("k", 3_600_000)).await;
    let asked = tokio::time::Instant::now();
    let seen = table.source.reverse_check(&table.get("k").await).await;
    assert_eq!(seen.verdict, Verdict::Unavailable);
    assert!(seen.explanation().contains("32 of 32 shards not reached"), "{}", seen.explanation());
    assert!(asked.elapsed().as_secs() < 5, "{:?}", asked.elapsed());
}
