//! Keeps ages moving, once a second while the page is seen.

use super::dom;
use crate::elapsed::Patterns;
use leptos::prelude::set_interval;
use std::time::Duration;
use web_sys::Element;

/// Ages count from the server's clock (`data-now`), whatever the browser's says, in the patterns of `data-ages`.
pub fn start(body: &Element) {
    let ages = body.get_attribute("data-ages").and_then(|text| Patterns::from_attribute(&text));
    let server_now = body.get_attribute("data-now");
    let (Some(ages), Some(server_now)) = (ages, server_now) else { return };
    let ahead_ms = js_sys::Date::now() - js_sys::Date::parse(&server_now);
    let tick = move || {
        if dom::is_hidden() {
            return;
        }
        let now_ms = js_sys::Date::now() - ahead_ms;
        for element in dom::all("time[data-live]") {
            show(&ages, &element, now_ms);
        }
    };
    set_interval(tick, Duration::from_secs(1));
}

fn show(ages: &Patterns, element: &Element, now_ms: f64) {
    let Some(moment) = element.get_attribute("datetime") else { return };
    let at_ms = js_sys::Date::parse(&moment);
    if at_ms.is_nan() {
        return;
    }
    let seconds = ((now_ms - at_ms) / 1000.0).floor() as i64;
    let text = match element.get_attribute("data-live").as_deref() {
        Some("ago") => ages.ago(seconds),
        _ => ages.age(seconds),
    };
    if element.text_content().as_deref() != Some(text.as_str()) {
        element.set_text_content(Some(&text));
    }
}
