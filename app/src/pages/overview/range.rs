//! The time range of the page, from the URL.

use crate::context::Visit;
use chrono::{DateTime, Duration, DurationRound, Utc};
use domain::rates::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    Hour,
    Day,
    Week,
}

impl Range {
    pub const ALL: [Range; 3] = [Range::Hour, Range::Day, Range::Week];

    /// The range that the URL names; anything else is a day.
    pub fn read(visit: &Visit) -> Self {
        let word = visit.param("range");
        Self::ALL.into_iter().find(|range| Some(range.word()) == word).unwrap_or(Range::Day)
    }

    pub fn word(self) -> &'static str {
        match self {
            Range::Hour => "1h",
            Range::Day => "24h",
            Range::Week => "7d",
        }
    }

    pub fn label(self, visit: &Visit) -> &'static str {
        let t = &visit.texts().overview;
        match self {
            Range::Hour => t.last_hour,
            Range::Day => t.last_day,
            Range::Week => t.last_week,
        }
    }

    pub fn step_minutes(self) -> u32 {
        match self {
            Range::Hour => 1,
            Range::Day => 15,
            Range::Week => 60,
        }
    }

    fn length(self) -> Duration {
        match self {
            Range::Hour => Duration::hours(1),
            Range::Day => Duration::days(1),
            Range::Week => Duration::days(7),
        }
    }

    /// Up to the end of the running step, so that the newest minutes show.
    pub fn span(self, now: DateTime<Utc>) -> Span {
        let step = Duration::minutes(self.step_minutes().into());
        let to = now.duration_trunc(step).unwrap_or(now) + step;
        Span { from: to - self.length(), to, step_minutes: self.step_minutes() }
    }
}
