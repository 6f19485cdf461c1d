//! The configuration file, and what `amends check` says about a source.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{EXTENDED, MINIMAL, ORDER, WrongClock, parse, rec, tables};
use sources::{Level, Report, SourceConfig, check};
use std::sync::Arc;

#[test]
fn mistakes_are_named_with_what_to_write() {
    for (config, hint) in [
        ("colums = 1", "unknown field `colums`"),
        ("zone = \"Shanghai\"", "Asia/Shanghai"),
        ("stuck_after = \"ten\"", "10m"),
        ("table = \"\"", "schema.name"),
        ("where = \"a = 1; DROP TABLE t\"", "one constant condition"),
        ("[columns]\ncreated_at = { colum = \"x\" }", "colum"),
        ("[[state]]\nis = \"DONE\"\nvalues = [\"x\"]", "PROCESSING"),
        ("[write.mark_succeeded]\nstatus = { later = true }", "now = true"),
        (
            "[[biz]]\ntype = \"A\"\n[biz.reverse_check]\nsql = \"SELECT 1\"\ncompare = { a = \"amount\" }",
            "/amount",
        ),
        ("[[biz]]\ntype = \"A\"\n[biz.replay]\nurl = \"http://x/\"\nrate = \"fast\"", "5/s"),
        ("[[biz]]\ntype = \"A\"\n[biz.replay]\nurl = \"http://x/\"\nprepare = \"remove\"", "mark_timed_out"),
    ] {
        let error =
            toml::from_str::<SourceConfig>(&format!("name = \"a\"\nurl = \"sqlite://a.db\"\n{config}"))
                .unwrap_err();
        assert!(error.to_string().contains(hint), "{config}: {error}");
        assert!(error.span().is_some(), "{config}: the reader can name the line");
    }
}

#[test]
fn parts_that_do_not_fit_together_are_named() {
    for (config, hint) in [
        ("max_connections = 0", "max_connections"),
        ("[columns]\nbiz_no = \"\"", "columns.biz_no"),
        ("[[state]]\nis = \"SUCCESS\"\nvalues = [1]", "PROCESSING"),
        ("[write.mark_succeeded]\nstatus = \"DONE\"", "DONE"),
        ("[write.mark_timed_out]\nupdate_time = \"x\"", "now = true"),
        ("[[biz]]\ntype = \"A\"\n[[biz]]\ntype = \"A\"", "twice"),
        ("[[biz]]\ntype = \"A\"\n[biz.reverse_check]\nsql = \"DELETE FROM t\"", "SELECT"),
        ("[[biz]]\ntype = \"A\"\n[biz.reverse_check]\nsql = \"SELECT :order\"", ":biz_no"),
        ("[[biz]]\ntype = \"A\"\n[biz.replay]\nurl = \"orders/api\"", "http"),
        ("[[biz]]\ntype = \"A\"\n[biz.response]\ntemplate = \"\"", "template"),
    ] {
        let problems = parse("sqlite://a.db", "", config).problems();
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(all.join("\n").contains(hint), "{config}: {all:?}");
    }
    assert!(parse("sqlite://a.db", EXTENDED, ORDER).problems().is_empty());
    let secret = parse("postgres://me:s3cret@db/x", "", ORDER);
    assert!(!format!("{secret:?}").contains("s3cret"));
}

async fn report(url: &str, config: &str, biz: &str) -> Report {
    check(&parse(url, config, biz), Arc::new(WrongClock)).await
}

fn has(report: &Report, level: Level, code: &str, part: &str) -> bool {
    report
        .findings
        .iter()
        .any(|f| f.level == level && f.code == code && format!("{} {:?}", f.message, f.advice).contains(part))
}

#[tokio::test]
async fn check_says_what_is_right_and_what_is_missing() {
    for table in tables(MINIMAL, ORDER).await {
        table.put(&rec("k", 3_600_000)).await;
        table.run("UPDATE idempotent_record SET status = 'HALF'").await;
        let url = &table.test.url;
        let found = report(url, MINIMAL, ORDER).await;
        for (level, code, part) in [
            (Level::Ok, "connected", ""),
            (Level::Warn, "clock", "NTP"),
            (Level::Ok, "mapping", "8 mapped columns"),
            (Level::Ok, "unique_key", "idempotent_id"),
            (
                Level::Warn,
                "stuck_index",
                "CREATE INDEX idempotent_record_stuck ON idempotent_record (status, create_time)",
            ),
            (Level::Warn, "states", "HALF"),
            (Level::Ok, "reverse_check", "ORDER / check 1 runs"),
        ] {
            assert!(has(&found, level, code, part), "{} {code} {part}\n{found}", table.dialect());
        }
        assert_eq!(found.level(), Level::Warn, "{found}");

        table.run("CREATE INDEX by_status ON idempotent_record (status, create_time)").await;
        let biz =
            ORDER.replace("SELECT order_no, status, amount, deleted", "SELECT order_no, status, amount");
        let found = report(url, MINIMAL, &biz).await;
        assert!(has(&found, Level::Ok, "stuck_index", "by_status"), "{found}");
        assert!(has(&found, Level::Error, "reverse_check", "no column deleted"), "{found}");

        let found = report(url, MINIMAL, &ORDER.replace("t_order", "t_orders")).await;
        assert!(has(&found, Level::Error, "reverse_check", "t_orders"), "{found}");
        let found = report(url, "[columns]\nkey = \"idempotent_key\"\nstatus = \"biz_no\"\n", ORDER).await;
        assert!(
            has(&found, Level::Error, "mapping", "did you mean key = \\\"idempotent_id\\\"")
                || has(&found, Level::Error, "mapping", "did you mean key = \"idempotent_id\""),
            "{found}"
        );
        let found = report(url, "table = \"nowhere\"\n", ORDER).await;
        assert!(has(&found, Level::Error, "mapping", "no table nowhere"), "{found}");
        let found = report(url, "[columns]\nkey = \"biz_no\"\n", ORDER).await;
        assert!(
            has(&found, Level::Error, "unique_key", "CREATE UNIQUE INDEX idempotent_record_biz_no"),
            "{found}"
        );
    }
}

#[tokio::test]
async fn check_of_a_source_that_is_down_says_so_without_its_password() {
    let found = report("mysql://me:s3cret@127.0.0.1:1/x", "connect_timeout = \"100ms\"\n", ORDER).await;
    assert!(has(&found, Level::Error, "unreachable", ""), "{found}");
    assert!(!format!("{found} {}", serde_json::to_string(&found).unwrap()).contains("s3cret"));
}

#[test]
fn the_examples_in_the_documentation_are_accepted() {
    #[derive(serde::Deserialize)]
    struct File {
        source: Vec<SourceConfig>,
    }
    let sources = |text: &'static str| {
        let blocks = text.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
        blocks.filter(|block| block.contains("[[source]]\nname")).collect::<Vec<_>>()
    };
    let native = sources(include_str!("../../docs/configuration.md"));
    assert_eq!(native.len(), 3, "one example a database");
    let others = sources(include_str!("../../docs/layouts.md"));
    assert_eq!(others.len(), 6, "one example a family of tables");
    for file in native.into_iter().chain(others) {
        for source in toml::from_str::<File>(file).unwrap_or_else(|error| panic!("{error}")).source {
            assert_eq!(source.problems(), []);
        }
    }
}
