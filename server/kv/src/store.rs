//! What is asked of Redis.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError, RedisResult, cmd};

use crate::connection::{Connection, Connector};
use crate::script::ErasedArg;
use crate::{Address, KvError, Options, Script};

/// One Redis; cheap to clone. Connects when first used.
#[derive(Clone)]
pub struct Redis(Arc<Connector>);

/// A value and how long it will still be there; `None` = for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub value: Vec<u8>,
    pub ttl: Option<Duration>,
}

/// The beginning of a text value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    pub value: Vec<u8>,
    /// Bytes of the whole value.
    pub size: u64,
    /// `None` = for ever.
    pub ttl: Option<Duration>,
}

/// One field of a hash; the hash may lack it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashField {
    pub value: Option<Vec<u8>>,
    /// `None` = for ever.
    pub ttl: Option<Duration>,
}

static SET_IF_SAME: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
         redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1",
    )
});

static DELETE_IF_SAME: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])",
    )
});

static DELETE_IF_FIELD_SAME: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end return redis.call('DEL', KEYS[1])",
    )
});

impl Redis {
    /// Checks the address without connecting. Errors: [`KvError::Invalid`], saying what to write.
    pub fn open(url: &str, options: Options) -> Result<Redis, KvError> {
        Ok(Redis(Arc::new(Connector::new(Address::parse(url)?, options))))
    }

    /// The address without its password.
    pub fn shown_url(&self) -> &str {
        self.0.address.shown()
    }

    pub async fn ping(&self) -> Result<(), KvError> {
        self.run(&cmd("PING")).await
    }

    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, KvError> {
        self.run(cmd("GET").arg(key)).await
    }

    /// The value with its remaining life.
    pub async fn entry(&self, key: &str) -> Result<Option<Entry>, KvError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("GET").arg(key).cmd("PTTL").arg(key);
        let (value, ttl): (Option<Vec<u8>>, i64) =
            self.with(async |connection| pipeline.query_async(connection).await).await?;
        // The entry may end between the two answers.
        Ok(value.filter(|_| ttl != -2).map(|value| Entry { value, ttl: remaining(ttl) }))
    }

    /// At most `limit` bytes of a text value, with its whole size and remaining life. Errors: `Refused` for other types.
    pub async fn peek(&self, key: &str, limit: usize) -> Result<Option<Peek>, KvError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("STRLEN").arg(key).cmd("GETRANGE").arg(key).arg(0).arg(limit - 1).cmd("PTTL").arg(key);
        let (size, value, ttl): (u64, Vec<u8>, i64) =
            self.with(async |connection| pipeline.query_async(connection).await).await?;
        Ok((ttl != -2).then(|| Peek { value, size, ttl: remaining(ttl) }))
    }

    /// One field of a hash, with the hash's remaining life. Errors: `Refused` for other types.
    pub async fn hash_field(&self, key: &str, field: &str) -> Result<Option<HashField>, KvError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGET").arg(key).arg(field).cmd("PTTL").arg(key);
        let (value, ttl): (Option<Vec<u8>>, i64) =
            self.with(async |connection| pipeline.query_async(connection).await).await?;
        Ok((ttl != -2).then(|| HashField { value, ttl: remaining(ttl) }))
    }

    /// Redis's word for what a key holds: `string`, `hash`, `list` …; `None` = nothing.
    pub async fn kind(&self, key: &str) -> Result<Option<String>, KvError> {
        let kind: String = self.run(cmd("TYPE").arg(key)).await?;
        Ok(Some(kind).filter(|kind| kind != "none"))
    }

    pub async fn set(&self, key: &str, value: &[u8], ttl: Duration) -> Result<(), KvError> {
        self.run(cmd("SET").arg(key).arg(value).arg("PX").arg(millis(ttl))).await
    }

    /// `true`: nothing was there and the value was set.
    pub async fn set_if_absent(&self, key: &str, value: &[u8], ttl: Duration) -> Result<bool, KvError> {
        let mut set = cmd("SET");
        set.arg(key).arg(value).arg("NX").arg("PX").arg(millis(ttl));
        Ok(self.run::<Option<String>>(&set).await?.is_some())
    }

    /// Puts `value` in place of exactly `expected`; `false`: something else was there, nothing was changed.
    pub async fn set_if_same(
        &self,
        key: &str,
        expected: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, KvError> {
        self.call(&SET_IF_SAME, &[key], &[&expected, &value, &millis(ttl)]).await
    }

    /// `false`: there was no such key.
    pub async fn extend(&self, key: &str, ttl: Duration) -> Result<bool, KvError> {
        self.run(cmd("PEXPIRE").arg(key).arg(millis(ttl))).await
    }

    /// Reads and removes in one step.
    pub async fn take(&self, key: &str) -> Result<Option<Vec<u8>>, KvError> {
        self.run(cmd("GETDEL").arg(key)).await
    }

    /// `false`: there was no such key.
    pub async fn delete(&self, key: &str) -> Result<bool, KvError> {
        self.run(cmd("DEL").arg(key)).await
    }

    /// Removes exactly `expected`; `false`: something else was there, nothing was changed.
    pub async fn delete_if_same(&self, key: &str, expected: &[u8]) -> Result<bool, KvError> {
        self.call(&DELETE_IF_SAME, &[key], &[&expected]).await
    }

    /// Removes a hash whose `field` is exactly `expected`; `false`: it was not, nothing was changed.
    pub async fn delete_if_field_same(
        &self,
        key: &str,
        field: &str,
        expected: &[u8],
    ) -> Result<bool, KvError> {
        self.call(&DELETE_IF_FIELD_SAME, &[key], &[&field, &expected]).await
    }

    /// Appends to a stream and keeps about `keep` entries; the new entry's id.
    pub async fn append(&self, stream: &str, keep: u64, fields: &[(&str, &[u8])]) -> Result<String, KvError> {
        let mut add = cmd("XADD");
        add.arg(stream).arg("MAXLEN").arg("~").arg(keep).arg("*").arg(fields);
        self.run(&add).await
    }

    /// Runs a script on the keys it names.
    pub async fn call<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        args: &[&dyn ErasedArg],
    ) -> Result<T, KvError> {
        let call = script.call(keys, args);
        self.with(async |connection| call.invoke_async(connection).await).await
    }

    async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, KvError> {
        self.with(async |connection| command.query_async(connection).await).await
    }

    async fn with<T>(&self, ask: impl AsyncFnOnce(&mut Connection) -> RedisResult<T>) -> Result<T, KvError> {
        let mut lent = self.0.get().await?;
        match ask(&mut lent.connection).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                if must_reconnect(&error) {
                    self.0.broke(lent.number);
                }
                Err(error.into())
            }
        }
    }
}

/// A demoted master refuses writes on a connection that works: sentinels must be asked for the new one.
fn must_reconnect(error: &RedisError) -> bool {
    error.is_unrecoverable_error() || matches!(KvError::from(error.clone()), KvError::Unavailable(_))
}

/// What PTTL answers for a key that is there; `None` = for ever.
fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}
