//! Tables that hold less than they should.

use db::testkit::{TestDb, each_database};
use db::{Db, Dialect, Options};
use guard::{Guard, GuardError, Settings};

use crate::common::{BODY, EMOJI, Mode, process, service};

/// Changes a column's type, where types are kept.
async fn retype(test: &TestDb, column: &str, mysql: &str, postgres: &str) -> bool {
    let sql = match test.db.dialect() {
        Dialect::Sqlite => return false,
        Dialect::Mysql => format!("ALTER TABLE idempotent_record MODIFY {column} {mysql}"),
        Dialect::Postgres => format!("ALTER TABLE idempotent_record ALTER {column} TYPE {postgres}"),
    };
    test.run(&[&sql]).await;
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn c24_a_response_larger_than_its_column_leaves_its_status() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        if !retype(&test, "response_body", "TEXT", "VARCHAR(65535)").await {
            continue;
        }
        let one = process(test.reopen().await, "one", Mode::Big(70_000), |policy| policy).await;
        assert!(one.guard.warnings().iter().any(|warning| warning.contains("65535")));
        let first = one.pay("big", BODY).await;
        assert_eq!((first.status, first.body.len()), (200, 70_000));
        one.set(Mode::Big(65_535));
        one.pay("fits", BODY).await;
        assert_eq!(one.status("big").await, "SUCCESS");
        assert_eq!(one.column("big", "phase").await.as_deref(), Some("body_not_stored"));
        let two = process(test.reopen().await, "two", Mode::Tx, |policy| policy).await;
        let again = two.pay("big", BODY).await;
        assert_eq!((again.status, again.code().as_str()), (200, "response_not_stored"));
        assert!(again.headers.contains_key("idempotency-body"));
        assert_eq!(two.pay("fits", BODY).await.body.len(), 65_535);
        assert_eq!(two.effects().await, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c25_characters_the_column_cannot_hold_come_back_all_the_same() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        if test.db.dialect() == Dialect::Mysql {
            for column in ["request_body", "response_body"] {
                retype(&test, column, "MEDIUMTEXT CHARACTER SET utf8mb3", "").await;
            }
        }
        let body = format!("{{\"orderNo\":\"1\",\"note\":{EMOJI}}}");
        let one = process(test.reopen().await, "one", Mode::Emoji, |policy| policy).await;
        assert_eq!(one.guard.warnings().is_empty(), test.db.dialect() != Dialect::Mysql);
        assert_eq!(one.pay("k", &body).await.body, EMOJI);
        assert_eq!(one.status("k").await, "SUCCESS");
        let two = process(test.reopen().await, "two", Mode::Tx, |policy| policy).await;
        let again = two.pay("k", &body).await;
        assert_eq!((again.replayed(), &again.body[..]), (true, EMOJI.as_bytes()));
        assert_eq!(two.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c27_keys_that_a_collation_takes_for_one_are_told_apart() {
    for test in each_database().await {
        if test.db.dialect() != Dialect::Mysql {
            continue;
        }
        service(&test, Mode::Tx).await;
        retype(&test, "idempotent_id", "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "")
            .await;
        let one = process(test.reopen().await, "one", Mode::Tx, |policy| policy).await;
        assert!(one.guard.warnings().iter().any(|warning| warning.contains("ignores case")));
        assert_eq!(one.pay("ABC", BODY).await.status, 200);
        let two = process(test.reopen().await, "two", Mode::Tx, |policy| policy).await;
        for service in [&one, &two] {
            let other = service.pay("abc", BODY).await;
            assert_eq!((other.status, other.code().as_str(), other.replayed()), (422, "key_reused", false));
            assert!(service.pay("ABC", BODY).await.replayed());
        }
        assert_eq!(one.effects().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c17_a_key_longer_than_its_column_is_refused_by_its_characters() {
    for test in each_database().await {
        service(&test, Mode::Tx).await;
        if !retype(&test, "idempotent_id", "VARCHAR(32) COLLATE utf8mb4_bin", "VARCHAR(32)").await {
            continue;
        }
        let one = process(test.reopen().await, "one", Mode::Tx, |policy| policy).await;
        assert_eq!(one.pay(&"a".repeat(33), BODY).await.code(), "bad_key");
        for key in ["a".repeat(32), "😂".repeat(32)] {
            assert_eq!(one.pay(&key, BODY).await.status, 200);
            // The same key of another business type has no room for its name beside it.
            assert_eq!(one.post("/other", &[&key], BODY).await.status, 200);
            assert!(one.post("/other", &[&key], BODY).await.replayed());
        }
        assert_eq!(one.effects().await, 4);
    }
}

async fn refused(db: Db) -> String {
    match Guard::open(db, Settings::new("one")).await {
        Err(GuardError::Table(what)) => what,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("such a table must be refused"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_cannot_keep_the_promise_is_refused_with_what_to_do() {
    for test in each_database().await {
        assert!(refused(test.reopen().await).await.contains("does not exist"));
        guard::schema::create(&test.db).await.unwrap();
        assert!(Guard::open(test.reopen().await, Settings::new("one")).await.is_ok());
        test.run(&["ALTER TABLE idempotent_record DROP COLUMN fence"]).await;
        assert!(refused(test.reopen().await).await.contains("lacks fence"));
        test.run(&["DROP TABLE idempotent_record"]).await;
        let columns = "idempotent_id VARCHAR(255), biz_type VARCHAR(64), biz_no VARCHAR(255), status VARCHAR(16), \
            request_body TEXT, response_body TEXT, create_time TIMESTAMP, update_time TIMESTAMP, tenant VARCHAR(64), \
            fingerprint CHAR(64), response_status SMALLINT, response_headers TEXT, fence BIGINT, phase VARCHAR(32), \
            lease_until TIMESTAMP, owner VARCHAR(128), attempts INTEGER";
        test.run(&[&format!("CREATE TABLE idempotent_record ({columns})")]).await;
        test.run(&["CREATE UNIQUE INDEX pair ON idempotent_record (idempotent_id, biz_type)"]).await;
        let what = refused(test.reopen().await).await;
        assert!(what.contains("CREATE UNIQUE INDEX"), "{what}");
        test.run(&["CREATE UNIQUE INDEX idempotent_record_key ON idempotent_record (idempotent_id)"]).await;
        assert!(Guard::open(test.reopen().await, Settings::new("one")).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_name_too_long_for_its_column_is_refused() {
    let test = each_database().await.pop().unwrap();
    guard::schema::create(&test.db).await.unwrap();
    let db = Db::connect(&test.url, &Options::own()).await.unwrap();
    let named = Guard::open(db, Settings::new("x".repeat(200))).await;
    assert_eq!(named.is_err(), test.db.dialect() != Dialect::Sqlite);
}
