//! Inboxes, outboxes and tables that remember messages.

use crate::kit::*;
use domain::actions::Action;
use domain::record::RecordFilter;

#[tokio::test]
async fn s28_a_four_part_key_and_nothing_but_a_deadline() {
    let config = format!(
        "table = \"t_rocketmq_dedup\"\n{}{}",
        columns(
            "key = [\"application_name\", \"topic\", \"tag\", \"msg_uniq_key\"]\nbiz_type = \"topic\"\ncreated_at = { column = \"expire_time\", kind = \"epoch_ms\", minus = \"10m\" }\ndeadline = { column = \"expire_time\", kind = \"epoch_ms\" }"
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"CONSUMING\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"CONSUMED\"]\n[write.mark_succeeded]\nexpire_time = { now = true }\n"
    );
    let statements = [
        "CREATE TABLE t_rocketmq_dedup (application_name VARCHAR(255) {cs} NOT NULL, topic VARCHAR(255) {cs} NOT NULL, tag VARCHAR(16) {cs} NOT NULL, msg_uniq_key VARCHAR(255) {cs} NOT NULL, status VARCHAR(16) NOT NULL, expire_time BIGINT NOT NULL)",
        "INSERT INTO t_rocketmq_dedup VALUES ('app', 'X', '', 'm1', 'CONSUMING', {old_ms}), ('app', 'X', 't', 'm1', 'CONSUMING', {soon_ms}), ('app|X', '', 't', 'm1', 'CONSUMED', {soon_ms}), ('app', 'Y', '%', 'm\\\\2', 'CONSUMING', {old_ms})",
    ];
    for dialect in ALL {
        let charset = if dialect == Mysql { " CHARACTER SET utf8" } else { "" };
        let statements = statements.map(|sql| {
            let sql = sql.replace("{cs}", charset);
            if dialect == Mysql { sql } else { sql.replace("\\\\", "\\") }
        });
        for at in layouts(&[dialect], &[&statements[0], &statements[1]], &config).await {
            at.holds(&[
                ("app|X||m1", Processing, true),
                ("app|X|t|m1", Processing, false),
                ("app\\|X||t|m1", Success, false),
                ("app|Y|%|m\\\\2", Processing, true),
            ])
            .await;
            let row = at.row("app|X|t|m1").await;
            assert!(row.age_seconds.is_some_and(|age| (500..=900).contains(&age)), "{:?}", row.age_seconds);
            let emoji = RecordFilter { key: Some("😂".into()), ..RecordFilter::default() };
            assert_eq!(at.keys(&emoji).await.len(), 0);
            at.mark("app|X||m1", Action::MarkSucceeded, None).await;
        }
    }
}

#[tokio::test]
async fn s29_millisecond_epochs_and_a_flag() {
    let config = format!(
        "table = \"message\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type_value = \"X\"\nfacts = [\"destination\", \"headers\"]\nstatus = \"published\"\nrequest = \"payload\"\ncreated_at = { column = \"creation_time\", kind = \"epoch_ms\" }\nupdated_at = { column = \"creation_time\", kind = \"epoch_ms\" }"
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [false]\n[[state]]\nis = \"SUCCESS\"\nvalues = [true]\n"
    );
    let statements = [
        "CREATE TABLE message (id VARCHAR(64) PRIMARY KEY, destination VARCHAR(255), headers VARCHAR(1000), payload VARCHAR(40), published SMALLINT DEFAULT 0, creation_time BIGINT)",
        "INSERT INTO message (id, payload, published, creation_time) VALUES ('a', '{\"cut\":\"0123456789012345678901234567890', 0, {old_ms}), ('b', NULL, 0, {now_ms}), ('c', '{}', 1, {old_ms}), ('d', '{}', NULL, NULL), ('e', '{}', 0, 253402300800000)",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[
            ("a", Processing, true),
            ("b", Processing, false),
            ("c", Success, false),
            ("d", Unknown, false),
            ("e", Processing, false),
        ])
        .await;
        assert_eq!(at.row("e").await.created_at, None, "beyond the calendar is no time");
        at.mark("a", Action::MarkSucceeded, None).await;
    }
}

#[tokio::test]
async fn s30_a_table_without_any_time_lists_all_the_same() {
    let config = format!(
        "table = \"INT_METADATA_STORE\"\nwhere = \"REGION = 'DEFAULT'\"\n{}[[state]]\nis = \"SUCCESS\"\nalways = true\n",
        columns(
            "key = [\"METADATA_KEY\", \"REGION\"]\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nresponse = \"METADATA_VALUE\""
        )
    );
    let statements = [
        "CREATE TABLE INT_METADATA_STORE (METADATA_KEY VARCHAR(255) NOT NULL, METADATA_VALUE VARCHAR(4000), REGION VARCHAR(100) NOT NULL, PRIMARY KEY (METADATA_KEY, REGION))",
        "INSERT INTO INT_METADATA_STORE VALUES ('b', '1577934245000', 'DEFAULT'), ('a', NULL, 'DEFAULT'), ('a', NULL, 'OTHER')",
    ];
    for at in layouts(&[Mysql, Sqlite], &statements, &config).await {
        at.holds(&[("a|DEFAULT", Success, false), ("b|DEFAULT", Success, false)]).await;
        assert_eq!(at.row("a|DEFAULT").await.age_seconds, None);
    }
}

#[tokio::test]
async fn s33_a_null_status_an_age_of_the_latest_time_and_an_archive() {
    let config = format!(
        "table = \"EVENT_PUBLICATION\"\n{}{}",
        columns(
            "key = \"ID\"\nbiz_type_value = \"X\"\nfacts = [\"LISTENER_ID\"]\nstatus = \"STATUS\"\nrequest = \"SERIALIZED_EVENT\"\ncreated_at = \"PUBLICATION_DATE\"\nupdated_at = \"COMPLETION_DATE\"\nage_from = [\"PUBLICATION_DATE\", \"LAST_RESUBMISSION_DATE\"]\nattempts = \"COMPLETION_ATTEMPTS\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"PROCESSING\", \"RESUBMITTED\", \"PUBLISHED\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"COMPLETED\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"FAILED\"]\n\
         [[state]]\nis = \"SUCCESS\"\nwhen = \"STATUS IS NULL AND COMPLETION_DATE IS NOT NULL\"\n[[state]]\nis = \"PROCESSING\"\nnull = [\"STATUS\", \"COMPLETION_DATE\"]\n\
         [[archive]]\ntable = \"EVENT_PUBLICATION_ARCHIVE\"\n[write.mark_succeeded]\nSTATUS = \"COMPLETED\"\nCOMPLETION_DATE = { now = true }\n[write.mark_timed_out]\nSTATUS = \"FAILED\"\nCOMPLETION_DATE = { now = true }\n"
    );
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} (ID VARCHAR(36) NOT NULL PRIMARY KEY, LISTENER_ID VARCHAR(512), EVENT_TYPE VARCHAR(512), SERIALIZED_EVENT VARCHAR(4000), PUBLICATION_DATE {{ts}}, COMPLETION_DATE {{ts}}, STATUS VARCHAR(20), COMPLETION_ATTEMPTS INT, LAST_RESUBMISSION_DATE {{ts}})"
        )
    };
    let insert = "INSERT INTO EVENT_PUBLICATION (ID, STATUS, PUBLICATION_DATE, COMPLETION_DATE, LAST_RESUBMISSION_DATE) VALUES ('p', 'PROCESSING', {old}, NULL, NULL), ('r', 'RESUBMITTED', {old}, NULL, {now}), ('n', NULL, {old}, NULL, NULL), \
                  ('nd', NULL, {old}, {old}, NULL), ('f', 'FAILED', {old}, NULL, NULL), ('?', 'ODD', {old}, NULL, NULL)"
        .replace("'?'", "'q'");
    let statements = [
        table("EVENT_PUBLICATION"),
        table("EVENT_PUBLICATION_ARCHIVE"),
        insert,
        "INSERT INTO EVENT_PUBLICATION_ARCHIVE (ID, STATUS, PUBLICATION_DATE, COMPLETION_DATE) VALUES ('p', 'COMPLETED', {old}, {old}), ('a', 'PROCESSING', {old}, {old})".into(),
    ];
    // PostgreSQL folds names that are not quoted.
    let folded = |sql: &str, dialect| if dialect == Postgres { sql.to_lowercase() } else { sql.to_owned() };
    for dialect in ALL {
        let statements = statements.clone().map(|sql| match dialect {
            Postgres => sql
                .split('\'')
                .enumerate()
                .map(|(at, piece)| if at % 2 == 0 { folded(piece, dialect) } else { piece.to_owned() })
                .collect::<Vec<_>>()
                .join("'"),
            _ => sql,
        });
        let config = match dialect {
            Postgres => {
                let names = [
                    "EVENT_PUBLICATION_ARCHIVE",
                    "EVENT_PUBLICATION",
                    "LISTENER_ID",
                    "\"STATUS\"",
                    "STATUS IS",
                    "STATUS =",
                    "SERIALIZED_EVENT",
                    "PUBLICATION_DATE",
                    "COMPLETION_DATE",
                    "LAST_RESUBMISSION_DATE",
                    "COMPLETION_ATTEMPTS",
                    "\"ID\"",
                ];
                names
                    .iter()
                    .fold(config.clone(), |config, name| config.replace(name, &name.to_lowercase()))
                    .replace("status is", "status IS")
            }
            _ => config.clone(),
        };
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        for at in layouts(&[dialect], &statements, &config).await {
            let mut rows: Vec<_> = at
                .list(&RecordFilter::default())
                .await
                .into_iter()
                .map(|row| (row.key, row.state, row.stuck, row.id.locator[0].to_lowercase()))
                .collect();
            rows.sort_by(|left, right| (&left.3, &left.0).cmp(&(&right.3, &right.0)));
            let live = "event_publication".to_owned();
            let archive = "event_publication_archive".to_owned();
            let expected = vec![
                ("f".into(), Failed, false, live.clone()),
                ("n".into(), Processing, true, live.clone()),
                ("nd".into(), Success, false, live.clone()),
                ("p".into(), Processing, true, live.clone()),
                ("q".into(), Unknown, false, live.clone()),
                ("r".into(), Processing, false, live),
                ("a".into(), Processing, false, archive.clone()),
                ("p".into(), Success, false, archive),
            ];
            assert_eq!(rows, expected, "{dialect}");
            assert_eq!(at.keys(&RecordFilter::stuck()).await, ["n", "p"], "archives hold nothing to settle");
            assert!(at.refused("a", Action::MarkSucceeded).await.contains("moved to"));
            at.mark("n", Action::MarkSucceeded, None).await;
            let after = at.mark("r", Action::MarkTimedOut, None).await;
            assert_eq!(after.row.state, Failed, "no TIMEOUT of its own: FAILED stands for it");
        }
    }
}

#[tokio::test]
async fn s34_a_bit_that_says_dispatched() {
    let config = format!(
        "table = \"shopOutboxData\"\n{}{}",
        columns(
            "key = \"MessageId\"\nbiz_type_value = \"X\"\nstatus = \"Dispatched\"\nrequest = \"Operations\"\nupdated_at = \"DispatchedAt\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [false]\n[[state]]\nis = \"SUCCESS\"\nvalues = [true]\n"
    );
    let ddl = |dialect| match dialect {
        Postgres => {
            "CREATE TABLE \"shopOutboxData\" (\"MessageId\" VARCHAR(200) PRIMARY KEY, \"Dispatched\" BOOLEAN NOT NULL DEFAULT false, \"DispatchedAt\" TIMESTAMP, \"PersistenceVersion\" VARCHAR(23), \"Operations\" JSONB)"
        }
        Mysql => {
            "CREATE TABLE `shopOutboxData` (`MessageId` VARCHAR(200) CHARACTER SET ascii NOT NULL PRIMARY KEY, `Dispatched` BIT(1) NOT NULL DEFAULT b'0', `DispatchedAt` DATETIME, `PersistenceVersion` VARCHAR(23), `Operations` JSON)"
        }
        Sqlite => {
            "CREATE TABLE \"shopOutboxData\" (\"MessageId\" VARCHAR(200) PRIMARY KEY NOT NULL, \"Dispatched\" BOOLEAN NOT NULL DEFAULT 0, \"DispatchedAt\" TEXT, \"PersistenceVersion\" TEXT, \"Operations\" TEXT)"
        }
    };
    for dialect in ALL {
        let insert = "INSERT INTO \"shopOutboxData\" (\"MessageId\", \"Dispatched\", \"DispatchedAt\", \"Operations\") VALUES ('m1', {f}, NULL, '[1]'), ('m2', {t}, {old}, '[]')";
        let (no, yes) = if dialect == Postgres { ("false", "true") } else { ("0", "1") };
        let insert = insert.replace("{f}", no).replace("{t}", yes);
        let insert = if dialect == Mysql { insert.replace('"', "`") } else { insert };
        for at in layouts(&[dialect], &[ddl(dialect), &insert], &config).await {
            at.holds(&[("m1", Processing, false), ("m2", Success, false)]).await;
            assert_eq!(at.row("m1").await.age_seconds, None);
            let emoji = RecordFilter { key: Some("😂".into()), ..RecordFilter::default() };
            assert_eq!(at.keys(&emoji).await.len(), 0, "an ascii column holds no such key");
            at.mark("m1", Action::MarkSucceeded, None).await;
        }
    }
}

#[tokio::test]
async fn s36_three_states_of_two_dates_and_a_body_in_another_table() {
    let config = format!(
        "table = \"InboxState\"\n{}{}",
        columns(
            "key = [\"MessageId\", \"ConsumerId\"]\nlocator = [\"Id\"]\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nrequest = \"out.Body\"\ncreated_at = \"Received\"\nupdated_at = \"Delivered\"\nhit_count = \"ReceiveCount\""
        ),
        "[[join]]\nname = \"out\"\ntable = \"OutboxMessage\"\non = { InboxMessageId = \"MessageId\", InboxConsumerId = \"ConsumerId\" }\nnewest = \"SequenceNumber\"\n\
         [[state]]\nis = \"SUCCESS\"\nnot_null = [\"Consumed\", \"Delivered\"]\n[[state]]\nis = \"PROCESSING\"\nnot_null = [\"Consumed\"]\nage_from = \"Consumed\"\n[[state]]\nis = \"PROCESSING\"\nnull = [\"Consumed\"]\n\
         [write.mark_succeeded]\nConsumed = { now = true }\nDelivered = { now = true }\nReceiveCount = { add = 1 }\n"
    );
    let statements = [
        "CREATE TABLE \"InboxState\" (\"Id\" {id}, \"MessageId\" VARCHAR(36) NOT NULL, \"ConsumerId\" VARCHAR(36) NOT NULL, \"LockId\" VARCHAR(36), \"RowVersion\" {blob}, \"Received\" {ts}, \"ReceiveCount\" INT NOT NULL, \"ExpirationTime\" {ts}, \"Consumed\" {ts}, \"Delivered\" {ts}, \"LastSequenceNumber\" BIGINT, UNIQUE (\"MessageId\", \"ConsumerId\"))",
        "CREATE TABLE \"OutboxMessage\" (\"SequenceNumber\" BIGINT PRIMARY KEY, \"Body\" {text}, \"InboxMessageId\" VARCHAR(36), \"InboxConsumerId\" VARCHAR(36))",
        "INSERT INTO \"InboxState\" (\"MessageId\", \"ConsumerId\", \"ReceiveCount\", \"Received\", \"Consumed\", \"Delivered\") VALUES ('m1', 'c', 1, {old}, NULL, NULL), ('m2', 'c', 2, {old}, {old}, NULL), ('m3', 'c', 1, {old}, {old}, {old}), ('m4', 'c', 1, {old}, {now}, NULL), ('m5', 'c', 1, {now}, NULL, NULL)",
        "INSERT INTO \"OutboxMessage\" VALUES (1, 'first', 'm1', 'c'), (2, 'second', 'm1', 'c'), (3, 'other', 'm1', 'd')",
    ];
    for dialect in ALL {
        let id = if dialect == Postgres {
            "BIGSERIAL PRIMARY KEY"
        } else if dialect == Mysql {
            "BIGINT AUTO_INCREMENT PRIMARY KEY"
        } else {
            "INTEGER PRIMARY KEY"
        };
        let statements = statements.map(|sql| {
            let sql = sql.replace("{id}", id);
            if dialect == Mysql { sql.replace('"', "`") } else { sql }
        });
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        for at in layouts(&[dialect], &statements, &config).await {
            at.holds(&[
                ("m1|c", Processing, true),
                ("m2|c", Processing, true),
                ("m3|c", Success, false),
                ("m4|c", Processing, false),
                ("m5|c", Processing, false),
            ])
            .await;
            let detail = at.get("m1|c").await;
            assert_eq!(
                detail.request.bytes(),
                Some(b"second".as_slice()),
                "the newest of the joined rows, once"
            );
            assert_eq!(detail.row.id.locator, ["1"]);
            assert!(at.get("m2|c").await.request.bytes().is_none());
            let after = at.mark("m2|c", Action::MarkSucceeded, None).await;
            assert!(after.facts.contains(&("ReceiveCount".into(), "3".into())), "{:?}", after.facts);
        }
    }
}

#[tokio::test]
async fn s38_a_dot_in_the_name_and_ids_beyond_floating_point() {
    let config = format!(
        "table = {{ name = \"cap.Received\" }}\n{}{}",
        columns(
            "key = \"Id\"\nbiz_type_value = \"X\"\nfacts = [\"Group\"]\nstatus = \"StatusName\"\nrequest = \"Content\"\ncreated_at = \"Added\"\nattempts = \"Retries\"\nupdated_at = { column = \"ExpiresAt\", none = [\"9999-12-31 00:00:00\"] }"
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"Scheduled\", \"Processing\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"Succeeded\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"Failed\"]\n[[state]]\nis = \"IGNORE\"\nvalues = [\"Delayed\", \"Queued\"]\n"
    );
    let statements = [
        "CREATE TABLE `cap.Received` (`Id` BIGINT UNSIGNED NOT NULL PRIMARY KEY, `Version` VARCHAR(20), `Name` VARCHAR(400), `Group` VARCHAR(200), `Content` LONGTEXT, `Retries` INT, `Added` DATETIME NOT NULL, `ExpiresAt` DATETIME, `StatusName` VARCHAR(50) NOT NULL)",
        "INSERT INTO `cap.Received` (`Id`, `Added`, `ExpiresAt`, `StatusName`, `Retries`) VALUES (9007199254740993, {old}, NULL, 'Scheduled', 3), (18446744073709551615, {old}, '9999-12-31 00:00:00', 'Succeeded', 0), (9007199254740992, {old}, {old}, 'Delayed', 0)",
    ];
    for at in layouts(&[Mysql], &statements, &config).await {
        at.holds(&[
            ("9007199254740993", Processing, true),
            ("18446744073709551615", Success, false),
            ("9007199254740992", Ignored, false),
        ])
        .await;
        at.mark("9007199254740993", Action::MarkSucceeded, None).await;
    }
}

#[tokio::test]
async fn s40_c59_sentinel_dates_mean_something_else_than_a_time() {
    let config = format!(
        "table = \"messenger_messages\"\nstuck_after = \"1h\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type = \"queue_name\"\nstatus = \"not stored\"\nrequest = { column = \"body\", decode = [\"base64\"] }\ncreated_at = \"created_at\"\nupdated_at = { column = \"available_at\", none = [\"1970-01-01 00:00:00\"] }\nage_from = { column = \"delivered_at\", none = [\"9999-12-31 23:59:59\"] }\nfacts = [\"headers\"]"
        ),
        "[[state]]\nis = \"SUCCESS\"\nequals = { delivered_at = \"9999-12-31 23:59:59\" }\n[[state]]\nis = \"PROCESSING\"\nnot_null = [\"delivered_at\"]\n[[state]]\nis = \"IGNORE\"\nnull = [\"delivered_at\"]\n\
         [write.mark_succeeded]\ndelivered_at = \"9999-12-31 23:59:59\"\n"
    );
    for (dialect, time) in [(Sqlite, "VARCHAR(32)"), (Postgres, "TIMESTAMP(0)"), (Mysql, "DATETIME")] {
        let statements = [
            format!("CREATE TABLE messenger_messages (id {{serial}}, body {{text}} NOT NULL, headers {{text}} NOT NULL, queue_name VARCHAR(190) NOT NULL, created_at {time} NOT NULL, available_at {time} NOT NULL, delivered_at {time})"),
            "INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at, delivered_at) VALUES ('eyJhIjoxfQ==', '{}', 'X', {old}, '1970-01-01 00:00:00', {old}), ('%%%', '[]', 'X', {old}, {old}, NULL), ('', '[]', 'X', {old}, {old}, '9999-12-31 23:59:59'), ('x', '[]', 'X', {old}, {old}, {now})".into(),
        ];
        for at in layouts(&[dialect], &[&statements[0], &statements[1]], &config).await {
            at.holds(&[
                ("1", Processing, true),
                ("2", Ignored, false),
                ("3", Success, false),
                ("4", Processing, false),
            ])
            .await;
            assert_eq!(at.row("1").await.updated_at, None);
            assert_eq!(at.row("3").await.age_seconds, None);
            let detail = at.get("1").await;
            assert_eq!(
                (detail.request.readable(), detail.request.bytes()),
                (Some(br#"{"a":1}"#.as_slice()), Some(b"eyJhIjoxfQ==".as_slice()))
            );
            at.mark("1", Action::MarkSucceeded, None).await;
        }
    }
}

#[tokio::test]
async fn s44_finished_rows_move_to_a_history_with_other_names() {
    let config = format!(
        "table = \"bus_events\"\n{}{}",
        columns(
            "key = \"record_id\"\nbiz_type = \"class_name\"\nbiz_no = \"search_key1\"\nstatus = \"processing_state\"\nrequest = \"event_json\"\ncreated_at = \"created_date\"\nage_from = \"processing_available_date\"\nattempts = \"error_count\"\nowner = \"processing_owner\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"AVAILABLE\", \"IN_PROCESSING\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"PROCESSED\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"FAILED\"]\n[[state]]\nis = \"IGNORE\"\nvalues = [\"REMOVED\", \"REAPED\"]\n\
         [[archive]]\ntable = \"bus_events_history\"\ncolumns = { search_key1 = \"account\" }\n"
    );
    let table = |name: &str, number: &str| {
        format!(
            "CREATE TABLE {name} (record_id BIGINT PRIMARY KEY, class_name VARCHAR(128), event_json VARCHAR(2048), {number} VARCHAR(64), created_date {{ts}}, processing_owner VARCHAR(50), processing_available_date {{ts}}, processing_state VARCHAR(14), error_count INT)"
        )
    };
    let statements = [
        table("bus_events", "search_key1"),
        table("bus_events_history", "account"),
        "INSERT INTO bus_events (record_id, search_key1, created_date, processing_available_date, processing_state) VALUES (1, 'n1', {old}, {old}, 'IN_PROCESSING'), (10, 'n1', {old}, {soon}, 'AVAILABLE')".into(),
        "INSERT INTO bus_events_history (record_id, account, created_date, processing_available_date, processing_state) VALUES (2, 'n1', {old}, {old}, 'PROCESSED'), (3, 'n2', {old}, {old}, 'REMOVED')".into(),
    ];
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[
            ("1", Processing, true),
            ("10", Processing, false),
            ("2", Success, false),
            ("3", Ignored, false),
        ])
        .await;
        assert!(at.row("10").await.age_seconds.unwrap() < 0, "an effective date to come");
        let number = RecordFilter { biz_no: Some("n1".into()), ..RecordFilter::default() };
        assert_eq!(at.keys(&number).await, ["1", "10", "2"]);
    }
}

#[tokio::test]
async fn s47_an_in_flight_marker_in_a_joined_table() {
    let config = format!(
        "table = \"hangfire.job\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type_value = \"X\"\nstatus = \"statename\"\nrequest = \"arguments\"\ncreated_at = \"createdat\"\nupdated_at = \"expireat\"\nage_from = \"queue.fetchedat\""
        ),
        "[[join]]\nname = \"queue\"\ntable = \"hangfire.jobqueue\"\non = { jobid = \"id\" }\n\
         [[state]]\nis = \"SUCCESS\"\nvalues = [\"Succeeded\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"Failed\"]\n[[state]]\nis = \"PROCESSING\"\nnot_null = [\"queue.fetchedat\"]\n[[state]]\nis = \"IGNORE\"\nvalues = [\"Enqueued\", \"Scheduled\"]\n"
    );
    let statements = [
        "CREATE SCHEMA hangfire",
        "CREATE TABLE hangfire.job (id BIGSERIAL PRIMARY KEY, statename TEXT, invocationdata JSONB, arguments TEXT, createdat TIMESTAMP NOT NULL, expireat TIMESTAMP)",
        "CREATE TABLE hangfire.jobqueue (id BIGSERIAL PRIMARY KEY, jobid BIGINT, queue TEXT, fetchedat TIMESTAMP)",
        "INSERT INTO hangfire.job (statename, createdat) VALUES ('Processing', {old}), ('Processing', {old}), ('Enqueued', {old}), (NULL, {old}), ('Succeeded', {old})",
        "INSERT INTO hangfire.jobqueue (jobid, queue, fetchedat) VALUES (1, 'default', {old}), (2, 'default', {now}), (3, 'default', NULL)",
    ];
    for at in layouts(&[Postgres], &statements, &config).await {
        at.holds(&[
            ("1", Processing, true),
            ("2", Processing, false),
            ("3", Ignored, false),
            ("4", Unknown, false),
            ("5", Success, false),
        ])
        .await;
        at.mark("1", Action::MarkSucceeded, None).await;
    }
}

#[tokio::test]
async fn s04_a_state_that_a_child_table_knows() {
    let config = format!(
        "table = \"executions\"\n{}{}",
        columns(
            "key = \"idempotency_key\"\nbiz_type_value = \"X\"\nstatus = \"not stored\"\nrequest = \"serialized_job\"\ncreated_at = \"last_run_at\"\nage_from = \"locked_at\"\nphase = \"recover_to\""
        ),
        "[[join]]\nname = \"entry\"\ntable = \"entries\"\non = { execution_id = \"id\" }\nnewest = \"happened\"\n\
         [[state]]\nis = \"SUCCESS\"\nequals = { recover_to = \"FINISHED\" }\n[[state]]\nis = \"FAILED\"\nequals = { \"entry.action\" = [\"errored\", \"halted\"] }\n\
         [[state]]\nis = \"PROCESSING\"\nwhen = \"EXISTS (SELECT 1 FROM entries e WHERE e.execution_id = executions.id)\"\n[[state]]\nis = \"IGNORE\"\nalways = true\n"
    );
    let statements = [
        "CREATE TABLE executions (id BIGINT PRIMARY KEY, idempotency_key VARCHAR(64) NOT NULL UNIQUE, serialized_job {json}, last_run_at {ts}, locked_at {ts}, recover_to VARCHAR(64), definition {text})",
        "CREATE TABLE entries (execution_id BIGINT, step VARCHAR(64), action VARCHAR(64), happened {ts})",
        "INSERT INTO executions (id, idempotency_key, last_run_at, locked_at, recover_to) VALUES (1, 'running', {old}, {old}, NULL), (2, 'done', {old}, NULL, 'FINISHED'), (3, 'failed', {old}, {old}, 'b'), (4, 'waiting', NULL, NULL, NULL)",
        "INSERT INTO entries VALUES (1, 'a', 'errored', {old}), (1, 'a', 'started', {now}), (3, 'b', 'started', {old}), (3, 'b', 'errored', {now})",
    ];
    for at in layouts(&ALL, &statements, &config).await {
        at.holds(&[
            ("running", Processing, true),
            ("done", Success, false),
            ("failed", Failed, false),
            ("waiting", Ignored, false),
        ])
        .await;
        assert!(at.row("failed").await.native_state.unwrap().contains("action errored"));
    }
}

#[tokio::test]
async fn s37_a_state_that_is_part_of_the_primary_key_and_of_the_partition() {
    let config = format!(
        "table = \"wolverine_incoming_envelopes\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type_value = \"X\"\nrequest = { column = \"body\", decode = [\"opaque\"] }\ncreated_at = \"timestamp\"\nupdated_at = \"keep_until\"\nattempts = \"attempts\"\nowner = \"owner_id\"\nfacts = [\"message_type\"]"
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"Incoming\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"Handled\"]\n[[state]]\nis = \"IGNORE\"\nvalues = [\"Scheduled\"]\n[write.mark_succeeded]\nowner_id = 0\n"
    );
    let rest = "id {id} NOT NULL, status VARCHAR(25) NOT NULL, owner_id INT NOT NULL, execution_time {ts}, attempts INT, body {blob} NOT NULL, message_type VARCHAR(250) NOT NULL, keep_until {ts}, timestamp {ts}, PRIMARY KEY (id, status)";
    for dialect in ALL {
        let (id, partitioned) =
            if dialect == Postgres { ("UUID", " PARTITION BY LIST (status)") } else { ("VARCHAR(36)", "") };
        let mut statements = vec![format!(
            "CREATE TABLE wolverine_incoming_envelopes ({}){partitioned}",
            rest.replace("{id}", id)
        )];
        if dialect == Postgres {
            for status in ["Incoming", "Handled", "Scheduled"] {
                statements.push(format!("CREATE TABLE envelopes_{status} PARTITION OF wolverine_incoming_envelopes FOR VALUES IN ('{status}')"));
            }
        }
        statements.push("INSERT INTO wolverine_incoming_envelopes (id, status, owner_id, attempts, body, message_type, timestamp) VALUES ('00000000-0000-0000-0000-000000000001', 'Incoming', 7, 1, {x:0001ff}, 'm', {old}), ('00000000-0000-0000-0000-000000000002', 'Scheduled', 0, 0, {x:00}, 'm', {old})".into());
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        for at in layouts(&[dialect], &statements, &config).await {
            let key = |n: u8| format!("00000000-0000-0000-0000-00000000000{n}");
            at.holds(&[(&key(1), Processing, true), (&key(2), Ignored, false)]).await;
            let before = at.get(&key(1)).await;
            assert_eq!(before.request.bytes(), Some([0, 1, 0xff].as_slice()));
            let after = at.mark(&key(1), Action::MarkSucceeded, None).await;
            assert_eq!(after.row.id, before.row.id, "the record is the same one in its new partition");
            assert!(after.facts.contains(&("owner_id".into(), "0".into())));
        }
    }
}

#[tokio::test]
async fn s45_a_time_column_for_every_state() {
    let config = format!(
        "table = \"oban_jobs\"\n{}{}",
        columns(
            "key = \"id\"\nbiz_type = \"queue\"\nstatus = \"state\"\nrequest = \"args\"\ncreated_at = \"inserted_at\"\nattempts = \"attempt\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"executing\"]\nage_from = \"attempted_at\"\n[[state]]\nis = \"PROCESSING\"\nvalues = [\"available\"]\nage_from = { column = \"scheduled_at\", plus = \"1h\" }\n\
         [[state]]\nis = \"SUCCESS\"\nvalues = [\"completed\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"discarded\", \"retryable\"]\n[[state]]\nis = \"IGNORE\"\nvalues = [\"suspended\", \"scheduled\", \"cancelled\"]\n"
    );
    for (dialect, state) in [
        (Sqlite, "TEXT"),
        (Postgres, "oban_state"),
        (
            Mysql,
            "ENUM('suspended', 'available', 'scheduled', 'executing', 'retryable', 'completed', 'cancelled', 'discarded')",
        ),
    ] {
        let mut statements = vec![
            format!("CREATE TABLE oban_jobs (id BIGINT PRIMARY KEY, state {state} NOT NULL, queue VARCHAR(64), args {{json}}, attempt INT, inserted_at {{ts}}, scheduled_at {{ts}}, attempted_at {{ts}}, completed_at {{ts}})"),
            "INSERT INTO oban_jobs (id, state, inserted_at, scheduled_at, attempted_at) VALUES (1, 'executing', {old}, {old}, {now}), (2, 'executing', {old}, {old}, {old}), (3, 'available', {old}, {now}, {old}), (4, 'available', {old}, {old}, NULL), (5, 'completed', {old}, NULL, NULL), (6, 'cancelled', {old}, NULL, NULL), (7, 'retryable', {old}, NULL, NULL)".into(),
        ];
        if dialect == Postgres {
            statements.insert(0, "CREATE TYPE oban_state AS ENUM ('suspended', 'available', 'scheduled', 'executing', 'retryable', 'completed', 'cancelled', 'discarded')".into());
        }
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        for at in layouts(&[dialect], &statements, &config).await {
            at.holds(&[
                ("1", Processing, false),
                ("2", Processing, true),
                ("3", Processing, false),
                ("4", Processing, true),
                ("5", Success, false),
                ("6", Ignored, false),
                ("7", Failed, false),
            ])
            .await;
            assert!(at.row("3").await.age_seconds.unwrap() < 0);
        }
    }
}

#[tokio::test]
async fn s55_events_that_are_only_appended_are_attached_through_a_view() {
    let config = format!(
        "table = \"tx_state\"\n{}{}",
        columns(
            "key = [\"globalTxId\", \"localTxId\"]\nbiz_type_value = \"X\"\nstatus = \"type\"\ncreated_at = \"creationTime\""
        ),
        "[[state]]\nis = \"PROCESSING\"\nvalues = [\"TxStartedEvent\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"TxEndedEvent\"]\n[[state]]\nis = \"FAILED\"\nvalues = [\"TxAbortedEvent\"]\n"
    );
    let statements = [
        "CREATE TABLE TxEvent (surrogateId BIGINT PRIMARY KEY, \"globalTxId\" VARCHAR(36) NOT NULL, \"localTxId\" VARCHAR(36) NOT NULL, type VARCHAR(50) NOT NULL, \"creationTime\" {ts})",
        "INSERT INTO TxEvent VALUES (1, 'g', 'l', 'TxStartedEvent', {old}), (2, 'g', 'l', 'TxEndedEvent', {now}), (3, 'g', 'm', 'TxStartedEvent', {old})",
        "CREATE VIEW tx_state AS SELECT e.* FROM TxEvent e WHERE e.surrogateId = (SELECT MAX(o.surrogateId) FROM TxEvent o WHERE o.\"globalTxId\" = e.\"globalTxId\" AND o.\"localTxId\" = e.\"localTxId\")",
    ];
    for dialect in ALL {
        let statements =
            statements.map(|sql| if dialect == Mysql { sql.replace('"', "`") } else { sql.to_owned() });
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        for at in layouts(&[dialect], &statements, &config).await {
            at.holds(&[("g|l", Success, false), ("g|m", Processing, true)]).await;
            assert!(at.refused("g|m", Action::MarkSucceeded).await.contains("updated_at"));
        }
    }
}
