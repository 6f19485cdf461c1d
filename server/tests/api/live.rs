use crate::app::{TestApp, Who, request};
use axum::body::Body;
use axum::http::Method;
use domain::ports::{Events, Topic};
use http_body_util::BodyExt;
use std::time::Duration;
use tower::ServiceExt;

/// The next piece of the stream, or nothing when it ended.
async fn next(body: &mut Body) -> Option<String> {
    let frame =
        tokio::time::timeout(Duration::from_secs(10), body.frame()).await.expect("the stream said nothing");
    frame.map(|frame| String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn an_open_page_hears_what_changed_and_only_that() {
    let app = TestApp::start().await;
    app.get(&Who::Stranger, "/live").await.problem(401);
    let viewer = app.sign_in("viewer").await;
    let request =
        request(&viewer, Method::GET, "/live", None, &[("last-event-id", "7"), ("accept-encoding", "br")]);
    let response = app.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("content-encoding"));
    let mut body = response.into_body();
    app.state.hub.changed(Topic::Records);
    assert_eq!(next(&mut body).await.unwrap(), "event: changed\ndata: records\n\n");
    app.state.hub.close();
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test]
async fn a_page_that_fell_behind_is_told_to_read_everything() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let request = request(&viewer, Method::GET, "/live", None, &[]);
    let mut body = app.router.clone().oneshot(request).await.unwrap().into_body();
    for _ in 0..500 {
        app.state.hub.changed(Topic::Rates);
    }
    let mut told = String::new();
    while !(told.contains("records") && told.contains("audit") && told.contains("sources")) {
        told += &next(&mut body).await.unwrap();
    }
}
