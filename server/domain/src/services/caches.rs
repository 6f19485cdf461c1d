//! The caches beside the sources: changed after the table and confirmed by reading back, tried again until they are,
//! and compared with the table in the background.

use super::records::RecordService;
use crate::audit::Draft;
use crate::cache::{CacheChange, CacheEnd, CacheStatus, Cached, Disagreement, Held, Pace, Standing, Step};
use crate::error::{Error, Result};
use crate::ports::{Cache, CacheStore, Runtime, Source, Topic};
use crate::record::{Place, RecordFilter, RecordId, RecordRow};
use crate::roles::{Actor, Permission};
use crate::source::Health;
use chrono::Duration;
use futures::future::join_all;
use std::sync::Arc;

/// How often an entry that keeps changing under our hands is read again.
const PASSES: u32 = 4;
/// How long one process has for the changes and walks it takes.
const LEASE_SECONDS: i64 = 60;
const FIRST_RETRY_SECONDS: i64 = 5;
const LONGEST_RETRY_SECONDS: i64 = 60;
/// Records read and compared at once.
const PAGE: usize = 100;
/// How long a service gets to write its cache after its table, before a difference counts.
const SECOND_LOOK: std::time::Duration = std::time::Duration::from_secs(2);
/// Differences that one activation looks at twice; the walk goes on from there.
const SUSPECTS: usize = 200;
/// Disagreements that are listed, and looked at again.
const LISTED: usize = 200;

/// Brings the entry of a record to agree with it: both are read until a pass that changed nothing finds them agreeing.
/// The same again does no harm, whoever changed the two meanwhile.
pub(super) async fn make_agree(source: &dyn Source, cache: &dyn Cache, id: &RecordId) -> CacheEnd {
    for _ in 0..PASSES {
        let record = match source.get(id).await {
            Ok(record) => record,
            Err(error) => return CacheEnd::Pending { why: error.to_string() },
        };
        match cache.make_agree(&record).await {
            Step::Agrees => return CacheEnd::Confirmed,
            Step::Changed => {}
            Step::Kept(why) => return CacheEnd::Pending { why },
        }
    }
    CacheEnd::Pending { why: "the entry changed each time it was looked at".into() }
}

pub struct CacheService {
    pub records: Arc<RecordService>,
    pub runtime: Arc<dyn Runtime>,
    /// This process, as it signs the walks it takes.
    pub owner: String,
    /// How often [`CacheService::compare`] is called; the pace of a walk is kept by it.
    pub compares_every: std::time::Duration,
}

impl CacheService {
    /// Each cache beside a source, in the sources' order, with what is pending and what disagrees.
    pub async fn statuses(&self, actor: &Actor) -> Result<Vec<CacheStatus>> {
        actor.require(Permission::Read)?;
        let store = self.store();
        let (pending, disagreeing) = (store.pending_changes().await?, store.disagreeing().await?);
        let sources = &self.records.sources;
        let cached = sources.iter().filter_map(|source| Some((source.name(), source.cache()?)));
        let (pending, disagreeing) = (&pending, &disagreeing);
        let statuses = cached.map(|(source, cache)| async move {
            let (about, answer) = (cache.about(), cache.ping().await);
            let waiting = pending.iter().find(|(name, ..)| name == source);
            CacheStatus {
                source: source.to_owned(),
                address: about.address,
                key: about.key,
                status: if answer.is_ok() { Health::Up } else { Health::Down },
                detail: answer.err().unwrap_or_default(),
                compared: about.pace.is_some(),
                pending: waiting.map_or(0, |(_, count, _)| *count),
                oldest_pending: waiting.map(|(.., oldest)| *oldest),
                disagreements: disagreeing.iter().find(|(name, _)| name == source).map_or(0, |(_, n)| *n),
            }
        });
        Ok(join_all(statuses).await)
    }

    /// Records of a source whose entries say something else, newest first, at most 200.
    pub async fn disagreements(&self, actor: &Actor, source: &str) -> Result<Vec<Disagreement>> {
        actor.require(Permission::Read)?;
        self.store().disagreements(source, LISTED).await
    }

    /// Tries the changes that are due once more; the number that are confirmed now. Idempotent.
    pub async fn retry_pending(&self) -> Result<usize> {
        let now = self.records.clock.now();
        let due = self.store().take_changes(now, now + Duration::seconds(LEASE_SECONDS)).await?;
        let mut confirmed = 0;
        for change in due {
            match self.retry(&change).await {
                CacheEnd::Confirmed => {
                    confirmed += usize::from(self.confirm(&change).await?);
                }
                CacheEnd::Pending { why } => {
                    let next = self.records.clock.now() + backoff(change.attempts);
                    self.store().postpone_change(&change.compensation_id, &why, next).await?;
                }
            }
        }
        if confirmed > 0 {
            for topic in [Topic::Records, Topic::Sources, Topic::Audit] {
                self.records.events.changed(topic);
            }
        }
        Ok(confirmed)
    }

    async fn retry(&self, change: &CacheChange) -> CacheEnd {
        match self.records.sources.get(&change.record.source) {
            Err(error) => CacheEnd::Pending { why: error.to_string() },
            Ok(source) => match source.cache() {
                // The cache was taken out of the configuration, and its promise with it.
                None => CacheEnd::Confirmed,
                Some(cache) => make_agree(source.as_ref(), cache, &change.record).await,
            },
        }
    }

    async fn confirm(&self, change: &CacheChange) -> Result<bool> {
        let now = self.records.clock.now();
        let mut draft = Draft::new(now, "cache", "cache.confirmed");
        draft.record = Some(change.record.clone());
        draft.compensation_id = Some(change.compensation_id.clone());
        draft.result = Some(format!(
            "Record and cache were read back and agree, after {} more tries.",
            change.attempts + 1
        ));
        self.store().confirm_change(&change.compensation_id, now, &draft).await
    }

    /// Walks on through the records of each source and compares them with their cache entries. What differs twice in a
    /// row is counted once and listed until it is over. Errors: the first cache or source that did not answer.
    pub async fn compare(&self) -> Result<()> {
        let mut first = Ok(());
        for source in self.records.sources.iter() {
            let Some(cache) = source.cache() else { continue };
            let Some(pace) = cache.about().pace else { continue };
            let walked = self.compare_one(source.as_ref(), cache, pace).await;
            first = first.and(walked);
        }
        first
    }

    async fn compare_one(&self, source: &dyn Source, cache: &dyn Cache, pace: Pace) -> Result<()> {
        let now = self.records.clock.now();
        let lease = now + Duration::seconds(LEASE_SECONDS);
        // Another process is walking this source.
        let Some(from) = self.store().take_walk(source.name(), &self.owner, now, lease).await? else {
            return Ok(());
        };
        let walked = self.walk_on(source, cache, pace, from.clone()).await;
        let place = walked.as_ref().map_or(from.as_ref(), |(place, _)| place.as_ref());
        self.store().leave_walk(source.name(), &self.owner, place).await?;
        let (_, changed) = walked?;
        if changed > 0 {
            self.records.events.changed(Topic::Sources);
            self.records.events.changed(Topic::Rates);
        }
        Ok(())
    }

    /// Where to go on next time, and how many disagreements began or ended.
    async fn walk_on(
        &self,
        source: &dyn Source,
        cache: &dyn Cache,
        pace: Pace,
        from: Option<Place>,
    ) -> Result<(Option<Place>, usize)> {
        let over = self.end_what_is_over(source, cache).await?;
        let walk = Walk { source, cache, filter: self.recent(source, pace), budget: self.budget(pace) };
        let (suspects, place) = walk.on_from(from).await?;
        let new = self.look_twice(source, cache, suspects).await?;
        Ok((place, over + new))
    }

    fn recent(&self, source: &dyn Source, pace: Pace) -> RecordFilter {
        let window = Duration::from_std(pace.window).unwrap_or(Duration::days(1));
        RecordFilter {
            source: Some(source.name().to_owned()),
            created_from: Some(self.records.clock.now() - window),
            ..RecordFilter::default()
        }
    }

    fn budget(&self, pace: Pace) -> usize {
        let seconds = usize::try_from(self.compares_every.as_secs().max(1)).unwrap_or(1);
        (pace.records_per_second as usize).saturating_mul(seconds).max(1)
    }

    /// Takes off the list what agrees now, expired, or is gone.
    async fn end_what_is_over(&self, source: &dyn Source, cache: &dyn Cache) -> Result<usize> {
        let mut over = 0;
        for listed in self.store().disagreements(source.name(), LISTED).await? {
            let still = match source.get(&listed.record).await {
                Ok(record) => !is_over(cache.read(&record.row).await.standing(record.row.state)),
                Err(Error::NotFound { .. }) => false,
                Err(error) => return Err(error),
            };
            if !still {
                self.store().end_disagreement(&listed.record).await?;
                over += 1;
            }
        }
        Ok(over)
    }

    /// A service writes its cache a moment after its table: only what differs still, and in the same way, counts.
    async fn look_twice(
        &self,
        source: &dyn Source,
        cache: &dyn Cache,
        suspects: Vec<(RecordRow, Cached)>,
    ) -> Result<usize> {
        if suspects.is_empty() {
            return Ok(0);
        }
        self.runtime.sleep(SECOND_LOOK).await;
        let mut new = 0;
        for (before, cached) in suspects {
            let Ok(record) = source.get(&before.id).await else { continue };
            let again = cache.read(&record.row).await;
            if record.row.version != before.version || !same_entry(&cached, &again) {
                continue;
            }
            let now = self.records.clock.now();
            let Some(disagreement) = Disagreement::of(&record.row, &again, now) else { continue };
            new += usize::from(self.store().note_disagreement(&disagreement).await?);
        }
        Ok(new)
    }

    fn store(&self) -> &dyn CacheStore {
        self.records.caches.as_ref()
    }
}

/// One stretch through a source's records, newest first.
struct Walk<'a> {
    source: &'a dyn Source,
    cache: &'a dyn Cache,
    filter: RecordFilter,
    budget: usize,
}

impl Walk<'_> {
    /// What differs, and where to go on; `None` = from the newest again.
    async fn on_from(&self, from: Option<Place>) -> Result<(Vec<(RecordRow, Cached)>, Option<Place>)> {
        let (mut place, mut left, mut suspects) = (from, self.budget, Vec::new());
        while left > 0 && suspects.len() < SUSPECTS {
            let wanted = left.min(PAGE);
            let rows = self.source.list(&self.filter, place.as_ref(), wanted).await?;
            let entries = join_all(rows.iter().map(|row| self.cache.read(row))).await;
            if let Some(why) = entries.iter().find_map(unknown) {
                return Err(Error::unavailable(format!("The cache of {:?}", self.source.name()), why));
            }
            left -= rows.len().min(left);
            place = rows.last().filter(|_| rows.len() == wanted).map(Place::of);
            suspects.extend(rows.into_iter().zip(entries).filter(|(row, entry)| disagree(row, entry)));
            if place.is_none() {
                break;
            }
        }
        Ok((suspects, place))
    }
}

fn disagree(row: &RecordRow, cached: &Cached) -> bool {
    cached.standing(row.state) == Standing::Disagrees
}

fn unknown(cached: &Cached) -> Option<&str> {
    match &cached.held {
        // A record without a key in the cache says nothing about the cache.
        Held::Unknown(why) if !cached.key.is_empty() => Some(why),
        _ => None,
    }
}

fn is_over(standing: Standing) -> bool {
    matches!(standing, Standing::Agrees | Standing::Empty)
}

fn same_entry(left: &Cached, right: &Cached) -> bool {
    match (&left.held, &right.held) {
        (Held::Entry(left), Held::Entry(right)) => left.value == right.value,
        _ => false,
    }
}

/// 5 s, doubling, at most a minute.
fn backoff(attempts: u32) -> Duration {
    let seconds = FIRST_RETRY_SECONDS.saturating_mul(1 << attempts.min(10));
    Duration::seconds(seconds.min(LONGEST_RETRY_SECONDS))
}
