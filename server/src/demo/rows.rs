//! Rows of the shop's tables: what each request leaves behind, exactly or not quite.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use db::{DbError, Tx, Value as Bound};
use domain::json::scalar_at;
use sea_query::{Expr, Query};
use serde_json::Value;

use super::clock_text;
use super::kind::Kind;
use super::sale::Ask;

/// Rows per statement, below SQLite's limit on parameters for the widest table.
const ROWS_PER_INSERT: usize = 200;

/// One row for one table.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub source: &'static str,
    table: &'static str,
    columns: &'static [&'static str],
    values: Vec<Bound>,
}

/// How the effect differs from what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twist {
    Exact,
    /// Another amount than the request says.
    OtherAmount,
    /// A refund without its account flow.
    Half,
    /// A payment handed to the provider, who never answered.
    Sent,
}

/// Inserts rows of one source, many at once; a number that is there already is a unique violation.
pub(super) async fn insert(tx: &mut Tx, rows: Vec<Row>) -> Result<(), DbError> {
    let mut tables: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in rows {
        tables.entry(row.table).or_default().push(row);
    }
    for (table, rows) in tables {
        for some in rows.chunks(ROWS_PER_INSERT) {
            let mut insert = Query::insert();
            insert.into_table(table).columns(some[0].columns.iter().copied());
            for row in some {
                insert.values_panic(row.values.iter().cloned().map(Expr::val));
            }
            tx.execute(&tx.query(&insert)).await?;
        }
    }
    Ok(())
}

/// What a request of this kind leaves in the business tables; `None` when it lacks something.
pub(super) fn effect(kind: Kind, request: &Value, at: DateTime<Utc>, twist: Twist) -> Option<Vec<Row>> {
    let part = |pointer: &str| scalar_at(request, pointer);
    let user = || part("/userId")?.parse::<i64>().ok();
    let asked = part("/amount")?;
    let amount = if twist == Twist::OtherAmount { other_amount(&asked)? } else { asked };
    let at = clock_text::text(at);
    Some(match kind {
        Kind::Order => vec![row(
            kind,
            "t_order",
            &["order_no", "user_id", "amount", "phone", "status", "created_at"],
            vec![
                part("/orderNo")?.into(),
                user()?.into(),
                amount.into(),
                part("/phone").into(),
                "CREATED".into(),
                at.into(),
            ],
        )],
        Kind::Payment => vec![row(
            kind,
            "t_payment",
            &["payment_no", "order_no", "user_id", "amount", "channel", "card_no", "status", "created_at"],
            vec![
                part("/paymentNo")?.into(),
                part("/orderNo")?.into(),
                user()?.into(),
                amount.into(),
                part("/channel").into(),
                part("/cardNo").into(),
                if twist == Twist::Sent { "SENT" } else { "SUCCEEDED" }.into(),
                at.into(),
            ],
        )],
        Kind::Callback => vec![flow(kind, part("/paymentNo")?, "IN", amount, at)],
        Kind::Refund => {
            let refund_no = part("/refundNo")?;
            let refund = row(
                kind,
                "t_refund",
                &["refund_no", "payment_no", "user_id", "amount", "reason", "status", "created_at"],
                vec![
                    refund_no.clone().into(),
                    part("/paymentNo")?.into(),
                    user()?.into(),
                    amount.clone().into(),
                    part("/reason").into(),
                    "DONE".into(),
                    at.clone().into(),
                ],
            );
            match twist {
                Twist::Half => vec![refund],
                _ => vec![refund, flow(kind, refund_no, "OUT", amount, at)],
            }
        }
        Kind::Coupon => vec![row(
            kind,
            "t_coupon",
            &["coupon_no", "user_id", "campaign", "amount", "status", "created_at"],
            vec![
                part("/couponNo")?.into(),
                user()?.into(),
                part("/campaign")?.into(),
                amount.into(),
                "ISSUED".into(),
                at.into(),
            ],
        )],
    })
}

fn row(kind: Kind, table: &'static str, columns: &'static [&'static str], values: Vec<Bound>) -> Row {
    Row { source: kind.source(), table, columns, values }
}

fn flow(kind: Kind, biz_no: String, direction: &str, amount: String, at: String) -> Row {
    row(
        kind,
        "t_account_flow",
        &["flow_no", "biz_no", "direction", "amount", "status", "created_at"],
        vec![
            format!("F{biz_no}").into(),
            biz_no.into(),
            direction.into(),
            amount.into(),
            "POSTED".into(),
            at.into(),
        ],
    )
}

/// Ten less, or ten more when that would be nothing: a discount taken twice.
fn other_amount(amount: &str) -> Option<String> {
    let cents: i64 = amount.replace('.', "").parse().ok()?;
    let other = if cents > 1_000 { cents - 1_000 } else { cents + 1_000 };
    Some(format!("{}.{:02}", other / 100, other % 100))
}

/// How a record ended, for rows that stand for requests of the past.
pub(super) enum Ended<'a> {
    /// Answered with this status and body after so long.
    Settled { status: u16, body: &'a str, after: chrono::TimeDelta },
    /// Never: the worker was last heard of in this phase.
    Stuck { phase: &'a str },
}

/// The record of a request that came in at `at`.
pub(super) fn record(ask: &Ask, at: DateTime<Utc>, ended: &Ended<'_>) -> Row {
    let lease_until = at + chrono::TimeDelta::seconds(30);
    let (status, updated, lease) = match ended {
        Ended::Settled { status: 200..400, after, .. } => (guard::STATUS_SUCCESS, at + *after, None),
        Ended::Settled { after, .. } => (guard::STATUS_FAILED, at + *after, None),
        Ended::Stuck { .. } => (guard::STATUS_PROCESSING, at, Some(clock_text::text(lease_until))),
    };
    let (code, headers, body, phase) = match ended {
        Ended::Settled { status, body, .. } => {
            (Some(i64::from(*status)), Some(r#"[["content-type","application/json"]]"#), Some(*body), "done")
        }
        Ended::Stuck { phase } => (None, None, None, *phase),
    };
    let values = vec![
        ask.key.clone().into(),
        ask.kind.biz_type().into(),
        ask.biz_no.clone().into(),
        status.into(),
        ask.body.clone().into(),
        body.map(str::to_owned).into(),
        clock_text::text(at).into(),
        clock_text::text(updated).into(),
        guard::fingerprint("POST", ask.kind.path(), ask.body.as_bytes()).into(),
        code.into(),
        headers.map(str::to_owned).into(),
        1i64.into(),
        phase.into(),
        lease.into(),
        "shop-earlier".into(),
    ];
    row(ask.kind, guard::TABLE, RECORD, values)
}

const RECORD: &[&str] = &[
    "idempotent_id",
    "biz_type",
    "biz_no",
    "status",
    "request_body",
    "response_body",
    "create_time",
    "update_time",
    "fingerprint",
    "response_status",
    "response_headers",
    "fence",
    "phase",
    "lease_until",
    "owner",
];
