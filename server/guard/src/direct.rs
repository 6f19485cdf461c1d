//! The guard inside a caller's own transaction, for messages and jobs: claim, work and answer commit together.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use db::{DbError, Tx};

use crate::answer::{Refusal, Stored};
use crate::error::GuardError;
use crate::guard::Guard;
use crate::policy::Policy;
use crate::problem::Problem;
use crate::search::Judged;
use crate::table::{Claimant, Hold, Record, Sight, Table};
use crate::ticket::{Asked, Known, Ticket};

/// One piece of work, named by code.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub key: &'a str,
    pub tenant: Option<String>,
    pub biz_no: Option<String>,
    /// What is to be done, as a path: `/payments/settle`. The same key for other work is refused.
    pub path: &'a str,
    pub body: Bytes,
}

/// What the table says about a call.
#[derive(Debug)]
pub enum Entered {
    /// Do the work in this transaction, then [`Pending::finish`] it.
    First(Pending),
    /// It was done before; `body` is `None` when it was not kept.
    Done { status: StatusCode, body: Option<Bytes> },
    /// Not now, or not so; the transaction is usable all the same.
    Refused(Problem),
}

/// A claim that ends with the caller's transaction: rolled back, it never was.
#[derive(Debug)]
#[must_use = "without `finish` the record says that the work is still going on"]
pub struct Pending {
    table: Arc<Table>,
    hold: Hold,
}

impl Guard {
    /// Claims the key in `tx`, without waiting for a worker that has it. Where another transaction is claiming the same
    /// key, the database lets one of them wait for the other's end. Keep the transaction short.
    pub async fn enter(&self, tx: &mut Tx, policy: &Policy, call: Call<'_>) -> Result<Entered, GuardError> {
        self.check(policy)?;
        let ticket = match self.ticket(policy, call)? {
            Ok(ticket) => ticket,
            Err(refusal) => return Ok(Entered::Refused(refusal.problem())),
        };
        let owner = self.next_owner();
        let who = Claimant::of(policy, &owner);
        let table = self.table();
        if let Some(hold) = table.claim_in(tx, &ticket, &ticket.key, who).await? {
            return Ok(self.first(hold));
        }
        let sight = match table.look_in(tx, &ticket, who).await? {
            Sight::ForeignKey => match table.claim_in(tx, &ticket, &ticket.scoped, who).await? {
                Some(hold) => return Ok(self.first(hold)),
                None => table.look_in(tx, &ticket, who).await?,
            },
            sight => sight,
        };
        match sight {
            Sight::Claimed(hold) => Ok(self.first(hold)),
            Sight::Record(record) => self.meet(tx, policy, &ticket, *record, who).await,
            Sight::Absent | Sight::ForeignKey => {
                Ok(Entered::Refused(Refusal::InProgress { lease_left: policy.lease }.problem()))
            }
        }
    }

    fn ticket(&self, policy: &Policy, call: Call<'_>) -> Result<Result<Ticket, Refusal>, GuardError> {
        let uri: Uri = call.path.parse().map_err(|_| {
            GuardError::Policy(format!("{:?} is no path; write one such as /payments/settle", call.path))
        })?;
        let columns = &self.table().columns;
        let asked = Asked { method: Method::POST, uri, is_form: false, body: call.body };
        let known = Known::direct(policy, columns, call.key, call.tenant, asked);
        Ok(known.and_then(|known| known.ticket_with(columns, call.biz_no)))
    }

    async fn meet(
        &self,
        tx: &mut Tx,
        policy: &Policy,
        ticket: &Ticket,
        record: Record,
        who: Claimant<'_>,
    ) -> Result<Entered, GuardError> {
        let lease_left = record.lease_left;
        Ok(match self.judge(policy, ticket, &record).await? {
            Judged::Answer => {
                Entered::Done { status: record.stored.status, body: record.stored.body.clone() }
            }
            Judged::Refuse(refusal) => Entered::Refused(refusal.problem()),
            Judged::Wait => Entered::Refused(Refusal::InProgress { lease_left }.problem()),
            Judged::TakeOver => match self.table().take_over_in(tx, &record, who).await? {
                Some(hold) => self.first(hold),
                None => Entered::Refused(Refusal::InProgress { lease_left: policy.lease }.problem()),
            },
        })
    }

    fn first(&self, hold: Hold) -> Entered {
        Entered::First(Pending { table: self.table().clone(), hold })
    }
}

impl Pending {
    /// Grows with every claim of the key.
    pub fn fence(&self) -> i64 {
        self.hold.fence
    }

    /// Records SUCCESS and what duplicates are to get; lasting when `tx` is committed. `false`: the record was settled
    /// otherwise, so roll back.
    #[must_use = "a claim that was lost must be rolled back"]
    pub async fn finish(self, tx: &mut Tx, body: impl Into<Bytes>) -> Result<bool, DbError> {
        let stored = Stored {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Some(body.into()),
            tombstone: false,
        };
        Ok(tx.execute(&self.table.finish(&self.hold, &stored)).await? == 1)
    }
}
