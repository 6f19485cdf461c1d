//! Forms without scripts: where they lead, and what they leave behind.

use super::preferences::{set_language, set_preferences};
use super::session::sign_in;
use crate::context::{Session, SessionHandle, Settings};
use domain::roles::{Actor, Role};
use domain::{Error, Result};
use http::header::{LOCATION, SET_COOKIE};
use leptos::prelude::*;
use leptos_axum::ResponseOptions;
use std::sync::Arc;

/// One person, one password.
struct OnePerson;

#[async_trait::async_trait]
impl Session for OnePerson {
    async fn sign_in(&self, username: &str, password: &str) -> Result<Actor> {
        match (username, password) {
            ("operator", "right") => Ok(Actor::new("operator", Role::Operator)),
            ("locked", _) => Err(Error::TooMany { retry_after_seconds: 60 }),
            _ => Err(Error::Unauthenticated),
        }
    }

    async fn sign_out(&self) -> Result<()> {
        Ok(())
    }
}

/// Runs a call as a browser's form post; answers the location and the cookies it set.
async fn post<F: Future<Output = std::result::Result<(), ServerFnError>>>(
    call: impl FnOnce() -> F,
) -> (String, Vec<String>) {
    let owner = Owner::new();
    let responses = ResponseOptions::default();
    owner.set();
    let request = http::Request::builder().uri("/api/fn/x").header("accept", "text/html").body(()).unwrap();
    provide_context(request.into_parts().0);
    provide_context(responses.clone());
    provide_context(Settings::default());
    provide_context(SessionHandle(Arc::new(OnePerson)));
    call().await.unwrap();
    let parts = responses.0.read().unwrap();
    let location = parts.headers.get(LOCATION).unwrap().to_str().unwrap().to_owned();
    let cookies = parts.headers.get_all(SET_COOKIE).iter().map(|cookie| cookie.to_str().unwrap().to_owned());
    (location, cookies.collect())
}

#[tokio::test]
async fn signing_in_goes_on_to_where_the_person_was_heading() {
    let (location, _) =
        post(|| sign_in("operator ".into(), "right".into(), "/stuck?lane=no_effect".into())).await;
    assert_eq!(location, "/stuck?lane=no_effect");
}

#[tokio::test]
async fn signing_in_never_leads_to_another_site() {
    let (location, _) = post(|| sign_in("operator".into(), "right".into(), "//evil.example".into())).await;
    assert_eq!(location, "/");
}

#[tokio::test]
async fn a_refusal_is_the_same_for_a_wrong_name_and_a_wrong_password_and_never_repeats_the_password() {
    let wrong_password = post(|| sign_in("operator".into(), "s3cret-guess".into(), String::new())).await.0;
    let wrong_name = post(|| sign_in("nobody".into(), "s3cret-guess".into(), String::new())).await.0;
    assert_eq!(wrong_password.replace("operator", "nobody"), wrong_name);
    assert!(wrong_name.starts_with("/login?error=unauthenticated&"), "{wrong_name}");
    assert!(!wrong_name.contains("s3cret-guess"));
    let locked = post(|| sign_in("locked".into(), "x".into(), String::new())).await.0;
    assert!(locked.starts_with("/login?error=too_many_attempts&"), "{locked}");
}

#[tokio::test]
async fn the_language_is_kept_in_a_cookie_and_the_page_comes_back() {
    let (location, cookies) = post(|| set_language("zh-CN".into(), "/me".into())).await;
    assert_eq!(location, "/me");
    assert!(
        cookies.iter().any(|cookie| cookie.starts_with("amends_lang=zh-CN; Path=/; Max-Age=31536000")),
        "{cookies:?}"
    );
    let (_, cookies) = post(|| set_language("fr\r\nx".into(), "/me".into())).await;
    assert!(cookies.is_empty(), "an unknown language changes nothing: {cookies:?}");
}

#[tokio::test]
async fn a_zone_that_does_not_exist_changes_nothing() {
    let (location, cookies) =
        post(|| set_preferences("en".into(), "Mars/Base".into(), "dark".into(), "/me".into())).await;
    assert_eq!(location, "/me?error=zone");
    assert!(cookies.is_empty());
    let (location, cookies) =
        post(|| set_preferences("en".into(), "UTC".into(), "dark".into(), "/me".into())).await;
    assert_eq!((location.as_str(), cookies.len()), ("/me", 4));
}
