use crate::app::{TestApp, request};
use axum::http::Method;
use serde_json::{Value, json};

fn spec() -> Value {
    json!({
        "name": "hits", "metric": "hit_rate", "biz_type": "ORDER", "side": "above", "warn": 0.15, "critical": 0.3,
        "window_minutes": 5, "for_minutes": 1, "min_requests": 50, "enabled": true,
    })
}

#[tokio::test]
async fn a_rule_is_made_changed_and_deleted_by_those_who_may() {
    let app = TestApp::start().await;
    let (operator, admin) = (app.sign_in("operator").await, app.sign_in("admin").await);
    app.post(&operator, "/api/v1/alert-rules", spec()).await.problem(403);
    let made = app.post(&admin, "/api/v1/alert-rules", spec()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let path = made.header("location").to_owned();
    let mut rule = made.json();
    assert_eq!((&rule["version"], &rule["warn"]), (&json!("1"), &json!(0.15)));
    rule["warn"] = json!(0.2);
    let changed = app.ask(request(&admin, Method::PUT, &path, Some(rule.clone()), &[])).await.ok();
    assert_eq!((&changed["version"], &changed["warn"]), (&json!("2"), &json!(0.2)));
    app.ask(request(&admin, Method::PUT, &path, Some(rule), &[])).await.problem(409);
    app.ask(request(&admin, Method::PUT, &path, Some(spec()), &[])).await.ok();
    let gone = app.ask(request(&admin, Method::DELETE, &path, None, &[])).await;
    assert_eq!(gone.status, 204);
    app.ask(request(&admin, Method::DELETE, &path, None, &[])).await.problem(404);
}

#[tokio::test]
async fn a_rule_that_makes_no_sense_is_refused_and_a_good_one_is_previewed() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let preview = app.post(&viewer, "/api/v1/alert-rules/preview", spec()).await.ok();
    assert_eq!(preview["would_have_fired"], 0);
    let mut bad = spec();
    bad["warn"] = json!(1.5);
    app.post(&viewer, "/api/v1/alert-rules/preview", bad).await.problem(400);
    app.post(&viewer, "/api/v1/alert-rules/preview", json!({"name": "x"})).await.problem(400);
}

#[tokio::test]
async fn alerts_are_listed_and_an_unknown_one_is_not_acknowledged() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    assert!(app.get(&operator, "/api/v1/alerts").await.ok()["items"].as_array().unwrap().is_empty());
    assert!(
        app.get(&operator, "/api/v1/alerts?open=true").await.ok()["items"].as_array().unwrap().is_empty()
    );
    app.post(&operator, "/api/v1/alerts/none/acknowledge", json!({})).await.problem(404);
    app.post(&operator, "/api/v1/alerts/none/silence", json!({"hours": 0})).await.problem(400);
}
