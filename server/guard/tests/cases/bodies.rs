//! Odd bodies: too large, streamed, binary.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::post;
use db::testkit::each_database;
use guard::{Guard, KeySource, Policy, Settings};
use http_body_util::BodyExt;
use tower::ServiceExt;

async fn send(app: &Router, path: &str, body: Vec<u8>) -> (StatusCode, Vec<u8>, bool) {
    let request = Request::post(path).header("idempotency-key", path).body(Body::from(body)).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let marked = response.headers().contains_key("idempotency-body");
    (response.status(), response.into_body().collect().await.unwrap().to_bytes().to_vec(), marked)
}

async fn app(db: &db::Db) -> Router {
    let guard = Guard::open(db.clone(), Settings::new("one")).await.unwrap();
    let protect = || {
        let policy = Policy { max_request: 1000, ..Policy::new("X", KeySource::Header) };
        guard.protect(policy).unwrap()
    };
    let big = || async { (StatusCode::CREATED, vec![b'x'; 5 << 20]) };
    let binary = || async { vec![0u8, 255, 1] };
    Router::new()
        .route("/big", post(big).layer(protect()))
        .route("/binary", post(binary).layer(protect()))
        .route("/empty", post(|| async { StatusCode::NO_CONTENT }).layer(protect()))
}

#[tokio::test]
async fn c14_an_oversized_response_leaves_its_status_and_is_never_run_again() {
    for test in each_database().await {
        guard::schema::create(&test.db).await.unwrap();
        let app = app(&test.db).await;
        let (status, body, marked) = send(&app, "/big", vec![]).await;
        assert_eq!((status, body.len(), marked), (StatusCode::CREATED, 5 << 20, false));
        let (status, body, marked) = send(&app, "/big", vec![]).await;
        assert_eq!((status, marked), (StatusCode::CREATED, true));
        assert!(String::from_utf8(body).unwrap().contains("response_not_stored"));
    }
}

#[tokio::test]
async fn binary_and_empty_responses_come_back_byte_for_byte() {
    for test in each_database().await {
        guard::schema::create(&test.db).await.unwrap();
        let app = app(&test.db).await;
        for _ in 0..2 {
            assert_eq!(send(&app, "/binary", vec![0, 159]).await.1, [0, 255, 1]);
            assert_eq!(send(&app, "/empty", vec![]).await, (StatusCode::NO_CONTENT, vec![], false));
        }
    }
}

#[tokio::test]
async fn a_request_body_over_the_limit_is_refused_before_anything_runs() {
    for test in each_database().await {
        guard::schema::create(&test.db).await.unwrap();
        let (status, ..) = send(&app(&test.db).await, "/empty", vec![b' '; 1001]).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
