//! Forms: a changed filter applies at once, empty fields stay out of the address, a post goes out once.

use super::dom;
use leptos::ev;
use leptos::prelude::window_event_listener;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlFormElement, HtmlInputElement};

pub fn start() {
    window_event_listener(ev::change, |event| {
        let form = dom::about(&event, "[data-autosubmit]")
            .and_then(|control| control.closest("form").ok().flatten());
        if let Some(form) = form.and_then(|form| form.dyn_into::<HtmlFormElement>().ok()) {
            // An invalid form stays and shows why.
            let _ = form.request_submit();
        }
    });
    window_event_listener(ev::submit, |event| submitted(&event));
    // Back may bring this very page back from memory; its forms must be usable again.
    window_event_listener(ev::pageshow, |_| {
        for form in dom::all("form[data-pending]") {
            unlock(&form);
        }
    });
}

fn submitted(event: &Event) {
    let Some(form) = dom::about(event, "form") else { return };
    if form.has_attribute("data-pending") {
        event.prevent_default();
    } else if form.get_attribute("method").as_deref() == Some("post") {
        lock(&form);
    } else {
        leave_empty_fields_out(&form);
    }
}

fn lock(form: &Element) {
    dom::set(form, "data-pending", Some(""));
    dom::set(form, "aria-busy", Some("true"));
    for button in dom::within(form, "[data-working]") {
        let idle = button.text_content().unwrap_or_default();
        button.set_text_content(button.get_attribute("data-working").as_deref());
        dom::set(&button, "data-idle", Some(&idle));
    }
}

fn unlock(form: &Element) {
    dom::set(form, "data-pending", None);
    dom::set(form, "aria-busy", None);
    for button in dom::within(form, "[data-idle]") {
        button.set_text_content(button.get_attribute("data-idle").as_deref());
        dom::set(&button, "data-idle", None);
    }
    for control in dom::within(form, "[data-left-out]") {
        dom::set(&control, "disabled", None);
    }
}

fn leave_empty_fields_out(form: &Element) {
    dom::set(form, "data-pending", Some(""));
    for control in dom::within(form, "input, select") {
        let empty = control.dyn_ref::<HtmlInputElement>().map_or_else(
            || js_sys::Reflect::get(&control, &"value".into()).is_ok_and(|value| value == ""),
            |input| input.value().is_empty(),
        );
        if empty {
            dom::set(&control, "disabled", Some(""));
            dom::set(&control, "data-left-out", Some(""));
        }
    }
}
