use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use db::testkit::each_database;
use db::{Db, Query, TimeKind};
use futures::future::join_all;
use guard::callback::{Ack, Callback, EventKind, EventTime, JsonBody, Notification, Profile, WechatBody};
use guard::{Claim, LockRules, Locks};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use tokio::sync::Semaphore;

use crate::kit::{self, Answer, prepare, request, send, until};

const ACK_XML: &str = "<xml><return_code><![CDATA[SUCCESS]]></return_code></xml>";
const KEY: [u8; 32] = [7; 32];

/// What the handler of a shop does, set by the test.
#[derive(Clone)]
struct Shop {
    db: Db,
    status: Arc<AtomicU16>,
    entered: Arc<Semaphore>,
    gate: Arc<Semaphore>,
    inside: Arc<AtomicI64>,
    overlapped: Arc<AtomicBool>,
}

impl Shop {
    fn new(db: &Db) -> Shop {
        Shop {
            db: db.clone(),
            status: Arc::new(AtomicU16::new(200)),
            entered: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            inside: Arc::default(),
            overlapped: Arc::default(),
        }
    }

    /// One process that takes `callback` at `/notify` and, for pollers, JSON of the same at `/poll`.
    async fn process(&self, instance: &str, callback: &Callback) -> Router {
        let guard = kit::guard(&self.db, instance).await;
        let layer = guard.callback(callback.clone()).unwrap();
        let poll = guard.callback(callback.clone().opened_by(JsonBody(Box::new(|_, _| true)))).unwrap();
        Router::new()
            .route("/notify", post(complete).layer(layer))
            .route("/poll", post(complete).layer(poll))
            .with_state(self.clone())
    }
}

async fn complete(
    State(shop): State<Shop>,
    Extension(claim): Extension<Claim>,
    Extension(Notification(said)): Extension<Notification>,
) -> Response {
    assert!(said.is_object());
    shop.entered.add_permits(1);
    shop.overlapped.fetch_or(shop.inside.fetch_add(1, Ordering::SeqCst) > 0, Ordering::SeqCst);
    shop.gate.acquire().await.unwrap().forget();
    let status = StatusCode::from_u16(shop.status.load(Ordering::SeqCst)).unwrap();
    if status.is_success() {
        claim.tx().await.unwrap().execute(&kit::effect(claim.key())).await.unwrap();
    }
    shop.inside.fetch_sub(1, Ordering::SeqCst);
    (status, "whatever the handler says").into_response()
}

fn alipay() -> Callback {
    Callback::alipay("PAY", Box::new(|parts, _| parts.headers.contains_key("signed")))
}

/// A payment whose acknowledgement is XML.
fn xml() -> Callback {
    let (ack, nack) = (Ack::new("text/xml", ACK_XML), Ack::new("text/xml", "<xml>FAIL</xml>"));
    let event = EventKind::At("/event".into());
    Callback::new("PAY", JsonBody(Box::new(|_, _| true)), "/no", event, ack, nack).unwrap()
}

async fn notify(app: &Router, body: &str) -> Answer {
    send(app, request("/notify", &[("signed", "yes")], body)).await
}

fn trade(no: &str, status: &str, nonce: u32) -> String {
    format!("notify_id={nonce}&out_trade_no={no}&trade_status={status}&total_amount=128.00&sign=s{nonce}")
}

fn is(answer: &Answer, status: u16, content_type: &str, body: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(
        (answer.headers["content-type"].to_str().unwrap(), &answer.body[..]),
        (content_type, body.as_bytes())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c36_the_acknowledgement_is_exact_and_never_comes_before_the_commit() {
    for test in each_database().await {
        prepare(&test).await;
        let shop = Shop::new(&test.db);
        let callback = xml().waiting_at_most(Duration::from_millis(100));
        let (one, two) = (shop.process("one", &callback).await, shop.process("two", &callback).await);
        shop.gate.forget_permits(Semaphore::MAX_PERMITS);
        let body = r#"{"no":"P1","event":"PAID"}"#;
        let first = tokio::spawn({
            let one = one.clone();
            async move { notify(&one, body).await }
        });
        shop.entered.acquire().await.unwrap().forget();
        // In the other process, and in this one.
        let (there, here) = tokio::join!(notify(&two, body), notify(&one, body));
        for early in [there, here] {
            is(&early, 409, "text/xml", "<xml>FAIL</xml>");
            assert!(early.headers.contains_key("retry-after"));
        }
        shop.gate.add_permits(100);
        is(&first.await.unwrap(), 200, "text/xml", ACK_XML);
        for app in [&one, &two, &shop.process("three", &xml()).await] {
            let again = notify(app, body).await;
            is(&again, 200, "text/xml", ACK_XML);
            assert!(again.replayed());
        }
        assert_eq!(kit::effects(&test.db).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_one_number_with_two_kinds_of_event_has_two_effects_whatever_the_nonces() {
    for test in each_database().await {
        prepare(&test).await;
        let app = Shop::new(&test.db).process("one", &alipay()).await;
        let sendings = (0..30).map(|n| {
            let (app, kind) = (app.clone(), ["WAIT_BUYER_PAY", "TRADE_SUCCESS"][n as usize % 2]);
            async move { notify(&app, &trade("P1", kind, n)).await }
        });
        for answer in join_all(sendings).await {
            is(&answer, 200, "text/plain; charset=utf-8", "success");
            assert!(Profile::Alipay.accepts(StatusCode::from_u16(answer.status).unwrap(), &answer.body));
        }
        assert_eq!(kit::effects(&test.db).await, 2);
        let record = "SELECT biz_no FROM idempotent_record WHERE idempotent_id = 'P1:TRADE_SUCCESS'";
        assert_eq!(kit::text(&test.db, record).await.as_deref(), Some("P1"));
        let other = trade("P1", "TRADE_SUCCESS", 99).replace("128.00", "1280.00");
        is(&notify(&app, &other).await, 422, "text/plain; charset=utf-8", "fail");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_from_the_channel_or_not_readable_is_refused_and_leaves_nothing() {
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    let app = Shop::new(&test.db).process("one", &alipay()).await;
    let unsigned = send(&app, request("/notify", &[], &trade("P1", "TRADE_SUCCESS", 1))).await;
    is(&unsigned, 401, "text/plain; charset=utf-8", "fail");
    for body in
        ["", "out_trade_no=P1", "trade_status=TRADE_SUCCESS", "out_trade_no=1&out_trade_no=2&trade_status=X"]
    {
        is(&notify(&app, body).await, 400, "text/plain; charset=utf-8", "fail");
    }
    assert_eq!(kit::number(&test.db, "SELECT COUNT(*) FROM idempotent_record").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_asked_again_and_an_unknown_outcome_is_not() {
    for test in each_database().await {
        prepare(&test).await;
        let shop = Shop::new(&test.db);
        let app = shop.process("one", &alipay()).await;
        shop.status.store(404, Ordering::SeqCst);
        is(&notify(&app, &trade("P1", "TRADE_SUCCESS", 1)).await, 404, "text/plain; charset=utf-8", "fail");
        shop.status.store(200, Ordering::SeqCst);
        is(
            &notify(&app, &trade("P1", "TRADE_SUCCESS", 2)).await,
            200,
            "text/plain; charset=utf-8",
            "success",
        );
        shop.status.store(500, Ordering::SeqCst);
        is(&notify(&app, &trade("P2", "TRADE_SUCCESS", 3)).await, 500, "text/plain; charset=utf-8", "fail");
        shop.status.store(200, Ordering::SeqCst);
        is(&notify(&app, &trade("P2", "TRADE_SUCCESS", 4)).await, 409, "text/plain; charset=utf-8", "fail");
        assert_eq!(kit::effects(&test.db).await, 1);
        // A person settles it, without saying what the channel wants to hear.
        test.run(&[
            "UPDATE idempotent_record SET status = 'SUCCESS' WHERE idempotent_id = 'P2:TRADE_SUCCESS'",
        ])
        .await;
        let fresh = shop.process("two", &alipay()).await;
        is(
            &notify(&fresh, &trade("P2", "TRADE_SUCCESS", 5)).await,
            200,
            "text/plain; charset=utf-8",
            "success",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c41_callback_and_poller_at_once_have_one_effect() {
    for test in each_database().await {
        prepare(&test).await;
        let shop = Shop::new(&test.db);
        let (one, two) = (shop.process("one", &alipay()).await, shop.process("two", &alipay()).await);
        let polled = r#"{"out_trade_no":"P1","trade_status":"TRADE_SUCCESS","total_amount":"128.00","seen_by":"poller"}"#;
        let work = (0..20).map(|n| {
            let app = if n % 4 < 2 { one.clone() } else { two.clone() };
            async move {
                match n % 2 {
                    0 => notify(&app, &trade("P1", "TRADE_SUCCESS", n)).await,
                    _ => send(&app, request("/poll", &[], polled)).await,
                }
            }
        });
        for answer in join_all(work).await {
            is(&answer, 200, "text/plain; charset=utf-8", "success");
        }
        assert_eq!(kit::effects(&test.db).await, 1);
        assert_eq!(Callback::key("P1", "TRADE_SUCCESS"), "P1:TRADE_SUCCESS");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_about_one_number_take_turns() {
    for test in each_database().await {
        prepare(&test).await;
        let shop = Shop::new(&test.db);
        let rules = LockRules { max_wait: Duration::from_secs(20), ..LockRules::default() };
        let callback = alipay().one_at_a_time(Locks::in_table(test.db.clone(), "one"), rules);
        let app = shop.process("one", &callback).await;
        let kinds: Vec<String> = (0..6).map(|n| trade("P1", &format!("KIND_{n}"), n)).collect();
        let answers = join_all(kinds.iter().map(|body| notify(&app, body))).await;
        assert!(answers.iter().all(|answer| answer.status == 200));
        assert_eq!(kit::effects(&test.db).await, 6);
        assert!(!shop.overlapped.load(Ordering::SeqCst));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_event_after_a_newer_one_is_acknowledged_recorded_and_not_run() {
    for test in each_database().await {
        prepare(&test).await;
        let shop = Shop::new(&test.db);
        let time = EventTime { pointer: "/at".into(), kind: TimeKind::Calendar(chrono_tz::Asia::Shanghai) };
        let callback = xml().in_order(time, Locks::in_table(test.db.clone(), "one"), LockRules::default());
        let app = shop.process("one", &callback).await;
        let event =
            |no: &str, kind: &str, at: &str| format!(r#"{{"no":"{no}","event":"{kind}","at":"{at}"}}"#);
        let (refunded, paid) =
            (event("P1", "REFUNDED", "2026-03-01 10:00:00"), event("P1", "PAID", "2026-03-01T01:59:59Z"));
        is(&notify(&app, &refunded).await, 200, "text/xml", ACK_XML);
        for _ in 0..2 {
            let late = notify(&app, &paid).await;
            is(&late, 200, "text/xml", ACK_XML);
            assert_eq!(late.headers["idempotency-superseded"], "true");
        }
        assert_eq!(kit::effects(&test.db).await, 1);
        let status = "SELECT status FROM idempotent_record WHERE idempotent_id = 'P1:PAID'";
        assert_eq!(kit::text(&test.db, status).await.as_deref(), Some("SUCCESS"));
        // Another number, a later event, and one whose newer neighbour was not done.
        is(&notify(&app, &event("P2", "PAID", "2026-03-01 09:00:00")).await, 200, "text/xml", ACK_XML);
        is(&notify(&app, &event("P1", "CLOSED", "2026-03-01 10:00:01")).await, 200, "text/xml", ACK_XML);
        shop.status.store(409, Ordering::SeqCst);
        is(
            &notify(&app, &event("P3", "CLOSED", "2026-03-01 10:00:00")).await,
            409,
            "text/xml",
            "<xml>FAIL</xml>",
        );
        shop.status.store(200, Ordering::SeqCst);
        is(&notify(&app, &event("P3", "PAID", "2026-03-01 09:00:00")).await, 200, "text/xml", ACK_XML);
        assert_eq!(kit::effects(&test.db).await, 4);
        is(&notify(&app, r#"{"no":"P4","event":"PAID"}"#).await, 400, "text/xml", "<xml>FAIL</xml>");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_the_schedule_of_wechat_pay_ends_with_one_effect() {
    for test in each_database().await {
        prepare(&test).await;
        let shop = Shop::new(&test.db);
        let opener =
            WechatBody::new(&KEY, Box::new(|parts, _| parts.headers.contains_key("signed"))).unwrap();
        let app = shop.process("one", &Callback::wechat_pay("PAY", opener)).await;
        shop.status.store(425, Ordering::SeqCst);
        let mut sendings = 0;
        for pause in Profile::WechatPay.schedule() {
            assert!(*pause >= Duration::from_secs(15));
            sendings += 1;
            if sendings == 4 {
                shop.status.store(200, Ordering::SeqCst);
            }
            let answer = notify(&app, &wechat(sendings)).await;
            if Profile::WechatPay.accepts(StatusCode::from_u16(answer.status).unwrap(), &answer.body) {
                break;
            }
            is(&answer, 425, "application/json", r#"{"code":"FAIL","message":"失败"}"#);
        }
        assert_eq!(sendings, 4);
        // The channel did not hear it: its next sending, encrypted anew, changes nothing.
        is(
            &notify(&app, &wechat(99)).await,
            200,
            "application/json",
            r#"{"code":"SUCCESS","message":"成功"}"#,
        );
        assert_eq!(kit::effects(&test.db).await, 1);
        let sealed =
            "SELECT request_body FROM idempotent_record WHERE idempotent_id = 'P1:TRANSACTION.SUCCESS'";
        let kept = kit::text(&test.db, sealed).await.unwrap();
        assert!(kept.contains("ciphertext") && !kept.contains("out_trade_no"), "kept as it was sent");
    }
}

/// The same payment, sealed with another nonce in every sending.
fn wechat(sending: u32) -> String {
    let mut sealed = br#"{"out_trade_no":"P1","amount":{"total":12800}}"#.to_vec();
    let nonce = format!("nonce{sending:07}");
    let seal = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &KEY).unwrap());
    let unique = Nonce::try_assume_unique_for_key(nonce.as_bytes()).unwrap();
    seal.seal_in_place_append_tag(unique, Aad::from(b"transaction"), &mut sealed).unwrap();
    serde_json::json!({
        "id": format!("EV-{sending}"),
        "event_type": "TRANSACTION.SUCCESS",
        "resource": {
            "ciphertext": STANDARD.encode(&sealed), "nonce": nonce, "associated_data": "transaction"
        }
    })
    .to_string()
}

#[test]
fn a7_what_differs_from_sending_to_sending_cannot_be_a_key() {
    let with = |number: &str, event: EventKind| {
        let words = || Ack::new("text/plain", "x");
        Callback::new("PAY", JsonBody(Box::new(|_, _| true)), number, event, words(), words())
    };
    let event = || EventKind::At("/event".into());
    for number in ["/nonce_str", "/data/notify_id", "/Sign", "no"] {
        assert!(with(number, event()).is_err(), "{number}");
    }
    assert!(with("/no", EventKind::At("/timestamp".into())).is_err());
    assert!(with("/no", EventKind::Only("PAID".into())).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_leaves_a_notification_that_is_not_acknowledged() {
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    let shop = Shop::new(&test.db);
    let app = shop.process("one", &xml()).await;
    shop.gate.forget_permits(Semaphore::MAX_PERMITS);
    let body = r#"{"no":"P1","event":"PAID"}"#;
    let dying = tokio::spawn(async move { notify(&app, body).await });
    shop.entered.acquire().await.unwrap().forget();
    let over = Query::raw(
        "UPDATE idempotent_record SET lease_until = '2020-01-01 00:00:00', owner = 'dead'",
        vec![],
    );
    test.db.execute(&over).await.unwrap();
    let next = shop.process("two", &xml()).await;
    until("the record is held for a person", async || notify(&next, body).await.status == 409).await;
    is(&notify(&next, body).await, 409, "text/xml", "<xml>FAIL</xml>");
    dying.abort();
    assert_eq!(kit::effects(&test.db).await, 0);
}
