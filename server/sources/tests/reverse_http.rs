//! Query endpoints, as a payment channel has them, on a real HTTP server.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use common::{MINIMAL, ORDERS, Rec, Table, attach, rec};
use domain::actions::Action;
use domain::evidence::{Finding, Reason, Verdict};
use domain::ports::{Applied, Change, Source};
use std::sync::{Arc, Mutex};

const SECRET: &str = "s3cret-of-the-channel";

/// Method, target, headers and body of one question.
type Asked = (String, String, HeaderMap, Bytes);

/// What the channel answers next, and everything it was asked.
#[derive(Clone, Default)]
struct Channel {
    next: Arc<Mutex<(u16, &'static str, Vec<u8>)>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Channel {
    fn answers(&self, status: u16, body: &str) {
        self.answers_as("application/json", status, body.as_bytes());
    }

    fn answers_as(&self, kind: &'static str, status: u16, body: &[u8]) {
        *self.next.lock().unwrap() = (status, kind, body.to_vec());
    }

    fn last(&self) -> Asked {
        self.asked.lock().unwrap().last().unwrap().clone()
    }

    fn times_asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn answer(
    State(channel): State<Channel>,
    method: axum::http::Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let target = uri.path_and_query().unwrap().to_string();
    channel.asked.lock().unwrap().push((method.to_string(), target, headers, body));
    let (status, kind, body) = channel.next.lock().unwrap().clone();
    if status == 0 {
        std::future::pending::<()>().await;
    }
    let mut response =
        (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind)], body).into_response();
    if (300..400).contains(&status) {
        response.headers_mut().insert(header::LOCATION, "/moved".parse().unwrap());
    }
    response
}

async fn channel() -> (String, Channel) {
    let channel = Channel::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(channel.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, channel)
}

/// The channel's query as its documentation tells it.
const WECHAT: &str = r#"
url = "{address}/v3/pay/transactions/out-trade-no/{biz_no}?mchid={/mch}"
headers = { Authorization = "Bearer s3cret-of-the-channel" }
timeout = "2s"
found = { when = { "/trade_state" = "SUCCESS" } }
absent = { status = 404, when = { "/code" = "ORDER_NOT_EXIST" } }
mismatch = { when = { "/trade_state" = ["CLOSED", "REFUND"] } }
row = { amount = { pointer = "/amount/total", shift = -2 } }
"#;

fn biz(http: &str, more: &str) -> String {
    format!(
        "[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\nname = \"channel\"\n{more}\n[biz.reverse_check.http]\n{http}\n"
    )
}

async fn table(biz: &str, biz_no: &str) -> Table {
    let test = db::testkit::sqlite().await;
    test.run(&["CREATE TABLE idempotent_record (idempotent_id TEXT PRIMARY KEY, biz_type TEXT, biz_no TEXT, status TEXT, request_body TEXT, response_body TEXT, create_time TEXT, update_time TEXT)", ORDERS]).await;
    let table = attach(test, MINIMAL, biz).await;
    let request = r#"{"mch":"M1","amount":128.00}"#;
    table.put(&Rec { biz_no: Some(biz_no), request: Some(request), ..rec("k", 3_600_000) }).await;
    table
}

async fn asked(table: &Table) -> Finding {
    table.source.reverse_check(&table.get("k").await).await
}

async fn wechat(biz_no: &str) -> (Channel, Table) {
    let (address, channel) = channel().await;
    let http = WECHAT.replace("{address}", &address);
    (channel, table(&biz(&http, "compare = { amount = \"/amount\" }"), biz_no).await)
}

#[tokio::test]
async fn rules_and_the_answers_amount_decide_the_verdict() {
    let (channel, table) = wechat("N1").await;
    for (status, body, verdict) in [
        (200, r#"{"trade_state":"SUCCESS","amount":{"total":12800}}"#, Verdict::Found),
        (200, r#"{"trade_state":"SUCCESS","amount":{"total":12799}}"#, Verdict::Mismatch),
        (200, r#"{"trade_state":"SUCCESS"}"#, Verdict::Mismatch),
        (200, r#"{"trade_state":"CLOSED","amount":{"total":12800}}"#, Verdict::Mismatch),
        (404, r#"{"code":"ORDER_NOT_EXIST"}"#, Verdict::Absent),
    ] {
        channel.answers(status, body);
        let seen = asked(&table).await;
        assert_eq!(seen.verdict, verdict, "{status} {body} {}", seen.explanation());
    }
    let (method, target, headers, body) = channel.last();
    assert_eq!((method.as_str(), target.as_str()), ("GET", "/v3/pay/transactions/out-trade-no/N1?mchid=M1"));
    assert_eq!(headers["authorization"], "Bearer s3cret-of-the-channel");
    assert!(body.is_empty());
    channel.answers(200, r#"{"trade_state":"CLOSED","amount":{"total":12800}}"#);
    let closed = asked(&table).await;
    assert!(
        closed.explanation().contains("/trade_state is CLOSED, expected SUCCESS"),
        "{}",
        closed.explanation()
    );
    assert_eq!(closed.rows[0].places, [closed.read_from]);
}

#[tokio::test]
async fn whatever_no_rule_covers_proves_nothing() {
    let (channel, table) = wechat("N1").await;
    for (status, body) in [
        (200, r#"{"trade_state":"USERPAYING"}"#),
        (200, "<html>Sign in</html>"),
        (200, ""),
        (201, r#"{"trade_state":"SUCCESS"}"#),
        (404, "no such route"),
        (404, r#"{"code":"NO_AUTH"}"#),
        (302, r#"{"code":"ORDER_NOT_EXIST"}"#),
        (401, r#"{"code":"ORDER_NOT_EXIST"}"#),
        (429, r#"{"code":"ORDER_NOT_EXIST"}"#),
        (502, r#"{"trade_state":"SUCCESS","amount":{"total":12800}}"#),
    ] {
        channel.answers(status, body);
        let seen = asked(&table).await;
        assert_eq!(seen.verdict, Verdict::Unavailable, "{status} {body}");
        assert!(
            matches!(seen.reasons[..], [Reason::Unclear { status: said, .. }] if said == status),
            "{seen:?}"
        );
    }
    assert_eq!(channel.times_asked(), 10, "no redirect is followed and nothing is asked twice");
}

#[tokio::test]
async fn an_answer_shows_no_secret_even_when_the_channel_gives_it_back() {
    let (channel, table) = wechat("N1").await;
    channel.answers(500, &format!(r#"{{"error":"bad token {SECRET}","card_no":"6222021234567894"}}"#));
    let seen = asked(&table).await;
    let all = format!("{seen:?} {}", seen.explanation());
    assert!(all.contains("bad token"), "{all}");
    assert!(!all.contains(SECRET) && !all.contains("6222021234567894"), "{all}");
    let config = common::parse(&table.test.url, MINIMAL, &biz(&WECHAT.replace("{address}", "http://h"), ""));
    assert!(!format!("{config:?}").contains(SECRET));
}

#[tokio::test]
async fn silence_and_refused_connections_prove_nothing() {
    let (address, channel) = channel().await;
    let http = WECHAT.replace("{address}", &address).replace("2s", "200ms");
    let table = table(&biz(&http, ""), "N1").await;
    channel.answers(0, "");
    let silent = asked(&table).await;
    assert!(matches!(silent.reasons[..], [Reason::TimedOut { .. }]), "{silent:?}");
    let huge = vec![b' '; 70_000];
    channel.answers_as("application/json", 200, &huge);
    let long = asked(&table).await;
    assert!(long.explanation().contains("longer than 65536 bytes"), "{}", long.explanation());
    let gone =
        common::open(&table.test.url, MINIMAL, &biz(&WECHAT.replace("{address}", "http://127.0.0.1:1"), ""));
    let seen = gone.reverse_check(&table.get("k").await).await;
    assert_eq!(seen.verdict, Verdict::Unavailable);
    assert!(seen.explanation().contains("http://127.0.0.1:1 cannot be reached"), "{}", seen.explanation());
}

#[tokio::test]
async fn hostile_numbers_stay_in_their_place_of_the_address() {
    for (number, target) in [
        (
            "a/../../admin?x=1#y",
            Some("/v3/pay/transactions/out-trade-no/a%2F..%2F..%2Fadmin%3Fx%3D1%23y?mchid=M1"),
        ),
        ("键 '\"", Some("/v3/pay/transactions/out-trade-no/%E9%94%AE%20%27%22?mchid=M1")),
        ("..", None),
        (".", None),
    ] {
        let (channel, table) = wechat(number).await;
        channel.answers(404, r#"{"code":"ORDER_NOT_EXIST"}"#);
        let seen = asked(&table).await;
        match target {
            Some(target) => assert_eq!(channel.last().1, target),
            None => {
                assert_eq!((channel.times_asked(), seen.verdict), (0, Verdict::Unavailable), "{number}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_is_signed_over_what_is_sent() {
    let (address, channel) = channel().await;
    let http = format!(
        r#"
url = "{address}/query?at={{timestamp}}"
body = '{{"no":"{{biz_no}}","nonce":"{{nonce}}"}}'
headers = {{ X-Mch = "{{/mch}}", Authorization = "HMAC sign={{signature}}" }}
sign = {{ header = "X-Sign", secret = "{SECRET}", template = "{{method}}\n{{path}}\n{{body}}\n{{timestamp}}", encoding = "base64" }}
found = {{ when = {{ "/paid" = true }} }}
"#
    );
    let table = table(&biz(&http, ""), "N\"1").await;
    channel.answers(200, r#"{"paid":true}"#);
    assert_eq!(asked(&table).await.verdict, Verdict::Found);
    let (method, target, headers, body) = channel.last();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let sent: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(sent["no"], "N\"1");
    let nonce = sent["nonce"].as_str().unwrap().to_owned();
    assert_eq!((method.as_str(), nonce.len()), ("POST", 32));
    let timestamp = target.strip_prefix("/query?at=").unwrap();
    let expected = hmac_base64(SECRET, &format!("POST\n{target}\n{body}\n{timestamp}"));
    assert_eq!(headers["x-sign"], expected.as_str());
    assert_eq!(headers["authorization"], format!("HMAC sign={expected}"));
    assert_eq!(
        (&headers["x-mch"], &headers["content-type"]),
        (&"M1".parse().unwrap(), &"application/json".parse().unwrap())
    );
    assert_eq!(asked(&table).await.verdict, Verdict::Found);
    let again: serde_json::Value = serde_json::from_slice(&channel.last().3).unwrap();
    assert_ne!(again["nonce"], nonce.as_str());
}

fn hmac_base64(secret: &str, text: &str) -> String {
    use base64::Engine;
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes())
}

#[tokio::test]
async fn a_form_is_asked_and_answered_as_one() {
    let (address, channel) = channel().await;
    let http = format!(
        "url = \"{address}/gateway\"\ncontent_type = \"application/x-www-form-urlencoded\"\nbody = \"orderId={{biz_no}}&txnType=00\"\nfound = {{ when = {{ \"/respCode\" = \"00\", \"/origRespCode\" = \"00\" }} }}\nabsent = {{ when = {{ \"/respCode\" = \"34\" }} }}\n"
    );
    let table = table(&biz(&http, ""), "N&1=").await;
    for (body, verdict) in [
        ("respCode=00&origRespCode=00", Verdict::Found),
        ("respCode=00&origRespCode=05", Verdict::Unavailable),
        ("respCode=34", Verdict::Absent),
    ] {
        channel.answers_as("application/x-www-form-urlencoded; charset=UTF-8", 200, body.as_bytes());
        assert_eq!(asked(&table).await.verdict, verdict, "{body}");
    }
    assert_eq!(&channel.last().3[..], b"orderId=N%261%3D&txnType=00");
}

#[tokio::test]
async fn more_questions_than_the_rate_allows_are_not_sent() {
    let (address, channel) = channel().await;
    let http = format!("{}rate = \"2/s\"\n", WECHAT.replace("{address}", &address));
    let table = table(&biz(&http, ""), "N1").await;
    channel.answers(404, r#"{"code":"ORDER_NOT_EXIST"}"#);
    let mut verdicts = Vec::new();
    for _ in 0..3 {
        verdicts.push(asked(&table).await.verdict);
    }
    assert_eq!(verdicts, [Verdict::Absent, Verdict::Absent, Verdict::Unavailable]);
    assert_eq!(channel.times_asked(), 2);
}

#[tokio::test]
async fn the_channel_is_asked_again_before_a_change_and_fills_the_response() {
    let (address, channel) = channel().await;
    let biz = biz(&WECHAT.replace("{address}", &address), "")
        + "[biz.response]\ntemplate = '{\"code\":0,\"amount\":\"{amount}\"}'\n";
    let table = table(&biz, "N1").await;
    channel.answers(200, r#"{"trade_state":"SUCCESS","amount":{"total":12800}}"#);
    let record = table.get("k").await;
    let change =
        Change { action: Action::MarkSucceeded, record: &record, finding: None, response_body: None };
    let plan = table.source.plan(change).await.unwrap();
    assert_eq!(plan.response.as_deref(), Some("{\"code\":0,\"amount\":\"128.00\"}"));
    channel.answers(502, "");
    let applied =
        table.source.apply(&record, &record.row.version, Action::MarkSucceeded, &plan, common::far()).await;
    assert!(matches!(applied.unwrap(), Applied::EvidenceChanged(now) if now.verdict == Verdict::Unavailable));
    channel.answers(200, r#"{"trade_state":"SUCCESS","amount":{"total":12800}}"#);
    let applied =
        table.source.apply(&record, &record.row.version, Action::MarkSucceeded, &plan, common::far()).await;
    assert_eq!(applied.unwrap(), Applied::Changed);
}

#[tokio::test]
async fn a_database_and_a_channel_are_partial_when_one_of_them_has_it() {
    let (address, channel) = channel().await;
    let biz = format!(
        "[[biz]]\ntype = \"ORDER\"\n[[biz.reverse_check]]\nname = \"order\"\nsql = \"SELECT order_no FROM t_order WHERE order_no = :biz_no\"\n[[biz.reverse_check]]\nname = \"channel\"\n[biz.reverse_check.http]\n{}",
        WECHAT.replace("{address}", &address)
    );
    let table = table(&biz, "N1").await;
    channel.answers(200, r#"{"trade_state":"SUCCESS","amount":{"total":12800}}"#);
    assert_eq!(asked(&table).await.verdict, Verdict::Partial);
    table.run("INSERT INTO t_order VALUES ('N1', 'PAID', 128.00, 0)").await;
    assert_eq!(asked(&table).await.verdict, Verdict::Found);
}
