//! Lease locks: one holder of a name at a time, as long as it shows signs of life.
//!
//! A lock orders work; it does not make it once-only (the record does) and it can be lost while its holder sleeps.
//! So every grant has a fence number that only grows, the work's transaction ends only while the lock is held, and
//! renewal stops after `max_hold`: a holder that hangs gives way.

mod redis;
mod serial;
mod table;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use db::{Db, DbError, Tx};
use kv::{KvError, Redis};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

pub use self::serial::Serial;

use self::redis::RedisLocks;
use self::table::TableLocks;

/// A lease is renewed when this share of it has passed.
const RENEWALS_PER_LEASE: u32 = 3;

/// First and longest pause between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How long a lock is held and waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRules {
    /// How long it is held without a sign of life; renewed while the holder lives.
    pub lease: Duration,
    /// Renewals end after this long.
    pub max_hold: Duration,
    /// How long to wait while somebody else holds it.
    pub max_wait: Duration,
}

impl Default for LockRules {
    /// Ten seconds of lease, half an hour of holding, five seconds of waiting.
    fn default() -> Self {
        LockRules {
            lease: Duration::from_secs(10),
            max_hold: Duration::from_secs(30 * 60),
            max_wait: Duration::from_secs(5),
        }
    }
}

/// Why a lock could not be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    #[error(transparent)]
    Table(#[from] DbError),
    #[error(transparent)]
    Redis(#[from] KvError),
}

/// Grants locks; cheap to clone.
#[derive(Clone)]
pub struct Locks(Arc<Inner>);

struct Inner {
    keeper: Keeper,
    instance: String,
    grants: AtomicU64,
}

enum Keeper {
    Table(TableLocks),
    Redis(RedisLocks),
}

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keeper = match &self.0.keeper {
            Keeper::Table(_) => "table",
            Keeper::Redis(_) => "redis",
        };
        write!(f, "Locks({keeper})")
    }
}

/// Who holds which lock under which fence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    name: String,
    owner: String,
    fence: i64,
}

impl Locks {
    /// Locks in the table `idempotency_lock`; see [`crate::schema::mechanisms`]. `instance` tells this process from
    /// all others.
    pub fn in_table(db: Db, instance: impl Into<String>) -> Locks {
        Locks::new(Keeper::Table(TableLocks { db }), instance.into())
    }

    /// Locks in Redis under keys that begin with `prefix`. While Redis is down, nothing is granted.
    pub fn in_redis(redis: Redis, prefix: impl Into<String>, instance: impl Into<String>) -> Locks {
        Locks::new(Keeper::Redis(RedisLocks { redis, prefix: prefix.into() }), instance.into())
    }

    fn new(keeper: Keeper, instance: String) -> Locks {
        Locks(Arc::new(Inner { keeper, instance, grants: AtomicU64::new(0) }))
    }

    /// The lock of `name` (at most 340 characters), or `None` when others held it for all of `max_wait`. It is
    /// renewed until it is dropped; dropping releases it.
    pub async fn acquire(&self, name: &str, rules: LockRules) -> Result<Option<Lease>, LockError> {
        let give_up = Instant::now() + rules.max_wait;
        let number = self.0.grants.fetch_add(1, Ordering::Relaxed);
        let owner = format!("{}-{number}", self.0.instance);
        let mut pause = FIRST_PAUSE;
        loop {
            // Counted from before the question: the keeper's lease begins later.
            let asked = Instant::now();
            match self.0.keeper.grant(name, &owner, rules.lease).await {
                Ok(Some(fence)) => {
                    let grant = Grant { name: name.to_owned(), owner, fence };
                    return Ok(Some(Lease::begin(self.clone(), grant, rules, asked)));
                }
                Err(LockError::Table(error)) if error.is_retryable() => {}
                Ok(None) => {}
                Err(error) => return Err(error),
            }
            let now = Instant::now();
            if now >= give_up {
                return Ok(None);
            }
            sleep(pause.min(give_up - now)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Keeper {
    async fn grant(&self, name: &str, owner: &str, lease: Duration) -> Result<Option<i64>, LockError> {
        match self {
            Keeper::Table(table) => Ok(table.grant(name, owner, lease).await?),
            Keeper::Redis(redis) => Ok(redis.grant(name, owner, lease).await?),
        }
    }

    /// `false`: the lock is somebody else's now.
    async fn renew(&self, grant: &Grant, lease: Duration) -> Result<bool, LockError> {
        match self {
            Keeper::Table(table) => Ok(table.renew(grant, lease).await?),
            Keeper::Redis(redis) => Ok(redis.renew(grant, lease).await?),
        }
    }

    async fn release(&self, grant: &Grant) -> Result<(), LockError> {
        match self {
            Keeper::Table(table) => Ok(table.release(grant).await?),
            Keeper::Redis(redis) => Ok(redis.release(grant).await?),
        }
    }
}

/// A held lock. Dropping it releases it.
pub struct Lease {
    held: Arc<Held>,
    watchdog: JoinHandle<()>,
}

struct Held {
    locks: Locks,
    grant: Grant,
    lease: Duration,
    lost: AtomicBool,
    /// When it is over unless it is renewed, by this process' own clock.
    until: Mutex<Instant>,
    released: AtomicBool,
}

impl Lease {
    fn begin(locks: Locks, grant: Grant, rules: LockRules, asked: Instant) -> Lease {
        let held = Arc::new(Held {
            locks,
            grant,
            lease: rules.lease,
            lost: AtomicBool::new(false),
            until: Mutex::new(asked + rules.lease),
            released: AtomicBool::new(false),
        });
        let watchdog = tokio::spawn(watch(held.clone(), rules));
        Lease { held, watchdog }
    }

    /// Grows with every grant of the name: a resource that remembers the highest one can refuse late holders.
    pub fn fence(&self) -> i64 {
        self.held.grant.fence
    }

    /// Whether it is still held, as far as this process can know by itself.
    pub fn is_held(&self) -> bool {
        self.held.is_held()
    }

    /// Asks the keeper whether it is still held at the end of `tx`, a transaction of `db`. A lock kept in that
    /// database stays held from here to the end of `tx`, because its row is locked with it; of any other lock the
    /// answer may be outdated when it arrives.
    pub(crate) async fn confirm(&self, db: &Db, tx: &mut Tx) -> Result<bool, LockError> {
        let grant = &self.held.grant;
        match &self.held.locks.0.keeper {
            // A lease that is over and that nobody took is still ours, and on SQLite `tx` itself held up its renewal.
            Keeper::Table(table) if table.is_in(db) => Ok(table::confirm(tx, grant).await?),
            Keeper::Table(table) => Ok(self.is_held() && table.renew(grant, self.held.lease).await?),
            Keeper::Redis(redis) => Ok(self.is_held() && redis.confirm(grant).await?),
        }
    }

    /// Gives the lock back now and waits until it is free. Errors leave it to end by itself.
    pub async fn release(&self) -> Result<(), LockError> {
        self.watchdog.abort();
        self.held.lost.store(true, Ordering::Release);
        self.held.released.store(true, Ordering::Release);
        self.held.locks.0.keeper.release(&self.held.grant).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.watchdog.abort();
        if self.held.released.swap(true, Ordering::AcqRel) {
            return;
        }
        let held = self.held.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = held.locks.0.keeper.release(&held.grant).await {
                    tracing::warn!(%error, "a lock was not given back and ends with its lease");
                }
            });
        }
    }
}

impl Held {
    fn is_held(&self) -> bool {
        !self.lost.load(Ordering::Acquire) && Instant::now() < self.until()
    }

    fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend_to(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// Renews the lease until it is lost or has been held for too long.
async fn watch(held: Arc<Held>, rules: LockRules) {
    let end = Instant::now() + rules.max_hold;
    let pause = (rules.lease / RENEWALS_PER_LEASE).max(Duration::from_millis(5));
    loop {
        sleep(pause).await;
        let asked = Instant::now();
        if asked >= end {
            return;
        }
        match held.locks.0.keeper.renew(&held.grant, rules.lease).await {
            Ok(true) => held.extend_to(asked + rules.lease),
            Ok(false) => return held.lost.store(true, Ordering::Release),
            // Asked again until the lease is over by our own clock.
            Err(error) => tracing::debug!(%error, "a lock could not be renewed yet"),
        }
    }
}
