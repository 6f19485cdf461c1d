//! Counts reach the console, once each, and nothing waits for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use chrono::{DateTime, Utc};
use guard::{ConsoleMeter, ConsoleRules, Happening, Meter};
use serde_json::Value;

#[derive(Default)]
struct Console {
    sequences: BTreeSet<i64>,
    counted: i64,
    answers: Vec<StatusCode>,
}

/// A console that first takes a batch and loses the answer.
async fn console(taken: Arc<Mutex<Console>>) -> String {
    let events = move |headers: HeaderMap, body: String| async move {
        assert_eq!(headers["authorization"], "Bearer secret");
        let report: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(report["producer"], "shop-1");
        let mut console = taken.lock().unwrap();
        if console.sequences.insert(report["sequence"].as_i64().unwrap()) {
            for count in report["counts"].as_array().unwrap() {
                assert_eq!((&count["source"], &count["biz_type"]), (&"orders".into(), &"PAY".into()));
                console.counted += count["count"].as_i64().unwrap();
            }
        }
        console.answers.pop().unwrap_or(StatusCode::ACCEPTED)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/amends/api/v1/events", post(events));
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/amends")
}

/// A clock that stands still: sequences must grow all the same.
fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_040_000, 0).unwrap()
}

fn meter(url: String) -> ConsoleMeter {
    let rules = ConsoleRules {
        url,
        token: "secret".to_owned(),
        producer: "shop-1".to_owned(),
        source: "orders".to_owned(),
        every: Duration::from_millis(20),
    };
    ConsoleMeter::new(rules, noon).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_arrive_once_although_an_answer_was_lost() {
    let taken = Arc::new(Mutex::new(Console {
        answers: vec![StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_GATEWAY],
        ..Console::default()
    }));
    let meter = meter(console(taken.clone()).await);
    tokio::spawn(meter.clone().keep_reporting());
    for _ in 0..100 {
        meter.count("PAY", Happening::Executed);
        meter.count("PAY", Happening::Hit);
        tokio::task::yield_now().await;
    }
    let all = tokio::time::timeout(Duration::from_secs(10), async {
        while taken.lock().unwrap().counted < 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    all.await.expect("every count arrives");
    assert_eq!((taken.lock().unwrap().counted, meter.dropped()), (200, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_console_refuses_is_dropped_and_counted() {
    let taken =
        Arc::new(Mutex::new(Console { answers: vec![StatusCode::BAD_REQUEST], ..Console::default() }));
    let meter = meter(console(taken.clone()).await);
    meter.count("PAY", Happening::Executed);
    tokio::spawn(meter.clone().keep_reporting());
    let dropped = tokio::time::timeout(Duration::from_secs(10), async {
        while meter.dropped() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    dropped.await.expect("a refused batch is dropped");
    assert_eq!(meter.dropped(), 1);
}

#[test]
fn memory_is_bounded_while_the_console_is_away() {
    let meter = meter("http://127.0.0.1:9".to_owned());
    for n in 0..3_000 {
        meter.count(&format!("TYPE-{n}"), Happening::Executed);
    }
    assert_eq!(meter.dropped(), 2_000);
    let rules = ConsoleRules {
        url: "localhost:3000".to_owned(),
        token: String::new(),
        producer: String::new(),
        source: String::new(),
        every: Duration::from_secs(1),
    };
    assert!(ConsoleMeter::new(rules, noon).is_err());
}
