//! The shop before the demo began: seven days of counters, and the last hours' settled records.

use std::collections::VecDeque;

use chrono::{DateTime, DurationRound, TimeDelta, Timelike, Utc};
use domain::rates::{Count, Happening, StuckSample};
use rand::RngExt;
use rand::rngs::StdRng;

use super::kind::Kind;
use super::rows::{self, Ended, Row, Twist};
use super::sale::Sale;

const DAYS: i64 = 7;
/// A little more than a week, so that last week's same quarter of an hour is there too.
const LEAD_MINUTES: i64 = 20;
/// The settled records go back so far.
const RECORD_MINUTES: i64 = 120;
/// A retry storm of payment callbacks two days ago.
const STORM: (i64, i64) = (2 * 24 * 60 + 35, 2 * 24 * 60);
/// Counters that were never reported, four days ago.
const GAP: (i64, i64) = (4 * 24 * 60 + 150, 4 * 24 * 60 + 125);
/// Stuck samples are a minute apart in the last day, five before.
const FINE_SAMPLES: i64 = 24 * 60;

/// Requests a minute in the quietest and in the busiest hour.
const QUIET: f64 = 40.0;
const BUSY: f64 = 150.0;

/// Each kind's share of all requests, and of these the duplicates.
const MIX: [(Kind, f64, f64); 5] = [
    (Kind::Order, 0.35, 0.045),
    (Kind::Payment, 0.28, 0.05),
    (Kind::Callback, 0.26, 0.06),
    (Kind::Refund, 0.05, 0.03),
    (Kind::Coupon, 0.06, 0.04),
];

/// How often something out of the ordinary happened, by kind of anomaly.
const ANOMALIES: [(Happening, f64); 3] =
    [(Happening::InDoubt, 0.0035), (Happening::StaleProcessing, 0.002), (Happening::PayloadMismatch, 0.001)];

/// How often the shop refused an order.
const REFUSED: f64 = 0.015;

/// The days before the first start.
pub(super) struct Days {
    pub counts: Vec<Count>,
    pub samples: Vec<StuckSample>,
}

/// Requests a minute at this time of day in the shop's own country: a morning and an evening wave.
pub(super) fn requests_per_minute(at: DateTime<Utc>) -> f64 {
    let hour = f64::from((at.hour() + 8) % 24) + f64::from(at.minute()) / 60.0;
    let wave = |peak: f64, width: f64| (-((hour - peak) / width).powi(2)).exp();
    let level = wave(11.0, 3.0) * 0.75 + wave(20.0, 2.5) + wave(15.5, 2.0) * 0.35;
    QUIET + (BUSY - QUIET) * level.min(1.0)
}

/// Counters and stuck samples of the days before `now`.
pub(super) fn days(rng: &mut StdRng, now: DateTime<Utc>) -> Days {
    let end = minute(now);
    let mut days = Days { counts: Vec::new(), samples: Vec::new() };
    let mut stuck = [2u64, 1, 1, 1, 1];
    for ago in (1..=DAYS * 24 * 60 + LEAD_MINUTES).rev() {
        let at = end - TimeDelta::minutes(ago);
        if !within(ago, GAP) {
            for (kind, share, hits) in MIX {
                count(rng, &mut days.counts, kind, at, share, stormy(kind, ago, hits));
            }
        }
        if ago <= FINE_SAMPLES || ago % 5 == 0 {
            sample(rng, &mut days.samples, &mut stuck, at);
        }
    }
    days
}

fn minute(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

fn within(ago: i64, (from, to): (i64, i64)) -> bool {
    (to..=from).contains(&ago)
}

/// Duplicates for each run: few, or in the storm several.
fn stormy(kind: Kind, ago: i64, hits: f64) -> f64 {
    if kind == Kind::Callback && within(ago, STORM) { 2.2 } else { hits }
}

fn count(rng: &mut StdRng, counts: &mut Vec<Count>, kind: Kind, at: DateTime<Utc>, share: f64, hits: f64) {
    let asked = requests_per_minute(at) * share * rng.random_range(0.8..1.2);
    let mut add = |outcome, count: u32| {
        if count > 0 {
            let (source, biz_type) = (kind.source().to_owned(), kind.biz_type().to_owned());
            counts.push(Count { source, biz_type, at, outcome, count });
        }
    };
    add(Happening::Executed, whole(rng, asked));
    add(Happening::Hit, whole(rng, asked * hits));
    for (anomaly, part) in ANOMALIES {
        add(anomaly, whole(rng, asked * part));
    }
}

/// A whole number that is `expected` on average.
fn whole(rng: &mut StdRng, expected: f64) -> u32 {
    (expected + rng.random_range(0.0..1.0)) as u32
}

/// The number stuck wanders: workers die, people settle.
fn sample(rng: &mut StdRng, samples: &mut Vec<StuckSample>, stuck: &mut [u64; 5], at: DateTime<Utc>) {
    for (kind, stuck) in Kind::ALL.into_iter().zip(stuck) {
        if rng.random_bool(0.02) {
            *stuck += 1;
        } else if rng.random_bool(0.004 * *stuck as f64) {
            *stuck -= 1;
        }
        let oldest_seconds = if *stuck == 0 { 0 } else { *stuck * rng.random_range(180..360) };
        let (source, biz_type) = (kind.source().to_owned(), kind.biz_type().to_owned());
        samples.push(StuckSample { source, biz_type, at, stuck: *stuck, oldest_seconds });
    }
}

/// Sales on their way from order to refund.
#[derive(Default)]
struct Street {
    ordered: VecDeque<Sale>,
    paid: VecDeque<Sale>,
    received: VecDeque<Sale>,
}

impl Street {
    /// The sale that has come so far that it makes a request of this kind.
    fn next(&mut self, rng: &mut StdRng, kind: Kind) -> Sale {
        let waiting = match kind {
            Kind::Payment => self.ordered.pop_front(),
            Kind::Callback => self.paid.pop_front(),
            Kind::Refund => self.received.pop_front(),
            Kind::Order | Kind::Coupon => None,
        };
        let sale = waiting.unwrap_or_else(|| Sale::new(rng));
        match kind {
            Kind::Order => self.ordered.push_back(sale.clone()),
            Kind::Payment => self.paid.push_back(sale.clone()),
            Kind::Callback => self.received.push_back(sale.clone()),
            Kind::Refund | Kind::Coupon => {}
        }
        sale
    }
}

/// Settled records of the last hours, with their business rows, minute by minute.
pub(super) fn settled(rng: &mut StdRng, now: DateTime<Utc>) -> impl Iterator<Item = Vec<Row>> {
    let mut street = Street::default();
    (1..=RECORD_MINUTES).rev().map(move |ago| {
        let start = now - TimeDelta::minutes(ago);
        let mut rows = Vec::new();
        for (kind, share, _) in MIX {
            for _ in 0..whole(rng, requests_per_minute(start) * share) {
                let at = start + TimeDelta::milliseconds(rng.random_range(0..59_000));
                let sale = street.next(rng, kind);
                rows.extend(one(rng, &sale, kind, at));
            }
        }
        rows
    })
}

fn one(rng: &mut StdRng, sale: &Sale, kind: Kind, at: DateTime<Utc>) -> Vec<Row> {
    let ask = sale.ask(kind);
    let after = TimeDelta::milliseconds(rng.random_range(12..800));
    if kind == Kind::Order && rng.random_bool(REFUSED) {
        let body = r#"{"code":4090,"message":"out of stock"}"#;
        return vec![rows::record(&ask, at, &Ended::Settled { status: 409, body, after })];
    }
    let request = domain::json::parse(&ask.body).expect("a sale writes JSON");
    let body = kind.response(&request);
    let mut rows = vec![rows::record(&ask, at, &Ended::Settled { status: 200, body: &body, after })];
    rows.extend(rows::effect(kind, &request, at + after, Twist::Exact).unwrap_or_default());
    rows
}
