//! The message of the last action: goes by itself when it is good news, stays until dismissed when it is not.

use super::dom;
use leptos::ev;
use leptos::prelude::{set_timeout, window_event_listener};
use std::time::Duration;
use web_sys::Element;

const STAYS: Duration = Duration::from_secs(8);

pub fn start() {
    window_event_listener(ev::click, |event| {
        if let Some(toast) = dom::about(&event, "[data-dismiss]")
            .and_then(|button| button.closest("[data-toast]").ok().flatten())
        {
            toast.remove();
        }
    });
    for toast in dom::all("[data-toast=done]") {
        leave_later(toast);
    }
}

/// Waits on while somebody reads it.
fn leave_later(toast: Element) {
    set_timeout(
        move || {
            if dom::is_hidden() || dom::is_hovered(&toast) || dom::holds_focus(&toast) {
                leave_later(toast);
            } else {
                toast.remove();
            }
        },
        STAYS,
    );
}
