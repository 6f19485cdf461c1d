//! A record as a duplicate meets it.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use chrono_tz::Tz;
use db::{DbError, Row, TimeKind};

use super::{Claimant, Hold, PHASE_TOMBSTONE, STATUS_PROCESSING, STATUS_SUCCESS, kept};
use crate::answer::Stored;
use crate::ticket::Ticket;

#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub id: String,
    pub tenant: Option<String>,
    pub biz_type: String,
    pub status: String,
    pub fingerprint: Option<String>,
    pub phase: Option<String>,
    pub owner: Option<String>,
    pub fence: i64,
    /// Zero when the lease is over.
    pub lease_left: Duration,
    pub stored: Stored,
}

/// What a look at the table showed.
#[derive(Debug)]
pub(crate) enum Sight {
    Claimed(Hold),
    Absent,
    Record(Box<Record>),
    /// The plain id belongs to another business type or tenant, and there is no scoped one yet.
    ForeignKey,
}

impl Record {
    /// A record without a lease counts its `lease` from its last change.
    pub(super) fn of(row: &Row, lease: Duration) -> Result<Record, DbError> {
        let utc = TimeKind::Calendar(Tz::UTC);
        let status = row.text("status")?;
        let lease_until = match row.opt_timestamp("lease_until", utc)? {
            Some(until) => until,
            None => row.timestamp("update_time", utc)? + lease,
        };
        let left_ms = lease_until.timestamp_millis() - row.i64("now_ms")?;
        let phase = row.opt_text("phase")?;
        Ok(Record {
            id: row.text("idempotent_id")?,
            tenant: row.opt_text("tenant")?,
            biz_type: row.text("biz_type")?,
            fingerprint: row.opt_text("fingerprint")?,
            owner: row.opt_text("owner")?,
            fence: row.i64("fence")?,
            lease_left: Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)),
            stored: stored(row, &status, phase.as_deref())?,
            status,
            phase,
        })
    }

    pub(crate) fn is_of(&self, ticket: &Ticket, biz_type: &str) -> bool {
        self.biz_type == biz_type && self.tenant == ticket.tenant
    }
}

impl Sight {
    /// A collation may find ids that only look like the ticket's; they come last.
    pub(super) fn of(records: Vec<Record>, ticket: &Ticket, who: Claimant<'_>) -> Sight {
        let rank = |record: &Record| match () {
            () if record.id == ticket.scoped => 0,
            () if record.id == ticket.key => 1,
            () => 2,
        };
        let Some(record) = records.into_iter().min_by_key(rank) else { return Sight::Absent };
        let own = record.owner.as_deref() == Some(who.owner) && record.status == STATUS_PROCESSING;
        match rank(&record) {
            0 | 1 if own => {
                Sight::Claimed(Hold { id: record.id, fence: record.fence, owner: who.owner.to_owned() })
            }
            1 if !record.is_of(ticket, who.biz_type) => Sight::ForeignKey,
            _ => Sight::Record(Box::new(record)),
        }
    }
}

fn stored(row: &Row, status: &str, phase: Option<&str>) -> Result<Stored, DbError> {
    let (headers, encoding) = match row.opt_text("response_headers")? {
        Some(json) => kept::parse_headers(&json),
        // Records completed by an operator have a body and nothing else.
        None => (kept::json_content(), kept::Encoding::Plain),
    };
    let body = row.opt_bytes("response_body")?.and_then(|kept| encoding.decode(kept));
    let code = row.opt_i64("response_status")?.and_then(|code| u16::try_from(code).ok());
    let default = if status == STATUS_SUCCESS { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(Stored {
        status: code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(default),
        headers,
        body: body.map(Bytes::from),
        tombstone: phase == Some(PHASE_TOMBSTONE),
    })
}
