//! The record: every statement the guard runs on its table. Times are the database's own.

mod columns;
mod kept;
mod record;
mod statements;

use std::time::Duration;

use db::{Attempts, Db, DbError, Query, Row, Tx, Value};

use crate::answer::Stored;
use crate::error::GuardError;
use crate::policy::{Effects, Policy};
use crate::ticket::Ticket;
pub(crate) use columns::Columns;
pub(crate) use kept::{Encoding, headers_json, parse_headers};
pub(crate) use record::{Record, Sight};
use statements::Statements;

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

#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub db: Db,
    pub columns: Columns,
    statements: Statements,
}

/// A granted claim: nothing is written to the record without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hold {
    /// The record's `idempotent_id`.
    pub id: String,
    pub fence: i64,
    /// Unique to this claim.
    pub owner: String,
}

/// Who claims, and for how long at first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimant<'a> {
    pub biz_type: &'a str,
    pub owner: &'a str,
    pub lease: Duration,
    pub effects: Effects,
}

impl<'a> Claimant<'a> {
    pub(crate) fn of(policy: &'a Policy, owner: &'a str) -> Claimant<'a> {
        Claimant { biz_type: &policy.biz_type, owner, lease: policy.lease, effects: policy.effects }
    }
}

impl Table {
    /// The table as it is now, measured.
    pub(crate) async fn open(db: Db) -> Result<Table, GuardError> {
        let columns = columns::measure(&db).await?;
        let statements = Statements::new(db.dialect());
        Ok(Table { db, columns, statements })
    }

    /// Whether looking first costs less than a claim that fails: it does where one writer is all there is.
    pub(crate) fn looks_first(&self) -> bool {
        self.db.dialect() == db::Dialect::Sqlite
    }

    /// Inserts the record unless the key exists; says what was there instead. One statement on PostgreSQL, whatever
    /// the answer.
    pub(crate) async fn claim(&self, ticket: &Ticket, who: Claimant<'_>) -> Result<Sight, DbError> {
        let mut attempts = busy_attempts(who.owner);
        loop {
            match self.claim_once(ticket, who).await {
                Err(e) if attempts.again(&e).await => {}
                // The claim may have been granted before the answer was lost.
                Err(lost @ (DbError::Unavailable(_) | DbError::Timeout(_))) => {
                    return self.look(ticket, who).await.map_err(|_| lost);
                }
                outcome => return outcome,
            }
        }
    }

    async fn claim_once(&self, ticket: &Ticket, who: Claimant<'_>) -> Result<Sight, DbError> {
        let values = self.claim_values(ticket, &ticket.key, who);
        if let Some(claim_or_look) = self.statements.claim_or_look(who.effects) {
            let rows = self.db.fetch_all(&claim_or_look.bind(lookup_then(ticket, values))).await?;
            return match claimed(&rows)? {
                true => Ok(Sight::Claimed(first_hold(ticket.key.clone(), who.owner))),
                // Another claim was granted after this statement began.
                false if rows[0].opt_text("idempotent_id")?.is_none() => self.look(ticket, who).await,
                false => self.sight(&rows, ticket, who),
            };
        }
        let insert = self.statements.claim.bind(then_unless(values, ticket));
        match inserted(self.db.execute(&insert).await)? {
            true => Ok(Sight::Claimed(first_hold(ticket.key.clone(), who.owner))),
            false => self.look(ticket, who).await,
        }
    }

    /// Claims the key under its scoped id, where the plain one belongs to another scope.
    pub(crate) async fn claim_scoped(&self, ticket: &Ticket, who: Claimant<'_>) -> Result<Sight, DbError> {
        let values = self.claim_values(ticket, &ticket.scoped, who);
        let insert = self.statements.claim.bind(then_unless(values, ticket));
        let mut attempts = busy_attempts(who.owner);
        loop {
            match inserted(self.db.execute(&insert).await) {
                Ok(true) => return Ok(Sight::Claimed(first_hold(ticket.scoped.clone(), who.owner))),
                Ok(false) => return self.look(ticket, who).await,
                Err(e) if attempts.again(&e).await => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The same inside a caller's transaction, which stays usable.
    pub(crate) async fn claim_in(
        &self,
        tx: &mut Tx,
        ticket: &Ticket,
        id: &str,
        who: Claimant<'_>,
    ) -> Result<Option<Hold>, DbError> {
        let values = self.claim_values(ticket, id, who);
        let insert = self.statements.claim.bind(then_unless(values, ticket));
        Ok(inserted(tx.execute(&insert).await)?.then(|| first_hold(id.to_owned(), who.owner)))
    }

    /// The record of a ticket, if there is one; a single reading statement.
    pub(crate) async fn look(&self, ticket: &Ticket, who: Claimant<'_>) -> Result<Sight, DbError> {
        let rows = self.db.fetch_all(&self.look_query(ticket)).await?;
        self.sight(&rows, ticket, who)
    }

    /// The same inside a caller's transaction.
    pub(crate) async fn look_in(
        &self,
        tx: &mut Tx,
        ticket: &Ticket,
        who: Claimant<'_>,
    ) -> Result<Sight, DbError> {
        let rows = tx.fetch_all(&self.look_query(ticket)).await?;
        self.sight(&rows, ticket, who)
    }

    /// The record of an id.
    pub(crate) async fn read(&self, id: &str) -> Result<Option<Record>, DbError> {
        let rows = self.db.fetch_all(&self.statements.look.bind(vec![id.into(), id.into()])).await?;
        let records = rows.iter().map(|row| Record::of(row, Duration::ZERO));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        Ok(records.into_iter().find(|record| record.id == id))
    }

    fn look_query(&self, ticket: &Ticket) -> Query {
        self.statements.look.bind(vec![ticket.key.as_str().into(), ticket.scoped.as_str().into()])
    }

    fn sight(&self, rows: &[Row], ticket: &Ticket, who: Claimant<'_>) -> Result<Sight, DbError> {
        let records = rows.iter().map(|row| Record::of(row, who.lease));
        Ok(Sight::of(records.collect::<Result<_, _>>()?, ticket, who))
    }

    /// The stored request, for records that have no fingerprint.
    pub(crate) async fn request(&self, id: &str) -> Result<Option<Vec<u8>>, DbError> {
        match self.db.fetch_optional(&self.statements.request.bind(vec![id.into()])).await? {
            Some(row) => row.opt_bytes(0),
            None => Ok(None),
        }
    }

    /// Takes an existing record over if it still is what was read: settled so, or its lease still over.
    pub(crate) async fn take_over(
        &self,
        record: &Record,
        who: Claimant<'_>,
    ) -> Result<Option<Hold>, DbError> {
        let taken = self.change(&self.take_over_query(record, who), who.owner).await?;
        Ok(taken.then(|| next_hold(record, who.owner)))
    }

    /// The same inside a caller's transaction.
    pub(crate) async fn take_over_in(
        &self,
        tx: &mut Tx,
        record: &Record,
        who: Claimant<'_>,
    ) -> Result<Option<Hold>, DbError> {
        let taken = tx.execute(&self.take_over_query(record, who)).await? == 1;
        Ok(taken.then(|| next_hold(record, who.owner)))
    }

    fn take_over_query(&self, record: &Record, who: Claimant<'_>) -> Query {
        let expired = record.status == STATUS_PROCESSING;
        let statement =
            if expired { &self.statements.take_over_expired } else { &self.statements.take_over_settled };
        statement.bind(vec![
            who.owner.into(),
            self.statements.lease(who.lease),
            record.id.as_str().into(),
            record.status.as_str().into(),
            record.fence.into(),
        ])
    }

    /// The fenced write-back, to be run in the business transaction or by itself.
    pub(crate) fn finish(&self, hold: &Hold, stored: &Stored) -> Query {
        let kept = kept::keep(stored, &self.columns);
        let phase = if kept.tombstone { PHASE_TOMBSTONE } else { PHASE_DONE };
        self.statements.finish.bind(then_hold(kept.values(stored, phase), hold))
    }

    /// Completes a record that was marked TIMEOUT while the effect came late, so that nobody repeats it.
    pub(crate) async fn finish_late(&self, hold: &Hold, stored: &Stored) -> Result<bool, DbError> {
        let values = kept::keep(stored, &self.columns).values(stored, PHASE_LATE);
        self.change(&self.statements.finish_late.bind(then_hold(values, hold)), &hold.owner).await
    }

    /// Frees the key: the business was rolled back, so the same request may run again.
    pub(crate) async fn release(&self, hold: &Hold) -> Result<bool, DbError> {
        self.change(&self.statements.release.bind(then_hold(vec![], hold)), &hold.owner).await
    }

    /// Takes a claim back before anything was run: a record made by it goes, an older one is free to run again.
    pub(crate) async fn withdraw(&self, hold: &Hold) -> Result<bool, DbError> {
        if hold.fence > 1 {
            return self.release(hold).await;
        }
        self.change(&self.statements.withdraw.bind(then_hold(vec![], hold)), &hold.owner).await
    }

    /// Notes how far the work got, for whoever has to look; `end_lease` when no worker is left.
    pub(crate) async fn note(&self, hold: &Hold, phase: &str, end_lease: bool) -> Result<bool, DbError> {
        let statement = if end_lease { &self.statements.note_last } else { &self.statements.note };
        self.change(&statement.bind(then_hold(vec![phase.into()], hold)), &hold.owner).await
    }

    /// Extends the lease; `false` when the claim was lost.
    pub(crate) async fn renew(&self, hold: &Hold, lease: Duration) -> Result<bool, DbError> {
        let values = then_hold(vec![self.statements.lease(lease)], hold);
        self.change(&self.statements.renew.bind(values), &hold.owner).await
    }

    async fn change(&self, query: &Query, seed: &str) -> Result<bool, DbError> {
        let mut attempts = busy_attempts(seed);
        loop {
            match self.db.execute(query).await {
                Ok(rows) => return Ok(rows == 1),
                Err(e) if attempts.again(&e).await => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// In the order of [`statements::CLAIM_COLUMNS`].
    fn claim_values(&self, ticket: &Ticket, id: &str, who: Claimant<'_>) -> Vec<Value> {
        vec![
            id.into(),
            ticket.tenant.clone().into(),
            who.biz_type.into(),
            ticket.biz_no.clone().into(),
            STATUS_PROCESSING.into(),
            kept::request(&ticket.asked.body, &self.columns).into(),
            ticket.fingerprint.as_str().into(),
            PHASE_CLAIMED.into(),
            who.owner.into(),
            self.statements.lease(who.lease),
        ]
    }
}

fn lookup_then(ticket: &Ticket, mut values: Vec<Value>) -> Vec<Value> {
    values.splice(0..0, [ticket.key.as_str().into(), ticket.scoped.as_str().into()]);
    values
}

/// The insert does nothing when the scoped id exists.
fn then_unless(mut values: Vec<Value>, ticket: &Ticket) -> Vec<Value> {
    values.push(ticket.scoped.as_str().into());
    values
}

fn then_hold(mut values: Vec<Value>, hold: &Hold) -> Vec<Value> {
    values.extend([hold.id.as_str().into(), hold.owner.as_str().into(), hold.fence.into()]);
    values
}

fn first_hold(id: String, owner: &str) -> Hold {
    Hold { id, fence: 1, owner: owner.to_owned() }
}

fn next_hold(record: &Record, owner: &str) -> Hold {
    Hold { id: record.id.clone(), fence: record.fence + 1, owner: owner.to_owned() }
}

fn claimed(rows: &[Row]) -> Result<bool, DbError> {
    rows.first().map_or(Ok(false), |row| Ok(row.i64("claimed")? == 1))
}

/// MySQL reports the key that was in the way where the others insert nothing.
fn inserted(outcome: Result<u64, DbError>) -> Result<bool, DbError> {
    match outcome {
        Ok(rows) => Ok(rows == 1),
        Err(DbError::UniqueViolation(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

fn busy_attempts(seed: &str) -> Attempts {
    let seed = seed.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Attempts::new(BUSY_ATTEMPTS, seed)
}

/// SUCCESS for what was done, FAILED for what was refused.
pub(crate) fn status_word(status: axum::http::StatusCode) -> &'static str {
    if status.is_client_error() || status.is_server_error() { STATUS_FAILED } else { STATUS_SUCCESS }
}
