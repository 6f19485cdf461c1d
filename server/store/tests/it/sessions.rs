use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use domain::clock::Clock;
use store::sessions::Sessions;
use tower_sessions::SessionStore;
use tower_sessions::cookie::time::OffsetDateTime;
use tower_sessions::session::{Id, Record};

use crate::{at, stores};

struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> DateTime<Utc> {
        at(self.0.load(Ordering::Relaxed))
    }
}

fn record(id: i128) -> Record {
    let data = HashMap::from([("user".to_owned(), serde_json::json!({"name": "ann", "since": 12}))]);
    let expiry_date = OffsetDateTime::from_unix_timestamp(at(100).timestamp()).unwrap();
    Record { id: Id(id), data, expiry_date }
}

#[tokio::test]
async fn sessions_live_until_they_expire_or_are_deleted() {
    for (store, test) in stores().await {
        let clock = Arc::new(Hands(AtomicI64::new(0)));
        let sessions = Sessions::new(store, clock.clone());
        let mut first = record(1);
        sessions.create(&mut first).await.unwrap();
        let mut twin = record(1);
        sessions.create(&mut twin).await.unwrap();
        assert_ne!(twin.id, first.id, "an id in use is not taken over");
        assert_eq!(sessions.load(&first.id).await.unwrap(), Some(first.clone()), "{}", test.db.dialect());
        first.data.insert("theme".into(), "dark".into());
        sessions.save(&first).await.unwrap();
        assert_eq!(sessions.load(&first.id).await.unwrap(), Some(first.clone()));
        sessions.delete(&twin.id).await.unwrap();
        sessions.save(&twin).await.unwrap();
        assert_eq!(sessions.load(&twin.id).await.unwrap(), None, "signing out is final");
        assert_eq!(sessions.delete_expired().await.unwrap(), 0);
        clock.0.store(100, Ordering::Relaxed);
        assert_eq!(sessions.load(&first.id).await.unwrap(), None);
        assert_eq!(sessions.delete_expired().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn the_table_holds_no_session_id() {
    for (store, test) in stores().await {
        let sessions = Sessions::new(store, Arc::new(Hands(AtomicI64::new(0))));
        let mut first = record(12_345);
        sessions.create(&mut first).await.unwrap();
        let rows = test.db.fetch_all(&db::Query::raw("SELECT * FROM sessions", vec![])).await.unwrap();
        assert!(!format!("{rows:?}").contains(&first.id.to_string()));
    }
}
