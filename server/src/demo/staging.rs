//! Records that were stuck before the demo began, some for every verdict.

use chrono::{DateTime, TimeDelta, Utc};
use domain::evidence::Verdict;
use rand::RngExt;
use rand::rngs::StdRng;

use super::kind::Kind;
use super::rows::{self, Ended, Row, Twist};
use super::sale::Sale;

/// The believable mix.
const MIX: [(Verdict, u32); 5] = [
    (Verdict::Found, 11),
    (Verdict::Absent, 8),
    (Verdict::Mismatch, 4),
    (Verdict::Partial, 3),
    (Verdict::Unavailable, 5),
];

/// How often a record of the mix has been waiting for hours, not minutes.
const HOURS_OLD: f64 = 0.15;

/// Stuck records with the business rows that make their verdicts: `each` of every verdict, or the mix.
pub(super) fn stuck(rng: &mut StdRng, now: DateTime<Utc>, each: Option<u32>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (verdict, some) in MIX {
        for place in 0..each.unwrap_or(some) {
            let old = each.is_none() && rng.random_bool(HOURS_OLD);
            let seconds = if old { rng.random_range(7_300..16_000) } else { rng.random_range(180..3_300) };
            rows.extend(one(rng, verdict, place as usize, now - TimeDelta::seconds(seconds)));
        }
    }
    rows
}

/// How a record of this verdict came about, in turn: its kind, and the effect if there was one.
fn story(verdict: Verdict, place: usize) -> (Kind, Option<Twist>, &'static str) {
    let checked = [Kind::Order, Kind::Payment, Kind::Callback, Kind::Refund];
    match verdict {
        Verdict::Found => (checked[place % 4], Some(Twist::Exact), "claimed"),
        Verdict::Absent => (checked[place % 4], None, "claimed"),
        Verdict::Mismatch if place.is_multiple_of(2) => (Kind::Order, Some(Twist::OtherAmount), "claimed"),
        Verdict::Mismatch => (Kind::Payment, Some(Twist::Sent), "sent"),
        Verdict::Partial => (Kind::Refund, Some(Twist::Half), "claimed"),
        Verdict::Unavailable => (Kind::Coupon, place.is_multiple_of(2).then_some(Twist::Exact), "claimed"),
    }
}

fn one(rng: &mut StdRng, verdict: Verdict, place: usize, at: DateTime<Utc>) -> Vec<Row> {
    let (kind, twist, phase) = story(verdict, place);
    let ask = Sale::new(rng).ask(kind);
    let mut rows = vec![rows::record(&ask, at, &Ended::Stuck { phase })];
    let request = domain::json::parse(&ask.body).expect("a sale writes JSON");
    rows.extend(twist.and_then(|twist| rows::effect(kind, &request, at, twist)).unwrap_or_default());
    rows
}
