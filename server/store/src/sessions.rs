//! Sessions of signed-in people. What is stored names no session: only a hash of its id, so a copy of the table
//! signs nobody in.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use db::DbError;
use domain::clock::{Clock, millis};
use sea_query::{Expr, ExprTrait, Query};
use tower_sessions::SessionStore;
use tower_sessions::cookie::time::OffsetDateTime;
use tower_sessions::session::{Id, Record};
use tower_sessions::session_store::{Error, Result};

use crate::Store;
use crate::codec::{from_json, reference, to_json};

/// The session store; expiry is judged by `clock`.
#[derive(Clone)]
pub struct Sessions {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({:?})", self.store)
    }
}

impl Sessions {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Sessions { store, clock }
    }

    /// Deletes sessions that are over; returns how many.
    pub async fn delete_expired(&self) -> domain::Result<u64> {
        let delete = Query::delete()
            .from_table("sessions")
            .and_where(Expr::col("expires_at").lte(millis(self.clock.now())))
            .to_owned();
        crate::retrying!(self.store, self.store.db.execute(&self.store.db.query(&delete)).await)
    }

    async fn insert(&self, record: &Record) -> std::result::Result<bool, DbError> {
        let insert = Query::insert()
            .into_table("sessions")
            .columns(["session_ref", "data", "expires_at"])
            .values_panic([
                session_ref(&record.id).into(),
                to_json(&record.data)?.into(),
                expiry(record).into(),
            ])
            .to_owned();
        self.store.db.insert_if_absent(&insert).await
    }

    async fn update(&self, record: &Record) -> std::result::Result<(), DbError> {
        let update = Query::update()
            .table("sessions")
            .value("data", to_json(&record.data)?)
            .value("expires_at", expiry(record))
            .and_where(Expr::col("session_ref").eq(session_ref(&record.id)))
            .to_owned();
        self.store.db.execute(&self.store.db.query(&update)).await.map(drop)
    }

    async fn read(&self, id: &Id) -> std::result::Result<Option<Record>, DbError> {
        let select = Query::select()
            .columns(["data", "expires_at"])
            .from("sessions")
            .and_where(Expr::col("session_ref").eq(session_ref(id)))
            .and_where(Expr::col("expires_at").gt(millis(self.clock.now())))
            .to_owned();
        let Some(row) = self.store.db.fetch_optional(&self.store.db.query(&select)).await? else {
            return Ok(None);
        };
        let nanos = i128::from(row.i64("expires_at")?) * 1_000_000;
        let expiry_date = OffsetDateTime::from_unix_timestamp_nanos(nanos)
            .map_err(|_| DbError::Decode("a session's expiry is out of range".into()))?;
        Ok(Some(Record { id: *id, data: from_json(&row.text("data")?)?, expiry_date }))
    }

    async fn remove(&self, id: &Id) -> std::result::Result<(), DbError> {
        let delete = Query::delete()
            .from_table("sessions")
            .and_where(Expr::col("session_ref").eq(session_ref(id)))
            .to_owned();
        self.store.db.execute(&self.store.db.query(&delete)).await.map(drop)
    }
}

/// Runs again what met another transaction.
macro_rules! tried {
    ($sessions:expr, $work:expr) => {
        crate::retrying!($sessions.store, $work).map_err(|e| Error::Backend(e.to_string()))
    };
}

#[async_trait]
impl SessionStore for Sessions {
    async fn create(&self, record: &mut Record) -> Result<()> {
        while !tried!(self, self.insert(record).await)? {
            record.id = Id::default();
        }
        Ok(())
    }

    /// A session that was deleted meanwhile stays deleted: signing out is final.
    async fn save(&self, record: &Record) -> Result<()> {
        tried!(self, self.update(record).await)
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        tried!(self, self.read(id).await)
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        tried!(self, self.remove(id).await)
    }
}

fn session_ref(id: &Id) -> String {
    reference(&[&id.to_string()])
}

/// Milliseconds since 1970 UTC.
fn expiry(record: &Record) -> i64 {
    i64::try_from(record.expiry_date.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or(i64::MAX)
}
