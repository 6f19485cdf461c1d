//! Notifications, webhooks and job logs of payment systems.

use crate::kit::*;
use domain::actions::Action;
use domain::record::RecordFilter;

#[tokio::test]
async fn s59_sparse_numbers_a_deleted_bit_and_a_tenant() {
    let config = format!(
        "table = \"pay_notify_task\"\nwhere = \"deleted = b'0' AND tenant_id = 1\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type_value = \"X\"\nbiz_no = \"merchant_order_id\"\ncreated_at = \"create_time\"\nupdated_at = \"update_time\"\nage_from = \"last_execute_time\"\nattempts = \"notify_times\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [0, 21, 22]\n[[state]]\nis = \"SUCCESS\"\nvalues = [10]\n[[state]]\nis = \"FAILED\"\nvalues = [20]\n[write.mark_timed_out]\nstatus = 20\n"
    );
    let statements = [
        "CREATE TABLE pay_notify_task (id BIGINT AUTO_INCREMENT PRIMARY KEY, type TINYINT, data_id BIGINT, merchant_order_id VARCHAR(64), status TINYINT NOT NULL, next_notify_time DATETIME, last_execute_time DATETIME, notify_times TINYINT, deleted BIT(1) NOT NULL DEFAULT b'0', tenant_id BIGINT NOT NULL, create_time DATETIME, update_time DATETIME)",
        "INSERT INTO pay_notify_task (merchant_order_id, status, last_execute_time, deleted, tenant_id, create_time, update_time) VALUES ('0012', 0, {old}, b'0', 1, {old}, {old}), ('12', 10, {old}, b'0', 1, {old}, {old}), ('12', 22, {now}, b'0', 1, {old}, {old}), ('12', 0, {old}, b'1', 1, {old}, {old}), ('12', 0, {old}, b'0', 2, {old}, {old}), ('12abc', 20, NULL, b'0', 1, {old}, {old})",
    ];
    for at in layouts(&[Mysql], &statements, &config).await {
        at.holds(&[
            ("1", Processing, true),
            ("2", Success, false),
            ("3", Processing, false),
            ("6", Failed, false),
        ])
        .await;
        let number = |number: &str| RecordFilter { biz_no: Some(number.into()), ..RecordFilter::default() };
        assert_eq!(at.keys(&number("12")).await, ["2", "3"], "0012 and 12abc are not 12");
        at.mark("1", Action::MarkTimedOut, None).await;
        at.mark("3", Action::MarkSucceeded, None).await;
    }
}

#[tokio::test]
async fn s62_booleans_and_an_exception_make_three_states() {
    let config = format!(
        "table = \"djstripe_webhookeventtrigger\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nrequest = \"body\"\ncreated_at = \"created\"\nupdated_at = \"updated\"\nerror = \"exception\""
        ),
        "[[state]]\nis = \"SUCCESS\"\nequals = { processed = true }\n[[state]]\nis = \"FAILED\"\nwhen = \"processed = {no} AND exception <> ''\"\n[[state]]\nis = \"PROCESSING\"\nequals = { processed = false }\n\
         [write.mark_succeeded]\nprocessed = true\n[write.mark_timed_out]\nexception = \"timed out\"\n"
    );
    let statements = [
        "CREATE TABLE djstripe_webhookeventtrigger (id BIGINT PRIMARY KEY, body {text}, headers {json}, valid {bool} NOT NULL, processed {bool} NOT NULL, exception VARCHAR(128) NOT NULL, traceback {text}, created {ts}, updated {ts})",
        "INSERT INTO djstripe_webhookeventtrigger (id, valid, processed, exception, created, updated) VALUES (1, {t}, {f}, '', {old}, {old}), (2, {t}, {t}, '', {old}, {old}), (3, {t}, {f}, 'KeyError', {old}, {old}), (4, {f}, {f}, '', {now}, {now})",
    ];
    for dialect in ALL {
        let (no, yes) = if dialect == Postgres { ("false", "true") } else { ("0", "1") };
        let statements = statements.map(|sql| sql.replace("{t}", yes).replace("{f}", no));
        for at in layouts(&[dialect], &[&statements[0], &statements[1]], &config.replace("{no}", no)).await {
            at.holds(&[
                ("1", Processing, true),
                ("2", Success, false),
                ("3", Failed, false),
                ("4", Processing, false),
            ])
            .await;
            at.mark("1", Action::MarkSucceeded, None).await;
            assert_eq!(at.mark("4", Action::MarkTimedOut, None).await.row.state, Failed);
        }
    }
}

#[tokio::test]
async fn s66_two_code_columns_say_one_state() {
    let config = format!(
        "table = \"xxl_job_log\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type = \"job_id\"\nstatus = \"handle_code\"\nrequest = \"executor_param\"\ncreated_at = \"trigger_time\"\nupdated_at = \"handle_time\"\nerror = \"handle_msg\""
        ),
        "[[state]]\nis = \"SUCCESS\"\nvalues = [200]\n[[state]]\nis = \"FAILED\"\nvalues = [500, 502]\n[[state]]\nis = \"PROCESSING\"\nvalues = [0]\nequals = { trigger_code = 200 }\n[[state]]\nis = \"FAILED\"\nwhen = \"trigger_code <> 200\"\n[write.mark_timed_out]\nhandle_code = 502\n"
    );
    let statements = [
        "CREATE TABLE xxl_job_log (id BIGINT PRIMARY KEY, job_id INT NOT NULL, executor_param VARCHAR(512), trigger_time {ts}, trigger_code INT NOT NULL, handle_time {ts}, handle_code INT NOT NULL, handle_msg {text})",
        "INSERT INTO xxl_job_log (id, job_id, trigger_time, trigger_code, handle_code) VALUES (1, 7, {old}, 200, 0), (2, 7, {old}, 200, 200), (3, 7, {old}, 500, 0), (4, 7, {old}, 200, 500), (5, 7, {old}, 200, 7)",
    ];
    for at in
        layouts(&ALL, &statements, &config.replace("biz_type = \"job_id\"", "biz_type_value = \"X\"")).await
    {
        at.holds(&[
            ("1", Processing, true),
            ("2", Success, false),
            ("3", Failed, false),
            ("4", Failed, false),
            ("5", Unknown, false),
        ])
        .await;
        let after = at.mark("1", Action::MarkTimedOut, None).await;
        assert_eq!((after.row.state, after.row.native_state.as_deref()), (Failed, Some("502")));
    }
}

#[tokio::test]
async fn a_template_that_makes_something_else_is_undone() {
    let config = format!(
        "table = \"webhook_calls\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\ncreated_at = \"created_at\"\nupdated_at = \"updated_at\""
        ),
        "[[state]]\nis = \"FAILED\"\nnot_null = [\"exception\"]\n[[state]]\nis = \"SUCCESS\"\nequals = { done = 1 }\n[[state]]\nis = \"PROCESSING\"\nalways = true\n[write.mark_succeeded]\ndone = 2\n"
    );
    let statements = [
        "CREATE TABLE webhook_calls (id BIGINT PRIMARY KEY, done INT, exception {text}, created_at {ts}, updated_at {ts})",
        "INSERT INTO webhook_calls (id, done, created_at, updated_at) VALUES (1, 0, {old}, {old})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        use domain::ports::{Change, Source};
        let record = at.get("1").await;
        let change =
            Change { action: Action::MarkSucceeded, record: &record, finding: None, response_body: None };
        let plan = at.found.plan(change).await.unwrap();
        let error = at
            .found
            .apply(
                &record,
                &record.row.version,
                Action::MarkSucceeded,
                &plan,
                chrono::DateTime::<chrono::Utc>::MAX_UTC,
            )
            .await
            .unwrap_err();
        assert!(error.to_string().contains("makes this record PROCESSING, not SUCCESS"), "{error}");
        assert_eq!(at.cell("SELECT done FROM webhook_calls").await.as_deref(), Some("0"), "nothing stays");
    }
}
