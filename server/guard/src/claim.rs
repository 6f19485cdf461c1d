//! What a handler holds while it runs.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use db::{Db, DbError, Tx};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};

use crate::lock::{Lease, LockError};
use crate::outbox::{Message, Origin, StageError, stage};
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
    table: Arc<Table>,
    hold: Hold,
    key: String,
    biz_type: String,
    biz_no: Option<String>,
    tx: Arc<Mutex<Option<Tx>>>,
    /// The handler began its transaction.
    began: AtomicBool,
    sent: AtomicBool,
    /// The lock under which the handler works.
    lock: OnceLock<Arc<Lease>>,
}

/// The transaction in which the handler writes. It ends with the handler: committed together with the answer, or
/// rolled back when the claim was lost or the outcome is not definitive.
pub struct ClaimTx {
    tx: OwnedMappedMutexGuard<Option<Tx>, Tx>,
    claim: Claim,
}

impl Deref for ClaimTx {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl DerefMut for ClaimTx {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}

impl ClaimTx {
    /// Stages a message that is sent exactly when this transaction is committed, under a key made of the record.
    pub async fn stage(&mut self, message: &Message) -> Result<(), StageError> {
        let claim = &self.claim;
        let origin = Origin { record: claim.record_id(), biz_type: claim.biz_type(), biz_no: claim.biz_no() };
        stage(&mut self.tx, origin, message).await
    }
}

impl Claim {
    pub(crate) fn new(table: Arc<Table>, policy: &Policy, ticket: &Ticket, hold: Hold) -> Claim {
        Claim(Arc::new(Inner {
            table,
            hold,
            key: ticket.key.clone(),
            biz_type: policy.biz_type.clone(),
            biz_no: ticket.biz_no.clone(),
            tx: Arc::default(),
            began: AtomicBool::new(false),
            sent: AtomicBool::new(false),
            lock: OnceLock::new(),
        }))
    }

    /// The idempotency key.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The record's `idempotent_id`: the key, or the key with its scope where another scope has the key already.
    pub fn record_id(&self) -> &str {
        &self.0.hold.id
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
    /// keep it short: on SQLite nothing else writes meanwhile. Refused when the route's lock was lost.
    pub async fn tx(&self) -> Result<ClaimTx, DbError> {
        if self.0.lock.get().is_some_and(|lock| !lock.is_held()) {
            return Err(DbError::Busy("the lock of this work was lost".to_owned()));
        }
        let mut slot = self.0.tx.clone().lock_owned().await;
        if slot.is_none() {
            *slot = Some(self.0.table.db.begin().await?);
            self.0.began.store(true, Ordering::Release);
        }
        let tx = OwnedMutexGuard::map(slot, |slot| slot.as_mut().expect("filled just above"));
        Ok(ClaimTx { tx, claim: self.clone() })
    }

    /// Notes in the record that something is about to be sent to another system; call it before [`Claim::tx`].
    /// `false`: the claim was lost, so do not send.
    #[must_use = "a lost claim must not send"]
    pub async fn sending(&self) -> Result<bool, DbError> {
        self.0.sent.store(true, Ordering::Release);
        self.0.table.note(&self.0.hold, PHASE_SENT, false).await
    }

    /// The fence of the route's lock, which grows with every grant of the lock's name.
    pub fn lock_fence(&self) -> Option<i64> {
        Some(self.0.lock.get()?.fence())
    }

    /// From here on the work counts only while `lock` is held. A claim works under one lock.
    pub(crate) fn work_under(&self, lock: Arc<Lease>) {
        let _ = self.0.lock.set(lock);
    }

    /// Whether the lock, if there is one, is still held at the end of `tx`.
    pub(crate) async fn holds_lock(&self, tx: &mut Tx) -> Result<bool, LockError> {
        match self.0.lock.get() {
            Some(lock) => lock.confirm(self.db(), tx).await,
            None => Ok(true),
        }
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
