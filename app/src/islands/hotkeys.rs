//! The keyboard: `/` search, `j k` move, Enter opens, `x` selects, `c` checks, `?` helps, `g` and a letter goes to a
//! page. Nothing fires while somebody types, holds a modifier, or a dialog is open.

use super::dom;
use leptos::ev;
use leptos::prelude::window_event_listener;
use std::cell::Cell;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, KeyboardEvent};

/// How long `g` waits for its letter.
const WAITS_MS: f64 = 1_200.0;

pub fn start() {
    let went = Cell::new(f64::NEG_INFINITY);
    window_event_listener(ev::keydown, move |event| {
        let held = event.ctrl_key() || event.meta_key() || event.alt_key();
        if held || event.default_prevented() || dom::is_typing(&event) || dom::first("dialog[open]").is_some()
        {
            return;
        }
        let going = event.time_stamp() - went.replace(f64::NEG_INFINITY) < WAITS_MS;
        let key = event.key();
        let done = if going { go(&key) } else { command(&key, &event, &went) };
        if done {
            event.prevent_default();
        }
    });
}

fn go(letter: &str) -> bool {
    let entry = dom::all("[data-hotkey]")
        .into_iter()
        .find(|entry| entry.get_attribute("data-hotkey").as_deref() == Some(letter));
    entry.inspect(dom::press).is_some()
}

fn command(key: &str, event: &KeyboardEvent, went: &Cell<f64>) -> bool {
    match key {
        "g" => {
            went.set(event.time_stamp());
            true
        }
        "/" => dom::first("#search").inspect(dom::focus).is_some(),
        "?" => help(),
        "j" => step(1),
        "k" => step(-1),
        "Enter" if dom::about(event, "a, button, summary").is_none() => in_row("a[href]"),
        "x" => in_row("input[type=checkbox]"),
        "c" => in_row("[data-check]") || dom::first("[data-check-page]").inspect(dom::press).is_some(),
        _ => false,
    }
}

fn help() -> bool {
    let Some(card) = dom::first("#hotkeys").and_then(|card| card.dyn_into::<HtmlElement>().ok()) else {
        return false;
    };
    card.toggle_popover().is_ok()
}

/// Moves the focus over the rows; the first press lands on the first row.
fn step(by: isize) -> bool {
    let rows: Vec<Element> = dom::all("[data-row]");
    let Some(last) = rows.len().checked_sub(1) else { return false };
    let next = match rows.iter().position(dom::holds_focus) {
        Some(current) => current.saturating_add_signed(by).min(last),
        None => 0,
    };
    dom::focus(&rows[next]);
    true
}

/// Presses something in the focused row.
fn in_row(selector: &str) -> bool {
    let row = dom::all("[data-row]").into_iter().find(dom::holds_focus);
    let found = row.and_then(|row| row.query_selector(selector).ok().flatten());
    found.inspect(dom::press).is_some()
}
