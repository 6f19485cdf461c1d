use crate::app::{TestApp, Who};

#[tokio::test]
async fn supervisors_see_the_process_the_store_and_the_counts() {
    let app = TestApp::start().await;
    assert_eq!(app.get(&Who::Stranger, "/healthz").await.text(), "ok\n");
    assert_eq!(app.get(&Who::Stranger, "/readyz").await.status, 200);
    let metrics = app.get(&Who::Stranger, "/metrics").await;
    assert!(metrics.header("content-type").starts_with("text/plain"));
    let text = metrics.text();
    for line in [
        "amends_build_info{version=",
        "http_requests_total{",
        "amends_stuck_records{source=\"orders\",biz_type=\"ORDER\",verdict=\"not_checked\"} 3",
        "# TYPE amends_alerts gauge",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    app.state.store.close().await;
    assert_eq!(app.get(&Who::Stranger, "/healthz").await.status, 200);
    assert_eq!(app.get(&Who::Stranger, "/readyz").await.problem(503), "not_ready");
}

#[tokio::test]
async fn a_store_that_is_down_is_said_to_be_down() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    app.state.store.close().await;
    let refused = app.get(&viewer, "/api/v1/records").await;
    assert_eq!(refused.problem(503), "unavailable");
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(app.get(&viewer, "/me").await.status, 503);
}
