//! The record: every statement the guard runs on its table. Times are the database's own.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use chrono_tz::Tz;
use db::{Attempts, Db, DbError, Dialect, Query, Row, TimeKind};
use sea_query::{Expr, ExprTrait, Query as Sql, QueryStatementBuilder, UpdateStatement};

use crate::answer::Stored;
use crate::ticket::Ticket;

/// The table's name.
pub const TABLE: &str = "idempotent_record";
/// A worker holds the key, or died holding it.
pub const STATUS_PROCESSING: &str = "PROCESSING";
/// Done; duplicates get the stored response.
pub const STATUS_SUCCESS: &str = "SUCCESS";
/// Refused for good, or rolled back (phase `rolled_back`) and free to run again.
pub const STATUS_FAILED: &str = "FAILED";
/// Called off by an operator who proved that nothing happened: the same request may run again.
pub const STATUS_TIMEOUT: &str = "TIMEOUT";

pub(crate) const PHASE_CLAIMED: &str = "claimed";
pub(crate) const PHASE_SENT: &str = "sent";
pub(crate) const PHASE_UNKNOWN: &str = "unknown";
pub(crate) const PHASE_DONE: &str = "done";
pub(crate) const PHASE_TOMBSTONE: &str = "body_not_stored";
pub(crate) const PHASE_ROLLED_BACK: &str = "rolled_back";
pub(crate) const PHASE_LATE: &str = "late";

/// How often a statement that met another transaction is tried.
const BUSY_ATTEMPTS: u32 = 8;

/// Marks a response body that is no text and is kept in hexadecimal; no header can be called so.
const HEX_MARK: &str = ":hex";

#[derive(Clone)]
pub(crate) struct Table {
    pub db: Db,
}

/// A granted claim: nothing is written to the record without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hold {
    pub key: String,
    pub fence: i64,
    /// Unique to this claim.
    pub owner: String,
}

/// A record as a duplicate meets it.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub key: String,
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

impl Table {
    /// Inserts the record unless the key exists; the claim when it was inserted.
    pub(crate) async fn claim(
        &self,
        ticket: &Ticket,
        biz_type: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<Hold>, DbError> {
        let dialect = self.db.dialect();
        let mut insert = Sql::insert();
        insert
            .into_table(TABLE)
            .columns([
                "idempotent_id",
                "tenant",
                "biz_type",
                "biz_no",
                "status",
                "request_body",
                "fingerprint",
                "phase",
                "owner",
                "fence",
                "attempts",
                "create_time",
                "update_time",
                "lease_until",
            ])
            .values_panic([
                ticket.key.as_str().into(),
                ticket.tenant.clone().into(),
                biz_type.into(),
                ticket.biz_no.clone().into(),
                STATUS_PROCESSING.into(),
                text_of(&ticket.body).into(),
                ticket.fingerprint.as_str().into(),
                PHASE_CLAIMED.into(),
                owner.into(),
                1i64.into(),
                1i64.into(),
                now(dialect),
                now(dialect),
                after(dialect, lease),
            ]);
        let mut attempts = busy_attempts(owner);
        loop {
            match self.db.insert_if_absent(&insert).await {
                Ok(true) => {
                    return Ok(Some(Hold { key: ticket.key.clone(), fence: 1, owner: owner.to_owned() }));
                }
                Ok(false) => return Ok(None),
                Err(e) if attempts.again(&e).await => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Takes an existing record over if it still is what was read: settled so, or its lease still over.
    pub(crate) async fn take_over(
        &self,
        record: &Record,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<Hold>, DbError> {
        let dialect = self.db.dialect();
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("status", STATUS_PROCESSING)
            .value("phase", PHASE_CLAIMED)
            .value("owner", owner)
            .value("fence", Expr::col("fence").add(1i64))
            .value("attempts", Expr::col("attempts").add(1i64))
            .value("response_status", Expr::cust("NULL"))
            .value("response_headers", Expr::cust("NULL"))
            .value("response_body", Expr::cust("NULL"))
            .value("update_time", now(dialect))
            .value("lease_until", after(dialect, lease))
            .and_where(Expr::col("idempotent_id").eq(record.key.as_str()))
            .and_where(Expr::col("status").eq(record.status.as_str()))
            .and_where(Expr::col("fence").eq(record.fence));
        if record.status == STATUS_PROCESSING {
            update
                .and_where(Expr::col("lease_until").is_null().or(Expr::col("lease_until").lte(now(dialect))));
        }
        let taken = self.change(&update, owner).await?;
        Ok(taken.then(|| Hold { key: record.key.clone(), fence: record.fence + 1, owner: owner.to_owned() }))
    }

    /// The record of a key. A record without a lease counts its `lease` from its last change.
    pub(crate) async fn read(&self, key: &str, lease: Duration) -> Result<Option<Record>, DbError> {
        let mut select = Sql::select();
        select
            .columns([
                "idempotent_id",
                "tenant",
                "biz_type",
                "status",
                "fingerprint",
                "phase",
                "owner",
                "fence",
                "lease_until",
                "update_time",
                "response_status",
                "response_headers",
                "response_body",
            ])
            .expr_as(self.db.dialect().now_ms(), "now_ms")
            .from(TABLE)
            .and_where(Expr::col("idempotent_id").eq(key));
        let row = self.db.fetch_optional(&self.db.query(&select)).await?;
        row.map(|row| record(&row, lease)).transpose()
    }

    /// The stored request, for records that have no fingerprint.
    pub(crate) async fn request(&self, key: &str) -> Result<Option<Vec<u8>>, DbError> {
        let mut select = Sql::select();
        select.column("request_body").from(TABLE).and_where(Expr::col("idempotent_id").eq(key));
        match self.db.fetch_optional(&self.db.query(&select)).await? {
            Some(row) => row.opt_bytes(0),
            None => Ok(None),
        }
    }

    /// The fenced write-back, to be run in the business transaction or by itself.
    pub(crate) fn finish(&self, hold: &Hold, stored: &Stored) -> Query {
        let phase = if stored.tombstone { PHASE_TOMBSTONE } else { PHASE_DONE };
        self.db.query(fenced(&mut self.outcome(stored, phase), hold))
    }

    /// Completes a record that was marked TIMEOUT while the effect came late, so that nobody repeats it.
    pub(crate) async fn finish_late(&self, hold: &Hold, stored: &Stored) -> Result<bool, DbError> {
        let mut update = self.outcome(stored, PHASE_LATE);
        update
            .and_where(Expr::col("idempotent_id").eq(hold.key.as_str()))
            .and_where(Expr::col("owner").eq(hold.owner.as_str()))
            .and_where(Expr::col("status").eq(STATUS_TIMEOUT));
        self.change(&update, &hold.owner).await
    }

    fn outcome(&self, stored: &Stored, phase: &str) -> UpdateStatement {
        let (body, headers) = kept(stored);
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("status", status_word(stored.status))
            .value("phase", phase)
            .value("response_status", i64::from(stored.status.as_u16()))
            .value("response_headers", headers)
            .value("response_body", body)
            .value("lease_until", Expr::cust("NULL"))
            .value("update_time", now(self.db.dialect()));
        update
    }

    /// Frees the key: the business was rolled back, so the same request may run again.
    pub(crate) async fn release(&self, hold: &Hold) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("status", STATUS_FAILED)
            .value("phase", PHASE_ROLLED_BACK)
            .value("lease_until", Expr::cust("NULL"))
            .value("update_time", now(self.db.dialect()));
        self.change(fenced(&mut update, hold), &hold.owner).await
    }

    /// Takes a claim back before anything was run: a record made by it goes, an older one is free to run again.
    pub(crate) async fn withdraw(&self, hold: &Hold) -> Result<bool, DbError> {
        if hold.fence > 1 {
            return self.release(hold).await;
        }
        let mut delete = Sql::delete();
        delete
            .from_table(TABLE)
            .and_where(Expr::col("idempotent_id").eq(hold.key.as_str()))
            .and_where(Expr::col("owner").eq(hold.owner.as_str()))
            .and_where(Expr::col("fence").eq(hold.fence))
            .and_where(Expr::col("status").eq(STATUS_PROCESSING));
        self.change(&delete, &hold.owner).await
    }

    /// Notes how far the work got, for whoever has to look; `end_lease` when no worker is left.
    pub(crate) async fn note(&self, hold: &Hold, phase: &str, end_lease: bool) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update.table(TABLE).value("phase", phase).value("update_time", now(self.db.dialect()));
        if end_lease {
            update.value("lease_until", now(self.db.dialect()));
        }
        self.change(fenced(&mut update, hold), &hold.owner).await
    }

    /// Extends the lease; `false` when the claim was lost.
    pub(crate) async fn renew(&self, hold: &Hold, lease: Duration) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update.table(TABLE).value("lease_until", after(self.db.dialect(), lease));
        self.change(fenced(&mut update, hold), &hold.owner).await
    }

    async fn change(&self, update: &impl QueryStatementBuilder, seed: &str) -> Result<bool, DbError> {
        let query = self.db.query(update);
        let mut attempts = busy_attempts(seed);
        loop {
            match self.db.execute(&query).await {
                Ok(rows) => return Ok(rows == 1),
                Err(e) if attempts.again(&e).await => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// SUCCESS for what was done, FAILED for what was refused.
pub(crate) fn status_word(status: StatusCode) -> &'static str {
    if status.is_client_error() || status.is_server_error() { STATUS_FAILED } else { STATUS_SUCCESS }
}

fn fenced<'a>(update: &'a mut UpdateStatement, hold: &Hold) -> &'a UpdateStatement {
    update
        .and_where(Expr::col("idempotent_id").eq(hold.key.as_str()))
        .and_where(Expr::col("owner").eq(hold.owner.as_str()))
        .and_where(Expr::col("fence").eq(hold.fence))
        .and_where(Expr::col("status").eq(STATUS_PROCESSING))
}

fn busy_attempts(seed: &str) -> Attempts {
    let seed = seed.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Attempts::new(BUSY_ATTEMPTS, seed)
}

fn now(dialect: Dialect) -> Expr {
    Expr::cust(match dialect {
        Dialect::Sqlite => "strftime('%Y-%m-%d %H:%M:%f', 'now')",
        Dialect::Postgres => "clock_timestamp()",
        Dialect::Mysql => "UTC_TIMESTAMP(3)",
    })
}

fn after(dialect: Dialect, span: Duration) -> Expr {
    let ms = span.as_millis();
    Expr::cust(match dialect {
        Dialect::Sqlite => {
            format!("strftime('%Y-%m-%d %H:%M:%f', 'now', '+{}.{:03} seconds')", ms / 1000, ms % 1000)
        }
        Dialect::Postgres => format!("clock_timestamp() + {ms} * INTERVAL '1 millisecond'"),
        Dialect::Mysql => format!("DATE_ADD(UTC_TIMESTAMP(3), INTERVAL {} MICROSECOND)", ms * 1000),
    })
}

/// A request that is no text is not kept: sending it again could not give the same bytes.
fn text_of(body: &[u8]) -> Option<&str> {
    std::str::from_utf8(body).ok().filter(|text| !text.contains('\0'))
}

/// Body and headers as the record keeps them.
fn kept(stored: &Stored) -> (Option<String>, String) {
    let mut headers = stored.headers.clone();
    let body = stored.body.as_ref().map(|bytes| match text_of(bytes) {
        Some(text) => text.to_owned(),
        None => {
            headers.push((HEX_MARK.to_owned(), String::new()));
            hex::encode(bytes)
        }
    });
    (body, serde_json::json!(headers).to_string())
}

fn record(row: &Row, lease: Duration) -> Result<Record, DbError> {
    let utc = TimeKind::Calendar(Tz::UTC);
    let status = row.text("status")?;
    let lease_until = match row.opt_timestamp("lease_until", utc)? {
        Some(until) => until,
        None => row.timestamp("update_time", utc)? + lease,
    };
    let left_ms = lease_until.timestamp_millis() - row.i64("now_ms")?;
    let phase = row.opt_text("phase")?;
    Ok(Record {
        key: row.text("idempotent_id")?,
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

fn stored(row: &Row, status: &str, phase: Option<&str>) -> Result<Stored, DbError> {
    let headers = row.opt_text("response_headers")?;
    let mut headers: Vec<(String, String)> = match headers {
        Some(json) => serde_json::from_str(&json).unwrap_or_default(),
        // Records completed by an operator have a body and nothing else.
        None => vec![("content-type".to_owned(), "application/json".to_owned())],
    };
    let in_hex = headers.iter().any(|(name, _)| name == HEX_MARK);
    headers.retain(|(name, _)| name != HEX_MARK);
    let body = row.opt_bytes("response_body")?;
    let body = if in_hex { body.and_then(|digits| hex::decode(digits).ok()) } else { body };
    let code = row.opt_i64("response_status")?.and_then(|code| u16::try_from(code).ok());
    let default = if status == STATUS_SUCCESS { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(Stored {
        status: code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(default),
        headers,
        body: body.map(Bytes::from),
        tombstone: phase == Some(PHASE_TOMBSTONE),
    })
}
