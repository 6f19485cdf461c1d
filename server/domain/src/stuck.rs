//! The stuck board: every stuck record now, grouped by what the business tables say.

use crate::evidence::Verdict;
use crate::record::RecordRow;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The four lanes of the work queue, and the one for records nobody has checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    EffectExists,
    NoEffect,
    LookCloser,
    CouldNotCheck,
    NotChecked,
}

impl Lane {
    pub const ALL: [Lane; 5] =
        [Lane::EffectExists, Lane::NoEffect, Lane::LookCloser, Lane::CouldNotCheck, Lane::NotChecked];

    pub fn of(verdict: Option<Verdict>) -> Self {
        match verdict {
            Some(Verdict::Found) => Lane::EffectExists,
            Some(Verdict::Absent) => Lane::NoEffect,
            Some(Verdict::Mismatch | Verdict::Partial) => Lane::LookCloser,
            Some(Verdict::Unavailable) => Lane::CouldNotCheck,
            None => Lane::NotChecked,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Lane::EffectExists => "effect_exists",
            Lane::NoEffect => "no_effect",
            Lane::LookCloser => "look_closer",
            Lane::CouldNotCheck => "could_not_check",
            Lane::NotChecked => "not_checked",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Lane::ALL.into_iter().find(|lane| lane.as_str() == text)
    }
}

/// Records of one biz_type with one verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub source: String,
    pub biz_type: Option<String>,
    pub verdict: Option<Verdict>,
    pub records: u64,
    pub oldest_seconds: u64,
}

/// Everything stuck at one moment, oldest first. A source that did not answer is named, not counted as zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Board {
    pub rows: Vec<RecordRow>,
    /// True when a source held more stuck records than a board reads; counts are then "at least".
    pub more: bool,
    /// (source, why it could not be read).
    pub down: Vec<(String, String)>,
    pub read_at: DateTime<Utc>,
}

impl Board {
    /// A board reads at most this many records of one source.
    pub const MAX_PER_SOURCE: usize = 5_000;

    pub fn oldest_seconds(&self) -> Option<i64> {
        self.rows.iter().filter_map(|row| row.age_seconds).max()
    }

    pub fn lane(&self, lane: Lane) -> impl Iterator<Item = &RecordRow> {
        self.rows.iter().filter(move |row| Lane::of(row.verdict) == lane)
    }

    /// By source, biz_type and verdict; most records first.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for row in &self.rows {
            let group = groups.entry((&row.source, &row.biz_type, row.verdict)).or_default();
            group.0 += 1;
            group.1 = group.1.max(row.age_seconds.unwrap_or(0).max(0).unsigned_abs());
        }
        let mut groups: Vec<Group> = groups
            .into_iter()
            .map(|((source, biz_type, verdict), (records, oldest_seconds))| Group {
                source: source.clone(),
                biz_type: biz_type.clone(),
                verdict,
                records,
                oldest_seconds,
            })
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.records));
        groups
    }
}
