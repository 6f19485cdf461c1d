use crate::app::{TestApp, Who, request};
use axum::http::Method;
use serde_json::{Value, json};

/// (method, path) of every documented operation, parameters filled in with a name of nothing.
pub fn operations(document: &Value) -> Vec<(Method, String)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let described = |method: &Method| item.get(method.as_str().to_lowercase()).is_some();
        let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE].into_iter().filter(described);
        operations.extend(methods.map(|method| (method, path.replace("{id}", "none"))));
    }
    operations.sort_by_key(|(method, path)| (path.clone(), method.to_string()));
    operations
}

#[tokio::test]
async fn the_document_names_every_address_of_the_contract() {
    let app = TestApp::start().await;
    let document = app.get(&Who::Stranger, "/api/v1/openapi.json").await.ok();
    let paths: Vec<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    for path in [
        "/api/v1/session",
        "/api/v1/sources",
        "/api/v1/records",
        "/api/v1/records/{id}",
        "/api/v1/records/{id}/reverse-check",
        "/api/v1/records/{id}/compensations",
        "/api/v1/checks",
        "/api/v1/checks/latest",
        "/api/v1/audit",
        "/api/v1/rates",
        "/api/v1/events",
        "/api/v1/alert-rules",
        "/api/v1/alert-rules/{id}",
        "/api/v1/alert-rules/preview",
        "/api/v1/alerts",
        "/api/v1/alerts/{id}/acknowledge",
        "/api/v1/alerts/{id}/silence",
        "/api/v1/openapi.json",
    ] {
        assert!(paths.contains(&path), "{path} is missing in {paths:?}");
    }
    assert!(document["components"]["schemas"]["Problem"]["properties"]["current"].is_object());
}

#[tokio::test]
async fn every_documented_operation_is_served_and_every_reference_leads_somewhere() {
    let app = TestApp::start().await;
    let admin = app.sign_in("admin").await;
    let document = app.get(&admin, "/api/v1/openapi.json").await.ok();
    for (method, path) in operations(&document) {
        let body = (method != Method::GET && method != Method::DELETE).then(|| json!({}));
        let reply = app.ask(request(&admin, method.clone(), &path, body, &[])).await;
        assert_ne!(reply.status, 405, "{method} {path}");
        assert!(!reply.text().contains("nothing at this address"), "{method} {path}");
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[tokio::test]
async fn an_unknown_address_or_method_is_a_problem_too() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    assert_eq!(app.get(&viewer, "/api/v1/nothing").await.problem(404), "not_found");
    assert_eq!(app.get(&viewer, "/api/nothing").await.problem(404), "not_found");
    let wrong = app.ask(request(&viewer, Method::PUT, "/api/v1/records", None, &[])).await;
    assert_eq!(wrong.problem(405), "method_not_allowed");
    assert!(wrong.header("allow").contains("GET"));
}
