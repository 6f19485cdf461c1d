//! The guard's outbox beside the records, read as the guard makes it.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{MINIMAL, tables};
use db::Query;
use domain::outbox::Delivery;
use domain::ports::Source;

#[tokio::test]
async fn a_source_without_an_outbox_has_nothing_undelivered() {
    for table in tables(MINIMAL, "").await {
        assert!(table.source.undelivered(None, 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn undelivered_messages_are_listed_with_how_far_they_are() {
    for table in tables(MINIMAL, "").await {
        guard::schema::mechanisms::create(&table.test.db).await.unwrap();
        let now = table.test.db.now().await.unwrap().timestamp_millis();
        let rows = [
            ("k1", "SENT", 1, None),
            ("k2", "DEAD", 20, Some("answered 503")),
            ("k3", "PENDING", 0, None),
            ("k4", "PENDING", 2, Some("<b>answered 500</b>")),
            ("k5", "DISCARDED", 20, None),
        ];
        for (key, status, attempts, error) in rows {
            let sql = "INSERT INTO idempotency_outbox (message_key, biz_type, biz_no, kind, target, content_type, \
                       body, status, attempts, due_at, last_error, created_at) \
                       VALUES (?, 'ORDER', 'O1', 'PAID', 'stock', 'application/json', '{}', ?, ?, 0, ?, ?)";
            let values = vec![
                key.into(),
                status.into(),
                attempts.into(),
                error.map(str::to_owned).into(),
                (now - 90_000).into(),
            ];
            table.test.db.execute(&Query::raw(sql, values)).await.unwrap();
        }
        let found = table.source.undelivered(None, 10).await.unwrap();
        let shown: Vec<_> = found.iter().map(|message| (message.key.as_str(), message.delivery)).collect();
        assert_eq!(shown, [("k2", Delivery::GivenUp), ("k3", Delivery::Waiting), ("k4", Delivery::Failing)]);
        assert_eq!(
            (found[0].source.as_str(), found[0].attempts, found[0].biz_no.as_deref()),
            ("orders", 20, Some("O1"))
        );
        assert!((90..150).contains(&found[0].age_seconds), "by the database's clock");
        assert_eq!(found[2].last_error.as_deref(), Some("<b>answered 500</b>"));
        let rest = table.source.undelivered(Some(found[0].number), 1).await.unwrap();
        assert_eq!(rest, found[1..2]);
    }
}
