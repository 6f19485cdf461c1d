//! What a handler holds while it runs.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use db::{Db, DbError, Tx};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};

use crate::policy::Policy;
use crate::table::{Hold, PHASE_SENT, Table};
use crate::ticket::Ticket;

/// What the handler knows about its effect, when the status of its answer does not say it: put it into the
/// response's extensions. Without it, 2xx to 4xx are definitive and 5xx is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// This answer is the answer, now and for duplicates.
    Definitive,
    /// Nothing happened, here or elsewhere: the same request may run again.
    RolledBack,
    /// The effect may have happened.
    Unknown,
}

/// A granted claim, in the extensions of the handler's request.
#[derive(Clone)]
pub struct Claim(Arc<Inner>);

struct Inner {
    table: Table,
    hold: Hold,
    biz_type: String,
    biz_no: Option<String>,
    tx: Arc<Mutex<Option<Tx>>>,
    /// The handler began its transaction.
    began: AtomicBool,
    sent: AtomicBool,
}

/// The transaction in which the handler writes. It ends with the handler: committed together with the answer, or
/// rolled back when the claim was lost or the outcome is not definitive.
pub struct ClaimTx(OwnedMappedMutexGuard<Option<Tx>, Tx>);

impl Deref for ClaimTx {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.0
    }
}

impl DerefMut for ClaimTx {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.0
    }
}

impl Claim {
    pub(crate) fn new(table: Table, policy: &Policy, ticket: &Ticket, hold: Hold) -> Claim {
        Claim(Arc::new(Inner {
            table,
            hold,
            biz_type: policy.biz_type.clone(),
            biz_no: ticket.biz_no.clone(),
            tx: Arc::default(),
            began: AtomicBool::new(false),
            sent: AtomicBool::new(false),
        }))
    }

    /// The idempotency key.
    pub fn key(&self) -> &str {
        &self.0.hold.key
    }

    pub fn biz_type(&self) -> &str {
        &self.0.biz_type
    }

    /// The business number, where the route's policy finds one.
    pub fn biz_no(&self) -> Option<&str> {
        self.0.biz_no.as_deref()
    }

    /// The guard's database.
    pub fn db(&self) -> &Db {
        &self.0.table.db
    }

    /// Grows with every claim of the key: an outside system that remembers the highest one can refuse late workers.
    pub fn fence(&self) -> i64 {
        self.0.hold.fence
    }

    /// The transaction of the business write; begun at the first call, the same one after that. Take it late and
    /// keep it short: on SQLite nothing else writes meanwhile.
    pub async fn tx(&self) -> Result<ClaimTx, DbError> {
        let mut slot = self.0.tx.clone().lock_owned().await;
        if slot.is_none() {
            *slot = Some(self.0.table.db.begin().await?);
            self.0.began.store(true, Ordering::Release);
        }
        Ok(ClaimTx(OwnedMutexGuard::map(slot, |slot| slot.as_mut().expect("filled just above"))))
    }

    /// Notes in the record that something is about to be sent to another system; call it before [`Claim::tx`].
    /// `false`: the claim was lost, so do not send.
    #[must_use = "a lost claim must not send"]
    pub async fn sending(&self) -> Result<bool, DbError> {
        self.0.sent.store(true, Ordering::Release);
        self.0.table.note(&self.0.hold, PHASE_SENT, false).await
    }

    pub(crate) fn was_sent(&self) -> bool {
        self.0.sent.load(Ordering::Acquire)
    }

    /// Whether the handler may have done something already.
    pub(crate) fn was_touched(&self) -> bool {
        self.was_sent() || self.0.began.load(Ordering::Acquire)
    }

    pub(crate) fn hold(&self) -> &Hold {
        &self.0.hold
    }

    /// The transaction, if the handler began one. Errors when the handler's work still goes on with it.
    pub(crate) fn take_tx(&self) -> Result<Option<Tx>, StillInUse> {
        self.0.tx.try_lock().map(|mut slot| slot.take()).map_err(|_| StillInUse)
    }
}

/// The handler answered, yet something it started still uses the transaction.
#[derive(Debug)]
pub(crate) struct StillInUse;
