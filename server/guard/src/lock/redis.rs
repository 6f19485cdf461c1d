//! Locks in Redis: an owner's word with an end, and a fence beside it that outlives every lock.

use std::sync::LazyLock;
use std::time::Duration;

use kv::{KvError, Redis, Script};

use super::Grant;

/// A fence that was lost with Redis' memory starts again from the clock, in microseconds: past every fence it had.
static GRANT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end \
         local t = redis.call('TIME') \
         local fence = t[1] * 1000000 + t[2] \
         local last = tonumber(redis.call('GET', KEYS[2]) or '0') \
         if last >= fence then fence = last + 1 end \
         redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[3]) \
         redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) \
         return fence",
    )
});

static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
         return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
    )
});

/// How much longer than a lock its fence is kept: long enough for a clock that is set back.
const FENCE_MEMORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(super) struct RedisLocks {
    pub redis: Redis,
    pub prefix: String,
}

impl RedisLocks {
    /// The fence, unless somebody holds the lock.
    pub async fn grant(&self, name: &str, owner: &str, lease: Duration) -> Result<Option<i64>, KvError> {
        let (lock, fence) = self.keys(name);
        let memory = millis(lease + FENCE_MEMORY);
        let fence: i64 =
            self.redis.call(&GRANT, &[&lock, &fence], &[&owner, &millis(lease), &memory]).await?;
        Ok((fence != 0).then_some(fence))
    }

    pub async fn renew(&self, grant: &Grant, lease: Duration) -> Result<bool, KvError> {
        let (lock, _) = self.keys(&grant.name);
        self.redis.call(&RENEW, &[&lock], &[&grant.owner, &millis(lease)]).await
    }

    pub async fn release(&self, grant: &Grant) -> Result<(), KvError> {
        let (lock, _) = self.keys(&grant.name);
        self.redis.delete_if_same(&lock, grant.owner.as_bytes()).await.map(drop)
    }

    pub async fn confirm(&self, grant: &Grant) -> Result<bool, KvError> {
        let (lock, _) = self.keys(&grant.name);
        Ok(self.redis.get(&lock).await?.as_deref() == Some(grant.owner.as_bytes()))
    }

    /// Both keys live on the same node of a cluster: only the name counts for the node.
    fn keys(&self, name: &str) -> (String, String) {
        // A brace inside the name would end the part that counts early, and for both keys alike.
        (format!("{}lock:{{{name}}}", self.prefix), format!("{}fence:{{{name}}}", self.prefix))
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4)
}
