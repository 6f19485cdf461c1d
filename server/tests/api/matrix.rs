use crate::app::{TestApp, Who, request};
use crate::openapi::operations;
use axum::http::Method;
use domain::console::DemoControl;
use domain::record::RecordId;
use domain::roles::Role;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// A body that the operation understands, about things that do not exist: the matrix shows who gets that far.
fn body(method: &Method, path: &str) -> Option<Value> {
    let rule = json!({"name": "m", "metric": "hit_rate", "side": "above", "warn": 2.0, "window_minutes": 5,
        "for_minutes": 1, "min_requests": 1, "enabled": true});
    match (method.as_str(), path.rsplit('/').next().unwrap_or_default()) {
        ("POST", "session") => Some(json!({"username": "nobody", "password": "x"})),
        ("POST", "compensations") => {
            Some(json!({"action": "replay", "reason": "r", "if_version": "PROCESSING.AAAA"}))
        }
        ("POST", "events") => Some(json!({"producer": "", "sequence": 1, "counts": []})),
        ("POST", "storm") => Some(json!({"on": false})),
        ("POST", "silence") => Some(json!({"hours": 1})),
        ("POST", "alert-rules" | "preview") | ("PUT", _) => Some(rule),
        ("POST", _) => Some(json!({})),
        _ => None,
    }
}

/// A demo shop without a storm, for its switches to exist.
struct CalmDemo;

#[async_trait::async_trait]
impl DemoControl for CalmDemo {
    fn storm_is_on(&self) -> bool {
        false
    }

    async fn set_storm(&self, _: bool) {}
}

/// Who may do what, as answered: 401 unknown, 403 not this role, anything else got past the roles.
#[tokio::test]
async fn roles_by_operation() {
    let mut app = TestApp::start().await;
    let mut state = app.state.clone();
    state.console.demo = Some(Arc::new(CalmDemo));
    app.router = server::http::router(state);
    let nowhere = RecordId::new("nowhere", vec!["x".into()]).to_string();
    let mut people = vec![Who::Stranger];
    for role in Role::ALL {
        people.push(app.sign_in(role.as_str()).await);
    }
    let document = app.get(&Who::Stranger, "/api/v1/openapi.json").await.ok();
    let mut table = format!("{:<54} stranger viewer operator approver admin\n", "");
    for (method, path) in operations(&document) {
        // Signing out would take the rest of the row away.
        if method == Method::DELETE && path.ends_with("/session") {
            continue;
        }
        write!(table, "{:<54}", format!("{method} {path}")).unwrap();
        let address = path.replace("/records/none", &format!("/records/{nowhere}"));
        for (who, width) in people.iter().zip([8, 6, 8, 8, 5]) {
            let request =
                request(who, method.clone(), &address, body(&method, &path), &[("idempotency-key", "k")]);
            write!(table, " {:<width$}", app.ask(request).await.status.as_u16()).unwrap();
        }
        table = table.trim_end().to_owned() + "\n";
    }
    insta::assert_snapshot!(table);
}
