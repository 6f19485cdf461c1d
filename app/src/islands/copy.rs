//! Copies a text at the press of a button, and says so on the button for a moment.

use super::dom;
use leptos::ev;
use leptos::prelude::{document, set_timeout, window, window_event_listener};
use leptos::task::spawn_local;
use std::time::Duration;
use wasm_bindgen_futures::JsFuture;
use web_sys::Element;

const SAYS_SO: Duration = Duration::from_millis(1_500);

pub fn start() {
    window_event_listener(ev::click, |event| {
        if let Some(button) = dom::about(&event, "[data-copy], [data-copy-from]") {
            copy(button);
        }
    });
}

fn copy(button: Element) {
    let text = match button.get_attribute("data-copy-from") {
        Some(id) => document().get_element_by_id(&id).and_then(|source| source.text_content()),
        None => button.get_attribute("data-copy"),
    };
    let Some(text) = text else { return };
    spawn_local(async move {
        if JsFuture::from(window().navigator().clipboard().write_text(&text)).await.is_ok() {
            say_so(&button);
        }
    });
}

fn say_so(button: &Element) {
    dom::set(button, "data-copied", Some(""));
    let button = button.clone();
    set_timeout(move || dom::set(&button, "data-copied", None), SAYS_SO);
}
