//! The same stories on every database.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use db::testkit::{TestDb, each_database};
use db::{Attempts, Cell, Db, DbError, Dialect, Options, Query, Value};
use sea_query::{Expr, ExprTrait, InsertStatement, Order, Query as Sql};

const TABLE: &str =
    "CREATE TABLE item (id VARCHAR(40) PRIMARY KEY, version BIGINT NOT NULL, note VARCHAR(200))";

async fn with_items(count: i64) -> Vec<TestDb> {
    let all = each_database().await;
    for test in &all {
        test.run(&[TABLE]).await;
        for number in 0..count {
            test.db.execute(&test.db.query(&item(&format!("k{number:03}")))).await.unwrap();
        }
    }
    all
}

fn item(id: &str) -> InsertStatement {
    Sql::insert().into_table("item").columns(["id", "version"]).values_panic([id.into(), 1.into()]).to_owned()
}

fn bump(db: &Db, id: &str, seen: i64) -> Query {
    db.query(
        Sql::update()
            .table("item")
            .value("version", seen + 1)
            .and_where(Expr::col("id").eq(id))
            .and_where(Expr::col("version").eq(seen)),
    )
}

fn raw(sql: &str) -> Query {
    Query::raw(sql, vec![])
}

async fn count(db: &Db) -> i64 {
    db.fetch_optional(&raw("SELECT COUNT(*) FROM item")).await.unwrap().unwrap().i64(0).unwrap()
}

#[tokio::test]
async fn values_round_trip_exactly() {
    let awkward = "键 ' \" \\ ; -- \u{1F4A5} <script> %_";
    for TestDb { db, .. } in &with_items(1).await {
        let update = Sql::update().table("item").value("note", awkward).value("version", i64::MAX).to_owned();
        assert_eq!(db.execute(&db.query(&update)).await.unwrap(), 1);
        let raw =
            Query::raw("SELECT note, version, '?' AS mark FROM item WHERE note = ?", vec![awkward.into()]);
        let row = db.fetch_optional(&raw).await.unwrap().unwrap();
        assert_eq!(row.columns(), ["note", "version", "mark"]);
        assert_eq!(row.text("note").unwrap(), awkward);
        assert_eq!(row.i64(1).unwrap(), i64::MAX);
        assert_eq!(row.text("mark").unwrap(), "?");
        assert!(matches!(row.i64("note"), Err(DbError::Decode(message)) if !message.contains("script")));
        assert!(matches!(row.text("absent"), Err(DbError::Decode(_))));
    }
}

#[tokio::test]
async fn affected_rows_are_matched_rows() {
    for TestDb { db, .. } in &with_items(2).await {
        let same = db.query(Sql::update().table("item").value("version", 1));
        assert_eq!(db.execute(&same).await.unwrap(), 2, "{}", db.dialect());
        assert_eq!(db.execute(&bump(db, "k000", 1)).await.unwrap(), 1);
        assert_eq!(db.execute(&bump(db, "k000", 1)).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn of_fifty_compare_and_sets_one_wins() {
    for TestDb { db, .. } in &with_items(1).await {
        let query = bump(db, "k000", 1);
        let all = (0..50).map(|_| db.execute(&query));
        let won = futures::future::try_join_all(all).await.unwrap().into_iter().sum::<u64>();
        assert_eq!(won, 1, "{}", db.dialect());
    }
}

#[tokio::test]
async fn a_unique_violation_is_told_apart_and_carries_no_value() {
    for TestDb { db, .. } in &with_items(1).await {
        let error = db.execute(&db.query(&item("k000"))).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert!(!error.to_string().contains("k000"), "{error}");
    }
}

#[tokio::test]
async fn insert_if_absent_leaves_the_transaction_usable() {
    for TestDb { db, .. } in &with_items(1).await {
        let mut tx = db.begin().await.unwrap();
        assert!(!tx.insert_if_absent(&item("k000")).await.unwrap());
        assert!(tx.insert_if_absent(&item("k001")).await.unwrap());
        tx.commit().await.unwrap();
        assert!(!db.insert_if_absent(&item("k001")).await.unwrap());
        assert_eq!(count(db).await, 2);
    }
}

#[tokio::test]
async fn a_dropped_transaction_leaves_nothing() {
    for TestDb { db, .. } in &with_items(0).await {
        let mut tx = db.begin().await.unwrap();
        tx.execute(&tx.query(&item("k1"))).await.unwrap();
        drop(tx);
        let mut tx = db.begin().await.unwrap();
        tx.execute(&tx.query(&item("k2"))).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(count(db).await, 0);
    }
}

#[tokio::test]
async fn reading_refuses_writes() {
    for TestDb { db, .. } in &with_items(0).await {
        let mut tx = db.begin_read().await.unwrap();
        let error = tx.execute(&tx.query(&item("k1"))).await.unwrap_err();
        assert!(matches!(&error, DbError::Invalid(m) if m.contains("refused")), "{}: {error}", db.dialect());
        drop(tx);
        assert_eq!(count(db).await, 0);
    }
}

#[tokio::test]
async fn a_transaction_sees_what_others_committed_meanwhile() {
    for test in &with_items(1).await {
        // SQLite has one writer: nobody can commit meanwhile.
        if test.db.dialect() == Dialect::Sqlite {
            continue;
        }
        let mut tx = test.db.begin().await.unwrap();
        let version = raw("SELECT version FROM item");
        assert_eq!(tx.fetch_optional(&version).await.unwrap().unwrap().i64(0).unwrap(), 1);
        let other = test.reopen().await;
        other.execute(&bump(&other, "k000", 1)).await.unwrap();
        assert_eq!(tx.fetch_optional(&version).await.unwrap().unwrap().i64(0).unwrap(), 2);
    }
}

#[tokio::test]
async fn keyset_pages_meet_every_row_once() {
    for TestDb { db, .. } in &with_items(7).await {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = Sql::select()
                .column("id")
                .from("item")
                .and_where(Expr::col("id").gt(after.as_str()))
                .order_by("id", Order::Asc)
                .limit(3)
                .to_owned();
            let rows = db.fetch_all(&db.query(&page)).await.unwrap();
            let Some(last) = rows.last() else { break };
            after = last.text("id").unwrap();
            seen.extend(rows.iter().map(|row| row.text(0).unwrap()));
        }
        assert_eq!(seen, (0..7).map(|n| format!("k{n:03}")).collect::<Vec<_>>());
        assert_eq!(db.fetch_at_most(&raw("SELECT id FROM item"), 2).await.unwrap().len(), 2);
        assert_eq!(count(db).await, 7, "the connection of a cut-off result works on");
    }
}

#[tokio::test]
async fn deadlocked_work_is_tried_again_until_both_are_done() {
    async fn touch(db: &Db, ids: [&str; 2]) -> Result<(), DbError> {
        let mut tx = db.begin().await?;
        for id in ids {
            let touch = Sql::update()
                .table("item")
                .value("version", Expr::col("version").add(1))
                .and_where(Expr::col("id").eq(id))
                .to_owned();
            tx.execute(&tx.query(&touch)).await?;
            tokio::task::yield_now().await;
        }
        tx.commit().await
    }
    async fn both(db: &Db, ids: [&str; 2], seed: u64) -> Result<(), DbError> {
        let mut attempts = Attempts::new(20, seed);
        loop {
            match touch(db, ids).await {
                Err(e) if attempts.again(&e).await => {}
                outcome => return outcome,
            }
        }
    }
    for test in &with_items(2).await {
        let url = match test.db.dialect() {
            Dialect::Postgres => format!("{}?options[deadlock_timeout]=20ms", test.url),
            _ => test.url.clone(),
        };
        let db = &Db::connect(&url, &Options::own()).await.unwrap();
        let orders = [["k000", "k001"], ["k001", "k000"]];
        let work = (0..10).map(|n| both(db, orders[n % 2], n as u64));
        futures::future::try_join_all(work).await.unwrap();
        for row in db.fetch_all(&raw("SELECT version FROM item")).await.unwrap() {
            assert_eq!(row.i64(0).unwrap(), 11, "{}", db.dialect());
        }
    }
}

#[tokio::test]
async fn attempts_are_bounded_and_only_for_transient_errors() {
    let busy = DbError::Busy("in the way".into());
    let mut attempts = Attempts::new(3, 1);
    assert_eq!(
        [attempts.again(&busy).await, attempts.again(&busy).await, attempts.again(&busy).await],
        [true, true, false]
    );
    assert!(!Attempts::new(3, 1).again(&DbError::Timeout("unknown outcome".into())).await);
}

#[tokio::test]
async fn a_slow_statement_is_stopped_and_the_connection_lives() {
    let slow = |dialect| match dialect {
        Dialect::Sqlite => {
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
        }
        Dialect::Postgres => "SELECT pg_sleep(30)",
        Dialect::Mysql => "SELECT SLEEP(30)",
    };
    for test in &each_database().await {
        let options =
            Options { statement_timeout: Duration::from_millis(100), max_connections: 1, ..Options::own() };
        let db = Db::connect(&test.url, &options).await.unwrap();
        let error = db.fetch_all(&raw(slow(db.dialect()))).await.unwrap_err();
        assert!(matches!(error, DbError::Timeout(_)), "{}: {error}", db.dialect());
        db.ping().await.unwrap();
        db.close().await;
    }
}

#[tokio::test]
async fn each_statement_of_a_transaction_has_its_own_time() {
    for test in &with_items(1).await {
        let options = Options { statement_timeout: Duration::from_millis(400), ..Options::own() };
        let db = Db::connect(&test.url, &options).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.fetch_all(&raw("SELECT id FROM item")).await.unwrap();
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(450) {
            tokio::task::yield_now().await;
        }
        let many =
            "INSERT INTO item (id, version) SELECT CONCAT(a.id, b.id, c.id), 1 FROM item a, item b, item c";
        let rows =
            "INSERT INTO item (id, version) VALUES ('x1', 1), ('x2', 1), ('x3', 1), ('x4', 1), ('x5', 1)";
        tx.execute(&raw(rows)).await.unwrap();
        assert_eq!(tx.execute(&raw(many)).await.unwrap(), 216, "{}", db.dialect());
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_caller_who_goes_away_leaves_no_lock_and_no_change() {
    for test in &with_items(1).await {
        let db = &test.db;
        for _ in 0..5 {
            let abandoned = async {
                let mut tx = db.begin().await.unwrap();
                tx.execute(&bump(db, "k000", 1)).await.unwrap();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                () = abandoned => {}
                () = async { while !locked(test).await {} } => {}
            }
        }
        assert_eq!(db.execute(&bump(db, "k000", 1)).await.unwrap(), 1, "{}", db.dialect());
    }
}

/// Whether somebody holds the row.
async fn locked(test: &TestDb) -> bool {
    let options = Options { lock_timeout: Duration::from_millis(50), ..Options::own() };
    let other = Db::connect(&test.url, &options).await.unwrap();
    let touch = "UPDATE item SET version = version WHERE id = 'k000'";
    let held = other.execute(&raw(touch)).await.is_err_and(|e| e.is_retryable());
    other.close().await;
    held
}

#[tokio::test]
async fn connections_that_the_server_ended_are_replaced() {
    for test in &with_items(1).await {
        let kill = match test.db.dialect() {
            Dialect::Sqlite => continue,
            Dialect::Postgres => {
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            }
            Dialect::Mysql => {
                "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
            }
        };
        test.db.ping().await.unwrap();
        let other = test.reopen().await;
        for row in other.fetch_all(&raw(kill)).await.unwrap() {
            if other.dialect() == Dialect::Mysql {
                other.execute(&raw(&format!("KILL {}", row.i64(0).unwrap()))).await.unwrap();
            }
        }
        assert_eq!(count(&test.db).await, 1, "{}", test.db.dialect());
    }
}

#[tokio::test]
async fn a_lock_held_by_another_is_busy_not_forever() {
    for test in &with_items(1).await {
        let mut holder = test.db.begin().await.unwrap();
        holder.execute(&bump(&test.db, "k000", 1)).await.unwrap();
        let options = Options { lock_timeout: Duration::from_millis(100), ..Options::own() };
        let other = Db::connect(&test.url, &options).await.unwrap();
        let error = other.execute(&bump(&other, "k000", 1)).await.unwrap_err();
        assert!(error.is_retryable(), "{}: {error}", other.dialect());
    }
}

#[tokio::test]
async fn the_clock_is_the_databases_and_runs_inside_transactions() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with the machine's clock, which the servers share"
    )]
    let here = Utc::now();
    for TestDb { db, .. } in &each_database().await {
        let mut tx = db.begin().await.unwrap();
        let first = tx.now().await.unwrap();
        assert!((first - here).abs() < TimeDelta::seconds(30), "{}: {first} {here}", db.dialect());
        while tx.now().await.unwrap() <= first {}
    }
}

#[tokio::test]
async fn broken_sql_says_what_is_wrong_without_values() {
    for TestDb { db, .. } in &with_items(0).await {
        for (query, hint) in [
            (raw("SELEC 1"), "SELEC"),
            (raw("SELECT 1 FROM absent_table"), "absent_table"),
            (raw("SELECT absent_column FROM item"), "absent_column"),
        ] {
            let error = db.fetch_all(&query).await.unwrap_err();
            assert!(matches!(&error, DbError::Invalid(m) if m.contains(hint)), "{}: {error}", db.dialect());
        }
        let secret = Value::from("s3cret-not-a-number");
        let insert =
            Query::raw("INSERT INTO item (id, version) VALUES ('a', CAST(? AS DECIMAL(5)))", vec![secret]);
        if let Err(error) = db.execute(&insert).await {
            assert!(!error.to_string().contains("s3cret"), "{}: {error}", db.dialect());
        }
    }
}

#[tokio::test]
async fn a_table_altered_under_an_open_connection_is_read_as_it_is() {
    for test in &with_items(1).await {
        let one = Db::connect(&test.url, &Options { max_connections: 1, ..Options::own() }).await.unwrap();
        let all = raw("SELECT * FROM item");
        assert_eq!(one.fetch_all(&all).await.unwrap()[0].columns().len(), 3);
        test.run(&["ALTER TABLE item ADD COLUMN extra BIGINT"]).await;
        assert_eq!(one.fetch_all(&all).await.unwrap()[0].columns().len(), 4, "{}", one.dialect());
    }
}

#[tokio::test]
async fn an_unreachable_database_is_unavailable_and_its_password_unseen() {
    let options = Options { connect_timeout: Duration::from_millis(300), ..Options::default() };
    for url in
        ["postgres://me:s3cret@127.0.0.1:1/x", "mysql://me:s3cret@127.0.0.1:1/x", "sqlite:///absent/file.db"]
    {
        let db = Db::open(url, &options).unwrap();
        let error = db.ping().await.unwrap_err();
        assert!(matches!(error, DbError::Unavailable(_)), "{error}");
        assert!(!format!("{error} {error:?} {db:?}").contains("s3cret"));
    }
    for url in ["oracle://x", "sqlite::memory:", "", "postgres://me:s3cret@host:port/x"] {
        let error = Db::open(url, &options).unwrap_err();
        assert!(matches!(&error, DbError::Invalid(m) if !m.contains("s3cret")), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_foreign_sqlite_file_is_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("foreign.db");
    let url = format!("sqlite://{}", path.display());
    assert!(matches!(Db::connect(&url, &Options::default()).await, Err(DbError::Unavailable(_))));
    assert!(!path.exists(), "attaching creates nothing");
    let making = Db::open(&format!("{url}?mode=rwc"), &Options::default()).unwrap();
    making.execute(&raw("CREATE TABLE t (a)")).await.unwrap();
    let db = Db::connect(&url, &Options::default()).await.unwrap();
    db.execute(&raw("INSERT INTO t VALUES (1)")).await.unwrap();
    let mode = db.fetch_optional(&raw("PRAGMA journal_mode")).await.unwrap().unwrap();
    assert_eq!(mode.cell(0).unwrap(), &Cell::Text("delete".into()));
}
