use crate::app::{PASSWORD, TestApp, Who, cookie, put_user, request};
use axum::http::Method;
use chrono::Duration;
use domain::audit::Draft;
use domain::clock::Clock;
use domain::roles::Role;
use serde_json::json;
use sha2::{Digest, Sha256};

#[tokio::test]
async fn signing_in_gives_a_cookie_that_scripts_and_other_sites_cannot_use() {
    let app = TestApp::start_with("secure_cookies = true").await;
    let reply = app.try_sign_in(&Who::Stranger, "operator", PASSWORD).await;
    assert_eq!(reply.status, 204);
    let set = reply.header("set-cookie");
    for part in ["amends_session=", "HttpOnly", "SameSite=Lax", "Secure", "Path=/"] {
        assert!(set.contains(part), "{part} is missing in {set}");
    }
    assert_eq!(app.get(&Who::Cookie(cookie(&reply)), "/api/v1/sources").await.status, 200);
}

#[tokio::test]
async fn signing_out_is_final_even_for_a_kept_cookie() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let out = app.ask(request(&operator, Method::DELETE, "/api/v1/session", None, &[])).await;
    assert_eq!(out.status, 204);
    assert_eq!(app.get(&operator, "/api/v1/sources").await.problem(401), "unauthenticated");
}

#[tokio::test]
async fn signing_in_again_makes_the_earlier_session_worthless() {
    let app = TestApp::start().await;
    let planted = app.sign_in("viewer").await;
    let reply = app.try_sign_in(&planted, "admin", PASSWORD).await;
    assert_eq!(reply.status, 204);
    app.get(&planted, "/api/v1/sources").await.problem(401);
    app.get(&Who::Cookie(cookie(&reply)), "/api/v1/sources").await.ok();
}

#[tokio::test]
async fn a_wrong_name_and_a_wrong_password_are_answered_alike() {
    let app = TestApp::start().await;
    let wrong_password = app.try_sign_in(&Who::Stranger, "operator", "wrong").await;
    let wrong_name = app.try_sign_in(&Who::Stranger, "nobody", "wrong").await;
    assert_eq!(wrong_password.problem(401), "wrong_credentials");
    assert_eq!(wrong_password.body, wrong_name.body);
    assert!(wrong_name.headers.contains_key("www-authenticate"));
}

#[tokio::test]
async fn guessing_is_slowed_by_name_and_the_answer_says_until_when() {
    let app = TestApp::start().await;
    for _ in 0..10 {
        app.try_sign_in(&Who::Stranger, "operator", "wrong").await.problem(401);
    }
    let refused = app.try_sign_in(&Who::Stranger, "operator", PASSWORD).await;
    assert_eq!(refused.problem(429), "too_many_attempts");
    let seconds: i64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds));
    app.sign_in("viewer").await;
    app.clock.advance(Duration::seconds(seconds + 1));
    app.sign_in("operator").await;
}

#[tokio::test]
async fn a_session_ends_after_its_hours() {
    let app = TestApp::start_with("session_hours = 2").await;
    let operator = app.sign_in("operator").await;
    app.clock.advance(Duration::minutes(119));
    app.get(&operator, "/api/v1/sources").await.ok();
    app.clock.advance(Duration::minutes(2));
    app.get(&operator, "/api/v1/sources").await.problem(401);
}

#[tokio::test]
async fn a_new_role_counts_at_once_and_a_new_password_ends_the_session() {
    let app = TestApp::start().await;
    let admin = app.sign_in("admin").await;
    app.get(&admin, "/api/v1/alert-rules").await.ok();
    put_user(&app.state, "admin", Role::Viewer).await;
    let rule = json!({"name": "r", "metric": "hit_rate", "side": "above", "warn": 0.5, "window_minutes": 5,
        "for_minutes": 1, "min_requests": 1, "enabled": true});
    app.post(&admin, "/api/v1/alert-rules", rule).await.problem(403);
    let mut user = app.state.users.user("admin").await.unwrap().unwrap();
    user.password_hash = server::http::password::hash("another-password").unwrap();
    app.state.users.put_user(&user, &Draft::new(app.clock.now(), "test", "user.changed")).await.unwrap();
    app.get(&admin, "/api/v1/alert-rules").await.problem(401);
}

#[tokio::test]
async fn a_token_signs_a_program_in_and_a_wrong_one_is_told_how() {
    let app = TestApp::start().await;
    let digest = hex::encode(Sha256::digest("amends_secret"));
    let draft = Draft::new(app.clock.now(), "test", "token.created");
    app.state.users.put_token(&digest, "reporter", Role::Operator, &draft).await.unwrap();
    let report = json!({"producer": "p", "sequence": 1, "counts": []});
    let taken = app.post(&Who::Token("amends_secret"), "/api/v1/events", report).await;
    assert_eq!(taken.status, 202, "{}", taken.text());
    let refused = app.get(&Who::Token("wrong"), "/api/v1/sources").await;
    refused.problem(401);
    assert!(refused.header("www-authenticate").starts_with("Bearer"));
}

#[tokio::test]
async fn sign_ins_and_refusals_are_audited_without_what_strangers_typed() {
    let app = TestApp::start().await;
    app.try_sign_in(&Who::Stranger, "hunter2-typed-into-the-name", "x").await.problem(401);
    app.try_sign_in(&Who::Stranger, "operator", "x").await.problem(401);
    let viewer = app.sign_in("viewer").await;
    let audit = app.get(&viewer, "/api/v1/audit").await;
    assert!(!audit.text().contains("hunter2"));
    let entries = audit.ok()["items"].clone();
    let newest: Vec<_> =
        (0..3).map(|n| (entries[n]["action"].clone(), entries[n]["actor"].clone())).collect();
    let expected =
        [("session.signed_in", "viewer"), ("session.refused", "operator"), ("session.refused", "anonymous")];
    assert_eq!(newest, expected.map(|(action, actor)| (json!(action), json!(actor))));
}

#[tokio::test]
async fn a_change_sent_by_another_sites_page_is_refused_everywhere() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let Who::Cookie(cookie) = &operator else { unreachable!() };
    let browser =
        [("cookie", cookie.as_str()), ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")];
    for path in ["/api/v1/session", "/api/v1/checks", "/api/fn/sign_out", "/api/fn/set_theme"] {
        let request = request(&Who::Stranger, Method::POST, path, Some(json!({})), &browser);
        assert_eq!(app.ask(request).await.problem(403), "cross_site", "{path}");
    }
    app.get(&operator, "/api/v1/sources").await.ok();
}
