use crate::app::{TestApp, Who};
use domain::audit::Draft;
use std::collections::HashSet;

/// More than two pages of the reading underneath.
const MANY: usize = 450;

async fn lines(app: &TestApp, who: &Who, query: &str) -> Vec<String> {
    let reply = app.get(who, &format!("/audit.csv{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), "text/csv; charset=utf-8");
    assert!(reply.header("content-disposition").starts_with("attachment"));
    let text = reply.text();
    let text = text.strip_prefix('\u{feff}').expect("spreadsheets read UTF-8 by its mark");
    text.split_terminator("\r\n").map(str::to_owned).collect()
}

async fn append(app: &TestApp, actor: &str, reason: &str) {
    let mut draft = Draft::new(app.state.clock.now(), actor, "test.noted");
    draft.reason = Some(reason.to_owned());
    app.state.console.audit.store.append(&draft).await.unwrap();
}

#[tokio::test]
async fn the_audit_file_holds_every_entry_once_under_the_filters_of_the_page() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    for number in 0..MANY {
        append(&app, "robot", &number.to_string()).await;
    }
    let lines = lines(&app, &viewer, "?actor=robot&zone=Asia/Shanghai").await;
    assert!(lines[0].starts_with("seq,at,actor,action"));
    assert_eq!(lines.len(), MANY + 1);
    let sequences: HashSet<&str> = lines[1..].iter().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(sequences.len(), MANY);
    assert!(lines[1].contains("+08:00,robot,test.noted"), "{}", lines[1]);
}

#[tokio::test]
async fn c82_a_reason_that_is_a_formula_stays_text_in_the_file() {
    let app = TestApp::start().await;
    let viewer = app.sign_in("viewer").await;
    append(&app, "robot", "=HYPERLINK(\"http://evil\",\"x\")").await;
    append(&app, "robot", "-5.00").await;
    let lines = lines(&app, &viewer, "?actor=robot").await;
    assert!(lines[1].contains(",-5.00,"), "{}", lines[1]);
    assert!(lines[2].contains(",\"'=HYPERLINK("), "{}", lines[2]);
}

#[tokio::test]
async fn the_audit_file_is_for_those_who_may_read_and_refuses_what_it_does_not_know() {
    let app = TestApp::start().await;
    assert_eq!(app.get(&Who::Stranger, "/audit.csv").await.problem(401), "unauthenticated");
    let viewer = app.sign_in("viewer").await;
    for bad in ["?zone=Mars/Base", "?from=yesterday", "?colour=red"] {
        app.get(&viewer, &format!("/audit.csv{bad}")).await.problem(400);
    }
}
