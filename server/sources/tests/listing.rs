//! Lists, filters and stuck rules on every database.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use chrono::TimeDelta;
use common::{EXTENDED, MINIMAL, ORDER, Rec, Table, attach, both, id, open, rec, tables};
use db::testkit::each_database;
use db::{Dialect, Query};
use domain::ports::Source;
use domain::record::{Place, RecordFilter, State};
use std::collections::HashSet;

async fn walk(table: &Table, filter: &RecordFilter, insert: bool) -> Vec<String> {
    let (mut keys, mut after, mut page) = (Vec::new(), None::<Place>, 0);
    loop {
        let rows = table.source.list(filter, after.as_ref(), 3).await.unwrap();
        let Some(last) = rows.last() else { return keys };
        after = Some(Place::of(last));
        keys.extend(rows.into_iter().map(|row| row.key));
        page += 1;
        if insert {
            let (young, old) =
                (format!("new{page} {:?}", filter.stuck), format!("old{page} {:?}", filter.stuck));
            table.put(&rec(&young, 0)).await;
            table.put(&rec(&old, 90_000_000)).await;
        }
    }
}

#[tokio::test]
async fn pages_meet_every_record_once_in_both_directions_while_others_insert() {
    for table in both("").await {
        let mut expected = HashSet::new();
        for number in 0..20_i64 {
            // Ties of several records within one second and one millisecond, and keys in no collation's order.
            let key = format!("{}{number}", ["k", "K", "ä", "键"][number as usize % 4]);
            let age = (number / 6) * 1_000 + 5_000_000;
            table.put(&Rec { age_ms: (number < 17).then_some(age), ..rec(&key, age) }).await;
            expected.insert(key);
        }
        for filter in [RecordFilter::default(), RecordFilter { stuck: Some(true), ..RecordFilter::default() }]
        {
            let keys = walk(&table, &filter, true).await;
            let met: Vec<&String> = keys.iter().filter(|key| expected.contains(*key)).collect();
            let once: HashSet<&&String> = met.iter().collect();
            let wanted = if filter.stuck == Some(true) { 17 } else { 20 };
            assert_eq!((met.len(), once.len()), (wanted, wanted), "{} {keys:?}", table.dialect());
        }
    }
}

#[tokio::test]
async fn records_without_a_time_come_last_and_a_full_walk_is_sorted() {
    for table in both("").await {
        for (key, age) in
            [("a", Some(3_000)), ("b", None), ("c", Some(1_000)), ("d", None), ("e", Some(2_000))]
        {
            table.put(&Rec { age_ms: age, ..rec(key, 0) }).await;
        }
        assert_eq!(walk(&table, &RecordFilter::default(), false).await, ["c", "e", "a", "d", "b"]);
        assert_eq!(table.keys(&RecordFilter::default()).await, ["c", "e", "a", "d", "b"]);
    }
}

#[tokio::test]
async fn microseconds_within_one_millisecond_lose_nobody() {
    for test in each_database().await {
        if test.db.dialect() == Dialect::Sqlite {
            continue;
        }
        let time = if test.db.dialect() == Dialect::Mysql { "DATETIME(6)" } else { "TIMESTAMP(6)" };
        test.run(&[&format!(
            "CREATE TABLE idempotent_record (idempotent_id VARCHAR(64) PRIMARY KEY, biz_type VARCHAR(64), biz_no VARCHAR(64), \
             status VARCHAR(16), request_body TEXT, response_body TEXT, create_time {time}, update_time {time})"
        )])
        .await;
        for (key, micros) in [("z", 100), ("a", 200), ("m", 150), ("q", 900), ("b", 120)] {
            let sql = format!(
                "INSERT INTO idempotent_record (idempotent_id, status, create_time) VALUES ('{key}', 'PROCESSING', '2026-01-01 00:00:00.500{micros}')"
            );
            test.run(&[&sql]).await;
        }
        let table = attach(test, "", "").await;
        for (filter, order) in [
            (RecordFilter::default(), ["z", "q", "m", "b", "a"]),
            (RecordFilter::stuck(), ["a", "b", "m", "q", "z"]),
        ] {
            let (mut keys, mut after) = (Vec::new(), None::<Place>);
            while let Some(row) = table.source.list(&filter, after.as_ref(), 1).await.unwrap().pop() {
                after = Some(Place::of(&row));
                keys.push(row.key);
            }
            assert_eq!(keys, order, "{}", table.dialect());
        }
    }
}

#[tokio::test]
async fn pages_of_several_sources_join_without_gap() {
    for table in tables(MINIMAL, "").await {
        for key in ["a", "b", "c"] {
            table.put(&rec(key, 1_000_000)).await;
        }
        let ms = table.get("a").await.row.created_at.unwrap().timestamp_millis();
        let place =
            |source: &str| Place { created_ms: Some(ms), source: source.into(), locator: vec!["b".into()] };
        let newest = RecordFilter::default();
        let (source, newest) = (&table.source, &newest);
        let after = |place: Place| async move { source.list(newest, Some(&place), 10).await.unwrap().len() };
        // Newest first runs through the sources backwards.
        assert_eq!(after(place("zzz")).await, 3);
        assert_eq!(after(place("aaa")).await, 0);
        assert_eq!(after(place("orders")).await, 1);
    }
}

#[tokio::test]
async fn filters_match_exactly_and_together() {
    for table in both(ORDER).await {
        table.put(&Rec { biz_no: Some("A"), ..rec("k1", 1_000_000) }).await;
        table.put(&Rec { biz_no: Some("a"), status: Some("SUCCESS"), ..rec("k2", 2_000_000) }).await;
        table.put(&Rec { biz_type: Some("REFUND"), status: Some("odd"), ..rec("K1", 3_000_000) }).await;
        let filter = |set: &dyn Fn(&mut RecordFilter)| {
            let mut filter = RecordFilter::default();
            set(&mut filter);
            filter
        };
        for (filter, expected) in [
            (filter(&|f| f.key = Some("k1".into())), vec!["k1"]),
            (filter(&|f| f.biz_no = Some("a".into())), vec!["k2"]),
            (filter(&|f| f.search = Some("A".into())), vec!["k1"]),
            (filter(&|f| f.search = Some("K1".into())), vec!["K1"]),
            (filter(&|f| f.biz_type = Some("REFUND".into())), vec!["K1"]),
            (filter(&|f| f.biz_type = Some("refund".into())), vec![]),
            (filter(&|f| f.state = Some(State::Success)), vec!["k2"]),
            (filter(&|f| f.state = Some(State::Unknown)), vec!["K1"]),
            (filter(&|f| f.stuck = Some(true)), vec!["k1"]),
            (filter(&|f| f.stuck = Some(false)), vec!["k2", "K1"]),
            (filter(&|f| f.source = Some("orders".into())), vec!["k1", "k2", "K1"]),
            (filter(&|f| f.source = Some("other".into())), vec![]),
            (filter(&|f| f.created_from = Some(table.now - TimeDelta::seconds(2_500))), vec!["k1", "k2"]),
            (filter(&|f| f.created_to = Some(table.now - TimeDelta::seconds(2_500))), vec!["K1"]),
        ] {
            assert_eq!(table.keys(&filter).await, expected, "{} {filter:?}", table.dialect());
        }
    }
}

#[tokio::test]
async fn stuck_is_past_the_biz_types_own_time_and_past_the_lease() {
    const BIZ: &str =
        "[[biz]]\ntype = \"FAST\"\nstuck_after = \"1m\"\n[[biz]]\ntype = \"SLOW\"\nstuck_after = \"2h\"\n";
    for table in both(BIZ).await {
        let of = |biz_type| Rec { biz_type, ..rec("", 0) };
        for (key, biz_type, minutes) in [
            ("fast-young", Some("FAST"), 0),
            ("fast-old", Some("FAST"), 2),
            ("slow-young", Some("SLOW"), 119),
            ("slow-old", Some("SLOW"), 121),
            ("other-young", Some("OTHER"), 9),
            ("other-old", Some("OTHER"), 11),
            ("none-young", None, 9),
            ("none-old", None, 11),
        ] {
            table.put(&Rec { key, age_ms: Some(minutes * 60_000), ..of(biz_type) }).await;
        }
        table.put(&Rec { status: Some("SUCCESS"), ..rec("done", 90_000_000) }).await;
        let stuck = table.list(&RecordFilter::stuck()).await;
        let mut keys: Vec<&str> = stuck.iter().map(|row| row.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["fast-old", "none-old", "other-old", "slow-old"], "{}", table.dialect());
        for row in table.list(&RecordFilter::default()).await {
            assert_eq!(row.stuck, keys.contains(&row.key.as_str()), "{} {}", table.dialect(), row.key);
        }
    }
    for table in tables(EXTENDED, BIZ).await {
        table.put(&Rec { lease_ms: Some(-60_000), ..rec("leased", 3_600_000) }).await;
        table.put(&Rec { lease_ms: Some(60_000), ..rec("lapsed", 3_600_000) }).await;
        assert_eq!(table.keys(&RecordFilter::stuck()).await, ["lapsed"], "{}", table.dialect());
        let leased = table.get("leased").await.row;
        assert!(!leased.stuck && leased.lease_until.unwrap() > table.now);
    }
}

#[tokio::test]
async fn c50_a_record_from_the_future_is_never_stuck_and_the_consoles_clock_does_not_matter() {
    for table in both(ORDER).await {
        table.put(&rec("future", -90_000)).await;
        table.put(&rec("old", 660_000)).await;
        assert_eq!(table.keys(&RecordFilter::stuck()).await, ["old"], "{}", table.dialect());
        let row = table.get("future").await.row;
        assert!(!row.stuck && (-91..=-80).contains(&row.age_seconds.unwrap()), "{:?}", row.age_seconds);
    }
}

#[tokio::test]
async fn c51_zoneless_times_are_compared_in_their_declared_zone() {
    for table in tables(MINIMAL, ORDER).await {
        table.put(&rec("nine", 9 * 60_000)).await;
        table.put(&rec("eleven", 11 * 60_000)).await;
        assert_eq!(table.keys(&RecordFilter::stuck()).await, ["eleven"], "{}", table.dialect());
        let age = table.get("nine").await.row.age_seconds.unwrap();
        assert!((540..570).contains(&age), "{} {age}", table.dialect());
    }
}

#[tokio::test]
async fn c57_epoch_columns_are_read_and_compared_in_their_declared_unit() {
    for (kind, per_second) in [("epoch_s", 1_i64), ("epoch_ms", 1_000), ("epoch_us", 1_000_000)] {
        for test in each_database().await {
            test.run(&["CREATE TABLE idempotent_record (idempotent_id VARCHAR(64) PRIMARY KEY, status VARCHAR(16), created BIGINT)"]).await;
            let config = format!(
                "[columns]\nbiz_type = \"not stored\"\nbiz_no = \"not stored\"\nrequest = \"not stored\"\nresponse = \"not stored\"\nupdated_at = \"not stored\"\ncreated_at = {{ column = \"created\", kind = \"{kind}\" }}\n"
            );
            let table = attach(test, &config, "").await;
            let now = table.now.timestamp();
            for (key, seconds) in
                [("old", now - 660), ("young", now - 540), ("2001", 999_999_999), ("before", -60)]
            {
                table
                    .run(&format!(
                        "INSERT INTO idempotent_record VALUES ('{key}', 'PROCESSING', {})",
                        seconds * per_second
                    ))
                    .await;
            }
            assert_eq!(
                table.keys(&RecordFilter::stuck()).await,
                ["before", "2001", "old"],
                "{} {kind}",
                table.dialect()
            );
            assert_eq!(table.get("2001").await.row.created_at.unwrap().timestamp(), 999_999_999);
        }
    }
}

#[tokio::test]
async fn c60_hostile_keys_are_listed_found_and_read() {
    let long = "长".repeat(255);
    let keys = [
        "a'; DROP TABLE idempotent_record; --",
        "100%_\\",
        "\"quoted\" `ticks` [x]",
        "<script>alert(1)</script>",
        "🧾 ключ\u{202e}",
        &long,
        " spaced ",
        "?",
        "$1",
    ];
    for table in both(ORDER).await {
        for key in keys {
            table.put(&Rec { biz_no: Some(key), ..rec(key, 1_000_000) }).await;
        }
        for key in keys {
            let by_key = RecordFilter { key: Some(key.into()), ..RecordFilter::default() };
            let by_no = RecordFilter {
                search: Some(key.into()),
                biz_no: Some(key.into()),
                ..RecordFilter::default()
            };
            assert_eq!(table.keys(&by_key).await, [key], "{}", table.dialect());
            assert_eq!(table.keys(&by_no).await, [key], "{}", table.dialect());
            assert_eq!(table.get(key).await.row.key, key);
        }
        for nowhere in ["nul\0inside", "A'; DROP", "", "%"] {
            let filter = RecordFilter { search: Some(nowhere.into()), ..RecordFilter::default() };
            assert!(table.keys(&filter).await.is_empty(), "{} {nowhere:?}", table.dialect());
        }
        assert_eq!(walk(&table, &RecordFilter::default(), false).await.len(), keys.len());
        assert!(table.source.get(&id("nobody")).await.is_err());
    }
}

#[tokio::test]
async fn c62_small_integers_are_states_not_booleans() {
    const CONFIG: &str = "[columns]\nbiz_type = \"not stored\"\nbiz_no = \"not stored\"\nrequest = \"not stored\"\nresponse = \"not stored\"\nupdated_at = \"not stored\"\ncreated_at = \"not stored\"\n\
        [[state]]\nis = \"PROCESSING\"\nvalues = [0]\n[[state]]\nis = \"SUCCESS\"\nvalues = [1]\n[[state]]\nis = \"FAILED\"\nvalues = [2, 4]\n";
    for test in each_database().await {
        let tiny = if test.db.dialect() == Dialect::Mysql { "TINYINT(1)" } else { "SMALLINT" };
        test.run(&[&format!(
            "CREATE TABLE idempotent_record (idempotent_id VARCHAR(64) PRIMARY KEY, status {tiny})"
        )])
        .await;
        let table = attach(test, CONFIG, "").await;
        for status in 0..5 {
            table.run(&format!("INSERT INTO idempotent_record VALUES ('k{status}', {status})")).await;
        }
        for (state, expected) in [
            (State::Processing, vec!["k0"]),
            (State::Success, vec!["k1"]),
            (State::Failed, vec!["k4", "k2"]),
            (State::Unknown, vec!["k3"]),
            (State::Timeout, vec![]),
        ] {
            let filter = RecordFilter { state: Some(state), ..RecordFilter::default() };
            assert_eq!(table.keys(&filter).await, expected, "{} {state}", table.dialect());
        }
    }
}

#[tokio::test]
async fn c63_enum_and_uuid_columns_are_filtered_searched_and_marked() {
    for test in each_database().await {
        if test.db.dialect() != Dialect::Postgres {
            continue;
        }
        test.run(&[
            "CREATE TYPE record_status AS ENUM ('pending', 'completed', 'expired')",
            "CREATE TABLE idempotent_record (idempotent_id UUID PRIMARY KEY, biz_type CHAR(20), biz_no TEXT, status record_status, \
             request_body JSONB, response_body JSONB, create_time TIMESTAMPTZ, update_time TIMESTAMPTZ)",
            "INSERT INTO idempotent_record VALUES ('0190a1b2-0000-7000-8000-000000000001', 'ORDER', 'N1', 'pending', '{\"amount\": 128.00}', NULL, now() - interval '1 hour', now())",
            common::ORDERS,
            "INSERT INTO t_order VALUES ('N1', 'PAID', 128, 0)",
        ])
        .await;
        let states = "[[state]]\nis = \"PROCESSING\"\nvalues = [\"pending\"]\n[[state]]\nis = \"SUCCESS\"\nvalues = [\"completed\"]\n[[state]]\nis = \"TIMEOUT\"\nvalues = [\"expired\", \"gone\"]\n";
        let table = attach(test, states, ORDER).await;
        let key = "0190a1b2-0000-7000-8000-000000000001";
        for (search, found) in [(key, 1), ("no uuid", 0), ("N1", 1)] {
            let filter = RecordFilter { search: Some(search.into()), ..RecordFilter::stuck() };
            assert_eq!(table.keys(&filter).await.len(), found, "{search}");
        }
        let timeout = RecordFilter { state: Some(State::Timeout), ..RecordFilter::default() };
        assert!(table.keys(&timeout).await.is_empty());
        let record = table.get(key).await;
        let change = domain::ports::Change {
            action: domain::actions::Action::MarkSucceeded,
            record: &record,
            finding: None,
            response_body: None,
        };
        let plan = table.source.plan(change).await.unwrap();
        let applied = table
            .source
            .apply(&record, &record.row.version, domain::actions::Action::MarkSucceeded, &plan, common::far())
            .await
            .unwrap();
        assert_eq!(applied, domain::ports::Applied::Changed);
        let after = table.get(key).await;
        assert_eq!(after.row.state, State::Success);
        assert_eq!(after.response.bytes().unwrap(), plan.response.unwrap().as_bytes());
    }
}

#[tokio::test]
async fn c64_one_row_of_nulls_spoils_no_page() {
    for table in both(ORDER).await {
        for number in 0..19 {
            table.put(&rec(&format!("k{number:02}"), 1_000_000)).await;
        }
        let empty =
            Rec { biz_type: None, biz_no: None, status: None, request: None, age_ms: None, ..rec("null", 0) };
        table.put(&empty).await;
        let rows = table.list(&RecordFilter::default()).await;
        assert_eq!(rows.len(), 20);
        let row = rows.last().unwrap();
        assert_eq!(
            (row.key.as_str(), row.state, row.stuck, row.age_seconds),
            ("null", State::Unknown, false, None)
        );
        let unknown = RecordFilter { state: Some(State::Unknown), ..RecordFilter::default() };
        assert_eq!(table.keys(&unknown).await, ["null"], "{}", table.dialect());
        assert!(table.source.get(&id("null")).await.is_ok());
    }
}

#[tokio::test]
async fn a_zero_date_or_damaged_time_spoils_only_its_cell() {
    for table in tables(MINIMAL, ORDER).await {
        for number in 0..6 {
            table.put(&rec(&format!("k{number}"), 1_000_000 + number * 1_000)).await;
        }
        let damage: &[&str] = match table.dialect() {
            Dialect::Sqlite => &["0000-00-00 00:00:00", "yesterday", "2026-02-30 00:00:00", "2026-99-99"],
            Dialect::Postgres => &["infinity", "-infinity"],
            Dialect::Mysql => &["0000-00-00 00:00:00"],
        };
        for (place, value) in damage.iter().enumerate() {
            let sql = match table.dialect() {
                // Only a session of its own mode may write such a value.
                Dialect::Mysql => format!(
                    "SET STATEMENT sql_mode = '' FOR UPDATE idempotent_record SET create_time = '{value}' WHERE idempotent_id = 'k{place}'"
                ),
                _ => format!(
                    "UPDATE idempotent_record SET create_time = '{value}' WHERE idempotent_id = 'k{place}'"
                ),
            };
            table.test.db.execute(&Query::raw(sql, vec![])).await.unwrap();
        }
        let keys = walk(&table, &RecordFilter::default(), false).await;
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 6, "{} {keys:?}", table.dialect());
        assert_eq!(keys.len(), 6, "{} {keys:?}", table.dialect());
        assert_eq!(table.get("k0").await.row.created_at, None);
        assert_eq!(table.keys(&RecordFilter::stuck()).await.len(), 6 - damage.len(), "{}", table.dialect());
    }
}

#[tokio::test]
async fn a_source_that_is_down_says_so_and_a_table_that_differs_is_degraded() {
    use domain::source::Health;
    let down = open("postgres://me:s3cret@127.0.0.1:1/x", "connect_timeout = \"100ms\"\n", ORDER);
    let status = down.status().await;
    assert_eq!(status.status, Health::Down);
    assert!(!format!("{status:?}").contains("s3cret"));
    assert!(matches!(
        down.list(&RecordFilter::default(), None, 1).await,
        Err(domain::Error::Unavailable { .. })
    ));
    for table in tables(MINIMAL, ORDER).await {
        let status = table.source.status().await;
        assert_eq!(
            (status.status, status.kind),
            (Health::Up, table.dialect().to_string()),
            "{}",
            status.detail
        );
        assert!(status.clock_offset_ms.unwrap() > 1_000_000_000);
        let other = open(&table.test.url, "[columns]\nkey = \"idempotent_key\"\n", ORDER).status().await;
        assert_eq!(other.status, Health::Degraded);
        assert!(other.detail.contains("idempotent_id"), "{}", other.detail);
    }
}

#[tokio::test]
async fn a_constant_condition_bounds_every_statement() {
    for table in tables(EXTENDED, ORDER).await {
        table.put(&rec("mine", 3_600_000)).await;
        table.put(&rec("theirs", 3_600_000)).await;
        table.run("UPDATE idempotent_record SET owner = 'x' WHERE idempotent_id = 'theirs'").await;
        let source = open(&table.test.url, "where = \"owner IS NULL OR owner = ''\"\n", ORDER);
        let listed = source.list(&RecordFilter::stuck(), None, 10).await.unwrap();
        assert_eq!(listed.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["mine"]);
        assert!(source.get(&id("theirs")).await.is_err(), "{}", table.dialect());
        let record = table.get("theirs").await;
        let plan = domain::compensation::Plan { state: State::Timeout, marker: 1, response: None };
        let mark = domain::actions::Action::MarkTimedOut;
        assert!(source.apply(&record, &record.row.version, mark, &plan, common::far()).await.is_err());
        assert_eq!(table.get("theirs").await.row.version, record.row.version);
    }
}

#[tokio::test]
async fn a_records_own_deadline_replaces_the_common_one() {
    for table in tables(EXTENDED, ORDER).await {
        for (key, age_minutes, deadline_minutes) in
            [("due", 1, Some(1)), ("early", 60, Some(-5)), ("none-old", 60, None), ("none-young", 1, None)]
        {
            let lease_ms = deadline_minutes.map(|minutes: i64| minutes * 60_000);
            table.put(&Rec { lease_ms, ..rec(key, age_minutes * 60_000) }).await;
        }
        let source = open(
            &table.test.url,
            "[columns]\ndeadline = \"lease_until\"\nage_from = \"update_time\"\n",
            ORDER,
        );
        let stuck = source.list(&RecordFilter::stuck(), None, 10).await.unwrap();
        let keys: Vec<&str> = stuck.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys, ["none-old", "due"], "{}", table.dialect());
        for row in source.list(&RecordFilter::default(), None, 10).await.unwrap() {
            assert_eq!(row.stuck, keys.contains(&row.key.as_str()), "{} {}", table.dialect(), row.key);
        }
    }
}

#[tokio::test]
async fn iso_text_of_sqlite_is_sorted_compared_and_written_in_its_own_shape() {
    let test = db::testkit::sqlite().await;
    test.run(&[
        "CREATE TABLE idempotent_record (idempotent_id TEXT PRIMARY KEY, biz_type TEXT, biz_no TEXT, status TEXT, request_body TEXT, response_body TEXT, create_time TEXT, update_time TEXT)",
        common::ORDERS,
        "INSERT INTO idempotent_record SELECT 'k' || value, 'ORDER', 'N1', 'PROCESSING', '{}', NULL, strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-' || (value * 4) || ' minutes'), '2026-01-01T00:00:00Z' FROM json_each('[1,2,3,4,5]')",
    ])
    .await;
    let config = "[columns]\ncreated_at = { column = \"create_time\", kind = \"iso_text\" }\nupdated_at = { column = \"update_time\", kind = \"iso_text\" }\n";
    let table = attach(test, config, ORDER).await;
    assert_eq!(table.keys(&RecordFilter::stuck()).await, ["k5", "k4", "k3"]);
    assert_eq!(walk(&table, &RecordFilter::default(), false).await, ["k1", "k2", "k3", "k4", "k5"]);
    let record = table.get("k5").await;
    let mark = domain::actions::Action::MarkTimedOut;
    let change = domain::ports::Change { action: mark, record: &record, finding: None, response_body: None };
    let plan = table.source.plan(change).await.unwrap();
    assert_eq!(
        table.source.apply(&record, &record.row.version, mark, &plan, common::far()).await.unwrap(),
        domain::ports::Applied::Changed
    );
    assert_eq!(table.get("k5").await.row.updated_at.unwrap().timestamp_millis(), plan.marker);
    assert_eq!(table.cell("k5", "update_time").await.unwrap().len(), "2026-01-01T00:00:00Z".len());
}

#[tokio::test]
async fn texts_that_do_not_fit_an_old_character_set_match_nothing() {
    for test in each_database().await {
        if test.db.dialect() != Dialect::Mysql {
            continue;
        }
        test.run(&[
            "CREATE TABLE idempotent_record (idempotent_id VARCHAR(64) PRIMARY KEY, biz_type VARCHAR(64), biz_no VARCHAR(64), status VARCHAR(16), \
             request_body TEXT, response_body TEXT, create_time TIMESTAMP(3) NULL, update_time TIMESTAMP(3) NULL) CHARACTER SET latin1",
            "INSERT INTO idempotent_record (idempotent_id, biz_no, status, create_time) VALUES ('é', 'E', 'PROCESSING', '2026-01-01 00:00:00')",
        ])
        .await;
        let table = attach(test, "", ORDER).await;
        for (key, found) in [("é", 1), ("É", 0), ("🧾", 0), ("键", 0)] {
            let filter = RecordFilter { search: Some(key.into()), ..RecordFilter::stuck() };
            assert_eq!(table.keys(&filter).await.len(), found, "{key}");
        }
    }
}

#[tokio::test]
async fn times_and_places_beyond_the_calendar_are_no_error() {
    for table in both(ORDER).await {
        table.put(&rec("k", 1_000_000)).await;
        for (from, to, found) in [
            ("0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 1),
            ("9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", 0),
        ] {
            let filter = RecordFilter {
                created_from: Some(from.parse().unwrap()),
                created_to: Some(to.parse().unwrap()),
                ..RecordFilter::default()
            };
            assert_eq!(table.keys(&filter).await.len(), found, "{}", table.dialect());
        }
        for created_ms in [Some(i64::MAX), Some(i64::MIN), Some(0), None] {
            for locator in [vec![], vec!["a\0'".to_owned(), "b".to_owned()]] {
                let place = Place { created_ms, source: "orders".into(), locator };
                for filter in [RecordFilter::default(), RecordFilter::stuck()] {
                    table.source.list(&filter, Some(&place), 5).await.unwrap();
                }
            }
        }
        for locator in [vec![], vec!["a\0".to_owned()], vec!["k".to_owned(), "k".to_owned()]] {
            let missing = table.source.get(&domain::record::RecordId::new("orders", locator)).await;
            assert!(matches!(missing, Err(domain::Error::NotFound { .. })), "{}", table.dialect());
        }
    }
}
