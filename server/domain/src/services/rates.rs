//! Rates over time, now against last week, and per business type.

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::ports::{Events, RateStore, Topic};
use crate::rates::{Point, RateScope, Report, Span, Totals};
use crate::roles::{Actor, Permission};
use chrono::{DateTime, Duration, DurationRound, Utc};
use std::sync::Arc;

/// "Now" is the last this many minutes.
pub const NOW_MINUTES: i64 = 15;
/// The most counts one report may carry.
const MAX_COUNTS: usize = 10_000;
const NAME_MAX: usize = 100;
/// Counts further ahead of the clock than this are a producer's mistake.
const MAX_AHEAD_MINUTES: i64 = 10;

/// The latest totals beside those of the same time last week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NowAndThen {
    pub now: Totals,
    pub last_week: Totals,
}

/// One business type's totals over a span, and its course.
#[derive(Debug, Clone, PartialEq)]
pub struct BizTypeRates {
    pub source: String,
    pub biz_type: String,
    pub totals: Totals,
    pub points: Vec<Point>,
}

pub struct RateService {
    pub store: Arc<dyn RateStore>,
    pub events: Arc<dyn Events>,
    pub clock: Arc<dyn Clock>,
}

impl RateService {
    /// Points of a series; a step without traffic is missing, never zero.
    pub async fn series(&self, actor: &Actor, scope: &RateScope, span: Span) -> Result<Vec<Point>> {
        actor.require(Permission::Read)?;
        Ok(self.store.series(scope, span).await?.into_iter().map(Point::from).collect())
    }

    /// The last 15 minutes, and the same 15 minutes a week ago.
    pub async fn now_and_then(&self, actor: &Actor, scope: &RateScope) -> Result<NowAndThen> {
        actor.require(Permission::Read)?;
        let end = next_minute(self.clock.now());
        let week_ago = end - Duration::days(7);
        let now = self.total(scope, end - Duration::minutes(NOW_MINUTES), end).await?;
        let last_week = self.total(scope, week_ago - Duration::minutes(NOW_MINUTES), week_ago).await?;
        Ok(NowAndThen { now, last_week })
    }

    /// Each business type's course and totals over a span, most requests first.
    pub async fn by_biz_type(
        &self,
        actor: &Actor,
        scope: &RateScope,
        span: Span,
    ) -> Result<Vec<BizTypeRates>> {
        actor.require(Permission::Read)?;
        let series = self.store.series_by_biz_type(scope, span).await?;
        let mut rates: Vec<BizTypeRates> = series
            .into_iter()
            .map(|series| BizTypeRates {
                totals: sum(series.buckets.iter().map(|bucket| bucket.totals)),
                points: series.buckets.into_iter().map(Point::from).collect(),
                source: series.source,
                biz_type: series.biz_type,
            })
            .collect();
        rates.sort_by_key(|rates| std::cmp::Reverse(rates.totals.requests()));
        Ok(rates)
    }

    /// (source, biz_type) pairs for filter choices.
    pub async fn biz_types(&self, actor: &Actor) -> Result<Vec<(String, String)>> {
        actor.require(Permission::Read)?;
        self.store.biz_types().await
    }

    /// Takes in a producer's counts; `false` when this sequence was already there. Late counts are welcome.
    pub async fn report(&self, actor: &Actor, report: &Report) -> Result<bool> {
        actor.require(Permission::ReportEvents)?;
        self.validate(report)?;
        let applied = self.store.report(report).await?;
        if applied {
            self.events.changed(Topic::Rates);
        }
        Ok(applied)
    }

    fn validate(&self, report: &Report) -> Result<()> {
        let named = |name: &str| !name.trim().is_empty() && name.chars().count() <= NAME_MAX;
        if !named(&report.producer) {
            return Err(Error::invalid(format!("producer must be 1 to {NAME_MAX} characters")));
        }
        if report.counts.len() > MAX_COUNTS {
            return Err(Error::invalid(format!(
                "a report carries at most {MAX_COUNTS} counts; send several"
            )));
        }
        let latest = self.clock.now() + Duration::minutes(MAX_AHEAD_MINUTES);
        for count in &report.counts {
            if !named(&count.source) || !named(&count.biz_type) {
                return Err(Error::invalid(format!(
                    "source and biz_type must be 1 to {NAME_MAX} characters"
                )));
            }
            if count.at > latest || count.at < DateTime::UNIX_EPOCH {
                return Err(Error::invalid(format!("{} is not a time that counts can be from", count.at)));
            }
        }
        Ok(())
    }

    async fn total(&self, scope: &RateScope, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Totals> {
        let parts = self.store.by_biz_type(scope, from, to).await?;
        Ok(sum(parts.into_iter().map(|(_, _, totals)| totals)))
    }
}

/// The end of the minute that `at` lies in: the running minute counts as part of "now".
pub(super) fn next_minute(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(Duration::minutes(1)).unwrap_or(at) + Duration::minutes(1)
}

pub(super) fn sum(parts: impl Iterator<Item = Totals>) -> Totals {
    parts.fold(Totals::default(), |mut total, part| {
        total.add(part);
        total
    })
}
