//! Counters per minute and what they mean: shares of all requests, amplification, gaps as gaps.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// What became of one request, as producers report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// The business ran.
    Executed,
    /// A duplicate was answered from the record.
    Hit,
    /// Met a record that was PROCESSING past its time.
    StaleProcessing,
    /// Same key, other body.
    PayloadMismatch,
    /// SUCCESS, but the response to give is gone.
    MissingResponse,
    /// A worker finished after its record had been settled.
    LateCompletion,
    /// Cache and table say different things.
    CacheDisagrees,
    /// Nobody knows whether the effect happened.
    InDoubt,
}

impl Happening {
    pub const ALL: [Happening; 8] = [
        Happening::Executed,
        Happening::Hit,
        Happening::StaleProcessing,
        Happening::PayloadMismatch,
        Happening::MissingResponse,
        Happening::LateCompletion,
        Happening::CacheDisagrees,
        Happening::InDoubt,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Happening::Executed => "executed",
            Happening::Hit => "hit",
            Happening::StaleProcessing => "stale_processing",
            Happening::PayloadMismatch => "payload_mismatch",
            Happening::MissingResponse => "missing_response",
            Happening::LateCompletion => "late_completion",
            Happening::CacheDisagrees => "cache_disagrees",
            Happening::InDoubt => "in_doubt",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Happening::ALL.into_iter().find(|happening| happening.as_str() == text)
    }

    pub fn is_anomaly(self) -> bool {
        !matches!(self, Happening::Executed | Happening::Hit)
    }
}

/// How often one thing happened in one minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Count {
    pub source: String,
    pub biz_type: String,
    /// Any instant within the minute.
    pub at: DateTime<Utc>,
    pub outcome: Happening,
    pub count: u32,
}

/// A producer's report; the same sequence again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Report {
    pub producer: String,
    pub sequence: i64,
    pub counts: Vec<Count>,
}

/// Totals over some span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub executed: u64,
    pub hit: u64,
    pub anomaly: u64,
}

impl Totals {
    pub fn requests(self) -> u64 {
        self.executed.saturating_add(self.hit).saturating_add(self.anomaly)
    }

    /// 0 to 1; `None` without traffic, because 0/0 is not 0 %.
    pub fn hit_rate(self) -> Option<f64> {
        share(self.hit, self.requests())
    }

    pub fn execute_rate(self) -> Option<f64> {
        share(self.executed, self.requests())
    }

    pub fn anomaly_rate(self) -> Option<f64> {
        share(self.anomaly, self.requests())
    }

    /// Requests per business run; `None` when nothing ran.
    pub fn amplification(self) -> Option<f64> {
        share(self.requests(), self.executed)
    }

    pub fn add(&mut self, other: Totals) {
        self.executed = self.executed.saturating_add(other.executed);
        self.hit = self.hit.saturating_add(other.hit);
        self.anomaly = self.anomaly.saturating_add(other.anomaly);
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Totals of one step of a series. Steps without any count are left out: gaps show as gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Start of the step.
    pub at: DateTime<Utc>,
    pub totals: Totals,
}

/// The series of one business type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BizTypeSeries {
    pub source: String,
    pub biz_type: String,
    /// Ascending; steps without counts are left out.
    pub buckets: Vec<Bucket>,
}

/// One point as the API and the chart show it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Point {
    pub at: DateTime<Utc>,
    pub executed: u64,
    pub hit: u64,
    pub anomaly: u64,
    pub hit_rate: Option<f64>,
    pub execute_rate: Option<f64>,
    pub anomaly_rate: Option<f64>,
}

impl From<Bucket> for Point {
    fn from(bucket: Bucket) -> Self {
        let totals = bucket.totals;
        Self {
            at: bucket.at,
            executed: totals.executed,
            hit: totals.hit,
            anomaly: totals.anomaly,
            hit_rate: totals.hit_rate(),
            execute_rate: totals.execute_rate(),
            anomaly_rate: totals.anomaly_rate(),
        }
    }
}

/// Which counters a series is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateScope {
    pub source: Option<String>,
    pub biz_type: Option<String>,
}

/// From, to (exclusive) and step of a series, in whole minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    pub step_minutes: u32,
}

impl Span {
    /// No series is longer than this.
    pub const MAX_POINTS: i64 = 2_000;

    /// A span whose step is given, or chosen so that about 150 points result.
    pub fn new(from: DateTime<Utc>, to: DateTime<Utc>, step_minutes: Option<u32>) -> crate::Result<Self> {
        let minutes = (to - from).num_minutes();
        if minutes <= 0 {
            return Err(crate::Error::invalid("from must be at least a minute before to"));
        }
        let step_minutes = match step_minutes {
            Some(0) => return Err(crate::Error::invalid("step must be at least one minute")),
            Some(step) => step,
            None => natural_step(minutes),
        };
        if minutes / i64::from(step_minutes) > Self::MAX_POINTS {
            return Err(crate::Error::invalid(format!(
                "that is more than {} points; choose a longer step or a shorter span",
                Self::MAX_POINTS
            )));
        }
        Ok(Self { from, to, step_minutes })
    }
}

fn natural_step(minutes: i64) -> u32 {
    [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720]
        .into_iter()
        .find(|step| minutes / i64::from(*step) <= 150)
        .unwrap_or(1440)
}

/// How many records were stuck in one minute, and how old the oldest was; sampled for history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckSample {
    pub source: String,
    pub biz_type: String,
    pub at: DateTime<Utc>,
    pub stuck: u64,
    pub oldest_seconds: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up_to_one(executed in 0..1_000_000u64, hit in 0..1_000_000u64, anomaly in 0..1_000_000u64) {
            let totals = Totals { executed, hit, anomaly };
            match (totals.hit_rate(), totals.execute_rate(), totals.anomaly_rate()) {
                (Some(h), Some(e), Some(a)) => prop_assert!((h + e + a - 1.0).abs() < 1e-9),
                (None, None, None) => prop_assert_eq!(totals.requests(), 0),
                other => prop_assert!(false, "mixed: {:?}", other),
            }
        }

        #[test]
        fn every_span_keeps_within_the_point_limit(minutes in 1..5_000_000i64, step in prop::option::of(0..10_000u32)) {
            let from = DateTime::UNIX_EPOCH;
            if let Ok(span) = Span::new(from, from + chrono::Duration::minutes(minutes), step) {
                prop_assert!(minutes / i64::from(span.step_minutes) <= Span::MAX_POINTS);
            }
        }
    }

    #[test]
    fn c75_no_traffic_is_not_zero_percent() {
        assert_eq!(Totals::default().hit_rate(), None);
        assert_eq!(Totals::default().amplification(), None);
    }
}
