//! The shop's counters, handed to the console now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use domain::clock::{Clock, millis};
use domain::rates::{Count, Happening, Report};

use super::Ingest;

const PRODUCER: &str = "demo-shop";
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// (source, biz_type, minute, what happened) → how often.
type Counts = HashMap<(&'static str, String, DateTime<Utc>, Happening), u32>;

pub(super) struct Tally {
    clock: Arc<dyn Clock>,
    counts: Mutex<Counts>,
}

/// The tally of one source, as its guard sees it.
pub(super) struct SourceMeter {
    pub tally: Arc<Tally>,
    pub source: &'static str,
}

impl guard::Meter for SourceMeter {
    fn count(&self, biz_type: &str, happening: guard::Happening) {
        if let Some(happening) = Happening::parse(happening.as_str()) {
            self.tally.add(self.source, biz_type, happening);
        }
    }
}

impl Tally {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Tally {
        Tally { clock, counts: Mutex::default() }
    }

    fn add(&self, source: &'static str, biz_type: &str, happening: Happening) {
        let now = self.clock.now();
        let minute = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
        *self.lock().entry((source, biz_type.to_owned(), minute, happening)).or_default() += 1;
    }

    /// A count is whole after every step, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports what was counted, for ever. A report that was not taken is sent again as it is.
    pub(super) async fn keep_reporting(self: Arc<Self>, ingest: Arc<dyn Ingest>) {
        let mut sequence = 0;
        loop {
            tokio::time::sleep(REPORT_EVERY).await;
            // Growing across restarts too.
            sequence = millis(self.clock.now()).max(sequence + 1);
            let Some(report) = self.report(sequence) else { continue };
            while let Err(error) = ingest.report(report.clone()).await {
                tracing::warn!(%error, "the shop's counters were not taken; trying again");
                tokio::time::sleep(REPORT_EVERY).await;
            }
        }
    }

    fn report(&self, sequence: i64) -> Option<Report> {
        let counts = std::mem::take(&mut *self.lock());
        let counts: Vec<Count> = counts
            .into_iter()
            .map(|((source, biz_type, at, outcome), count)| Count {
                source: source.to_owned(),
                biz_type,
                at,
                outcome,
                count,
            })
            .collect();
        (!counts.is_empty()).then(|| Report { producer: PRODUCER.to_owned(), sequence, counts })
    }
}
