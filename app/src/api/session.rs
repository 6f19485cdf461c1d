//! Signing in and out.

use super::redirect;
use crate::context::{SessionHandle, Visit, local_path};
use leptos::prelude::*;

/// Starts a session and goes where the person was heading; a refusal returns to the form with a word for it.
#[server(prefix = "/api/fn", endpoint = "sign_in")]
pub async fn sign_in(
    username: String,
    password: String,
    #[server(default)] next: String,
) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let SessionHandle(session) = expect_context();
    match session.sign_in(username.trim(), &password).await {
        Ok(_) => redirect(&visit, &next),
        Err(error) => {
            let back = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("error", error.code())
                .append_pair("name", username.trim())
                .append_pair("next", local_path(&next))
                .finish();
            redirect(&visit, &format!("/login?{back}"));
        }
    }
    Ok(())
}

/// Ends the session and returns to the sign-in page.
#[server(prefix = "/api/fn", endpoint = "sign_out")]
pub async fn sign_out() -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let SessionHandle(session) = expect_context();
    if let Err(error) = session.sign_out().await {
        tracing::warn!(error.code = error.code(), "the session could not be ended in the store");
    }
    redirect(&visit, "/login");
    Ok(())
}
