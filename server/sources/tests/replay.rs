//! Replays against a real HTTP server.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use common::{MINIMAL, Rec, Table, rec};
use domain::actions::Action;
use domain::compensation::ReplayAnswer;
use domain::ports::{Applied, Change, Source};
use domain::record::State as RecordState;
use std::sync::{Arc, Mutex};

const BODY: &str = "{\"orderId\":4634343214213523454,  \"amt\":0.10,\"e\":1E400,\"n\":\"键\"}\n";

/// Everything a service was asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>);

impl Asked {
    fn all(&self) -> Vec<(String, HeaderMap, Bytes)> {
        self.0.lock().unwrap().clone()
    }
}

async fn answer(
    State(asked): State<Asked>,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    asked.0.lock().unwrap().push((uri.path().to_owned(), headers, body));
    match uri.path() {
        "/moved" => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/orders")]).into_response(),
        "/silent" => std::future::pending().await,
        "/huge" => vec![b'x'; 10 << 20].into_response(),
        _ => (StatusCode::CREATED, "made").into_response(),
    }
}

async fn service() -> (String, Asked) {
    let asked = Asked::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(asked.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, asked)
}

async fn table(url: &str, more: &str) -> Table {
    let biz = format!(
        "[[biz]]\ntype = \"ORDER\"\n[biz.replay]\nurl = \"{url}\"\nheaders = {{ Idempotency-Key = \"{{key}}\", X-Order = \"{{biz_type}}/{{biz_no}}\", X-Amount = \"{{/amt}}\" }}\n{more}"
    );
    let test = db::testkit::sqlite().await;
    test.run(&["CREATE TABLE idempotent_record (idempotent_id TEXT PRIMARY KEY, biz_type TEXT, biz_no TEXT, status TEXT, request_body TEXT, response_body TEXT, create_time TEXT, update_time TEXT)"]).await;
    let table = common::attach(test, MINIMAL, &biz).await;
    table.put(&Rec { request: Some(BODY), ..rec("key-1", 3_600_000) }).await;
    table
}

async fn replay(table: &Table) -> ReplayAnswer {
    table.source.replay(&table.get("key-1").await).await
}

#[tokio::test]
async fn c70_the_stored_bytes_and_the_same_key_are_sent_once() {
    let (address, asked) = service().await;
    let table = table(&format!("{address}/orders"), "").await;
    assert_eq!(replay(&table).await, ReplayAnswer::Answered { status: 201 });
    let all = asked.all();
    assert_eq!(all.len(), 1);
    let (_, headers, body) = &all[0];
    assert_eq!(body, BODY.as_bytes());
    assert_eq!(headers["idempotency-key"], "key-1");
    assert_eq!(headers["x-order"], "ORDER/N1");
    assert_eq!(headers["x-amount"], "0.10");
    assert_eq!(headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (address, asked) = service().await;
    let table = table(&format!("{address}/moved"), "").await;
    assert_eq!(replay(&table).await, ReplayAnswer::Answered { status: 307 });
    assert_eq!(asked.all().len(), 1);
}

#[tokio::test]
async fn silence_is_unanswered_and_never_repeated() {
    let (address, asked) = service().await;
    let table = table(&format!("{address}/silent"), "timeout = \"200ms\"\n").await;
    assert!(matches!(replay(&table).await, ReplayAnswer::Unanswered { .. }));
    assert_eq!(asked.all().len(), 1);
    assert_eq!(table.source.replay_timeout(&table.get("key-1").await.row).as_millis(), 200);
}

#[tokio::test]
async fn a_lost_connection_is_unanswered() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let table = table(&format!("http://{}/", listener.local_addr().unwrap()), "").await;
    let taken = tokio::spawn(async move { listener.accept().await.map(drop) });
    assert!(matches!(replay(&table).await, ReplayAnswer::Unanswered { .. }));
    taken.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let table = table(&format!("http://me:s3cret@{address}/?token=s3cret"), "").await;
    match replay(&table).await {
        ReplayAnswer::NotSent { message } => assert!(!message.contains("s3cret"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn more_than_the_rate_is_not_sent() {
    let (address, asked) = service().await;
    let table = table(&format!("{address}/orders"), "rate = \"2/h\"\n").await;
    for _ in 0..2 {
        assert!(matches!(replay(&table).await, ReplayAnswer::Answered { .. }));
    }
    assert!(matches!(replay(&table).await, ReplayAnswer::NotSent { .. }));
    assert_eq!(asked.all().len(), 2);
}

#[tokio::test]
async fn a_huge_answer_is_read_only_so_far() {
    let (address, _) = service().await;
    let table = table(&format!("{address}/huge"), "").await;
    assert_eq!(replay(&table).await, ReplayAnswer::Answered { status: 200 });
}

#[tokio::test]
async fn what_cannot_be_sent_says_why() {
    let (address, asked) = service().await;
    let table = table(&format!("{address}/orders"), "").await;
    table.put(&Rec { request: None, ..rec("bare", 3_600_000) }).await;
    table.put(&rec("line\nbreak", 3_600_000)).await;
    let bare = table.get("bare").await;
    assert!(bare.abilities.replay.is_err());
    let broken = table.get("line\nbreak").await;
    for record in [bare, broken] {
        assert!(matches!(table.source.replay(&record).await, ReplayAnswer::NotSent { .. }));
    }
    assert!(asked.all().is_empty());
}

#[tokio::test]
async fn only_a_record_that_is_not_executable_is_prepared() {
    let table = table("http://127.0.0.1:1/", "").await;
    let mut row = table.get("key-1").await.row;
    assert_eq!(table.source.prepare_of(&row), Some(Action::MarkTimedOut));
    row.state = RecordState::Timeout;
    assert_eq!(table.source.prepare_of(&row), None);
    let plain = common::open(
        &table.test.url,
        MINIMAL,
        "[[biz]]\ntype = \"ORDER\"\n[biz.replay]\nurl = \"http://127.0.0.1:1/\"\nprepare = \"none\"\n",
    );
    row.state = RecordState::Processing;
    assert_eq!(plain.prepare_of(&row), None);
}

#[test]
fn a_header_that_could_never_be_filled_is_refused_at_start() {
    let biz = "[[biz]]\ntype = \"ORDER\"\n[biz.replay]\nurl = \"http://h/\"\nheaders = { X-Order = \"{order_no}\", Authorization = \"Bearer s3cret\" }\n";
    let config = common::parse("sqlite://a.db", "", biz);
    let problems: Vec<String> = config.problems().iter().map(ToString::to_string).collect();
    assert!(
        problems.join("; ").contains("X-Order: unknown parameter order_no; write biz_no"),
        "{problems:?}"
    );
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_row_that_is_in_the_way_is_removed_by_compare_and_set() {
    let biz = "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nsql = \"SELECT order_no FROM t_order WHERE order_no = :biz_no\"\n[biz.replay]\nurl = \"http://127.0.0.1:1/\"\nprepare = \"delete\"\n";
    for table in common::tables(MINIMAL, biz).await {
        let dialect = table.dialect();
        table.put(&rec("k", 3_600_000)).await;
        table.put(&rec("other", 3_600_000)).await;
        let record = table.get("k").await;
        assert_eq!(record.abilities.replay, Ok(()), "{dialect}");
        let mut failed = record.row.clone();
        failed.state = RecordState::Failed;
        assert_eq!(table.source.prepare_of(&failed), Some(Action::Replay));
        let change = Change { action: Action::Replay, record: &record, finding: None, response_body: None };
        let plan = table.source.plan(change).await.unwrap();
        let apply = || table.source.apply(&record, &record.row.version, Action::Replay, &plan, common::far());
        // The effect is there after all: the row stays.
        table.run("INSERT INTO t_order VALUES ('N1', 'PAID', 128.00, 0)").await;
        assert!(matches!(apply().await.unwrap(), Applied::EvidenceChanged(_)), "{dialect}");
        table.run("DELETE FROM t_order").await;
        // A worker that came back in the meantime: the row stays.
        table.run("UPDATE idempotent_record SET status = 'SUCCESS' WHERE idempotent_id = 'k'").await;
        assert!(matches!(apply().await.unwrap(), Applied::Moved(_)), "{dialect}");
        table.run("UPDATE idempotent_record SET status = 'PROCESSING' WHERE idempotent_id = 'k'").await;
        assert_eq!(apply().await.unwrap(), Applied::Changed, "{dialect}");
        let all = domain::record::RecordFilter::default();
        assert_eq!(table.keys(&all).await, ["other"], "{dialect}");
        assert!(apply().await.is_err(), "{dialect}: what is gone cannot be removed again");
    }
}
