//! The demo's configuration file: an example of every key that a native table needs.

use std::net::SocketAddr;

use super::kind::Kind;

/// `amends.toml` for a console at `listen` and a shop at `shop`.
pub(super) fn render(listen: SocketAddr, shop: SocketAddr) -> String {
    let sources = [
        (SHOP_SOURCE, [Kind::Order, Kind::Payment, Kind::Callback, Kind::Refund].as_slice()),
        (PROMO_SOURCE, [Kind::Coupon].as_slice()),
    ];
    let mut text = HEAD.replace("LISTEN", &listen.to_string());
    for (source, kinds) in sources {
        text.push_str(source);
        text.push_str(COLUMNS);
        for kind in kinds {
            text.push_str(&biz(*kind, shop));
        }
    }
    text
}

fn biz(kind: Kind, shop: SocketAddr) -> String {
    let key = if kind.key_template().is_some() { "" } else { "headers = { Idempotency-Key = \"{key}\" }\n" };
    format!(
        "\n[[source.biz]]\ntype = \"{}\"\non_unknown = \"hold\"\n{}\n[source.biz.response]\ntemplate = '{}'\n\n[source.biz.replay]\nmethod = \"POST\"\nurl = \"http://{shop}{}\"\n{key}prepare = \"mark_timed_out\"\ntimeout = \"10s\"\nrate = \"5/s\"\n",
        kind.biz_type(),
        reverse_check(kind),
        kind.response_template(),
        kind.path(),
    )
}

fn reverse_check(kind: Kind) -> &'static str {
    match kind {
        Kind::Order => ORDER_CHECK,
        Kind::Payment => PAYMENT_CHECK,
        Kind::Callback => CALLBACK_CHECK,
        Kind::Refund => REFUND_CHECKS,
        Kind::Coupon => NO_CHECK,
    }
}

const HEAD: &str = r#"# Written by `amends demo` at every start; copy it before you change it.
listen = "LISTEN"
store = "sqlite://amends.db"
display_zone = "Asia/Shanghai"
"#;

const SHOP_SOURCE: &str = r#"
[[source]]
name = "shop"
url = "sqlite://shop.db"
table = "idempotent_record"
zone = "UTC"
# So short only in a demo: here verdicts shall occur within minutes.
stuck_after = "60s"
"#;

const PROMO_SOURCE: &str = r#"
[[source]]
name = "promo"
url = "sqlite://promo.db"
table = "idempotent_record"
zone = "UTC"
# So short only in a demo: here verdicts shall occur within minutes.
stuck_after = "60s"
"#;

const COLUMNS: &str = r#"
[source.columns]
lease_until = "lease_until"
version = "fence"
attempts = "attempts"
owner = "owner"
phase = "phase"
response_status = "response_status"
"#;

const ORDER_CHECK: &str = r#"
[source.biz.reverse_check]
name = "order"
sql = "SELECT order_no, user_id, amount, status, deleted, created_at FROM t_order WHERE order_no = :biz_no"
found_when = { status = ["CREATED", "PAID"] }
deleted_when = { deleted = [1] }
compare = { amount = "/amount", user_id = "/userId" }
"#;

const PAYMENT_CHECK: &str = r#"
[source.biz.reverse_check]
name = "payment"
sql = "SELECT payment_no, order_no, user_id, amount, channel, card_no, status, created_at FROM t_payment WHERE payment_no = :biz_no"
found_when = { status = ["SUCCEEDED"] }
compare = { amount = "/amount", user_id = "/userId" }
"#;

const CALLBACK_CHECK: &str = r#"
[source.biz.reverse_check]
name = "account flow"
sql = "SELECT flow_no, biz_no, direction, amount, status, created_at FROM t_account_flow WHERE biz_no = :biz_no AND direction = 'IN'"
found_when = { status = ["POSTED"] }
compare = { amount = "/amount" }
"#;

const REFUND_CHECKS: &str = r#"
# A refund is two effects; one without the other is partial.
[[source.biz.reverse_check]]
name = "refund"
sql = "SELECT refund_no, payment_no, user_id, amount, status, created_at FROM t_refund WHERE refund_no = :biz_no"
found_when = { status = ["DONE"] }
compare = { amount = "/amount", user_id = "/userId" }

[[source.biz.reverse_check]]
name = "account flow"
sql = "SELECT flow_no, biz_no, direction, amount, status, created_at FROM t_account_flow WHERE biz_no = :biz_no AND direction = 'OUT'"
found_when = { status = ["POSTED"] }
compare = { amount = "/amount" }
"#;

const NO_CHECK: &str = "\n# No reverse check: nothing tells whether a coupon was issued.\n";
