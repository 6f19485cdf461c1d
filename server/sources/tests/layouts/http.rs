//! Tables made for idempotent HTTP requests.

use crate::kit::*;
use domain::actions::Action;
use domain::record::{Body, RecordFilter};

const NULLNESS: &str = r#"
[[state]]
is = "SUCCESS"
not_null = ["response_code"]
[[state]]
is = "PROCESSING"
not_null = ["locked_at"]
[[state]]
is = "FAILED"
null = ["locked_at", "response_code"]
[write.mark_succeeded]
response_code = 200
response_body = { response = true }
locked_at = { null = true }
recovery_point = "finished"
last_run_at = { now = true }
[write.mark_timed_out]
locked_at = { null = true }
last_run_at = { now = true }
"#;

#[tokio::test]
async fn s02_state_by_nullness_with_a_composite_key() {
    let config = format!(
        "table = \"idempotency_keys\"\n{}{NULLNESS}",
        columns(
            "key = [\"user_id\", \"idempotency_key\"]\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nrequest = { parts = { method = \"request_method\", params = \"request_params\" } }\n\
             response = \"response_body\"\ncreated_at = \"created_at\"\nage_from = \"locked_at\"\nresponse_status = \"response_code\"\nphase = \"recovery_point\""
        )
    );
    let statements = [
        "CREATE TABLE idempotency_keys (id BIGSERIAL PRIMARY KEY, created_at TIMESTAMPTZ NOT NULL DEFAULT now(), idempotency_key TEXT NOT NULL CHECK (char_length(idempotency_key) <= 100), \
         last_run_at TIMESTAMPTZ NOT NULL DEFAULT now(), locked_at TIMESTAMPTZ DEFAULT now(), request_method TEXT NOT NULL, request_params JSONB NOT NULL, request_path TEXT NOT NULL, \
         response_code INT NULL, response_body JSONB NULL, recovery_point TEXT NOT NULL, user_id BIGINT NOT NULL, UNIQUE (user_id, idempotency_key))",
        "INSERT INTO idempotency_keys (user_id, idempotency_key, created_at, locked_at, request_method, request_params, request_path, response_code, response_body, recovery_point) VALUES \
         (1, 'a|b', {old}, {old}, 'POST', '{\"amount\": 9007199254740993.10}', '/rides', NULL, NULL, 'ride_created'), (1, 'done', {old}, NULL, 'POST', '{}', '/rides', 201, '{\"ok\": true}', 'finished'), \
         (2, 'a|b', {now}, {now}, 'POST', '{}', '/rides', NULL, NULL, 'started'), (3, '<script>\"''', {old}, NULL, 'POST', '{}', '/rides', NULL, NULL, 'charge_created')",
    ];
    for at in layouts(&[Postgres], &statements, &config).await {
        at.holds(&[
            ("1|a\\|b", Processing, true),
            ("1|done", Success, false),
            ("2|a\\|b", Processing, false),
            ("3|<script>\"'", Failed, false),
        ])
        .await;
        // One part of the key finds all of it.
        let part = RecordFilter { key: Some("a|b".into()), ..RecordFilter::default() };
        assert_eq!(at.keys(&part).await, ["1|a\\|b", "2|a\\|b"]);
        let user = RecordFilter { key: Some("1".into()), ..RecordFilter::default() };
        assert_eq!(at.keys(&user).await, ["1|a\\|b", "1|done"]);
        let detail = at.get("1|a\\|b").await;
        assert!(String::from_utf8_lossy(detail.request.readable().unwrap()).contains("9007199254740993.10"));
        let after = at.mark("1|a\\|b", Action::MarkSucceeded, Some(r#"{"id": 7}"#)).await;
        assert!(after.facts.contains(&("response_code".into(), "200".into())), "{:?}", after.facts);
        let after = at.mark("2|a\\|b", Action::MarkTimedOut, None).await;
        assert_eq!(after.row.state, Failed, "unlocked and unanswered: it may be tried again");
    }
}

#[tokio::test]
async fn s03_everything_nullable_on_two_databases() {
    let config = format!(
        "table = \"idempotency_key\"\n{}{}",
        columns(
            "key = \"idempotency_key\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nresponse = \"response_body\"\ncreated_at = \"created_at\"\nage_from = \"locked_at\""
        ),
        "[[state]]\nis = \"SUCCESS\"\nequals = { recovery_point = \"finished\" }\n[[state]]\nis = \"PROCESSING\"\nnot_null = [\"locked_at\"]\n\
         [write.mark_succeeded]\nrecovery_point = \"finished\"\nlocked_at = { null = true }\n"
    );
    let statements = [
        "CREATE TABLE idempotency_key (id VARCHAR(64) PRIMARY KEY, idempotency_key VARCHAR(64) NOT NULL UNIQUE, created_at {ts}, locked_at {ts}, request_method TEXT, request_params {json}, \
         request_path TEXT, response_code INT, response_body {json}, recovery_point TEXT NOT NULL DEFAULT 'started')",
        "INSERT INTO idempotency_key (id, idempotency_key, created_at, locked_at, recovery_point) VALUES ('ikey_1', 'one', {old}, {old}, 'started'), ('ikey_2', 'two', NULL, NULL, 'a-new-word'), ('ikey_3', 'three', {old}, {old}, 'finished')",
    ];
    for at in layouts(&[Postgres, Sqlite], &statements, &config).await {
        at.holds(&[("one", Processing, true), ("two", Unknown, false), ("three", Success, false)]).await;
        assert_eq!(at.row("one").await.id.locator, ["ikey_1"]);
        assert!(at.row("two").await.native_state.unwrap().contains("a-new-word"));
        let after = at.mark("one", Action::MarkSucceeded, Some(r#"{"ok":true}"#)).await;
        assert!(!after.row.stuck);
        assert!(at.refused("one", Action::MarkTimedOut).await.contains("[source.write.mark_timed_out]"));
    }
}

#[tokio::test]
async fn s06_a_deadline_a_row_and_binary_bodies() {
    let config = format!(
        "table = \"idempotency_records\"\n{}{}",
        columns(
            "key = \"idempotency_key\"\nbiz_type_value = \"X\"\nresponse = \"response_body\"\ncreated_at = \"created_at\"\nupdated_at = \"completed_at\"\ndeadline = \"lock_expires_at\"\nresponse_status = \"response_code\"\nresponse_headers = \"response_headers\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"IN_PROGRESS\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"COMPLETED\"]\n[[state]]\nis = \"TIMEOUT\"\nvalues = [\"EXPIRED\"]\n"
    );
    let statements = [
        "CREATE TABLE idempotency_records (idempotency_key VARCHAR(255) NOT NULL PRIMARY KEY, status VARCHAR(20) NOT NULL, locked_at {naive}, lock_expires_at {naive}, response_code INT, response_headers TEXT, \
         response_body {blob}, request_fingerprint VARCHAR(64), lock_timeout_ms BIGINT, completed_at {naive}, created_at {naive}, expires_at {naive})",
        "INSERT INTO idempotency_records (idempotency_key, status, created_at, lock_expires_at, completed_at, response_body) VALUES ('late', 'IN_PROGRESS', {now}, {old}, NULL, NULL), ('early', 'IN_PROGRESS', {old}, {soon}, NULL, NULL), \
         ('done', 'COMPLETED', {old}, {old}, {old}, {x:fffe00})",
    ]
    .map(|sql| sql.to_owned());
    for dialect in [Postgres, Mysql] {
        let naive = if dialect == Postgres { "TIMESTAMP(6)" } else { "TIMESTAMP(6) NULL" };
        let statements: Vec<String> = statements.iter().map(|sql| sql.replace("{naive}", naive)).collect();
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        for at in layouts(&[dialect], &statements, &config).await {
            at.holds(&[("late", Processing, true), ("early", Processing, false), ("done", Success, false)])
                .await;
            assert_eq!(at.get("done").await.response, Body::Stored(vec![0xff, 0xfe, 0]));
            let after = at.mark("late", Action::MarkSucceeded, Some("done 键")).await;
            assert_eq!(after.response, Body::Stored("done 键".into()));
            at.mark("early", Action::MarkTimedOut, None).await;
        }
    }
}

#[tokio::test]
async fn s08_an_exotic_column_spoils_nothing() {
    let config = format!(
        "table = \"idempotency\"\n{}{}",
        columns(
            "key = [\"user_id\", \"idempotency_key\"]\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nresponse = \"response_body\"\ncreated_at = \"created_at\"\nresponse_headers = \"response_headers\""
        ),
        "[[state]]\nis = \"SUCCESS\"\nnot_null = [\"response_status_code\"]\n[[state]]\nis = \"PROCESSING\"\nnull = [\"response_status_code\"]\n[write.mark_succeeded]\nresponse_status_code = 200\n"
    );
    let statements = [
        "CREATE TYPE header_pair AS (name TEXT, value BYTEA)",
        "CREATE TABLE idempotency (user_id UUID NOT NULL, idempotency_key TEXT NOT NULL, response_status_code SMALLINT, response_headers header_pair[], response_body BYTEA, created_at TIMESTAMPTZ NOT NULL, PRIMARY KEY (user_id, idempotency_key))",
        "INSERT INTO idempotency VALUES ('0f5b1b9e-9b5c-4a55-9f5e-0123456789ab', 'k', NULL, NULL, NULL, {old}), \
         ('0f5b1b9e-9b5c-4a55-9f5e-0123456789ab', '', 200, ARRAY[ROW('a', 'b'::bytea)::header_pair], 'ok', {old})",
    ];
    for at in layouts(&[Postgres], &statements, &config).await {
        let user = "0f5b1b9e-9b5c-4a55-9f5e-0123456789ab";
        at.holds(&[(&format!("{user}|k"), Processing, true), (&format!("{user}|"), Success, false)]).await;
        let facts = at.get(&format!("{user}|")).await.facts;
        assert!(
            facts.iter().any(|(name, value)| name == "response_headers" && value.contains("(a,")),
            "{facts:?}"
        );
        at.mark(&format!("{user}|k"), Action::MarkSucceeded, Some("ok")).await;
        assert!(at.refused(&format!("{user}|k"), Action::MarkTimedOut).await.contains("no status column"));
    }
}

#[tokio::test]
async fn s09_c63_enum_states_and_a_uuid_key() {
    let config = format!(
        "table = \"idempotency_keys\"\n{}{}",
        columns(
            "key = [\"key\", \"user_id\"]\nbiz_type_value = \"X\"\nresponse = \"response_body\"\ncreated_at = \"created_at\"\nlease_until = \"locked_until\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"pending\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"completed\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"failed_retryable\", \"failed_permanent\"]\n"
    );
    let statements = [
        "CREATE TYPE idem_status AS ENUM ('pending', 'completed', 'failed_retryable', 'failed_permanent')",
        "CREATE TABLE idempotency_keys (key UUID NOT NULL, user_id TEXT NOT NULL, status idem_status NOT NULL, response_status_code SMALLINT, response_headers JSONB, response_body BYTEA, created_at TIMESTAMPTZ NOT NULL, locked_until TIMESTAMPTZ, PRIMARY KEY (key, user_id))",
        "INSERT INTO idempotency_keys (key, user_id, status, created_at, locked_until) VALUES ('00000000-0000-0000-0000-000000000001', 'u', 'pending', {old}, {old}), ('00000000-0000-0000-0000-000000000002', 'u', 'pending', {old}, {soon}), \
         ('00000000-0000-0000-0000-000000000003', 'u', 'failed_retryable', {old}, NULL), ('00000000-0000-0000-0000-000000000004', 'u', 'failed_permanent', {old}, NULL)",
    ];
    for at in layouts(&[Postgres], &statements, &config).await {
        let key = |n: u8| format!("00000000-0000-0000-0000-00000000000{n}|u");
        at.holds(&[
            (&key(1), Processing, true),
            (&key(2), Processing, false),
            (&key(3), Failed, false),
            (&key(4), Failed, false),
        ])
        .await;
        let none = RecordFilter { key: Some("not a uuid".into()), ..RecordFilter::default() };
        assert_eq!(at.keys(&none).await.len(), 0);
        let by_part = RecordFilter {
            key: Some("00000000-0000-0000-0000-000000000003".into()),
            ..RecordFilter::default()
        };
        assert_eq!(at.keys(&by_part).await, [key(3)]);
        at.mark(&key(1), Action::MarkSucceeded, Some("ok")).await;
    }
}

#[tokio::test]
async fn s10_a_search_hashes_what_is_typed() {
    let config = format!(
        "table = \"idempotency_records\"\n{}{}",
        columns(
            "key = [\"scope\", \"idempotency_key_hash\"]\nkey_transform = \"sha256_hex\"\nbiz_type_value = \"X\"\nresponse = \"response_body\"\ncreated_at = \"created_at\"\nupdated_at = \"updated_at\"\nlease_until = \"locked_until\"\nerror = \"error_reason\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"processing\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"succeeded\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"failed_retryable\"]\n[[state]]\nis = \"TIMEOUT\"\nvalues = [\"expired\"]\n"
    );
    let statements = [
        "CREATE TABLE idempotency_records (id {serial}, scope VARCHAR(128) NOT NULL, idempotency_key_hash VARCHAR(64) NOT NULL, status VARCHAR(32) NOT NULL, response_status INT, response_body TEXT, error_reason VARCHAR(128), locked_until {ts}, created_at {ts}, updated_at {ts}, UNIQUE (scope, idempotency_key_hash))",
        "INSERT INTO idempotency_records (scope, idempotency_key_hash, status, created_at, updated_at) VALUES ('pay', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', 'processing', {old}, {old}), ('pay', 'ff', 'odd', {old}, {old})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        let whole = "pay|ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        at.holds(&[(whole, Processing, true), ("pay|ff", Unknown, false)]).await;
        assert_eq!(at.row("abc").await.key, whole, "found by the key as the client sent it");
        at.mark(whole, Action::MarkTimedOut, None).await;
    }
}

#[tokio::test]
async fn s13_c62_tinyint_states_behind_a_soft_delete() {
    let config = format!(
        "table = \"t_idempotent_record\"\nwhere = \"del_flag = 0\"\nzone = \"Asia/Shanghai\"\n{}{}",
        columns(
            "key = \"idempotent_key\"\nbiz_type = \"business_type\"\nbiz_no = \"business_id\"\nresponse = \"result_data\"\ncreated_at = \"create_time\"\nupdated_at = \"update_time\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [0]\n[[state]]\nis = \"SUCCESS\"\nvalues = [1]\n[[state]]\nis = \"FAILED\"\nvalues = [2]\n"
    );
    let statements = [
        "CREATE TABLE t_idempotent_record (id VARCHAR(32) NOT NULL PRIMARY KEY, idempotent_key VARCHAR(128) NOT NULL, business_type VARCHAR(64), business_id VARCHAR(64), status TINYINT(1) DEFAULT 0, result_data TEXT, \
         expire_time DATETIME, del_flag TINYINT DEFAULT 0, create_time DATETIME, update_time DATETIME ON UPDATE CURRENT_TIMESTAMP, UNIQUE KEY uk (idempotent_key)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "INSERT INTO t_idempotent_record (id, idempotent_key, business_type, business_id, status, del_flag, create_time, update_time) VALUES ('1', 'pay:7:1', 'X', '7', 0, 0, {old}, {old}), ('2', 'pay:8:1', 'X', '8', 1, 0, {old}, {old}), \
         ('3', 'pay:9:1', 'Y', '9', 2, 0, {old}, {old}), ('4', 'pay:10:1', NULL, NULL, 3, 0, NULL, NULL), ('5', 'gone', 'X', '7', 0, 1, {old}, {old}), ('6', '支付:😂', 'X', '7', 0, 0, '2038-01-01 00:00:00', {old})",
    ];
    for at in layouts(&[Mysql], &statements, &config).await {
        at.holds(&[
            ("pay:7:1", Processing, true),
            ("pay:8:1", Success, false),
            ("pay:9:1", Failed, false),
            ("pay:10:1", Unknown, false),
            ("支付:😂", Processing, false),
        ])
        .await;
        assert!(at.row("支付:😂").await.age_seconds.unwrap() < 0, "a row of the future shows so");
        assert!(at.refused("pay:7:1", Action::MarkTimedOut).await.contains("TIMEOUT"));
        let after = at.mark("pay:7:1", Action::MarkSucceeded, Some("{}")).await;
        assert_eq!(after.row.native_state.as_deref(), Some("1"));
        assert_eq!(at.row("pay:7:1").await.created_at.unwrap().to_rfc3339(), "2020-01-01T19:04:05+00:00");
    }
}

#[tokio::test]
async fn s12_a_business_number_that_is_part_of_the_key() {
    let config = format!(
        "table = \"t_idempotent_record\"\n{}",
        columns(
            "key = \"idempotent_key\"\nbiz_type_value = \"X\"\nbiz_no = { from = \"key\", pattern = \"pay:(\\\\d+):.*\" }\nresponse = \"result\"\ncreated_at = \"created_at\"\nupdated_at = \"updated_at\""
        )
    );
    let statements = [
        "CREATE TABLE t_idempotent_record (id {serial}, idempotent_key VARCHAR(128) NOT NULL UNIQUE, status VARCHAR(20), result {text}, result_type VARCHAR(255), trace_id VARCHAR(64), created_at {ts}, updated_at {ts}, expire_at {ts})",
        "INSERT INTO t_idempotent_record (idempotent_key, status, created_at, updated_at) VALUES ('pay:7:1', 'PROCESSING', {old}, {old}), ('pay:77:7', 'SUCCESS', {old}, {old}), ('other', 'FAILED', {old}, {old})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[("pay:7:1", Processing, true), ("pay:77:7", Success, false), ("other", Failed, false)])
            .await;
        assert_eq!(at.row("pay:77:7").await.biz_no.as_deref(), Some("77"));
        assert_eq!(at.row("other").await.biz_no, None);
        let number = |number: &str| RecordFilter { biz_no: Some(number.into()), ..RecordFilter::default() };
        assert_eq!(at.keys(&number("7")).await, ["pay:7:1"], "77 and :7 are not 7");
        assert!(at.refused("pay:7:1", Action::Replay).await.contains("replay"));
    }
}

#[tokio::test]
async fn s15_presence_only_tables_say_that_nothing_can_be_seen_stuck() {
    use domain::ports::Source;
    let config = format!(
        "table = \"t_idempotent\"\n{}[[state]]\nis = \"SUCCESS\"\nalways = true\n",
        columns(
            "key = \"key\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nresponse = \"value\"\ncreated_at = \"created_at\""
        )
    );
    let statements = [
        "CREATE TABLE t_idempotent (id BIGINT PRIMARY KEY, `key` VARCHAR(128) UNIQUE, `value` VARCHAR(500), expire_time DATETIME, created_at DATETIME)",
        "INSERT INTO t_idempotent (id, `key`, `value`, created_at) VALUES (1, 'a', 'ok', {old}), (2, 'b', NULL, {old}), (3, NULL, NULL, NULL)",
    ];
    for at in layouts(&[Mysql], &statements, &config).await {
        at.holds(&[("a", Success, false), ("b", Success, false), ("", Success, false)]).await;
        let status = at.found.status().await;
        assert!(status.detail.contains("nothing can be seen stuck"), "{}", status.detail);
        assert!(at.refused("a", Action::MarkSucceeded).await.contains("only when the work is done"));
    }
}

#[tokio::test]
async fn s18_times_kept_as_text_in_any_format() {
    for (format, old, now, bad) in [
        ("%Y/%m/%d %H:%M", "2020/01/02 03:04", "2999/01/02 03:04", "yesterday"),
        ("%d.%m.%Y %H:%M:%S", "02.01.2020 03:04:05", "02.01.2999 03:04:05", "31.13.2020 00:00:00"),
    ] {
        let config = format!(
            "table = \"idempotency\"\n{}{}",
            columns(&format!(
                "key = \"key\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nresponse = \"body\"\ncreated_at = {{ column = \"date\", kind = \"text\", format = \"{format}\", zone = \"Asia/Shanghai\" }}\nresponse_status = \"statusCode\""
            )),
            "[[state]]\nis = \"SUCCESS\"\nnot_null = [\"statusCode\"]\n[[state]]\nis = \"PROCESSING\"\nnull = [\"statusCode\"]\n"
        );
        let quote =
            |sql: &str, dialect| if dialect == Mysql { sql.replace('"', "`") } else { sql.to_owned() };
        for dialect in ALL {
            let statements = [
                quote(
                    "CREATE TABLE idempotency (\"key\" VARCHAR(64) PRIMARY KEY, \"date\" VARCHAR(64), \"statusCode\" INT, headers VARCHAR(64), body VARCHAR(64), \"requestHash\" VARCHAR(64))",
                    dialect,
                ),
                quote(
                    &format!(
                        "INSERT INTO idempotency (\"key\", \"date\", \"statusCode\") VALUES ('old', '{old}', NULL), ('new', '{now}', NULL), ('bad', '{bad}', NULL), ('none', NULL, 200), ('zz', '', 200)"
                    ),
                    dialect,
                ),
            ];
            for at in layouts(&[dialect], &[&statements[0], &statements[1]], &config).await {
                at.holds(&[
                    ("old", Processing, true),
                    ("new", Processing, false),
                    ("bad", Processing, false),
                    ("none", Success, false),
                    ("zz", Success, false),
                ])
                .await;
                assert!(at.row("old").await.created_at.unwrap().to_rfc3339().starts_with("2020-01-01T19:04"));
            }
        }
    }
}

#[tokio::test]
async fn s20_states_that_are_neither_stuck_nor_failed_are_ignored() {
    let config = format!(
        "table = \"m_portfolio_command_source\"\n{}{}",
        columns(
            "key = [\"action_name\", \"entity_name\", \"idempotency_key\"]\nbiz_type = \"entity_name\"\nrequest = \"command_as_json\"\nresponse = \"result\"\ncreated_at = { column = \"made_on_date_utc\", zone = \"UTC\" }\nresponse_status = \"result_status_code\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [4]\n[[state]]\nis = \"SUCCESS\"\nvalues = [1]\n[[state]]\nis = \"FAILED\"\nvalues = [0, 5]\n[[state]]\nis = \"IGNORE\"\nvalues = [2, 3]\n"
    );
    let statements = [
        "CREATE TABLE m_portfolio_command_source (id {serial}, action_name VARCHAR(50) NOT NULL, entity_name VARCHAR(50) NOT NULL, idempotency_key VARCHAR(50), command_as_json {text}, status SMALLINT, result {text}, result_status_code INT, made_on_date {ts}, made_on_date_utc {ts}, UNIQUE (action_name, entity_name, idempotency_key))",
        "INSERT INTO m_portfolio_command_source (action_name, entity_name, idempotency_key, status, made_on_date_utc) VALUES ('CREATE', 'LOAN', 'a', 4, {old}), ('CREATE', 'LOAN', 'b', 2, {old}), ('CREATE', 'LOAN', 'c', 3, {old}), ('CREATE', 'LOAN', 'd', 5, {old}), ('CREATE', 'LOAN', NULL, 1, {old}), ('CREATE', 'LOAN', '', 9, {old})",
    ];
    for at in layouts(&[Postgres, Mysql], &statements, &config).await {
        at.holds(&[
            ("CREATE|LOAN|a", Processing, true),
            ("CREATE|LOAN|b", Ignored, false),
            ("CREATE|LOAN|c", Ignored, false),
            ("CREATE|LOAN|d", Failed, false),
            ("CREATE|LOAN|\\N", Success, false),
            ("CREATE|LOAN|", Unknown, false),
        ])
        .await;
    }
}

#[tokio::test]
async fn s21_binary_keys_are_shown_and_found_as_hex() {
    let config = format!(
        "table = \"idempotency_records\"\n{}[[state]]\nis = \"SUCCESS\"\nalways = true\n",
        columns(
            "key = \"idempotency_key\"\nkey_transform = \"sha256_hex\"\nbiz_type = \"resource_type\"\nstatus = \"not stored\"\ncreated_at = \"created_at\"\nfacts = [\"resource_id\"]"
        )
    );
    let statements = [
        "CREATE TABLE idempotency_records (id {serial}, idempotency_key {key} NOT NULL UNIQUE, resource_type VARCHAR(64), resource_id VARCHAR(64), created_at {ts})",
        "INSERT INTO idempotency_records (idempotency_key, resource_type, resource_id, created_at) VALUES ({x:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad}, 'Invoice', '7', {old}), ({x:00ff}, NULL, NULL, {old})",
    ];
    for dialect in ALL {
        let key = if dialect == Mysql { "VARBINARY(64)" } else { "{blob}" };
        let statements = statements.map(|sql| sql.replace("{key}", key));
        for at in layouts(&[dialect], &[&statements[0], &statements[1]], &config).await {
            let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
            at.holds(&[(hash, Success, false), ("00ff", Success, false)]).await;
            assert_eq!(at.row("abc").await.key, hash);
            assert_eq!(at.row("00FF").await.key, "00ff");
        }
    }
}

#[tokio::test]
async fn s22_stuck_by_two_rules_with_two_clocks() {
    let config = format!(
        "table = \"inbound_webhooks\"\nstuck_after = \"2h\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type = \"event_type\"\nrequest = \"payload\"\ncreated_at = \"created_at\"\nupdated_at = \"updated_at\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"processing\"]\nage_from = \"processing_at\"\n[[state]]\nis = \"PROCESSING\"\nvalues = [\"pending\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"succeeded\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"failed\"]\n"
    );
    let statements = [
        "CREATE TYPE hook_status AS ENUM ('pending', 'processing', 'succeeded', 'failed')",
        "CREATE TABLE inbound_webhooks (id UUID PRIMARY KEY, code TEXT, event_type TEXT, payload JSONB, status hook_status NOT NULL, processing_at TIMESTAMP, created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP)",
        "INSERT INTO inbound_webhooks (id, status, processing_at, created_at, payload) VALUES ('00000000-0000-0000-0000-000000000001', 'processing', {now}, {old}, '{}'), ('00000000-0000-0000-0000-000000000002', 'processing', {old}, {old}, '{}'), \
         ('00000000-0000-0000-0000-000000000003', 'pending', NULL, {old}, '{}'), ('00000000-0000-0000-0000-000000000004', 'pending', {old}, {now}, '{}'), ('00000000-0000-0000-0000-000000000005', 'succeeded', {old}, {old}, '{}')",
    ];
    for at in layouts(&[Postgres], &statements, &config).await {
        let key = |n: u8| format!("00000000-0000-0000-0000-00000000000{n}");
        at.holds(&[
            (&key(1), Processing, false),
            (&key(2), Processing, true),
            (&key(3), Processing, true),
            (&key(4), Processing, false),
            (&key(5), Success, false),
        ])
        .await;
    }
}

#[tokio::test]
async fn s24_quoted_mixed_case_names() {
    let config = format!(
        "table = \"IdempotencyKey\"\n{}{}",
        columns(
            "key = \"key\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nresponse = \"responseBody\"\ncreated_at = \"createdAt\"\nage_from = \"lockedAt\"\nresponse_status = \"statusCode\""
        ),
        "[[state]]\nis = \"SUCCESS\"\nnot_null = [\"statusCode\"]\n[[state]]\nis = \"PROCESSING\"\nalways = true\n[write.mark_succeeded]\nstatusCode = 200\n"
    );
    let statements = [
        "CREATE TABLE \"IdempotencyKey\" (key TEXT PRIMARY KEY, \"userId\" INT, path TEXT, method TEXT, \"statusCode\" INT, \"responseBody\" TEXT, \"createdAt\" TIMESTAMP(3) NOT NULL, \"lockedAt\" TIMESTAMP(3) NOT NULL)",
        "INSERT INTO \"IdempotencyKey\" (key, \"createdAt\", \"lockedAt\", \"statusCode\") VALUES ('a', {old}, {old}, NULL), ('b', {old}, {now}, NULL), ('c', {old}, {old}, 200)",
    ];
    for at in layouts(&[Postgres], &statements, &config).await {
        at.holds(&[("a", Processing, true), ("b", Processing, false), ("c", Success, false)]).await;
        at.mark("a", Action::MarkSucceeded, Some("answer")).await;
    }
}

#[tokio::test]
async fn s26_sqlite_text_times_and_no_state() {
    let config = format!(
        "table = \"idempotency_keys\"\n{}[[state]]\nis = \"SUCCESS\"\nalways = true\n",
        columns(
            "key = \"key\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nresponse = \"response\"\ncreated_at = { column = \"created_at\", kind = \"iso_text\" }"
        )
    );
    let statements = [
        "CREATE TABLE idempotency_keys (key VARCHAR(64) PRIMARY KEY, response VARCHAR(64), endpoint VARCHAR(64), created_at VARCHAR(64), expires_at VARCHAR(64))",
        "INSERT INTO idempotency_keys (key, created_at) VALUES ('a', '2020-01-02T03:04:05Z'), ('b', '2020-01-02T03:04:05.250Z'), ('c', 'x'), ('d', NULL)",
    ];
    for dialect in ALL {
        let statements = statements.map(|sql| {
            if dialect == Mysql {
                sql.replace("key V", "`key` V").replace("(key,", "(`key`,")
            } else {
                sql.to_owned()
            }
        });
        for at in layouts(&[dialect], &[&statements[0], &statements[1]], &config).await {
            at.holds(&[
                ("a", Success, false),
                ("b", Success, false),
                ("c", Success, false),
                ("d", Success, false),
            ])
            .await;
            assert_eq!(at.row("b").await.created_at.unwrap().timestamp_subsec_millis(), 250);
        }
    }
}
