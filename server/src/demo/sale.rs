//! One customer's purchase, and the requests that come of it.

use rand::RngExt;
use rand::rngs::StdRng;

use super::kind::Kind;

/// A request ready to be sent, and the record it will have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub kind: Kind,
    /// The record's key; sent as a header unless the shop makes it from the body.
    pub key: String,
    pub biz_no: String,
    pub body: String,
}

/// Everything a purchase may need, made up at once so that its requests belong together.
#[derive(Debug, Clone)]
pub(super) struct Sale {
    order_no: String,
    payment_no: String,
    refund_no: String,
    coupon_no: String,
    notify_no: u64,
    /// 19 digits: more than a browser's number can hold.
    user_id: u64,
    cents: u32,
    phone: String,
    card: String,
    channel: &'static str,
    sku: u32,
    quantity: u32,
    keys: [String; 4],
}

impl Sale {
    pub(super) fn new(rng: &mut StdRng) -> Sale {
        let cents = rng.random_range(900..60_000) / 50 * 50;
        let channels = ["alipay", "wechat", "unionpay"];
        Sale {
            order_no: number(rng, 20),
            payment_no: number(rng, 31),
            refund_no: number(rng, 42),
            coupon_no: number(rng, 53),
            notify_no: rng.random_range(1_000_000_000..10_000_000_000),
            user_id: rng.random_range(1_000_000_000_000_000_000..9_000_000_000_000_000_000),
            cents,
            phone: format!("138{:08}", rng.random_range(0..100_000_000)),
            card: card(rng),
            channel: channels[rng.random_range(0..channels.len())],
            sku: rng.random_range(1_000..1_100),
            quantity: rng.random_range(1..4),
            keys: std::array::from_fn(|_| uuid(rng)),
        }
    }

    pub(super) fn ask(&self, kind: Kind) -> Ask {
        let (key, biz_no, body) = match kind {
            Kind::Order => (self.keys[0].clone(), &self.order_no, self.order()),
            Kind::Payment => (self.keys[1].clone(), &self.payment_no, self.payment()),
            Kind::Callback => (format!("{}:PAID", self.payment_no), &self.payment_no, self.callback()),
            Kind::Refund => (self.keys[2].clone(), &self.refund_no, self.refund()),
            Kind::Coupon => (self.keys[3].clone(), &self.coupon_no, self.coupon()),
        };
        Ask { kind, key, biz_no: biz_no.clone(), body }
    }

    fn amount(&self) -> String {
        format!("{}.{:02}", self.cents / 100, self.cents % 100)
    }

    fn order(&self) -> String {
        format!(
            r#"{{"orderNo":"{}","userId":{},"amount":{},"currency":"CNY","phone":"{}","items":[{{"sku":"SKU-{}","quantity":{}}}]}}"#,
            self.order_no,
            self.user_id,
            self.amount(),
            self.phone,
            self.sku,
            self.quantity
        )
    }

    fn payment(&self) -> String {
        format!(
            r#"{{"paymentNo":"{}","orderNo":"{}","userId":{},"amount":{},"currency":"CNY","channel":"{}","cardNo":"{}","phone":"{}"}}"#,
            self.payment_no,
            self.order_no,
            self.user_id,
            self.amount(),
            self.channel,
            self.card,
            self.phone
        )
    }

    fn callback(&self) -> String {
        format!(
            r#"{{"notifyId":"{}","paymentNo":"{}","orderNo":"{}","event":"PAID","amount":{},"channel":"{}"}}"#,
            self.notify_no,
            self.payment_no,
            self.order_no,
            self.amount(),
            self.channel
        )
    }

    fn refund(&self) -> String {
        format!(
            r#"{{"refundNo":"{}","paymentNo":"{}","userId":{},"amount":{},"reason":"changed my mind","cardNo":"{}"}}"#,
            self.refund_no,
            self.payment_no,
            self.user_id,
            self.amount(),
            self.card
        )
    }

    fn coupon(&self) -> String {
        format!(
            r#"{{"couponNo":"{}","userId":{},"campaign":"WINTER-{}","amount":10.00,"phone":"{}"}}"#,
            self.coupon_no,
            self.user_id,
            self.sku % 10,
            self.phone
        )
    }
}

/// 20 digits beginning with `series`.
fn number(rng: &mut StdRng, series: u32) -> String {
    format!("{series}{:018}", rng.random_range(0..1_000_000_000_000_000_000u64))
}

fn uuid(rng: &mut StdRng) -> String {
    let bits: u128 = rng.random();
    let hex = format!("{bits:032x}");
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// A card number that passes the Luhn check.
fn card(rng: &mut StdRng) -> String {
    let front = format!("622202{:09}", rng.random_range(0..1_000_000_000u32));
    let sum: u32 = front
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (1, _) => digit,
            (_, doubled) if doubled > 9 => doubled - 9,
            (_, doubled) => doubled,
        })
        .sum();
    format!("{front}{}", (10 - sum % 10) % 10)
}
