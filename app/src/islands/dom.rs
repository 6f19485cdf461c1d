//! The few steps through the document that all behaviours share.

use leptos::prelude::document;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, Node};

/// Every element of the document that matches.
pub fn all(selector: &str) -> Vec<Element> {
    within(document().as_ref(), selector)
}

/// The first element of the document that matches.
pub fn first(selector: &str) -> Option<Element> {
    document().query_selector(selector).ok().flatten()
}

/// Every element below a node (a document or an element) that matches.
pub fn within(root: &Node, selector: &str) -> Vec<Element> {
    let found = match root.dyn_ref::<Element>() {
        Some(element) => element.query_selector_all(selector),
        None => root.unchecked_ref::<web_sys::Document>().query_selector_all(selector),
    };
    let Ok(found) = found else { return Vec::new() };
    (0..found.length()).filter_map(|index| found.get(index)?.dyn_into().ok()).collect()
}

/// The element that an event is about: its target or the nearest element around it that matches.
pub fn about(event: &Event, selector: &str) -> Option<Element> {
    event.target()?.dyn_into::<Element>().ok()?.closest(selector).ok().flatten()
}

/// Whether a person is typing: then no key is a command.
pub fn is_typing(event: &Event) -> bool {
    about(event, "input:not([type=checkbox]), textarea, select, [contenteditable]").is_some()
}

pub fn focus(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        // An element that cannot take the focus leaves it where it is.
        let _ = element.focus();
    }
}

pub fn press(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        element.click();
    }
}

/// Sets or removes an attribute of `<html>`, where styles and tests look.
pub fn mark(name: &str, value: Option<&str>) {
    if let Some(root) = document().document_element() {
        set(&root, name, value);
    }
}

pub fn set(element: &Element, name: &str, value: Option<&str>) {
    // Fails only on names that are no attribute names; ours are constants.
    let _ = match value {
        Some(value) => element.set_attribute(name, value),
        None => element.remove_attribute(name),
    };
}

/// Whether the focus lies in an element.
pub fn holds_focus(element: &Element) -> bool {
    document().active_element().is_some_and(|active| element.contains(Some(&active)))
}

/// Whether the pointer is over an element.
pub fn is_hovered(element: &Element) -> bool {
    element.matches(":hover").unwrap_or(false)
}

/// Whether nobody can see the page right now.
pub fn is_hidden() -> bool {
    document().hidden()
}
