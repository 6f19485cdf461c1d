//! What went wrong elsewhere, on the tables it went wrong with.

use crate::kit::*;
use domain::actions::Action;
use domain::ports::Source;
use domain::record::{Body, RecordFilter};

const NATIVE: &str = "key = \"id\"\nbiz_type_value = \"X\"\nrequest = \"request_body\"\nresponse = \"response_body\"\ncreated_at = \"create_time\"\nupdated_at = \"update_time\"";

#[tokio::test]
async fn c59_a_zero_date_is_no_time_and_spoils_no_page() {
    let config = format!(
        "table = \"t\"\n{}",
        columns(&format!("{NATIVE}\nlease_until = \"lease\"\ndeadline = \"deadline\""))
    );
    let statements = [
        "CREATE TABLE t (id VARCHAR(64) PRIMARY KEY, status VARCHAR(16), request_body TEXT, response_body TEXT, create_time DATETIME, update_time TIMESTAMP NULL, lease DATETIME, deadline DATETIME)",
        "INSERT IGNORE INTO t VALUES ('a', 'PROCESSING', NULL, NULL, '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00'), ('b', 'PROCESSING', NULL, NULL, {old}, {old}, '0000-00-00 00:00:00', NULL), \
         ('c', 'PROCESSING', NULL, NULL, {old}, NULL, {soon}, {old}), ('d', 'SUCCESS', NULL, NULL, NULL, NULL, NULL, NULL)",
    ];
    for at in layouts(&[Mysql], &statements, &config).await {
        at.holds(&[
            ("a", Processing, false),
            ("b", Processing, true),
            ("c", Processing, false),
            ("d", Success, false),
        ])
        .await;
        assert_eq!(at.row("a").await.created_at, None);
        at.mark("a", Action::MarkTimedOut, None).await;
    }
}

#[tokio::test]
async fn c24_a_response_cut_off_by_its_column_is_named_and_can_be_marked() {
    let config = format!("table = \"t\"\n{}", columns(NATIVE));
    for (dialect, body, size) in [(Mysql, "TEXT", 65_535), (Postgres, "VARCHAR(100)", 100)] {
        let cut = format!("{{\"a\":\"{}", "x".repeat(size - 6));
        let statements = [
            format!(
                "CREATE TABLE t (id VARCHAR(64) PRIMARY KEY, status VARCHAR(16), request_body {body}, response_body {body}, create_time {{ts}}, update_time {{ts}})"
            ),
            format!(
                "INSERT INTO t VALUES ('cut', 'PROCESSING', NULL, '{cut}', {{old}}, {{old}}), ('whole', 'SUCCESS', NULL, '{{\"a\":1}}', {{old}}, {{old}})"
            ),
        ];
        for at in layouts(&[dialect], &[&statements[0], &statements[1]], &config).await {
            match at.get("cut").await.response {
                Body::Decoded(decoded) => assert_eq!(decoded.truncated_at, Some(size as u64)),
                other => panic!("{other:?}"),
            }
            assert_eq!(at.get("whole").await.response, Body::Stored(br#"{"a":1}"#.to_vec()));
            at.mark("cut", Action::MarkSucceeded, Some("{}")).await;
        }
    }
}

#[tokio::test]
async fn c71_encoded_bodies_are_read_and_their_bytes_kept() {
    // gzip of {"no":7} made by gzip -n, zlib with a marker behind it, GBK, and no text at all.
    let config = format!(
        "table = \"t\"\n{}",
        columns(
            "key = \"id\"\nbiz_type_value = \"X\"\nbiz_no = { from = \"request\", pointer = \"/no\" }\nrequest = { column = \"request_body\", decode_by = { column = \"codec\", map = { gzip = [\"gzip\"], \"base64\" = [\"base64\", \"gzip\"], form = [\"form\"] } }, charset = \"gbk\" }\ncreated_at = \"create_time\"\nupdated_at = \"update_time\""
        )
    );
    let statements = [
        "CREATE TABLE t (id VARCHAR(64) PRIMARY KEY, status VARCHAR(16), codec VARCHAR(16), request_body {blob}, create_time {ts}, update_time {ts})",
        "INSERT INTO t VALUES ('gbk', 'PROCESSING', '', {x:d6a7b8b6}, {old}, {old}), ('form', 'PROCESSING', 'form', {x:6e6f3d254436254137}, {old}, {old}), ('proto', 'PROCESSING', '', {x:0896ff01}, {old}, {old}), ('empty', 'PROCESSING', 'gzip', NULL, {old}, {old})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        let gbk = at.get("gbk").await.request;
        assert_eq!(
            (gbk.readable(), gbk.bytes()),
            (Some("支付".as_bytes()), Some([0xd6, 0xa7, 0xb8, 0xb6].as_slice()))
        );
        let form = at.get("form").await;
        assert_eq!(form.row.biz_no.as_deref(), Some("支"));
        assert_eq!(form.request.bytes(), Some(b"no=%D6%A7".as_slice()));
        let proto = at.get("proto").await.request;
        assert_eq!(proto.bytes(), Some([0x08, 0x96, 0xff, 0x01].as_slice()));
        assert_eq!(at.get("empty").await.request, Body::Empty);
    }
}

#[tokio::test]
async fn conditions_that_do_not_run_are_named_before_anything_is_read() {
    let config = format!(
        "table = \"t\"\nwhere = \"deleted = 0\"\n{}[[state]]\nis = \"PROCESSING\"\nwhen = \"no_such_column > 1\"\n",
        columns("key = \"id\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"")
    );
    let statements = ["CREATE TABLE t (id VARCHAR(64) PRIMARY KEY, deleted INT)"];
    for at in layouts(&ALL, &statements, &config).await {
        let status = at.found.status().await;
        assert_eq!(status.status, domain::source::Health::Degraded);
        for part in ["state 1 (PROCESSING): when", "no_such_column"] {
            assert!(status.detail.contains(part), "{}", status.detail);
        }
        assert!(!status.detail.contains("where ="), "{}", status.detail);
        let error = at.found.list(&RecordFilter::default(), None, 10).await.unwrap_err();
        assert!(error.to_string().contains("no_such_column"), "{error}");
    }
}

#[tokio::test]
async fn shards_of_one_table_are_one_list_and_a_missing_one_is_never_silent() {
    let config = format!("{}[[shard]]\ntable = \"t_{{n:02}}\"\nrange = \"0..2\"\n", columns(NATIVE));
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} (id VARCHAR(64) PRIMARY KEY, status VARCHAR(16), request_body {{text}}, response_body {{text}}, create_time {{ts}}, update_time {{ts}})"
        )
    };
    let insert = |name: &str, rows: &[(&str, &str, &str)]| {
        let rows: Vec<String> = rows
            .iter()
            .map(|(id, status, at)| format!("('{id}', '{status}', NULL, NULL, {at}, {{old}})"))
            .collect();
        format!("INSERT INTO {name} VALUES {}", rows.join(", "))
    };
    let statements = [
        table("t_00"),
        table("t_01"),
        table("t_02"),
        insert("t_00", &[("a", "PROCESSING", "{old}"), ("d", "SUCCESS", "NULL")]),
        insert("t_01", &[("b", "PROCESSING", "{old}"), ("e", "PROCESSING", "{now}")]),
        insert("t_02", &[("c", "FAILED", "{old}"), ("f", "TIMEOUT", "NULL")]),
    ];
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[
            ("a", Processing, true),
            ("b", Processing, true),
            ("c", Failed, false),
            ("d", Success, false),
            ("e", Processing, false),
            ("f", Timeout, false),
        ])
        .await;
        assert_eq!(at.row("b").await.id.locator, ["t_01", "b"]);
        assert_eq!(at.get("b").await.located, [Some("b".to_owned())]);
        at.mark("b", Action::MarkSucceeded, Some("{}")).await;
        at.test.run(&["DROP TABLE t_02"]).await;
        let error = at.found.list(&RecordFilter::default(), None, 10).await.unwrap_err();
        assert!(error.to_string().contains("t_02"), "{error}");
        assert_eq!(at.found.status().await.status, domain::source::Health::Degraded);
    }
}
