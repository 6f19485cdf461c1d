//! Events about one business number in the order of their own times: one that is older than what was done already is
//! acknowledged and recorded, and does not run.
//!
//! The time of every event is noted before it runs; whether it was done, its record says. So a process that dies
//! anywhere leaves the truth behind. Events about one number must take turns for this: see [`crate::Serial`].

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use db::{Cell, Db, DbError, TimeKind};
use futures::future::BoxFuture;
use sea_query::{Expr, ExprTrait, Query as Sql};

use super::{Ack, Notification};
use crate::mechanism::{Ended, Entry, Mechanism, Pass};
use crate::problem::Problem;
use crate::table::{STATUS_SUCCESS, TABLE as RECORD};

const TABLE: &str = "idempotency_event";

/// On the acknowledgement of an event that came too late to be done.
const SUPERSEDED_HEADER: HeaderName = HeaderName::from_static("idempotency-superseded");

/// Where the time of an event is, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTime {
    /// A JSON pointer into the notification.
    pub pointer: String,
    pub kind: TimeKind,
}

#[derive(Debug, Clone)]
pub(super) struct EventOrder {
    pub time: EventTime,
    pub ack: Ack,
    pub status: StatusCode,
}

/// One event about one business number.
struct Event<'a> {
    record: &'a str,
    biz_type: &'a str,
    biz_no: &'a str,
    at_ms: i64,
}

impl EventOrder {
    async fn look(&self, entry: Entry<'_>) -> Result<Box<dyn Pass>, Problem> {
        let at_ms = self.time_of(entry).ok_or_else(without_time)?;
        let claim = entry.claim;
        let biz_no = claim.biz_no().ok_or_else(without_time)?;
        let event = Event { record: claim.record_id(), biz_type: claim.biz_type(), biz_no, at_ms };
        let late = is_late(claim.db(), &event).await.map_err(|error| unavailable(&error))?;
        if late {
            tracing::info!(
                key = claim.key(),
                "an event older than what was done is acknowledged and not run"
            );
            return Ok(Box::new(Superseded { ack: self.ack.clone(), status: self.status }));
        }
        Ok(Box::new(()))
    }

    fn time_of(&self, entry: Entry<'_>) -> Option<i64> {
        let Notification(notification) = entry.parts.extensions.get()?;
        let text = crate::policy::scalar(notification.pointer(&self.time.pointer)?)?;
        Some(self.time.kind.read(&Cell::Text(text))?.timestamp_millis())
    }
}

impl Mechanism for EventOrder {
    fn enter<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<Box<dyn Pass>, Problem>> {
        Box::pin(self.look(entry))
    }
}

/// Notes the event, and tells whether a later one about the same number was done.
async fn is_late(db: &Db, event: &Event<'_>) -> Result<bool, DbError> {
    let mut insert = Sql::insert();
    insert.into_table(TABLE).columns(["idempotent_id", "biz_type", "biz_no", "event_time"]).values_panic([
        event.record.into(),
        event.biz_type.into(),
        event.biz_no.into(),
        event.at_ms.into(),
    ]);
    db.insert_if_absent(&insert).await?;
    let mut later = Sql::select();
    later
        .column((TABLE, "idempotent_id"))
        .from(TABLE)
        .inner_join(RECORD, Expr::col((RECORD, "idempotent_id")).eq(Expr::col((TABLE, "idempotent_id"))))
        .and_where(Expr::col((TABLE, "biz_type")).eq(event.biz_type))
        .and_where(Expr::col((TABLE, "biz_no")).eq(event.biz_no))
        .and_where(Expr::col((TABLE, "event_time")).gt(event.at_ms))
        .and_where(Expr::col((RECORD, "status")).eq(STATUS_SUCCESS))
        .limit(1);
    Ok(db.fetch_optional(&db.query(&later)).await?.is_some())
}

struct Superseded {
    ack: Ack,
    status: StatusCode,
}

impl Pass for Superseded {
    fn answer(&self) -> Option<Response> {
        let mut response = self.ack.response(self.status);
        response.headers_mut().insert(SUPERSEDED_HEADER, HeaderValue::from_static("true"));
        Some(response)
    }

    fn leave(self: Box<Self>, _: Ended) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

fn without_time() -> Problem {
    Problem {
        status: StatusCode::BAD_REQUEST,
        code: "event_time_missing",
        title: "Event without a time",
        detail: "The notification lacks its business number, or the time by which it is put in order.".into(),
        retry_after: None,
    }
}

fn unavailable(error: &DbError) -> Problem {
    tracing::warn!(%error, "the order of an event could not be looked up");
    Problem {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "order_unavailable",
        title: "Try again later",
        detail: "The order of this event cannot be looked up now, so nothing was done.".into(),
        retry_after: None,
    }
}
