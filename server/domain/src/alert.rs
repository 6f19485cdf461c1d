//! Alert rules: thresholds on rates and stuck records, evaluated by pure functions with time as an argument.

use crate::error::{Error, Result};
use crate::invalid::Invalid;
use crate::rates::Totals;
use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};

/// What a rule watches, and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Share of requests, 0 to 1.
    HitRate,
    /// Share of requests, 0 to 1.
    ExecuteRate,
    /// Share of requests, 0 to 1.
    AnomalyRate,
    /// Records.
    StuckCount,
    /// Seconds.
    OldestStuckAge,
}

impl Metric {
    pub const ALL: [Metric; 5] = [
        Metric::HitRate,
        Metric::ExecuteRate,
        Metric::AnomalyRate,
        Metric::StuckCount,
        Metric::OldestStuckAge,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Metric::HitRate => "hit_rate",
            Metric::ExecuteRate => "execute_rate",
            Metric::AnomalyRate => "anomaly_rate",
            Metric::StuckCount => "stuck_count",
            Metric::OldestStuckAge => "oldest_stuck_age",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Metric::ALL.into_iter().find(|metric| metric.as_str() == text)
    }

    /// Rates come from counters and need a minimum of traffic; the others are read off the stuck board.
    pub fn is_rate(self) -> bool {
        matches!(self, Metric::HitRate | Metric::ExecuteRate | Metric::AnomalyRate)
    }

    pub fn of_totals(self, totals: Totals) -> Option<f64> {
        match self {
            Metric::HitRate => totals.hit_rate(),
            Metric::ExecuteRate => totals.execute_rate(),
            Metric::AnomalyRate => totals.anomaly_rate(),
            Metric::StuckCount | Metric::OldestStuckAge => None,
        }
    }
}

/// Which side of the threshold is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Above,
    Below,
}

impl Side {
    fn breaches(self, value: f64, threshold: f64) -> bool {
        match self {
            Side::Above => value > threshold,
            Side::Below => value < threshold,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Warn,
    Critical,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warn => "warn",
            Severity::Critical => "critical",
        }
    }
}

/// The editable part of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleSpec {
    pub name: String,
    pub metric: Metric,
    /// `None` = all sources together.
    #[serde(default)]
    pub source: Option<String>,
    /// `None` = all business types together.
    #[serde(default)]
    pub biz_type: Option<String>,
    pub side: Side,
    /// In the metric's unit; at least one of warn and critical is set.
    #[serde(default)]
    pub warn: Option<f64>,
    #[serde(default)]
    pub critical: Option<f64>,
    /// Back inside this level the alert resolves; absent = the lower threshold (no hysteresis).
    #[serde(default)]
    pub clear: Option<f64>,
    /// Rates are taken over the last this many minutes.
    pub window_minutes: u32,
    /// The breach must last this long before the alert fires.
    pub for_minutes: u32,
    /// Rates over fewer requests than this say nothing.
    pub min_requests: u64,
    pub enabled: bool,
}

impl RuleSpec {
    pub const MAX_WINDOW_MINUTES: u32 = 1_440;
    /// Characters of a name.
    pub const MAX_NAME: usize = 100;

    pub fn validate(&self) -> Result<()> {
        let refuse = |what: Invalid| Err(Error::invalid(what));
        let name = self.name.trim();
        if name.is_empty() || name.chars().count() > Self::MAX_NAME {
            return refuse(Invalid::RuleName { max: Self::MAX_NAME });
        }
        if self.warn.is_none() && self.critical.is_none() {
            return refuse(Invalid::RuleWithoutThreshold);
        }
        let top = if self.metric.is_rate() { 1.0 } else { f64::from(u32::MAX) };
        for threshold in [self.warn, self.critical, self.clear].into_iter().flatten() {
            if !(0.0..=top).contains(&threshold) {
                return refuse(Invalid::RuleThresholdRange);
            }
        }
        if let (Some(warn), Some(critical)) = (self.warn, self.critical)
            && self.side.breaches(warn, critical)
        {
            return refuse(Invalid::RuleCriticalWithinWarn);
        }
        if let (Some(clear), Some(first)) = (self.clear, self.first_threshold())
            && self.side.breaches(clear, first)
        {
            return refuse(Invalid::RuleClearBeyond);
        }
        if !(1..=Self::MAX_WINDOW_MINUTES).contains(&self.window_minutes) {
            return refuse(Invalid::RuleWindow { max: Self::MAX_WINDOW_MINUTES });
        }
        if self.for_minutes > Self::MAX_WINDOW_MINUTES {
            return refuse(Invalid::RuleFor { max: Self::MAX_WINDOW_MINUTES });
        }
        Ok(())
    }

    /// The threshold met first.
    pub fn first_threshold(&self) -> Option<f64> {
        self.warn.or(self.critical)
    }

    fn severity(&self, value: f64) -> Option<Severity> {
        let beyond = |threshold: Option<f64>| threshold.is_some_and(|t| self.side.breaches(value, t));
        if beyond(self.critical) {
            Some(Severity::Critical)
        } else if beyond(self.warn) {
            Some(Severity::Warn)
        } else {
            None
        }
    }

    /// Whether a value is back on the good side, past the clear level where one is set.
    fn is_clear(&self, value: f64) -> bool {
        let level = self.clear.or(self.first_threshold());
        level.is_none_or(|level| !self.side.breaches(value, level))
    }
}

/// A stored rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rule {
    pub id: String,
    /// Counts up with each change; a change names the version it saw.
    pub version: i64,
    #[serde(flatten)]
    pub spec: RuleSpec,
    pub updated_at: DateTime<Utc>,
    pub updated_by: String,
}

/// What a rule's metric says now.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Reading {
    /// Not enough requests, or no sample: says nothing, neither good nor bad.
    Silent,
    Value {
        value: f64,
        requests: u64,
    },
}

impl Reading {
    /// The reading of a rate over a window's totals.
    pub fn of_totals(spec: &RuleSpec, totals: Totals) -> Self {
        match spec.metric.of_totals(totals) {
            Some(value) if totals.requests() >= spec.min_requests.max(1) => {
                Reading::Value { value, requests: totals.requests() }
            }
            _ => Reading::Silent,
        }
    }
}

/// Where an alert stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    Pending,
    Firing,
    Resolved,
}

impl AlertState {
    pub fn as_str(self) -> &'static str {
        match self {
            AlertState::Pending => "pending",
            AlertState::Firing => "firing",
            AlertState::Resolved => "resolved",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [AlertState::Pending, AlertState::Firing, AlertState::Resolved]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// One episode of one rule, from its first breach to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alert {
    pub id: String,
    pub rule_id: String,
    /// The rule as it stood, so that history stays readable after edits.
    pub rule: RuleSpec,
    pub state: AlertState,
    pub severity: Severity,
    /// The latest reading.
    pub value: f64,
    pub requests: u64,
    pub pending_since: DateTime<Utc>,
    pub fired_at: Option<DateTime<Utc>>,
    pub resolved_at: Option<DateTime<Utc>>,
    pub acknowledged_by: Option<String>,
    pub acknowledged_at: Option<DateTime<Utc>>,
    pub silenced_until: Option<DateTime<Utc>>,
}

/// What one evaluation changes about a rule's open episode.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing to store.
    Keep,
    /// Store this episode (new or changed).
    Put(Box<Alert>),
    /// The pending breach went away before it fired: forget the episode.
    Drop { id: String },
}

/// Advances a rule by one reading. `open` is the rule's pending or firing episode, if any.
pub fn advance(
    rule: &Rule,
    open: Option<&Alert>,
    reading: Reading,
    now: DateTime<Utc>,
    new_id: &str,
) -> Step {
    let Reading::Value { value, requests } = reading else {
        return Step::Keep;
    };
    let spec = &rule.spec;
    match open {
        None => match spec.severity(value) {
            None => Step::Keep,
            Some(severity) => {
                let mut alert = Alert {
                    id: new_id.to_owned(),
                    rule_id: rule.id.clone(),
                    rule: spec.clone(),
                    state: AlertState::Pending,
                    severity,
                    value,
                    requests,
                    pending_since: now,
                    fired_at: None,
                    resolved_at: None,
                    acknowledged_by: None,
                    acknowledged_at: None,
                    silenced_until: None,
                };
                fire_when_due(&mut alert, spec, now);
                Step::Put(Box::new(alert))
            }
        },
        Some(open) => {
            let mut alert = open.clone();
            (alert.value, alert.requests) = (value, requests);
            match (open.state, spec.severity(value)) {
                (AlertState::Pending, None) => return Step::Drop { id: alert.id },
                (_, Some(severity)) => {
                    alert.severity = severity;
                    fire_when_due(&mut alert, spec, now);
                }
                (_, None) if spec.is_clear(value) => {
                    alert.state = AlertState::Resolved;
                    alert.resolved_at = Some(now);
                }
                // Between clear and threshold: hysteresis keeps it firing.
                (_, None) => {}
            }
            if alert == *open { Step::Keep } else { Step::Put(Box::new(alert)) }
        }
    }
}

fn fire_when_due(alert: &mut Alert, spec: &RuleSpec, now: DateTime<Utc>) {
    let due = alert.pending_since + Duration::minutes(spec.for_minutes.into());
    if alert.state == AlertState::Pending && now >= due {
        alert.state = AlertState::Firing;
        alert.fired_at = Some(now);
    }
}

/// One minute of history for a preview: the reading a live evaluation would have taken then.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PastReading {
    pub at: DateTime<Utc>,
    pub reading: Reading,
}

/// What a rule would have done over past readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    pub would_have_fired: u32,
    /// When each episode would have fired.
    pub fired_at: Vec<DateTime<Utc>>,
    /// The metric over time, for the chart; `None` = nothing to say at that minute.
    pub points: Vec<(DateTime<Utc>, Option<f64>)>,
}

/// Runs a rule over the past with the same state machine that evaluates it live.
pub fn preview(rule: &Rule, past: &[PastReading]) -> Preview {
    let mut open: Option<Alert> = None;
    let mut fired_at = Vec::new();
    for PastReading { at, reading } in past {
        match advance(rule, open.as_ref(), *reading, *at, "preview") {
            Step::Keep => {}
            Step::Drop { .. } => open = None,
            Step::Put(alert) => {
                if alert.fired_at == Some(*at) {
                    fired_at.push(*at);
                }
                open = (alert.state != AlertState::Resolved).then_some(*alert);
            }
        }
    }
    let points = past
        .iter()
        .map(|past| match past.reading {
            Reading::Silent => (past.at, None),
            Reading::Value { value, .. } => (past.at, Some(value)),
        })
        .collect();
    Preview { would_have_fired: fired_at.len() as u32, fired_at, points }
}

/// What the rules of a brand-new store are called; pages show these names in the reader's language.
pub mod first_rules {
    pub const STUCK: &str = "Stuck records";
    pub const OLDEST: &str = "Age of the oldest stuck record";
    pub const ANOMALY: &str = "Requests that met an abnormal record";
    pub const CALLBACKS: &str = "Payment callbacks answered as duplicates";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The article's rule: callbacks repeat at about 5 %; 30 % means a storm.
    fn rule(for_minutes: u32, min_requests: u64, clear: Option<f64>) -> Rule {
        Rule {
            id: "r".into(),
            version: 1,
            spec: RuleSpec {
                name: "storm".into(),
                metric: Metric::HitRate,
                source: None,
                biz_type: Some("PAYMENT_CALLBACK".into()),
                side: Side::Above,
                warn: None,
                critical: Some(0.3),
                clear,
                window_minutes: 5,
                for_minutes,
                min_requests,
                enabled: true,
            },
            updated_at: DateTime::UNIX_EPOCH,
            updated_by: "test".into(),
        }
    }

    fn minute(n: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::minutes(n)
    }

    fn read(rule: &Rule, hit: u64, requests: u64) -> Reading {
        Reading::of_totals(&rule.spec, Totals { executed: requests - hit, hit, anomaly: 0 })
    }

    fn fired(rule: &Rule, readings: &[(u64, u64)]) -> u32 {
        let past: Vec<PastReading> = readings
            .iter()
            .enumerate()
            .map(|(n, (hit, requests))| PastReading {
                at: minute(n as i64),
                reading: read(rule, *hit, *requests),
            })
            .collect();
        preview(rule, &past).would_have_fired
    }

    #[test]
    fn c75_few_requests_never_alert_and_many_alert_once() {
        let rule = rule(0, 50, None);
        assert_eq!(read(&rule, 0, 0), Reading::Silent);
        assert_eq!(read(&rule, 1, 1), Reading::Silent);
        assert_eq!(read(&rule, 6, 20), Reading::Silent);
        assert_eq!(
            fired(&rule, &[(0, 0), (1, 1), (6, 20), (50, 1000), (310, 1000), (320, 1000), (50, 1000)]),
            1
        );
    }

    #[test]
    fn a_breach_shorter_than_for_does_not_fire() {
        let rule = rule(5, 50, None);
        assert_eq!(fired(&rule, &[(400, 1000), (400, 1000), (50, 1000)]), 0);
        assert_eq!(fired(&rule, &[(400, 1000); 6]), 1);
    }

    #[test]
    fn between_clear_and_threshold_it_keeps_firing() {
        let rule = rule(0, 50, Some(0.1));
        assert_eq!(fired(&rule, &[(400, 1000), (200, 1000), (400, 1000), (50, 1000), (400, 1000)]), 2);
    }

    #[test]
    fn silence_neither_fires_nor_resolves() {
        let rule = rule(0, 50, None);
        let Step::Put(open) = advance(&rule, None, read(&rule, 400, 1000), minute(0), "a") else { panic!() };
        assert_eq!(advance(&rule, Some(&open), Reading::Silent, minute(1), "b"), Step::Keep);
    }

    proptest! {
        /// An episode resolves at most once, and nothing fires that was not first breached.
        #[test]
        fn fires_at_most_once_per_breach(hits in prop::collection::vec(0..=1000u64, 0..60), for_minutes in 0..4u32) {
            let rule = rule(for_minutes, 50, None);
            let readings: Vec<(u64, u64)> = hits.iter().map(|hit| (*hit, 1000)).collect();
            let breaches = hits.windows(2).filter(|w| w[0] <= 300 && w[1] > 300).count()
                + usize::from(hits.first().is_some_and(|hit| *hit > 300));
            prop_assert!(fired(&rule, &readings) as usize <= breaches);
        }
    }
}
