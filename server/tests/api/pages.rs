use crate::app::{PASSWORD, TestApp, Who, cookie, request};
use axum::body::Body;
use axum::http::Method;

const HTML: [(&str, &str); 1] = [("accept", "text/html")];

async fn page(app: &TestApp, who: &Who, path: &str) -> crate::app::Reply {
    app.ask(request(who, Method::GET, path, None, &HTML)).await
}

#[tokio::test]
async fn strangers_are_sent_to_sign_in_and_come_back_where_they_were_going() {
    let app = TestApp::start().await;
    let reply = page(&app, &Who::Stranger, "/me?tab=1").await;
    assert_eq!(reply.status, 303);
    assert_eq!(reply.header("location"), "/login?next=%2Fme%3Ftab%3D1");
    assert_eq!(page(&app, &Who::Stranger, "/login").await.status, 200);
    assert_eq!(page(&app, &Who::Stranger, "/nothing").await.status, 404);
}

#[tokio::test]
async fn who_is_signed_in_keeps_the_rail_where_nothing_lives() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let signed_in = page(&app, &viewer, "/nothing/here").await;
    assert_eq!(signed_in.status, 404);
    assert!(signed_in.text().contains("id=\"rail\""), "{}", signed_in.text());
    let stranger = page(&app, &Who::Stranger, "/nothing/here").await;
    assert_eq!(stranger.status, 404);
    assert!(!stranger.text().contains("id=\"rail\""));
}

#[tokio::test]
async fn a_page_runs_only_scripts_with_its_own_nonce_and_is_kept_nowhere() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    let (first, second) = (page(&app, &operator, "/me").await, page(&app, &operator, "/me").await);
    assert_eq!(first.status, 200, "{}", first.text());
    let nonce = |reply: &crate::app::Reply| {
        let policy = reply.header("content-security-policy").to_owned();
        assert!(!policy.contains("unsafe-inline") && policy.contains("frame-ancestors 'none'"), "{policy}");
        policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned()
    };
    assert_ne!(nonce(&first), nonce(&second));
    for script in first.text().split("<script").skip(1) {
        let tag = script.split('>').next().unwrap();
        assert!(tag.contains(&format!("nonce=\"{}\"", nonce(&first))), "{tag}");
    }
    assert_eq!(first.header("cache-control"), "no-store");
    assert_eq!(first.header("x-content-type-options"), "nosniff");
    assert_eq!(first.header("referrer-policy"), "same-origin");
    assert!(!first.headers.contains_key("strict-transport-security"));
    assert!(first.headers.contains_key("x-request-id"));
}

#[tokio::test]
async fn pages_are_compressed_for_those_who_ask() {
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    for (accepted, encoding) in [("br, gzip", "br"), ("gzip", "gzip"), ("identity", "")] {
        let request = request(
            &operator,
            Method::GET,
            "/me",
            None,
            &[("accept", "text/html"), ("accept-encoding", accepted)],
        );
        assert_eq!(app.ask(request).await.header("content-encoding"), encoding);
    }
}

#[tokio::test]
async fn the_sign_in_form_works_without_scripts() {
    let app = TestApp::start().await;
    let send = async |form: String| {
        let headers = [
            ("accept", "text/html"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("origin", "http://console.test"),
        ];
        let mut post = request(&Who::Stranger, Method::POST, "/api/fn/sign_in", None, &headers);
        *post.body_mut() = Body::from(form);
        app.ask(post).await
    };
    let wrong = send("username=operator&password=wrong&next=%2Fme".into()).await;
    assert_eq!(wrong.status, 302);
    assert!(
        wrong.header("location").starts_with("/login?error=unauthenticated"),
        "{}",
        wrong.header("location")
    );
    let right = send(format!("username=operator&password={PASSWORD}&next=%2Fme")).await;
    assert_eq!((right.status.as_u16(), right.header("location")), (302, "/me"));
    assert_eq!(page(&app, &Who::Cookie(cookie(&right)), "/me").await.status, 200);
    let elsewhere = send(format!("username=operator&password={PASSWORD}&next=%2F%2Fevil.example")).await;
    assert_eq!(elsewhere.header("location"), "/");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let mut broken = request(&Who::Stranger, Method::POST, "/api/fn/sign_in", None, &form);
    *broken.body_mut() = Body::from("password=x");
    app.ask(broken).await.problem(400);
}

#[tokio::test]
async fn everything_works_below_a_base_path() {
    let app = TestApp::start_with("base_path = \"/amends\"").await;
    for path in ["/amends/healthz", "/amends/login", "/amends/api/v1/openapi.json"] {
        assert_eq!(page(&app, &Who::Stranger, path).await.status, 200, "{path}");
    }
    assert_eq!(page(&app, &Who::Stranger, "/amends/me").await.header("location"), "/amends/login?next=%2Fme");
    let credentials = serde_json::json!({"username": "viewer", "password": PASSWORD});
    let reply = app.post(&Who::Stranger, "/amends/api/v1/session", credentials).await;
    assert!(reply.header("set-cookie").contains("Path=/amends"), "{}", reply.header("set-cookie"));
    assert_eq!(page(&app, &Who::Cookie(cookie(&reply)), "/amends/me").await.status, 200);
    assert_eq!(page(&app, &Who::Stranger, "/login").await.status, 404);
}

#[tokio::test]
async fn a_record_that_is_markup_is_shown_as_text_also_in_the_title() {
    const MARKUP: &str =
        "</title><meta http-equiv=refresh content=0;url=//evil.example><script>alert(1)</script>";
    let app = TestApp::start().await;
    let operator = app.sign_in("operator").await;
    for column in ["biz_type", "biz_no", "idempotent_id"] {
        app.change_shop(&format!(
            "UPDATE idempotent_record SET {column} = '{MARKUP}' WHERE rowid = (SELECT min(rowid) FROM idempotent_record)"
        ))
        .await;
    }
    let key: String = url::form_urlencoded::byte_serialize(MARKUP.as_bytes()).collect();
    let id = app.row(&operator, &key).await["id"].as_str().unwrap().to_owned();
    for path in [format!("/records/{id}"), format!("/records?key={key}"), "/stuck".into(), "/".into()] {
        let shown = page(&app, &operator, &path).await;
        assert_eq!(shown.status, 200, "{path}");
        assert!(
            !shown.text().contains("<meta http-equiv") && !shown.text().contains("<script>alert"),
            "{path}"
        );
    }
}
