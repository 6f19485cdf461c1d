//! The cache beside an attached table, in Redis. The table decides; here its word is only repeated.
//!
//! An entry is changed only if it is byte for byte what was read and judged, so that nothing newer is overwritten, and
//! what the configuration does not describe is left alone.

mod meaning;
mod template;
mod verify;

use crate::config::{CacheConfig, CacheFormat, Compare};
use async_trait::async_trait;
use domain::cache::{CacheAbout, CacheEntry, Cached, Held, Pace, Standing, Step};
use domain::ports::Cache;
use domain::record::{RecordDetail, RecordRow, State};
use kv::{KvError, Options, Redis};
use meaning::Meaning;
use std::time::Duration;
use template::{KeyTemplate, ValueTemplates};
pub(crate) use verify::problems;

/// Larger values are not read, and so not judged.
const LARGEST: usize = 4 * 1024 * 1024;

/// A source's cache; connects when first used.
pub(crate) struct RecordCache {
    redis: Redis,
    format: CacheFormat,
    key: KeyTemplate,
    meaning: Meaning,
    writes: Option<Writes>,
    about: CacheAbout,
}

/// What entries are written, and for how long.
struct Writes {
    values: ValueTemplates,
    ttl: Duration,
}

impl RecordCache {
    /// Opens the cache without connecting. Errors: what to write in the configuration.
    pub(crate) fn open(config: &CacheConfig) -> Result<Self, String> {
        let limit = config.timeout.get();
        let options = Options { connect_timeout: limit, response_timeout: limit, ..Options::default() };
        let redis = Redis::open(config.url.expose(), options).map_err(|error| error.to_string())?;
        let pace = match config.compare {
            Compare::Off => None,
            Compare::For(window) => {
                Some(Pace { window, records_per_second: config.compare_rate.per_second() })
            }
        };
        let about = CacheAbout { address: redis.shown_url().to_owned(), key: config.key.clone(), pace };
        Ok(Self {
            redis,
            format: config.format,
            key: KeyTemplate::parse(&config.key)?,
            meaning: Meaning::of(config),
            writes: config
                .ttl
                .map(|ttl| Ok::<_, String>(Writes { values: ValueTemplates::of(config)?, ttl: ttl.get() }))
                .transpose()?,
            about,
        })
    }

    async fn held(&self, key: &str) -> Held {
        let read = match self.meaning.field() {
            Some(field) => self.hash_entry(key, field).await,
            None => self.text_entry(key).await,
        };
        match read {
            Ok(held) => held,
            // A key of another type is no outage.
            Err(KvError::Refused(why)) => match self.redis.kind(key).await {
                Ok(Some(kind)) if kind != self.expected_kind() => {
                    Held::Unreadable(format!("the key holds a {kind}, not a {}", self.expected_kind()))
                }
                _ => Held::Unknown(KvError::Refused(why).to_string()),
            },
            Err(error) => Held::Unknown(error.to_string()),
        }
    }

    fn expected_kind(&self) -> &'static str {
        match self.format {
            CacheFormat::Hash => "hash",
            CacheFormat::Json | CacheFormat::Text => "string",
        }
    }

    async fn text_entry(&self, key: &str) -> Result<Held, KvError> {
        let Some(peek) = self.redis.peek(key, LARGEST).await? else { return Ok(Held::Nothing) };
        if peek.size > LARGEST as u64 {
            return Ok(Held::Unreadable(format!("the value has {} bytes, too many to read", peek.size)));
        }
        Ok(match self.meaning.of_value(&peek.value) {
            Ok((native, means)) => {
                Held::Entry(CacheEntry { value: peek.value, ttl: peek.ttl, native, means })
            }
            Err(why) => Held::Unreadable(why),
        })
    }

    async fn hash_entry(&self, key: &str, field: &str) -> Result<Held, KvError> {
        let Some(entry) = self.redis.hash_field(key, field).await? else { return Ok(Held::Nothing) };
        let Some(value) = entry.value else {
            return Ok(Held::Unreadable(format!("the hash has no field {field:?}")));
        };
        let (native, means) = self.meaning.of_native(&String::from_utf8_lossy(&value));
        Ok(Held::Entry(CacheEntry { value, ttl: entry.ttl, native, means }))
    }

    /// What the record's entry has to be; `None` = none at all.
    fn wanted(&self, record: &RecordDetail) -> Result<Option<(Vec<u8>, Duration)>, String> {
        let Some(writes) = &self.writes else { return Ok(None) };
        let value = writes.values.render(record)?;
        Ok(value.map(|value| (value.into_bytes(), writes.ttl)))
    }

    /// Puts what is wanted where nothing was.
    async fn fill(&self, key: &str, record: &RecordDetail) -> Result<Step, String> {
        let Some((value, ttl)) = self.wanted(record)? else { return Ok(Step::Agrees) };
        self.redis.set_if_absent(key, &value, ttl).await.map_err(|error| error.to_string())?;
        Ok(Step::Changed)
    }

    /// Puts what is wanted in place of exactly this entry; whether it was still there shows the next look.
    async fn replace(&self, key: &str, entry: &CacheEntry, record: &RecordDetail) -> Result<Step, String> {
        let changed = match (self.wanted(record)?, self.meaning.field()) {
            (Some((value, ttl)), _) => self.redis.set_if_same(key, &entry.value, &value, ttl).await,
            (None, Some(field)) => self.redis.delete_if_field_same(key, field, &entry.value).await,
            (None, None) => self.redis.delete_if_same(key, &entry.value).await,
        };
        changed.map_err(|error| error.to_string())?;
        Ok(Step::Changed)
    }

    async fn step(&self, record: &RecordDetail) -> Result<Step, String> {
        let cached = self.read(&record.row).await;
        let standing = cached.standing(record.row.state);
        match cached.held {
            // A record without a key here has no entry to follow it.
            Held::Nothing if cached.key.is_empty() => Ok(Step::Agrees),
            Held::Nothing => self.fill(&cached.key, record).await,
            Held::Entry(_) if standing == Standing::Agrees => Ok(Step::Agrees),
            Held::Entry(entry) if standing == Standing::Disagrees => {
                self.replace(&cached.key, &entry, record).await
            }
            Held::Entry(_) if matches!(record.row.state, State::Ignored | State::Unknown) => {
                Err("the record's own state says nothing that an entry could repeat".into())
            }
            Held::Entry(_) => {
                Err("its value is mapped to no state; map it under [source.cache.state]".into())
            }
            Held::Unreadable(why) | Held::Unknown(why) => Err(why),
        }
    }
}

#[async_trait]
impl Cache for RecordCache {
    fn about(&self) -> CacheAbout {
        self.about.clone()
    }

    async fn ping(&self) -> Result<(), String> {
        self.redis.ping().await.map_err(|error| error.to_string())
    }

    async fn read(&self, record: &RecordRow) -> Cached {
        match self.key.render(record) {
            Some(key) => {
                let held = self.held(&key).await;
                Cached { key, held }
            }
            None => Cached { key: String::new(), held: Held::Nothing },
        }
    }

    async fn make_agree(&self, record: &RecordDetail) -> Step {
        self.step(record).await.unwrap_or_else(Step::Kept)
    }
}
