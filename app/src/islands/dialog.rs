//! The one dialog as a modal: Cancel takes the focus, Esc closes, nothing closes while pending; the browser itself
//! gives the focus back to the opener.

use super::dom;
use leptos::ev;
use leptos::prelude::{document, window, window_event_listener};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, Event, HtmlDialogElement, KeyboardEvent, MouseEvent};

pub fn start() {
    window_event_listener(ev::click, |event| clicked(&event));
    window_event_listener(ev::keydown, |event| pressed(&event));
    hold_while_pending();
    for dialog in dom::all("dialog[data-confirm][open]") {
        if let Ok(dialog) = dialog.dyn_into::<HtmlDialogElement>() {
            dialog.close();
            show(&dialog);
        }
    }
}

fn clicked(event: &MouseEvent) {
    if event.ctrl_key() || event.meta_key() || event.shift_key() {
        return;
    }
    if let Some(dialog) = dom::about(event, "[data-opens]").and_then(|opener| target(&opener)) {
        event.prevent_default();
        show(&dialog);
    } else if let Some(cancel) = dom::about(event, "[data-cancel]")
        && let Some(dialog) =
            cancel.closest("dialog").ok().flatten().and_then(|dialog| dialog.dyn_into().ok())
    {
        event.prevent_default();
        close(&dialog, &cancel);
    }
}

/// The opener is a link that acts as a button, and buttons answer to the space bar.
fn pressed(event: &KeyboardEvent) {
    if event.key() == " "
        && let Some(opener) = dom::about(event, "a[data-opens], a[data-cancel]")
    {
        event.prevent_default();
        dom::press(&opener);
    }
}

fn target(opener: &Element) -> Option<HtmlDialogElement> {
    let id = opener.get_attribute("data-opens")?;
    document().get_element_by_id(&id)?.dyn_into().ok()
}

fn show(dialog: &HtmlDialogElement) {
    if dialog.show_modal().is_ok()
        && let Ok(Some(cancel)) = dialog.query_selector("[data-cancel]")
    {
        dom::focus(&cancel);
    }
}

/// Closes, and takes the parameter that opened it out of the address.
fn close(dialog: &HtmlDialogElement, cancel: &Element) {
    if is_pending(dialog) {
        return;
    }
    dialog.close();
    if let (Ok(history), Some(address)) = (window().history(), cancel.get_attribute("href")) {
        // Refused only when called hundreds of times in a row; the address then stays as it is.
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&address));
    }
}

/// `cancel` (Esc) does not bubble, so it is caught on its way down.
fn hold_while_pending() {
    let hold = Closure::<dyn Fn(Event)>::new(|event: Event| {
        if dom::about(&event, "dialog").is_some_and(|dialog| is_pending(&dialog)) {
            event.prevent_default();
        }
    });
    let listening =
        document().add_event_listener_with_callback_and_bool("cancel", hold.as_ref().unchecked_ref(), true);
    if listening.is_ok() {
        hold.forget();
    }
}

fn is_pending(dialog: &Element) -> bool {
    dialog.query_selector("form[data-pending]").is_ok_and(|form| form.is_some())
}
