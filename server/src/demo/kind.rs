//! What the shop does, one kind of request each.

use serde_json::Value;

/// The source of everything but coupons.
pub(super) const SHOP: &str = "shop";
/// The source of coupons: another team's database, with no way to check.
pub(super) const PROMO: &str = "promo";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Order,
    Payment,
    Callback,
    Refund,
    Coupon,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] =
        [Kind::Order, Kind::Payment, Kind::Callback, Kind::Refund, Kind::Coupon];

    pub(super) fn biz_type(self) -> &'static str {
        match self {
            Kind::Order => "ORDER",
            Kind::Payment => "PAYMENT",
            Kind::Callback => "PAYMENT_CALLBACK",
            Kind::Refund => "REFUND",
            Kind::Coupon => "COUPON",
        }
    }

    pub(super) fn source(self) -> &'static str {
        if self == Kind::Coupon { PROMO } else { SHOP }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Kind::Order => "/api/orders",
            Kind::Payment => "/api/payments",
            Kind::Callback => "/api/payment-callbacks",
            Kind::Refund => "/api/refunds",
            Kind::Coupon => "/api/coupons",
        }
    }

    /// Where the request says its business number.
    pub(super) fn biz_no_pointer(self) -> &'static str {
        match self {
            Kind::Order => "/orderNo",
            Kind::Payment | Kind::Callback => "/paymentNo",
            Kind::Refund => "/refundNo",
            Kind::Coupon => "/couponNo",
        }
    }

    /// Providers send no key: it is made of the payment number and what happened to it.
    pub(super) fn key_template(self) -> Option<&'static str> {
        (self == Kind::Callback).then_some("{/paymentNo}:{/event}")
    }

    /// The answer, with placeholders: the shop fills it from what it wrote, the console from what it found.
    pub(super) fn response_template(self) -> &'static str {
        match self {
            Kind::Order => {
                r#"{"code":0,"message":"ok","data":{"orderNo":"{order_no}","amount":{amount},"status":"{status}"}}"#
            }
            Kind::Payment => {
                r#"{"code":0,"message":"ok","data":{"paymentNo":"{payment_no}","orderNo":"{order_no}","amount":{amount},"status":"{status}"}}"#
            }
            Kind::Callback => r#"{"code":"SUCCESS","message":"OK"}"#,
            Kind::Refund => {
                r#"{"code":0,"message":"ok","data":{"refundNo":"{refund_no}","amount":{amount},"status":"DONE"}}"#
            }
            Kind::Coupon => {
                r#"{"code":0,"message":"ok","data":{"couponNo":"{biz_no}","campaign":"{/campaign}"}}"#
            }
        }
    }

    /// The shop's answer to `request`.
    pub(super) fn response(self, request: &Value) -> String {
        let status = if self == Kind::Order { "CREATED" } else { "SUCCEEDED" };
        let from_request = [
            ("{order_no}", "/orderNo"),
            ("{payment_no}", "/paymentNo"),
            ("{refund_no}", "/refundNo"),
            ("{amount}", "/amount"),
            ("{biz_no}", self.biz_no_pointer()),
            ("{/campaign}", "/campaign"),
        ];
        let filled = self.response_template().replace("{status}", status);
        from_request.into_iter().fold(filled, |text, (name, pointer)| {
            match domain::json::scalar_at(request, pointer) {
                Some(value) => text.replace(name, &escaped(&value)),
                None => text,
            }
        })
    }
}

/// The value as it stands between the quotes of a JSON string.
fn escaped(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
