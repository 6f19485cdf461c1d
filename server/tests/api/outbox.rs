use crate::app::{TestApp, Who};
use db::Query;

async fn stage(app: &TestApp, key: &str, status: &str, error: Option<&str>) {
    let sql = "INSERT INTO idempotency_outbox (message_key, biz_type, biz_no, kind, target, content_type, body, \
               status, attempts, due_at, last_error, created_at) \
               VALUES (?, 'ORDER', 'O1', 'PAID', 'stock', 'application/json', '{}', ?, 3, 0, ?, 0)";
    let values = vec![key.into(), status.into(), error.map(str::to_owned).into()];
    app.shop.execute(&Query::raw(sql, values)).await.unwrap();
}

#[tokio::test]
async fn undelivered_messages_are_listed_page_by_page_and_shown_with_their_source() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    let empty = app.get(&viewer, "/api/v1/outbox").await.ok();
    assert_eq!(empty["items"].as_array().map(Vec::len), Some(0), "without an outbox");
    guard::schema::mechanisms::create(&app.shop).await.unwrap();
    stage(&app, "k1", "DEAD", Some("<script>alert(1)</script>")).await;
    stage(&app, "k2", "SENT", None).await;
    stage(&app, "k3", "PENDING", None).await;

    let first = app.get(&viewer, "/api/v1/outbox?limit=1").await.ok();
    assert_eq!(
        (&first["items"][0]["key"], &first["items"][0]["delivery"]),
        (&"k1".into(), &"given_up".into())
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = app.get(&viewer, &format!("/api/v1/outbox?limit=1&cursor={cursor}")).await.ok();
    assert_eq!(
        (&second["items"][0]["key"], &second["items"][0]["delivery"]),
        (&"k3".into(), &"failing".into())
    );
    assert!(second["next_cursor"].is_null());

    app.get(&viewer, "/api/v1/outbox?source=nowhere").await.problem(404);
    app.get(&viewer, "/api/v1/outbox?cursor=abc").await.problem(400);
    app.get(&Who::Stranger, "/api/v1/outbox").await.problem(401);

    let page = app.get(&viewer, "/sources").await;
    assert!(page.text().contains("k1") && page.text().contains("given up"), "{}", page.text());
    assert!(!page.text().contains("<script>alert(1)"));
}
