//! What one guard needs besides its database.

use std::sync::Arc;
use std::time::Duration;

use kv::Redis;

use crate::happening::{Meter, NoMeter};

/// How one guard works, whatever the route.
#[derive(Clone)]
pub struct Settings {
    /// Tells this process from all others that ever shared the table: claims are signed with it.
    pub instance: String,
    pub meter: Arc<dyn Meter>,
    pub cache: Cache,
    /// How long records stay in the table: no cache remembers longer.
    pub retention: Duration,
    /// Most duplicates that wait at once for a first answer; those beyond hear "still processing" immediately.
    pub max_waiters: usize,
}

impl Settings {
    /// Nothing counted, answers remembered in this process, records kept for a week.
    pub fn new(instance: impl Into<String>) -> Settings {
        Settings {
            instance: instance.into(),
            meter: Arc::new(NoMeter),
            cache: Cache::InProcess(Local::default()),
            retention: Duration::from_secs(7 * 24 * 3600),
            max_waiters: 20_000,
        }
    }
}

/// Where final answers are remembered so that duplicates cost the database nothing. No cache ever decides: what it
/// does not know, the table does.
#[derive(Clone)]
pub enum Cache {
    None,
    /// In this process.
    InProcess(Local),
    /// In this process, and in a Redis shared by all.
    Redis(Local, Shared),
}

/// Memory for final answers in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Keys, requests and responses together.
    pub max_bytes: usize,
}

impl Default for Local {
    /// 64 MiB.
    fn default() -> Self {
        Local { max_bytes: 64 << 20 }
    }
}

/// A Redis shared by all processes of the table.
#[derive(Clone)]
pub struct Shared {
    pub redis: Redis,
    /// Put before the key of the record; the console's `[source.cache] key = "idem:{key}"` reads the same entries.
    pub prefix: String,
}

impl Shared {
    /// Entries `idem:KEY`.
    pub fn new(redis: Redis) -> Shared {
        Shared { redis, prefix: "idem:".to_owned() }
    }
}
