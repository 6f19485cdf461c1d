use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use db::Db;
use db::testkit::each_database;
use futures::future::{BoxFuture, join_all};
use guard::outbox::{
    Carrier, Decision, Failure, HttpCarrier, Message, Outbox, OutboxRules, Parcel, StageError, StreamCarrier,
    decide, purge, undelivered,
};
use guard::{Claim, KeySource, Outcome, Policy};

use crate::kit::{self, prepare, request, send, until};

fn rules() -> OutboxRules {
    OutboxRules { first_pause: Duration::ZERO, interval: Duration::from_millis(5), ..OutboxRules::default() }
}

/// A route that stages the kinds named in its body, then does as its last word says.
async fn shop(db: &Db) -> Router {
    let policy = Policy::new("ORDER", KeySource::Header).biz_no_from("/no");
    Router::new().route("/work", post(stage).layer(kit::guard(db, "one").await.protect(policy).unwrap()))
}

async fn stage(claim: Extension<Claim>, body: String) -> (Extension<Outcome>, String) {
    let ask: serde_json::Value = serde_json::from_str(&body).unwrap();
    let mut tx = claim.tx().await.unwrap();
    tx.execute(&kit::effect(claim.key())).await.unwrap();
    for kind in ask["kinds"].as_array().unwrap() {
        let kind = kind.as_str().unwrap();
        tx.stage(&Message::json(kind, "stock", &serde_json::json!({ "order": ask["no"], "kind": kind })))
            .await
            .unwrap();
    }
    match ask["end"].as_str() {
        Some("roll back") => (Extension(Outcome::RolledBack), "nothing".into()),
        _ => (Extension(Outcome::Definitive), "done".into()),
    }
}

async fn order(app: &Router, key: &str, no: &str, kinds: &[&str]) -> kit::Answer {
    let body = serde_json::json!({ "no": no, "kinds": kinds }).to_string();
    send(app, request("/work", &[("idempotency-key", key)], &body)).await
}

/// A receiver that notes what it got, and fails as often as it is told to.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Inbox>>);

#[derive(Default)]
struct Inbox {
    got: Vec<(String, String)>,
    failures: Vec<Failure>,
}

impl Carrier for Receiver {
    fn carry<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async {
            let mut inbox = self.0.lock().unwrap();
            match inbox.failures.pop() {
                Some(failure) => Err(failure),
                None => {
                    inbox.got.push((parcel.key.clone(), parcel.kind.clone()));
                    Ok(())
                }
            }
        })
    }
}

impl Receiver {
    fn kinds(&self) -> Vec<String> {
        self.0.lock().unwrap().got.iter().map(|(_, kind)| kind.clone()).collect()
    }

    fn fail(&self, failures: &[Failure]) {
        self.0.lock().unwrap().failures = failures.iter().rev().cloned().collect();
    }
}

fn later(reason: &str) -> Failure {
    Failure::Later { reason: reason.into(), after: None }
}

async fn rounds(outbox: &Outbox, times: usize) {
    for _ in 0..times {
        outbox.round().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_exist_exactly_when_the_business_write_does() {
    for test in each_database().await {
        prepare(&test).await;
        let app = shop(&test.db).await;
        let body = r#"{"no":"O1","kinds":["PAID"],"end":"roll back"}"#;
        send(&app, request("/work", &[("idempotency-key", "k1")], body)).await;
        assert!(undelivered(&test.db, 0, 10).await.unwrap().is_empty());
        join_all((0..10).map(|_| order(&app, "k2", "O1", &["PAID", "POINTS"]))).await;
        let waiting = undelivered(&test.db, 0, 10).await.unwrap();
        let keys: Vec<&str> = waiting.iter().map(|message| message.key.as_str()).collect();
        assert_eq!(keys, ["ORDER:k2/PAID", "ORDER:k2/POINTS"]);
        assert!(waiting.iter().all(|message| message.biz_no.as_deref() == Some("O1") && !message.dead));
        assert_eq!(undelivered(&test.db, waiting[0].id, 10).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_stages_a_message_once_and_another_of_its_kind_not_at_all() {
    for test in each_database().await {
        prepare(&test).await;
        let policy = Policy::new("ORDER", KeySource::Header);
        let handler = |claim: Extension<Claim>| async move {
            let mut tx = claim.tx().await.unwrap();
            let message = |n: i32| Message::json("PAID", "stock", &serde_json::json!(n));
            tx.stage(&message(1)).await.unwrap();
            tx.stage(&message(1)).await.unwrap();
            assert_eq!(tx.stage(&message(2)).await, Err(StageError::KindTaken("PAID".into())));
            let odd = Message { body: "a\0b".into(), ..message(3) };
            assert!(matches!(tx.stage(&odd).await, Err(StageError::Malformed(_))));
            "done"
        };
        let layer = kit::guard(&test.db, "one").await.protect(policy).unwrap();
        let app = Router::new().route("/work", post(handler).layer(layer));
        assert_eq!(send(&app, request("/work", &[("idempotency-key", "k")], "{}")).await.status, 200);
        assert_eq!(undelivered(&test.db, 0, 10).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_senders_deliver_each_message_once_and_in_order_per_number() {
    for test in each_database().await {
        prepare(&test).await;
        let app = shop(&test.db).await;
        for n in 0..6 {
            order(&app, &format!("a{n}"), "A", &[&format!("A{n}")]).await;
            order(&app, &format!("b{n}"), "B", &[&format!("B{n}")]).await;
        }
        let (receiver, other) = (Receiver::default(), test.reopen().await);
        receiver.fail(&[later("not now"), later("not now"), later("not now")]);
        let senders = [("one", &test.db), ("two", &other), ("three", &test.db)];
        let outboxes =
            senders.map(|(name, db)| Outbox::new(db.clone(), name, rules()).with("stock", receiver.clone()));
        let all_sent = async || undelivered(&test.db, 0, 1).await.unwrap().is_empty();
        tokio::join!(
            outboxes[0].run(until("all is sent", all_sent)),
            outboxes[1].run(until("all is sent", all_sent)),
            outboxes[2].run(until("all is sent", all_sent))
        );
        let kinds = receiver.kinds();
        for number in ["A", "B"] {
            let in_order: Vec<String> = (0..6).map(|n| format!("{number}{n}")).collect();
            let got: Vec<&String> = kinds.iter().filter(|kind| kind.starts_with(number)).collect();
            assert_eq!(got, in_order.iter().collect::<Vec<_>>());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_dies_after_sending_has_its_message_sent_again_under_the_same_key() {
    for test in each_database().await {
        prepare(&test).await;
        order(&shop(&test.db).await, "k", "O1", &["PAID"]).await;
        let receiver = Receiver::default();

        /// Delivers, then never returns, as a process that was killed.
        struct Dying(Receiver);
        impl Carrier for Dying {
            fn carry<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), Failure>> {
                Box::pin(async move {
                    self.0.carry(parcel).await?;
                    std::future::pending().await
                })
            }
        }
        let dying = Outbox::new(test.db.clone(), "one", rules()).with("stock", Dying(receiver.clone()));
        let killed = tokio::spawn(async move { dying.round().await });
        until("it was sent", async || receiver.kinds().len() == 1).await;
        killed.abort();

        let next = Outbox::new(test.db.clone(), "two", rules()).with("stock", receiver.clone());
        rounds(&next, 2).await;
        assert_eq!(receiver.kinds().len(), 1, "its time is not over");
        test.run(&["UPDATE idempotency_outbox SET due_at = 0"]).await;
        rounds(&next, 2).await;
        let got = receiver.0.lock().unwrap().got.clone();
        assert_eq!(got.len(), 2);
        assert_eq!(got[0], got[1], "the receiver can tell that it is the same");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_arrive_is_given_up_shown_and_holds_back_its_followers() {
    for test in each_database().await {
        prepare(&test).await;
        let app = shop(&test.db).await;
        order(&app, "k1", "O1", &["PAID"]).await;
        order(&app, "k2", "O1", &["SHIPPED"]).await;
        order(&app, "k3", "O2", &["PAID"]).await;
        let receiver = Receiver::default();
        let few = OutboxRules { max_attempts: 3, ..rules() };
        let outbox = Outbox::new(test.db.clone(), "one", OutboxRules { at_once: 1, ..few })
            .with("stock", receiver.clone());
        receiver.fail(&[later("answered 503")]);
        outbox.round().await.unwrap();
        let first = &undelivered(&test.db, 0, 10).await.unwrap()[0];
        assert_eq!(
            (first.attempts, first.dead, first.last_error.as_deref()),
            (1, false, Some("answered 503"))
        );
        // The other number is not concerned.
        assert_eq!(receiver.0.lock().unwrap().got[0].0, "ORDER:k3/PAID");
        for _ in 0..2 {
            receiver.fail(&[later("answered 503")]);
            outbox.round().await.unwrap();
        }
        rounds(&outbox, 3).await;
        let waiting = undelivered(&test.db, 0, 10).await.unwrap();
        let shown: Vec<_> = waiting.iter().map(|message| (message.kind.as_str(), message.dead)).collect();
        assert_eq!(shown, [("PAID", true), ("SHIPPED", false)]);
        // A person decides, once.
        let id = waiting[0].id;
        assert!(decide(&test.db, id, Decision::SendAgain).await.unwrap());
        assert!(!decide(&test.db, id, Decision::Discard).await.unwrap());
        receiver.fail(&[Failure::Never { reason: "answered 422".into() }]);
        outbox.round().await.unwrap();
        assert!(undelivered(&test.db, 0, 10).await.unwrap()[0].dead);
        assert!(decide(&test.db, id, Decision::Discard).await.unwrap());
        rounds(&outbox, 2).await;
        assert_eq!(receiver.kinds(), ["PAID", "SHIPPED"]);
        assert!(undelivered(&test.db, 0, 10).await.unwrap().is_empty());
        assert_eq!(purge(&test.db, Duration::from_secs(3600), 10).await.unwrap(), 0);
        assert_eq!(
            purge(&test.db, Duration::ZERO, 10).await.unwrap()
                + purge(&test.db, Duration::ZERO, 10).await.unwrap(),
            3
        );
    }
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Vec<(HeaderMap, String)>>>);

async fn receive(State(server): State<Server>, headers: HeaderMap, body: String) -> StatusCode {
    let mut got = server.0.lock().unwrap();
    got.push((headers, body));
    if got.len() == 1 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_a_message_carries_its_key_and_is_tried_again() {
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    order(&shop(&test.db).await, "k", "O1", &["PAID"]).await;
    let server = Server::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let router = Router::new().route("/in", post(receive)).with_state(server.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let carrier = HttpCarrier::new(&url, HeaderMap::new(), Duration::from_secs(10)).unwrap();
    let outbox = Outbox::new(test.db.clone(), "one", rules()).with("stock", carrier);
    outbox.run(until("it arrived", async || undelivered(&test.db, 0, 1).await.unwrap().is_empty())).await;
    let got = server.0.lock().unwrap();
    assert_eq!(got.len(), 2);
    for (headers, body) in got.iter() {
        assert_eq!(headers["idempotency-key"], "ORDER:k/PAID");
        assert_eq!(
            (&headers["content-type"], body.as_str()),
            (&"application/json".parse().unwrap(), r#"{"order":"O1","kind":"PAID"}"#)
        );
    }
    serving.abort();
    assert!(HttpCarrier::new("ftp://x", HeaderMap::new(), Duration::from_secs(1)).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_redis_stream_a_message_carries_its_key() {
    let Some((redis, prefix)) = kit::redis() else { return };
    for test in each_database().await {
        prepare(&test).await;
        order(&shop(&test.db).await, "k", "O1", &["PAID"]).await;
        let stream = format!("{prefix}{}", test.db.dialect());
        let outbox = Outbox::new(test.db.clone(), "one", rules())
            .with("stock", StreamCarrier::new(redis.clone(), &stream, 1000));
        outbox.run(until("it arrived", async || undelivered(&test.db, 0, 1).await.unwrap().is_empty())).await;
        let read = kv::Script::new("return redis.call('XRANGE', KEYS[1], '-', '+')[1][2]");
        let fields: Vec<String> = redis.call(&read, &[&stream], &[]).await.unwrap();
        assert_eq!(
            &fields[..8],
            ["key", "ORDER:k/PAID", "biz_type", "ORDER", "biz_no", "O1", "kind", "PAID"]
        );
        redis.delete(&stream).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_for_others_are_left_to_others() {
    let test = db::testkit::sqlite().await;
    prepare(&test).await;
    order(&shop(&test.db).await, "k", "O1", &["PAID"]).await;
    let outbox = Outbox::new(test.db.clone(), "one", rules()).with("elsewhere", Receiver::default());
    rounds(&outbox, 2).await;
    assert_eq!(undelivered(&test.db, 0, 10).await.unwrap()[0].attempts, 0);
}
