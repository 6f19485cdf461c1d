//! Who gets to see a page: strangers are sent to sign in, roles without the right are told so.

use super::*;
use crate::context::Settings;
use crate::routes::{LOGIN, ROUTES};
use http::header::LOCATION;
use leptos_axum::ResponseOptions;

/// Opens an address as a stranger; the response's options tell where it leads.
fn open_as_stranger(uri: &str, accept: &str, open: impl FnOnce() -> AnyView) -> (ResponseOptions, String) {
    let request = http::Request::builder().uri(uri).header("accept", accept).body(()).unwrap();
    let responses = ResponseOptions::default();
    let html = Owner::new().with(|| {
        provide_meta_context();
        provide_context(request.into_parts().0);
        provide_context(responses.clone());
        provide_context(Settings { base_path: "/amends".into(), ..Settings::default() });
        Visit::begin();
        open().to_html()
    });
    (responses, html)
}

fn location(responses: &ResponseOptions) -> Option<String> {
    responses.0.read().unwrap().headers.get(LOCATION).map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn strangers_are_sent_to_sign_in_from_every_page_and_see_nothing() {
    for entry in ROUTES.iter().filter(|entry| entry.needs.is_some()) {
        let (responses, html) = open_as_stranger("/records/x?q=1", "text/html", || {
            page(entry, |_| async { unreachable!("a stranger's page must not load") })
        });
        assert_eq!(
            location(&responses).as_deref(),
            Some("/amends/login?next=%2Frecords%2Fx%3Fq%3D1"),
            "{}",
            entry.path
        );
        assert_eq!(responses.0.read().unwrap().status, Some(http::StatusCode::FOUND));
        assert!(!html.contains("<main"), "{html}");
    }
}

#[test]
fn the_sign_in_page_is_open_and_says_what_went_wrong_beside_the_fields() {
    assert!(LOGIN.needs.is_none());
    let (responses, html) = open_as_stranger(
        "/login?error=unauthenticated&name=%22%3E%3Cb%3E&next=%2Fstuck",
        "text/html",
        || login::Login().into_any(),
    );
    assert_eq!(location(&responses), None);
    assert!(html.contains("The user name or the password is wrong."), "{html}");
    assert!(
        html.contains(r#"action="/amends/api/fn/sign_in""#) && html.contains(r#"value="/stuck""#),
        "{html}"
    );
    assert!(!html.contains("<b>"), "the name is data: {html}");
    assert_eq!(html.matches("<h1").count(), 1);
}

#[test]
fn an_unknown_address_answers_404() {
    let (responses, html) = open_as_stranger("/nowhere", "text/html", || not_found::NotFound().into_any());
    assert_eq!(responses.0.read().unwrap().status, Some(http::StatusCode::NOT_FOUND));
    assert_eq!(html.matches("<h1").count(), 1);
}
