use crate::app::{TestApp, Who, request};
use crate::openapi::operations;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

/// One console for all tries, and the addresses it serves.
struct Target {
    runtime: tokio::runtime::Runtime,
    app: TestApp,
    operator: Who,
    operations: Vec<(Method, String)>,
}

impl Target {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (app, operator, operations) = runtime.block_on(async {
            let app = TestApp::start().await;
            let operator = app.sign_in("operator").await;
            let document = app.get(&operator, "/api/v1/openapi.json").await.ok();
            let mut operations = operations(&document);
            operations.retain(|(method, path)| !(method == Method::DELETE && path.ends_with("/session")));
            let pages =
                ["/", "/login", "/me", "/stuck", "/records", "/records/none", "/nothing", "/assets/none"];
            operations.extend(pages.map(|page| (Method::GET, page.to_owned())));
            let functions =
                ["/api/fn/sign_in", "/api/fn/set_theme", "/api/fn/set_preferences", "/api/fn/none"];
            operations.extend(functions.map(|function| (Method::POST, function.to_owned())));
            (app, operator, operations)
        });
        Self { runtime, app, operator, operations }
    }

    /// Sends what can be sent at all and refuses every answer that blames us.
    fn try_one(&self, request: Option<Request<Body>>) -> Result<(), TestCaseError> {
        let Some(request) = request else { return Ok(()) };
        let asked = format!("{} {}", request.method(), request.uri());
        let reply = self.runtime.block_on(self.app.ask(request));
        prop_assert!(!reply.status.is_server_error(), "{asked}: {} {}", reply.status, reply.text());
        let is_api = asked.contains(" /api/");
        if is_api && reply.status.is_client_error() {
            prop_assert_eq!(reply.header("content-type"), "application/problem+json", "{}", asked);
        }
        Ok(())
    }
}

fn query() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "limit",
        "cursor",
        "state",
        "stuck",
        "source",
        "biz_type",
        "biz_no",
        "key",
        "q",
        "created_from",
        "created_to",
        "from",
        "to",
        "step",
        "actor",
        "action",
        "record",
        "reveal",
        "open",
        "next",
        "confirm",
        "lane",
        "%ff",
        "",
    ]);
    let value = prop_oneof![
        "[ -~]{0,12}",
        "(%[0-9a-fA-F]{2}){0,6}",
        "-?[0-9]{1,22}",
        "[A-Za-z0-9_-]{0,40}",
        "\\PC{0,6}"
    ];
    prop::collection::vec((name, value), 0..4).prop_map(|pairs| {
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let deep = Just([vec![b'['; 5_000], vec![b']'; 5_000]].concat());
    let json = prop::sample::select(vec![
        json!({"action": "replay", "reason": "\u{7f}", "if_version": "SUCCESS.AAAA", "evidence_id": "\u{202e}"}),
        json!({"producer": "x".repeat(101), "sequence": -1, "counts": [{"at": "9999-12-31T23:59:59Z"}]}),
        json!({"producer": "p", "sequence": i64::MAX, "counts": [{"source": "s", "biz_type": "b",
            "at": "0001-01-01T00:00:00Z", "outcome": "hit", "count": 4294967295u32}]}),
        json!({"name": "n", "metric": "hit_rate", "side": "above", "warn": 1e308, "window_minutes": 4294967295u32,
            "for_minutes": 0, "min_requests": 18446744073709551615u64, "enabled": true}),
        json!({"hours": f64::MAX}),
        json!({"username": "a".repeat(5_000), "password": "\u{0}"}),
        json!({"lane": "none"}),
        json!({}),
        json!(null),
    ])
    .prop_map(|value| value.to_string().into_bytes());
    prop_oneof![
        json,
        deep,
        prop::collection::vec(any::<u8>(), 0..300),
        "theme=%ff&back=[ -~]{0,20}".prop_map(Vec::from)
    ]
}

fn segment() -> impl Strategy<Value = String> {
    let id = (".*", prop::collection::vec(".*", 0..3))
        .prop_map(|(source, locator)| domain::record::RecordId::new(source, locator).to_string());
    let ours = ".*".prop_map(|key| domain::record::RecordId::new("orders", vec![key]).to_string());
    prop_oneof![id, ours, "[ -~]{0,20}", "(%[0-9a-f]{2}){0,8}", Just("none".to_owned())]
}

fn headers() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    let name = prop::sample::select(vec![
        "idempotency-key",
        "accept-language",
        "accept",
        "cookie",
        "last-event-id",
        "x-request-id",
        "referer",
        "accept-encoding",
        "authorization",
        "content-type",
        "content-length",
    ]);
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        Just(b"text/html".to_vec()),
        Just(b"application/json".to_vec()),
        Just(b"application/x-www-form-urlencoded".to_vec()),
        Just(b"amends_session=AAAAAAAAAAAAAAAAAAAAAA; amends_zone=Mars; amends_flash=done:<b>".to_vec()),
    ];
    prop::collection::vec((name, value), 0..4)
}

/// Path segment, query, headers and body.
type Parts = (String, String, Vec<(&'static str, Vec<u8>)>, Vec<u8>);

fn build(target: &Target, at: usize, part: Parts) -> Option<Request<Body>> {
    let (segment, query, headers, body) = part;
    let (method, path) = &target.operations[at % target.operations.len()];
    let uri: Uri = format!("{}?{query}", path.replace("none", &segment)).parse().ok()?;
    let mut request = request(&target.operator, method.clone(), "/", None, &[]);
    *request.uri_mut() = uri;
    *request.body_mut() = if *method == Method::GET { Body::empty() } else { Body::from(body) };
    request.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    Some(request)
}

#[test]
fn no_request_makes_the_console_answer_5xx() {
    let target = Target::start();
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let parts = (any::<prop::sample::Index>(), (segment(), query(), headers(), body()));
    let outcome = runner.run(&parts, |(at, part)| {
        let at = at.index(target.operations.len());
        target.try_one(build(&target, at, part))
    });
    outcome.unwrap();
}

#[tokio::test]
async fn a_body_above_one_mebibyte_is_refused_whoever_asks_and_however_it_comes() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    for who in [&Who::Stranger, &operator] {
        let mut whole = request(who, Method::POST, "/api/v1/events", Some(json!({})), &[]);
        *whole.body_mut() = Body::from(vec![b' '; (1 << 20) + 1]);
        assert_eq!(app.ask(whole).await.problem(413), "too_large");
        let chunks = futures::stream::iter((0..40).map(|_| Ok::<_, std::io::Error>(vec![b' '; 32 * 1024])));
        let mut streamed = request(who, Method::POST, "/api/fn/set_theme", Some(json!({})), &[]);
        *streamed.body_mut() = Body::from_stream(chunks);
        assert_eq!(app.ask(streamed).await.problem(413), "too_large");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_a_problem() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let send = async |kind: &str, body: &'static str| {
        let mut sent = request(&operator, Method::POST, "/api/v1/checks", None, &[("content-type", kind)]);
        *sent.body_mut() = Body::from(body);
        app.ask(sent).await
    };
    send("text/plain", "{}").await.problem(415);
    send("application/x-www-form-urlencoded", "a=b").await.problem(415);
    send("application/json", "").await.problem(400);
    send("application/json", "{").await.problem(400);
    send("application/json; charset=utf-8", "{\"lane\":\"nowhere\"}").await.problem(400);
    send("application/json", "null").await.problem(400);
    // A command that two readers could understand as two commands is none.
    send("application/json", "[null,null,null]").await.problem(400);
    send("application/json", r#"{"lane":"found","source":null,"lane":"absent"}"#).await.problem(400);
    send("application/json", r#"{"source":"a\u0000b"}"#).await.problem(400);
}
