//! The way to a claim: what the caches, the table and the record's state say about a request.

use std::time::Duration;

use db::DbError;
use tokio::time::Instant;

use crate::answer::{Refusal, Stored};
use crate::guard::Guard;
use crate::policy::{OnUnknown, Policy};
use crate::shared::Found;
use crate::table::{
    Claimant, Hold, PHASE_ROLLED_BACK, Record, STATUS_FAILED, STATUS_PROCESSING, STATUS_SUCCESS,
    STATUS_TIMEOUT, Sight,
};
use crate::ticket::Ticket;

/// First and longest pause between two looks at a record that another process works on.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Where Redis may tell, the table is asked at every so many looks.
const LOOKS_PER_READ: u32 = 4;

/// A key that is absent and yet cannot be claimed so often is kept by something else.
const MOST_ABSENCES: u32 = 8;

/// How the search for a claim ended.
pub(crate) enum Obtained {
    Claim(Hold),
    Stored(Stored),
    Refused(Refusal),
}

/// What an existing record means for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Answer,
    Refuse(Refusal),
    TakeOver,
    Wait,
}

impl Guard {
    pub(crate) async fn obtain(&self, policy: &Policy, ticket: &Ticket) -> Obtained {
        let now = Instant::now();
        if let Some(refusal) = self.heat().repeat(&ticket.scoped, &ticket.fingerprint, now) {
            return Obtained::Refused(refusal);
        }
        if !self.breaker().lets_through(now) {
            return Obtained::Refused(Refusal::StoreDown);
        }
        match self.search(policy, ticket).await {
            Ok(obtained) => {
                self.breaker().reached();
                obtained
            }
            Err(e) => {
                if matches!(e, DbError::Unavailable(_)) {
                    self.breaker().unreachable(Instant::now());
                }
                tracing::warn!(biz_type = policy.biz_type, error = %e, "the idempotency table cannot be used");
                Obtained::Refused(Refusal::StoreDown)
            }
        }
    }

    /// Claims the key, or waits (holding no connection) for what its record becomes.
    async fn search(&self, policy: &Policy, ticket: &Ticket) -> Result<Obtained, DbError> {
        let met = self.heat().meet(&ticket.scoped, Instant::now());
        let mut done_elsewhere = false;
        if met {
            match self.find_shared(policy, ticket).await {
                Found::Answer(stored) => return Ok(Obtained::Stored(stored)),
                Found::Mismatch => return Ok(Obtained::Refused(Refusal::Mismatch)),
                Found::Done => done_elsewhere = true,
                Found::Nothing => {}
            }
        }
        let table = self.table();
        let owner = self.next_owner();
        let who = Claimant::of(policy, &owner);
        let mut waits = Waits::until(Instant::now() + policy.max_wait);
        let mut absences = 0;
        let mut sight = match met || table.looks_first() {
            true => table.look(ticket, who).await?,
            false => table.claim(ticket, who).await?,
        };
        loop {
            sight = match sight {
                Sight::Claimed(hold) => return Ok(Obtained::Claim(hold)),
                Sight::Absent if done_elsewhere => return Ok(Obtained::Stored(Stored::lost())),
                Sight::Absent if absences == MOST_ABSENCES => return Err(kept_by_something_else()),
                Sight::Absent => {
                    absences += 1;
                    table.claim(ticket, who).await?
                }
                Sight::ForeignKey => table.claim_scoped(ticket, who).await?,
                Sight::Record(record) => match self.judge(policy, ticket, &record).await? {
                    Judged::Answer => return Ok(Obtained::Stored(record.stored)),
                    Judged::Refuse(refusal) => return Ok(Obtained::Refused(refusal)),
                    Judged::TakeOver => match table.take_over(&record, who).await? {
                        Some(hold) => return Ok(Obtained::Claim(hold)),
                        None => table.look(ticket, who).await?,
                    },
                    Judged::Wait => match self.wait(policy, ticket, &mut waits).await {
                        Waited::Answered(stored) => return Ok(Obtained::Stored(stored)),
                        Waited::Look => table.look(ticket, who).await?,
                        Waited::Enough => {
                            let lease_left = record.lease_left;
                            return Ok(Obtained::Refused(Refusal::InProgress { lease_left }));
                        }
                    },
                },
            };
        }
    }

    async fn find_shared(&self, policy: &Policy, ticket: &Ticket) -> Found {
        match self.shared() {
            Some(shared) => shared.find(ticket, &policy.biz_type).await,
            None => Found::Nothing,
        }
    }

    /// Pauses until the table is worth a look; Redis, where there is one, is looked at more often.
    async fn wait(&self, policy: &Policy, ticket: &Ticket, waits: &mut Waits) -> Waited {
        loop {
            if !waits.pause().await {
                return Waited::Enough;
            }
            if let Found::Answer(stored) = self.find_shared(policy, ticket).await {
                return Waited::Answered(stored);
            }
            if self.shared().is_none() || waits.looks.is_multiple_of(LOOKS_PER_READ) {
                return Waited::Look;
            }
        }
    }

    pub(crate) async fn judge(
        &self,
        policy: &Policy,
        ticket: &Ticket,
        record: &Record,
    ) -> Result<Judged, DbError> {
        // A collation may find a key that is not this one.
        if (record.id != ticket.key && record.id != ticket.scoped)
            || !record.is_of(ticket, &policy.biz_type)
            || !self.same(ticket, record).await?
        {
            return Ok(Judged::Refuse(Refusal::Mismatch));
        }
        Ok(match record.status.as_str() {
            STATUS_TIMEOUT => Judged::TakeOver,
            STATUS_FAILED if record.phase.as_deref() == Some(PHASE_ROLLED_BACK) => Judged::TakeOver,
            STATUS_SUCCESS | STATUS_FAILED => Judged::Answer,
            STATUS_PROCESSING if !record.lease_left.is_zero() => Judged::Wait,
            STATUS_PROCESSING if policy.on_unknown == OnUnknown::ReExecute => Judged::TakeOver,
            _ => Judged::Refuse(Refusal::Held),
        })
    }

    async fn same(&self, ticket: &Ticket, record: &Record) -> Result<bool, DbError> {
        match &record.fingerprint {
            Some(fingerprint) => Ok(*fingerprint == ticket.fingerprint),
            None => {
                let request = self.table().request(&record.id).await?;
                Ok(request.is_none_or(|request| ticket.same_as(&request)))
            }
        }
    }
}

/// How a pause ended.
enum Waited {
    Answered(Stored),
    Look,
    Enough,
}

/// The pauses of one request.
struct Waits {
    deadline: Instant,
    pause: Duration,
    looks: u32,
}

impl Waits {
    fn until(deadline: Instant) -> Waits {
        Waits { deadline, pause: FIRST_PAUSE, looks: 0 }
    }

    /// `false`: there is no time left for another.
    async fn pause(&mut self) -> bool {
        if Instant::now() + self.pause > self.deadline {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.looks += 1;
        true
    }
}

fn kept_by_something_else() -> DbError {
    DbError::Invalid(
        "a key is absent from the table and cannot be inserted: another unique index is in the way; \
         only idempotent_id may be unique"
            .into(),
    )
}
