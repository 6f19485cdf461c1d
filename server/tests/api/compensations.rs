use crate::app::{Reply, TestApp, Who, request};
use axum::http::Method;
use serde_json::{Value, json};

fn order(row: &Value, evidence: &Value, action: &str) -> Value {
    json!({
        "action": action, "reason": "seen in the order table", "if_version": row["version"],
        "evidence_id": evidence["evidence_id"],
    })
}

async fn settle(app: &TestApp, who: &Who, row: &Value, key: &str, order: Value) -> Reply {
    let path = format!("/api/v1/records/{}/compensations", row["id"].as_str().unwrap());
    app.ask(request(who, Method::POST, &path, Some(order), &[("idempotency-key", key)])).await
}

#[tokio::test]
async fn the_same_command_has_one_effect_and_one_answer() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let (row, evidence) = app.checked(&operator, "found").await;
    let order = order(&row, &evidence, "mark_succeeded");
    let first = settle(&app, &operator, &row, "k1", order.clone()).await;
    assert_eq!(first.ok()["outcome"], "succeeded");
    let second = settle(&app, &operator, &row, "k1", order).await;
    assert_eq!((first.status, first.body), (second.status, second.body));
    let settled = app.row(&operator, "found").await;
    assert_eq!(settled["state"], "SUCCESS");
    let audited = app.actions_audited(&operator).await;
    assert_eq!(
        audited.iter().filter(|action| action.starts_with("mark_succeeded.")).count(),
        2,
        "{audited:?}"
    );
}

#[tokio::test]
async fn one_key_carries_one_command() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let (row, evidence) = app.checked(&operator, "absent").await;
    settle(&app, &operator, &row, "k1", order(&row, &evidence, "mark_timed_out")).await.ok();
    let other = settle(&app, &operator, &row, "k1", order(&row, &evidence, "mark_succeeded")).await;
    assert_eq!(other.problem(422), "key_reused");
}

#[tokio::test]
async fn what_the_evidence_forbids_is_refused_with_its_reason() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    for (key, action, code) in [
        ("found", "replay", "effect_exists"),
        ("found", "mark_timed_out", "effect_exists"),
        ("absent", "mark_succeeded", "no_effect"),
        ("mismatch", "mark_succeeded", "second_person"),
        ("mismatch", "mark_timed_out", "second_person"),
        ("young", "mark_timed_out", "still_running"),
        ("done", "mark_timed_out", "settled"),
    ] {
        let (row, evidence) = app.checked(&operator, key).await;
        let refused = settle(&app, &operator, &row, key, order(&row, &evidence, action)).await;
        let code = if action == "replay" { "not_expressible" } else { code };
        assert_eq!(refused.problem(422), code, "{key} {action}");
        assert_eq!(app.row(&operator, key).await["version"], row["version"]);
    }
}

#[tokio::test]
async fn without_evidence_nothing_is_done() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let row = app.row(&operator, "found").await;
    let nothing = json!({});
    let refused = settle(&app, &operator, &row, "k1", order(&row, &nothing, "mark_succeeded")).await;
    assert_eq!(refused.problem(422), "no_evidence");
    let (row, evidence) = app.checked(&operator, "found").await;
    app.clock.advance(chrono::Duration::seconds(61));
    let refused = settle(&app, &operator, &row, "k2", order(&row, &evidence, "mark_succeeded")).await;
    assert_eq!(refused.problem(422), "evidence_expired");
}

#[tokio::test]
async fn a_record_that_moved_is_left_alone_and_shown_as_it_is_now() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let (row, evidence) = app.checked(&operator, "found").await;
    app.change_shop("UPDATE idempotent_record SET status = 'FAILED' WHERE idempotent_id = 'found'").await;
    let refused = settle(&app, &operator, &row, "k1", order(&row, &evidence, "mark_succeeded")).await;
    assert_eq!(refused.problem(409), "record_moved");
    assert_eq!(refused.json()["current"]["state"], "FAILED");
    assert_eq!(app.row(&operator, "found").await["state"], "FAILED");
}

#[tokio::test]
async fn a_version_that_is_not_the_records_is_stale() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let (row, evidence) = app.checked(&operator, "found").await;
    for version in ["999999", "", "PROCESSING.AAAA", "中"] {
        let mut order = order(&row, &evidence, "mark_succeeded");
        order["if_version"] = json!(version);
        let refused = settle(&app, &operator, &row, "k1", order).await;
        assert_eq!(refused.problem(412), "stale_version", "{version:?}");
        assert_eq!(refused.json()["current"]["version"], row["version"]);
    }
}

#[tokio::test]
async fn a_malformed_command_is_refused_before_anything_is_looked_at() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let (row, evidence) = app.checked(&operator, "found").await;
    let good = order(&row, &evidence, "mark_succeeded");
    let path = format!("/api/v1/records/{}/compensations", row["id"].as_str().unwrap());
    app.post(&operator, &path, good.clone()).await.problem(400);
    let long = "k".repeat(256);
    for key in ["", " ", "a b", "键", &long] {
        let request =
            request(&operator, Method::POST, &path, Some(good.clone()), &[("idempotency-key", key)]);
        app.ask(request).await.problem(400);
    }
    let without = |field: &str| {
        let mut order = good.clone();
        order.as_object_mut().unwrap().remove(field);
        order
    };
    let with = |field: &str, value: Value| {
        let mut order = good.clone();
        order[field] = value;
        order
    };
    for order in [
        without("reason"),
        with("reason", json!("")),
        with("reason", json!("  ")),
        with("reason", json!("x".repeat(501))),
        with("reason", json!("a\u{0}b")),
        without("action"),
        with("action", json!("delete")),
        without("if_version"),
        with("colour", json!("red")),
        with("if_version", json!(7)),
        json!([]),
        json!(null),
    ] {
        settle(&app, &operator, &row, "k1", order).await.problem(400);
    }
    assert_eq!(app.row(&operator, "found").await["version"], row["version"]);
}

#[tokio::test]
async fn a_viewer_cannot_settle() {
    let app = TestApp::start().await;
    let (operator, viewer) = (app.sign_in("operator").await, app.sign_in("viewer").await);
    let (row, evidence) = app.checked(&operator, "found").await;
    let order = order(&row, &evidence, "mark_succeeded");
    assert_eq!(settle(&app, &viewer, &row, "k1", order.clone()).await.problem(403), "forbidden");
    settle(&app, &Who::Stranger, &row, "k1", order).await.problem(401);
}
