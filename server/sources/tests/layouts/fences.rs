//! Fences, barriers and logs of distributed transactions.

use crate::kit::*;
use domain::actions::Action;
use domain::record::RecordFilter;

#[tokio::test]
async fn s49_a_fence_whose_key_is_its_primary_key() {
    let config = format!(
        "table = \"tcc_fence_log\"\n{}{}",
        columns(
            "key = [\"xid\", \"branch_id\"]\nbiz_type = \"action_name\"\ncreated_at = \"gmt_create\"\nupdated_at = \"gmt_modified\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [1]\n[[state]]\nis = \"SUCCESS\"\nvalues = [2]\n[[state]]\nis = \"FAILED\"\nvalues = [3]\n[[state]]\nis = \"IGNORE\"\nvalues = [4]\n[write.mark_timed_out]\nstatus = 3\n"
    );
    let statements = [
        "CREATE TABLE tcc_fence_log (xid VARCHAR(128) NOT NULL, branch_id BIGINT NOT NULL, action_name VARCHAR(64) NOT NULL, status SMALLINT NOT NULL, gmt_create {ts} NOT NULL, gmt_modified {ts} NOT NULL, PRIMARY KEY (xid, branch_id))",
        "INSERT INTO tcc_fence_log VALUES ('10.0.0.1:8091:1', 9007199254740993, 'X', 1, {old}, {old}), ('10.0.0.1:8091:1', 2, 'X', 2, {old}, {old}), ('10.0.0.1:8091:1', 3, 'X', 4, {old}, {old}), ('10.0.0.1:8091:2', 2, 'X', 1, {now}, {now})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[
            ("10.0.0.1:8091:1|9007199254740993", Processing, true),
            ("10.0.0.1:8091:1|2", Success, false),
            ("10.0.0.1:8091:1|3", Ignored, false),
            ("10.0.0.1:8091:2|2", Processing, false),
        ])
        .await;
        let after = at.mark("10.0.0.1:8091:1|9007199254740993", Action::MarkTimedOut, None).await;
        assert_eq!(after.row.state, Failed, "rolled back stands for timed out");
        at.mark("10.0.0.1:8091:2|2", Action::MarkSucceeded, None).await;
    }
}

#[tokio::test]
async fn s50_a_decoder_that_another_column_names() {
    let config = format!(
        "table = \"undo_log\"\n{}{}",
        columns(
            "key = [\"xid\", \"branch_id\"]\nbiz_type_value = \"X\"\nstatus = \"log_status\"\nrequest = { column = \"rollback_info\", decode_by = { column = \"context\", map = { \"compressorType=DEFLATER\" = [\"hex\"], \"compressorType=NONE\" = [] } } }\ncreated_at = \"log_created\"\nupdated_at = \"log_modified\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [0]\n[[state]]\nis = \"IGNORE\"\nvalues = [1]\n"
    );
    let statements = [
        "CREATE TABLE undo_log (branch_id BIGINT NOT NULL, xid VARCHAR(128) NOT NULL, context VARCHAR(128) NOT NULL, rollback_info {blob} NOT NULL, log_status INT NOT NULL, log_created {ts} NOT NULL, log_modified {ts} NOT NULL, UNIQUE (xid, branch_id))",
        "INSERT INTO undo_log VALUES (1, 'x', 'serializer=jackson&compressorType=DEFLATER', {x:37622263223a317d}, 0, {old}, {old}), (2, 'x', 'serializer=jackson&compressorType=NONE', {x:7b7d}, 1, {old}, {old})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[("x|1", Processing, true), ("x|2", Ignored, false)]).await;
        let (first, second) = (at.get("x|1").await.request, at.get("x|2").await.request);
        assert_eq!(second.readable(), Some(b"{}".as_slice()));
        // The bytes are no hex: said, and shown as they are.
        assert_eq!(first.readable(), Some(b"7b\"c\":1}".as_slice()));
        assert!(matches!(first, domain::record::Body::Decoded(decoded) if decoded.how.contains("hex")));
    }
}

#[tokio::test]
async fn s51_a_timeout_a_row_added_to_its_own_beginning() {
    let config = format!(
        "table = \"global_table\"\n{}{}",
        columns(
            "key = \"xid\"\nbiz_type_value = \"X\"\nfacts = [\"application_id\"]\ncreated_at = { column = \"begin_time\", kind = \"epoch_ms\" }\nupdated_at = \"gmt_modified\"\ndeadline = { column = \"begin_time\", kind = \"epoch_ms\", plus_ms = \"timeout\" }"
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [1, 2, 3, 4, 5, 6, 7, 8]\n[[state]]\nis = \"SUCCESS\"\nvalues = [9]\n[[state]]\nis = \"FAILED\"\nvalues = [10, 12, 14]\n[[state]]\nis = \"TIMEOUT\"\nvalues = [13, 11]\n[[state]]\nis = \"IGNORE\"\nvalues = [0, 15, 16]\n"
    );
    let statements = [
        "CREATE TABLE global_table (xid VARCHAR(128) PRIMARY KEY NOT NULL, status SMALLINT NOT NULL, application_id VARCHAR(64), timeout INT, begin_time BIGINT, gmt_create {ts}, gmt_modified {ts})",
        "INSERT INTO global_table (xid, status, timeout, begin_time, gmt_modified) VALUES ('late', 1, 60000, {old_ms}, {old}), ('long', 1, 600000, {now_ms}, {old}), ('none', 5, NULL, {old_ms}, {old}), ('done', 9, 1, {old_ms}, {old}), ('odd', 17, 1, {old_ms}, {old})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[
            ("late", Processing, true),
            ("long", Processing, false),
            ("none", Processing, true),
            ("done", Success, false),
            ("odd", Unknown, false),
        ])
        .await;
        let after = at.mark("late", Action::MarkTimedOut, None).await;
        assert_eq!(after.row.native_state.as_deref(), Some("13"));
    }
}

#[tokio::test]
async fn s52_a_barrier_of_four_nullable_parts() {
    let config = format!(
        "table = \"barrier\"\n{}{}",
        columns(
            "key = [\"gid\", \"branch_id\", \"op\", \"barrier_id\"]\nbiz_type = \"trans_type\"\nstatus = \"reason\"\ncreated_at = \"create_time\"\nupdated_at = \"update_time\""
        ),
        "[[state]]\nis = \"IGNORE\"\nvalues = [\"rollback\"]\n[[state]]\nis = \"SUCCESS\"\nalways = true\n"
    );
    let statements = [
        "CREATE TABLE barrier (trans_type VARCHAR(45) DEFAULT '', gid VARCHAR(128) DEFAULT '', branch_id VARCHAR(128) DEFAULT '', op VARCHAR(45) DEFAULT '', barrier_id VARCHAR(45) DEFAULT '', reason VARCHAR(45) DEFAULT '', create_time {ts}, update_time {ts}, UNIQUE (gid, branch_id, op, barrier_id))",
        "INSERT INTO barrier (gid, branch_id, op, barrier_id, reason, create_time) VALUES ('g', '01', 'try', '', 'try', {old}), ('g', '01', 'try', NULL, 'rollback', {old}), (NULL, '', NULL, '-', 'x', {old}), ('', '', '', '=', NULL, NULL)",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[
            ("g|01|try|", Success, false),
            ("g|01|try|\\N", Ignored, false),
            ("\\N||\\N|-", Success, false),
            ("|||=", Success, false),
        ])
        .await;
        let id = at.row("g|01|try|\\N").await.id;
        assert_eq!(id.locator, ["=g", "=01", "=try", "-"], "NULL is told from every value");
        let located = at.get("g|01|try|\\N").await.located;
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(located, [some("g"), some("01"), some("try"), None], "reverse checks take the values");
        let nothing = RecordFilter { key: Some("\\N|\\N|\\N|\\N".into()), ..RecordFilter::default() };
        assert_eq!(at.keys(&nothing).await.len(), 0);
    }
}

#[tokio::test]
async fn s53_a_body_in_one_of_two_columns() {
    let config = format!(
        "table = \"trans_branch_op\"\n{}{}",
        columns(
            "key = [\"gid\", \"branch_id\", \"op\"]\nbiz_type_value = \"X\"\nbiz_no = { from = \"request\", pointer = \"/no\" }\nrequest = { coalesce = [\"bin_data\", \"data\"] }\ncreated_at = \"create_time\"\nupdated_at = \"update_time\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"prepared\", \"submitted\", \"aborting\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"succeed\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"failed\"]\n[write.mark_succeeded]\nfinish_time = { now = true }\n[write.mark_timed_out]\nstatus = \"failed\"\nrollback_time = { now = true }\n"
    );
    let statements = [
        "CREATE TABLE trans_branch_op (id {serial}, gid VARCHAR(128) NOT NULL, url VARCHAR(1024), data {text}, bin_data {blob}, branch_id VARCHAR(128) NOT NULL, op VARCHAR(45) NOT NULL, status VARCHAR(45) NOT NULL, finish_time {ts}, rollback_time {ts}, create_time {ts}, update_time {ts}, UNIQUE (gid, branch_id, op))",
        "INSERT INTO trans_branch_op (gid, branch_id, op, status, data, bin_data, create_time, update_time) VALUES ('g', '1', 'a', 'prepared', '{\"no\":\"old\"}', {x:7b226e6f223a3930303731393932353437343039393377}, {old}, {old}), \
         ('g', '2', 'a', 'aborting', '{\"no\":9007199254740993}', NULL, {old}, {old}), ('g', '3', 'a', 'succeed', NULL, NULL, {old}, {old})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[("g|1|a", Processing, true), ("g|2|a", Processing, true), ("g|3|a", Success, false)])
            .await;
        let detail = at.get("g|2|a").await;
        assert_eq!(detail.row.biz_no.as_deref(), Some("9007199254740993"));
        assert_eq!(at.get("g|1|a").await.row.biz_no, None, "the first column is no JSON");
        use domain::ports::Source;
        let by_number = RecordFilter { biz_no: Some("old".into()), ..RecordFilter::default() };
        let error = at.found.list(&by_number, None, 10).await.unwrap_err();
        assert!(error.to_string().contains("search by key"), "{error}");
        at.mark("g|1|a", Action::MarkSucceeded, None).await;
        at.mark("g|2|a", Action::MarkTimedOut, None).await;
        assert!(at.cell("SELECT rollback_time FROM trans_branch_op WHERE branch_id = '2'").await.is_some());
    }
}
