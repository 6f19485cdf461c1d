//! Server functions: what the pages' forms post to. Each one: context → authorise → service → answer, nothing else.
//!
//! All take form fields and answer with a redirect (see [`answer`]), so that they work without scripts. Addresses are
//! stable: `/api/fn/<endpoint>`. The server's own layer refuses posts from other sites.

pub mod alerts;
pub mod compensations;
pub mod demo;
pub mod preferences;
pub mod records;
pub mod session;

use crate::context::{Flash, Visit, local_path};
use crate::cookies;
use crate::words;
use domain::roles::Actor;

/// The signed-in person of this call. Every function that acts starts with this.
pub fn actor() -> domain::Result<Actor> {
    leptos::prelude::use_context::<Actor>().ok_or(domain::Error::Unauthenticated)
}

/// Ends a form post: leaves the message for the next page and sends the browser back to it.
///
/// `back` is the address that the form carried; anything that is no path of the console leads to Overview.
pub fn answer(visit: &Visit, back: &str, outcome: domain::Result<String>) {
    say(visit, back, outcome.map(Flash::done));
}

/// As [`answer`], for outcomes that are no error and yet no success.
pub fn say(visit: &Visit, back: &str, outcome: domain::Result<Flash>) {
    let flash = match outcome {
        Ok(flash) => flash,
        Err(domain::Error::Unauthenticated) => return redirect(visit, "/login"),
        Err(error) => Flash::failed(words::error(visit.locale(), &error)),
    };
    cookies::leave_flash(&visit.settings().base_path, &flash);
    redirect(visit, back);
}

/// Sends the browser to a path of the console.
pub fn redirect(visit: &Visit, path: &str) {
    leptos_axum::redirect(&visit.href(local_path(path)));
}

#[cfg(test)]
mod tests;
