//! The shop's customers and their payment provider: double clicks, retries, redelivered messages, and now and then a fault.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use domain::console::DemoControl;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::header::CONTENT_TYPE;

use super::history::requests_per_minute;
use super::kind::Kind;
use super::sale::{Ask, Sale};
use super::shop::{FAULT_HEADER, Fault};
use super::tables::Databases;

/// Requests that come of one sale, on average.
const REQUESTS_PER_SALE: f64 = 2.9;
/// Most sales under way at once: when the shop is slow, customers stay away.
const MAX_JOURNEYS: usize = 400;

/// A provider sends again after these pauses: 15 s, 15 s, 30 s, 3 min, 10 min, ten times faster.
const REDELIVERIES: [Duration; 5] = [
    Duration::from_millis(1_500),
    Duration::from_millis(1_500),
    Duration::from_secs(3),
    Duration::from_secs(18),
    Duration::from_secs(60),
];

const PAYS: f64 = 0.8;
const PROVIDER_CALLS: f64 = 0.93;
const REFUNDS: f64 = 0.12;
const TAKES_COUPON: f64 = 0.16;
const DOUBLE_CLICK: f64 = 0.025;
const ANSWER_LOST: f64 = 0.025;
const ACKNOWLEDGEMENT_LOST: f64 = 0.06;
const KEY_REUSED: f64 = 0.002;

/// About one sale in so many meets a fault: one every few minutes.
const FAULT: f64 = 0.01;
/// This sale meets one in any case, so that a newcomer need not wait.
const FIRST_FAULT: u64 = 4;
/// With so many records open nothing more breaks: a demo left alone must not drown.
const MOST_OPEN: i64 = 60;
/// A customer whose request broke asks again after the record counts as stuck.
const ASKS_AGAIN: Duration = Duration::from_secs(75);

const FAULTS: [(Kind, Fault); 11] = [
    (Kind::Order, Fault::CrashAfter),
    (Kind::Order, Fault::CrashBefore),
    (Kind::Order, Fault::OtherAmount),
    (Kind::Payment, Fault::ProviderHangs),
    (Kind::Payment, Fault::CrashAfter),
    (Kind::Payment, Fault::CrashBefore),
    (Kind::Callback, Fault::CrashAfter),
    (Kind::Callback, Fault::CrashBefore),
    (Kind::Refund, Fault::Half),
    (Kind::Refund, Fault::CrashAfter),
    (Kind::Coupon, Fault::CrashAfter),
];

#[derive(Clone)]
pub(super) struct Traffic {
    client: reqwest::Client,
    shop: SocketAddr,
    storm: Arc<dyn DemoControl>,
    databases: Databases,
    clock: Arc<dyn Clock>,
}

impl Traffic {
    pub(super) fn new(
        shop: SocketAddr,
        storm: Arc<dyn DemoControl>,
        databases: &Databases,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Traffic> {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build()?;
        Ok(Traffic { client, shop, storm, databases: databases.clone(), clock })
    }

    /// Sends customers for ever; those under way are dropped with it.
    pub(super) async fn run(self, mut rng: StdRng) {
        let mut journeys = tokio::task::JoinSet::new();
        for number in 1u64.. {
            tokio::time::sleep(self.pause(&mut rng)).await;
            while journeys.try_join_next().is_some() {}
            if journeys.len() < MAX_JOURNEYS {
                let fault = self.fault(&mut rng, number).await;
                let journey = Journey { traffic: self.clone(), rng: StdRng::from_rng(&mut rng), fault };
                journeys.spawn(journey.go());
            }
        }
    }

    /// Customers come independently of each other.
    fn pause(&self, rng: &mut StdRng) -> Duration {
        let per_second = requests_per_minute(self.clock.now()) / REQUESTS_PER_SALE / 60.0;
        let share: f64 = rng.random_range(0.001..1.0);
        Duration::from_secs_f64(-share.ln() / per_second)
    }

    async fn fault(&self, rng: &mut StdRng, number: u64) -> Option<(Kind, Fault)> {
        let breaks = rng.random_bool(FAULT) || number == FIRST_FAULT;
        let chosen = FAULTS[rng.random_range(0..FAULTS.len())];
        let room = breaks && self.databases.open_records().await.is_ok_and(|open| open < MOST_OPEN);
        room.then_some(chosen)
    }

    /// Sends one request; `None` when there was no answer.
    async fn send(&self, ask: &Ask, fault: Option<Fault>) -> Option<u16> {
        let url = format!("http://{}{}", self.shop, ask.kind.path());
        let mut request =
            self.client.post(url).header(CONTENT_TYPE, "application/json").body(ask.body.clone());
        if ask.kind.key_template().is_none() {
            request = request.header("Idempotency-Key", &ask.key);
        }
        if let Some(fault) = fault {
            request = request.header(FAULT_HEADER, fault.as_str());
        }
        request.send().await.ok().map(|response| response.status().as_u16())
    }
}

/// One customer on the way from order to refund.
struct Journey {
    traffic: Traffic,
    rng: StdRng,
    fault: Option<(Kind, Fault)>,
}

impl Journey {
    async fn go(mut self) {
        let sale = Sale::new(&mut self.rng);
        if self.takes(Kind::Coupon, TAKES_COUPON) && !self.step(&sale, Kind::Coupon).await {
            return;
        }
        if !self.step(&sale, Kind::Order).await {
            return;
        }
        if !self.pays() || !self.step(&sale, Kind::Payment).await {
            return;
        }
        self.think().await;
        if !self.takes(Kind::Callback, PROVIDER_CALLS) && !self.must(Kind::Refund) {
            return;
        }
        self.deliver(&sale.ask(Kind::Callback)).await;
        if self.takes(Kind::Refund, REFUNDS) {
            self.think().await;
            self.step(&sale, Kind::Refund).await;
        }
    }

    /// A fault can only happen at a step that is taken.
    fn must(&self, kind: Kind) -> bool {
        self.fault.is_some_and(|(at, _)| at == kind)
    }

    fn takes(&mut self, kind: Kind, probability: f64) -> bool {
        self.rng.random_bool(probability) || self.must(kind)
    }

    fn pays(&mut self) -> bool {
        self.takes(Kind::Payment, PAYS) || self.must(Kind::Callback) || self.must(Kind::Refund)
    }

    fn fault_at(&self, kind: Kind) -> Option<Fault> {
        self.fault.filter(|(at, _)| *at == kind).map(|(_, fault)| fault)
    }

    async fn think(&mut self) {
        let ms = self.rng.random_range(400..3_000);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// One request of a customer, in the ways customers send requests; whether it was answered well.
    async fn step(&mut self, sale: &Sale, kind: Kind) -> bool {
        let ask = sale.ask(kind);
        if let Some(fault) = self.fault_at(kind) {
            self.traffic.send(&ask, Some(fault)).await;
            tokio::time::sleep(ASKS_AGAIN).await;
            self.traffic.send(&ask, None).await;
            return false;
        }
        let status = if self.rng.random_bool(DOUBLE_CLICK) {
            tokio::join!(self.traffic.send(&ask, None), self.traffic.send(&ask, None)).1
        } else if self.rng.random_bool(ANSWER_LOST) {
            self.traffic.send(&ask, None).await;
            self.think().await;
            self.traffic.send(&ask, None).await
        } else {
            self.traffic.send(&ask, None).await
        };
        if self.rng.random_bool(KEY_REUSED) {
            let other = Sale::new(&mut self.rng).ask(kind);
            self.traffic.send(&Ask { body: other.body, ..ask }, None).await;
        }
        status == Some(200)
    }

    /// A provider sends its message until it has heard an acknowledgement.
    async fn deliver(&mut self, ask: &Ask) {
        let mut heard = self.traffic.send(ask, self.fault_at(ask.kind)).await == Some(200);
        for pause in REDELIVERIES {
            let lost = self.traffic.storm.storm_is_on() || self.rng.random_bool(ACKNOWLEDGEMENT_LOST);
            if heard && !lost {
                return;
            }
            tokio::time::sleep(pause).await;
            heard = self.traffic.send(ask, None).await == Some(200);
        }
    }
}
