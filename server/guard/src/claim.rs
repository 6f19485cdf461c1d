//! What a handler holds while it runs.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use db::{DbError, Tx};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};

use crate::table::{Hold, PHASE_SENT, Table};

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
    tx: Arc<Mutex<Option<Tx>>>,
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
    pub(crate) fn new(table: Table, hold: Hold) -> Claim {
        Claim(Arc::new(Inner { table, hold, tx: Arc::default(), sent: AtomicBool::new(false) }))
    }

    /// The idempotency key.
    pub fn key(&self) -> &str {
        &self.0.hold.key
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
