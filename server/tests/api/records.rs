use crate::app::{TestApp, Who};
use serde_json::{Value, json};

#[tokio::test]
async fn the_list_has_the_fields_it_promises_and_no_body() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let page = app.get(&viewer, "/api/v1/records?stuck=true&limit=200").await.ok();
    let keys: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["found", "absent", "mismatch"], "oldest first");
    let row = &page["items"][0];
    for field in
        ["id", "source", "biz_type", "biz_no", "state", "created_at", "updated_at", "version", "verdict"]
    {
        assert!(row.get(field).is_some(), "{field}");
    }
    assert_eq!((&row["state"], &row["stuck"]), (&json!("PROCESSING"), &json!(true)));
    assert!(row["created_at"].as_str().unwrap().ends_with('Z'));
    assert!((3_590..=3_700).contains(&row["age_seconds"].as_i64().unwrap()));
    assert!(row.get("request").is_none() && page["next_cursor"].is_null());
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_repetition() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&viewer, &format!("/api/v1/records?limit=2{cursor}")).await.ok();
        seen.extend(page["items"].as_array().unwrap().iter().map(|row| row["key"].to_string()));
        match &page["next_cursor"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => break,
        }
    }
    assert_eq!(seen.len(), 6);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 6);
}

#[tokio::test]
async fn a_filter_that_cannot_be_read_is_refused_and_never_ignored() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    for query in [
        "limit=-1",
        "limit=0",
        "limit=201",
        "limit=abc",
        "limit=",
        "state=NOPE",
        "state=",
        "stuck=maybe",
        "cursor=%00%ff",
        "cursor=abc",
        "created_from=yesterday",
        "created_to=0000-01-01T00:00:00Z",
        "created_from=2026-12-01T00:00:00",
        "key=%ff",
        "key=a%00b",
        "colour=red",
        "limit=1&limit=2",
    ] {
        app.get(&viewer, &format!("/api/v1/records?{query}")).await.problem(400);
    }
    app.get(&viewer, "/api/v1/records?source=nowhere").await.problem(404);
    app.get(&Who::Stranger, "/api/v1/records?limit=abc").await.problem(401);
}

#[tokio::test]
async fn filters_find_hostile_keys_as_they_are() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let page = app.get(&viewer, "/api/v1/records?biz_no=%E4%B8%AD%E6%96%87%20%F0%9F%A6%80").await.ok();
    let key = page["items"][0]["key"].as_str().unwrap();
    assert!(key.starts_with("<script>") && key.ends_with("--"));
    let id = page["items"][0]["id"].as_str().unwrap();
    assert_eq!(app.get(&viewer, &format!("/api/v1/records/{id}")).await.ok()["key"], key);
}

#[tokio::test]
async fn a_record_shows_everything_with_its_bodies_masked() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let (row, evidence) = app.checked(&operator, "found").await;
    assert_eq!((&evidence["verdict"], &evidence["recommended"]), (&json!("found"), &json!("mark_succeeded")));
    let path = format!("/api/v1/records/{}", row["id"].as_str().unwrap());
    let reply = app.get(&operator, &path).await;
    assert!(!reply.text().contains("13800138000"), "{}", reply.text());
    let record = reply.ok();
    let request = &record["request"];
    assert_eq!(
        (&request["stored"], &request["masked"], &request["truncated"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert!(request["content"].as_str().unwrap().contains("\"amount\":128.00"), "{request}");
    assert_eq!(record["response"]["stored"], false);
    assert!(record["cache"].is_null());
    let allowed: Vec<_> =
        record["actions"].as_array().unwrap().iter().map(|a| (&a["action"], &a["allowed"])).collect();
    assert_eq!(allowed[0], (&json!("mark_succeeded"), &json!(true)));
    assert_eq!(allowed[2], (&json!("replay"), &json!(false)));
    assert_eq!(record["evidence"]["evidence_id"], evidence["evidence_id"]);
    assert!(record["history"].as_array().unwrap().iter().any(|line| line["event"] == "checked"));
}

#[tokio::test]
async fn revealing_is_a_right_and_leaves_a_trace() {
    let app = TestApp::start().await;
    let (operator, approver) = (app.sign_in("operator").await, app.sign_in("approver").await);
    let path =
        format!("/api/v1/records/{}?reveal=true", app.row(&operator, "done").await["id"].as_str().unwrap());
    app.get(&operator, &path).await.problem(403);
    assert!(!app.actions_audited(&operator).await.contains(&"bodies.revealed".to_owned()));
    let record = app.get(&approver, &path).await.ok();
    assert_eq!(record["request"]["content"], r#"{"card_no":"6222021234567894"}"#);
    assert_eq!(record["request"]["masked"], false);
    assert_eq!(app.actions_audited(&operator).await[0], "bodies.revealed");
}

#[tokio::test]
async fn an_id_that_names_nothing_is_not_found() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let elsewhere = domain::record::RecordId::new("nowhere", vec!["x".into()]);
    let nothing = domain::record::RecordId::new("orders", vec!["nothing".into()]);
    let nul = domain::record::RecordId::new("orders", vec!["a\0b".into()]);
    for id in
        ["%2e%2e%2fetc", "x", "%F0%9F%A6%80", &elsewhere.to_string(), &nothing.to_string(), &nul.to_string()]
    {
        app.get(&viewer, &format!("/api/v1/records/{id}")).await.problem(404);
    }
    app.get(&viewer, "/api/v1/records/%ff").await.problem(400);
}

#[tokio::test]
async fn rates_answer_with_a_series_and_a_step_of_whole_minutes() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let at = chrono::DateTime::to_rfc3339(&domain::clock::Clock::now(app.clock.as_ref()));
    let count = |outcome, count| json!({"source": "orders", "biz_type": "ORDER", "at": at, "outcome": outcome, "count": count});
    let report =
        json!({"producer": "gate", "sequence": 7, "counts": [count("executed", 3), count("hit", 1)]});
    for applied in [true, false] {
        let taken = app.post(&operator, "/api/v1/events", report.clone()).await;
        assert_eq!((taken.status.as_u16(), &taken.json()["applied"]), (202, &json!(applied)));
    }
    let rates = app.get(&operator, "/api/v1/rates?biz_type=ORDER&step=5m").await.ok();
    assert_eq!(rates["step_seconds"], 300);
    let series = rates["series"].as_array().unwrap();
    assert_eq!((series.len(), &series[0]["executed"], &series[0]["hit_rate"]), (1, &json!(3), &json!(0.25)));
    for query in [
        "step=0",
        "step=7x",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=1970-01-01T00:00:00Z&step=1",
    ] {
        app.get(&operator, &format!("/api/v1/rates?{query}")).await.problem(400);
    }
}

#[tokio::test]
async fn a_check_run_counts_up_to_its_total() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    app.get(&operator, "/api/v1/checks/latest").await.problem(404);
    let started = app.post(&operator, "/api/v1/checks", json!({"source": "orders"})).await;
    assert_eq!(started.status, 202, "{}", started.text());
    assert_eq!(started.json()["total"], 3);
    let finished = loop {
        let run = app.get(&operator, "/api/v1/checks/latest").await.ok();
        if !run["finished_at"].is_null() {
            break run;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&finished["done"], &finished["failed"]), (&json!(3), &json!(0)));
}
