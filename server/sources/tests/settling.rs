//! Compare-and-set on every database.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{EXTENDED, MINIMAL, ORDER, Rec, Table, rec, tables};
use db::Dialect;
use domain::actions::Action;
use domain::clock::Clock;
use domain::compensation::Plan;
use domain::error::Error;
use domain::evidence::Verdict;
use domain::ports::{Applied, Change, Source};
use domain::record::{Body, RecordDetail, State};

async fn both() -> Vec<Table> {
    let all = common::both(ORDER).await;
    for table in &all {
        table.put(&rec("k", 3_600_000)).await;
    }
    all
}

async fn paid(table: &Table) {
    table.run("INSERT INTO t_order VALUES ('N1', 'PAID', 128.00, 0)").await;
}

fn change<'a>(action: Action, record: &'a RecordDetail, response_body: Option<&'a str>) -> Change<'a> {
    Change { action, record, finding: None, response_body }
}

async fn plan(table: &Table, action: Action, record: &RecordDetail) -> Plan {
    table
        .source
        .plan(change(action, record, None))
        .await
        .unwrap_or_else(|e| panic!("{}: {e}", table.dialect()))
}

async fn apply(table: &Table, record: &RecordDetail, action: Action, plan: &Plan) -> Applied {
    let applied = table.source.apply(record, &record.row.version, action, plan, common::far()).await;
    applied.unwrap_or_else(|e| panic!("{}: {e}", table.dialect()))
}

#[tokio::test]
async fn of_fifty_operators_at_once_one_changes_and_49_are_told() {
    for table in both().await {
        paid(&table).await;
        let record = table.get("k").await;
        let plan = plan(&table, Action::MarkSucceeded, &record).await;
        let all = (0..50).map(|_| apply(&table, &record, Action::MarkSucceeded, &plan));
        let answers = futures::future::join_all(all).await;
        let changed = answers.iter().filter(|answer| **answer == Applied::Changed).count();
        let moved = answers
            .iter()
            .filter(|a| matches!(a, Applied::Moved(row) if row.state == State::Success))
            .count();
        assert_eq!((changed, moved), (1, 49), "{}", table.dialect());
    }
}

#[tokio::test]
async fn a_mark_reads_back_exactly_as_planned() {
    for table in both().await {
        paid(&table).await;
        let record = table.get("k").await;
        let plan = plan(&table, Action::MarkSucceeded, &record).await;
        assert!(plan.response.as_deref().unwrap().starts_with(r#"{"code":0,"orderNo":"N1","amount":"128"#));
        assert_eq!(apply(&table, &record, Action::MarkSucceeded, &plan).await, Applied::Changed);
        let after = table.get("k").await;
        assert_eq!(after.row.state, State::Success);
        assert_eq!(after.row.updated_at.unwrap().timestamp_millis(), plan.marker, "{}", table.dialect());
        assert_ne!(after.row.updated_at, record.row.updated_at);
        assert_ne!(after.row.version, record.row.version);
        assert_eq!(after.row.created_at, record.row.created_at);
        assert_eq!(after.response.bytes().unwrap(), plan.response.unwrap().as_bytes());
        assert_eq!(after.request, record.request);
        // A second mark is told where the record is now.
        assert!(matches!(
            apply(
                &table,
                &record,
                Action::MarkSucceeded,
                &Plan { state: State::Success, marker: 1, response: None }
            )
            .await,
            Applied::Moved(_)
        ));
    }
}

#[tokio::test]
async fn an_extended_table_gets_fence_lease_and_response_status_with_the_mark() {
    for table in tables(EXTENDED, ORDER).await {
        paid(&table).await;
        table.put(&Rec { lease_ms: Some(60_000), ..rec("k", 3_600_000) }).await;
        let record = table.get("k").await;
        assert_eq!(record.row.attempts, Some(1));
        assert!(record.facts.contains(&("fence".into(), "1".into())), "{:?}", record.facts);
        let plan = plan(&table, Action::MarkSucceeded, &record).await;
        assert_eq!(apply(&table, &record, Action::MarkSucceeded, &plan).await, Applied::Changed);
        assert_eq!(table.cell("k", "fence").await.as_deref(), Some("2"));
        assert_eq!(table.cell("k", "lease_until").await, None);
        assert_eq!(table.cell("k", "response_status").await.as_deref(), Some("200"));
    }
}

#[tokio::test]
async fn c46_a_late_worker_is_not_clobbered_whatever_it_changed() {
    for table in both().await {
        let record = table.get("k").await;
        let plan = plan(&table, Action::MarkTimedOut, &record).await;
        // The worker finishes; then, as if that had been undone, it only writes a heartbeat.
        for sql in [
            "UPDATE idempotent_record SET response_body = 'x', status = 'SUCCESS'",
            "UPDATE idempotent_record SET status = 'PROCESSING', update_time = '2026-01-01 00:00:00'",
        ] {
            table.run(sql).await;
            let before = table.get("k").await;
            assert!(
                matches!(apply(&table, &record, Action::MarkTimedOut, &plan).await, Applied::Moved(row) if *row == before.row),
                "{}",
                table.dialect()
            );
            assert_eq!(table.get("k").await.row.version, before.row.version);
        }
    }
}

#[tokio::test]
async fn a_record_without_update_time_is_compared_as_such() {
    for table in both().await {
        table.run("UPDATE idempotent_record SET update_time = NULL").await;
        let record = table.get("k").await;
        let plan = plan(&table, Action::MarkTimedOut, &record).await;
        assert_eq!(
            apply(&table, &record, Action::MarkTimedOut, &plan).await,
            Applied::Changed,
            "{}",
            table.dialect()
        );
        assert_eq!(table.get("k").await.row.updated_at.unwrap().timestamp_millis(), plan.marker);
        assert!(matches!(apply(&table, &record, Action::MarkTimedOut, &plan).await, Applied::Moved(_)));
    }
}

#[tokio::test]
async fn microseconds_are_part_of_the_version() {
    for table in tables(MINIMAL, ORDER).await {
        if table.dialect() == Dialect::Mysql {
            continue;
        }
        table.put(&rec("k", 3_600_000)).await;
        table.run("UPDATE idempotent_record SET update_time = '2026-01-01 00:00:00.123456'").await;
        let record = table.get("k").await;
        let plan = plan(&table, Action::MarkTimedOut, &record).await;
        table.run("UPDATE idempotent_record SET update_time = '2026-01-01 00:00:00.123457'").await;
        assert!(
            matches!(apply(&table, &record, Action::MarkTimedOut, &plan).await, Applied::Moved(_)),
            "{}",
            table.dialect()
        );
        let record = table.get("k").await;
        assert_eq!(apply(&table, &record, Action::MarkTimedOut, &plan).await, Applied::Changed);
    }
}

#[tokio::test]
async fn evidence_that_changed_before_the_update_stops_it() {
    for table in both().await {
        let record = table.get("k").await;
        let plan = plan(&table, Action::MarkTimedOut, &record).await;
        // The effect appears after the check and before the mark.
        paid(&table).await;
        match apply(&table, &record, Action::MarkTimedOut, &plan).await {
            Applied::EvidenceChanged(finding) => assert_eq!(finding.verdict, Verdict::Found),
            other => panic!("{} {other:?}", table.dialect()),
        }
        assert_eq!(table.get("k").await.row.version, record.row.version);
        table.run("DELETE FROM t_order").await;
        match apply(&table, &record, Action::MarkSucceeded, &plan).await {
            Applied::EvidenceChanged(finding) => assert_eq!(finding.verdict, Verdict::Absent),
            other => panic!("{} {other:?}", table.dialect()),
        }
        table.run("DROP TABLE t_order").await;
        match apply(&table, &record, Action::MarkTimedOut, &plan).await {
            Applied::EvidenceChanged(finding) => assert_eq!(finding.verdict, Verdict::Unavailable),
            other => panic!("{} {other:?}", table.dialect()),
        }
        assert_eq!(table.get("k").await.row.state, State::Processing);
    }
}

#[tokio::test]
async fn a_response_is_given_rendered_or_asked_for() {
    const BARE: &str = "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nsql = \"SELECT order_no FROM t_order WHERE order_no = :biz_no\"\n";
    for table in tables(MINIMAL, BARE).await {
        table.put(&rec("k", 3_600_000)).await;
        paid(&table).await;
        let record = table.get("k").await;
        let refused = table.source.plan(change(Action::MarkSucceeded, &record, None)).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Refused { message, .. } if message.contains("response_body")),
            "{refused}"
        );
        let given = "{\"n\": 4634343214213523454,  \"é\": \"'\\\"\"}";
        let plan = table.source.plan(change(Action::MarkSucceeded, &record, Some(given))).await.unwrap();
        assert_eq!(apply(&table, &record, Action::MarkSucceeded, &plan).await, Applied::Changed);
        assert_eq!(
            table.get("k").await.response,
            Body::Stored(given.as_bytes().to_vec()),
            "{}",
            table.dialect()
        );
    }
    for table in tables(MINIMAL, ORDER).await {
        table.put(&rec("k", 3_600_000)).await;
        table.run("INSERT INTO t_order VALUES ('N1', 'PAID', NULL, 0)").await;
        let record = table.get("k").await;
        let refused = table.source.plan(change(Action::MarkSucceeded, &record, None)).await.unwrap_err();
        assert!(refused.to_string().contains("{amount}"), "{refused}");
    }
}

#[tokio::test]
async fn configured_writes_are_carried_out_and_unmapped_targets_are_said() {
    const WRITES: &str = "[columns]\nresponse = \"not stored\"\nattempts = \"attempts\"\n[[state]]\nis = \"PROCESSING\"\nvalues = [\"PROCESSING\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"FAILED\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"SUCCESS\", \"DONE\"]\n\
        [write.mark_succeeded]\nstatus = \"DONE\"\nattempts = { add = 5 }\nowner = { null = true }\nphase = \"settled\"\nlease_until = { now = true }\n";
    for table in tables(EXTENDED, ORDER).await {
        table.put(&rec("k", 3_600_000)).await;
        table.run("UPDATE idempotent_record SET owner = 'w1'").await;
        paid(&table).await;
        let source = common::open(&table.test.url, WRITES, ORDER);
        let record = source.get(&common::id("k")).await.unwrap();
        assert!(record.abilities.mark_timed_out.as_ref().unwrap_err().to_string().contains("TIMEOUT"));
        assert!(record.abilities.replay.is_err(), "a replay would have to time the record out first");
        assert_eq!(record.abilities.mark_succeeded, Ok(()));
        let plan = source.plan(change(Action::MarkSucceeded, &record, None)).await.unwrap();
        assert_eq!(plan.response, None);
        let applied = source
            .apply(&record, &record.row.version, Action::MarkSucceeded, &plan, common::far())
            .await
            .unwrap();
        assert_eq!(applied, Applied::Changed, "{}", table.dialect());
        for (column, value) in
            [("status", Some("DONE")), ("attempts", Some("6")), ("owner", None), ("phase", Some("settled"))]
        {
            assert_eq!(table.cell("k", column).await.as_deref(), value, "{} {column}", table.dialect());
        }
        assert!(table.cell("k", "lease_until").await.is_some());
    }
}

#[tokio::test]
async fn a_change_that_waited_past_its_time_limit_changes_nothing() {
    for table in both().await {
        paid(&table).await;
        let record = table.get("k").await;
        let plan = plan(&table, Action::MarkSucceeded, &record).await;
        let passed = common::WrongClock.now();
        let late =
            table.source.apply(&record, &record.row.version, Action::MarkSucceeded, &plan, passed).await;
        assert!(matches!(late, Err(Error::Unavailable { .. })), "{}: {late:?}", table.dialect());
        assert_eq!(table.get("k").await.row, record.row, "{}", table.dialect());
    }
}
