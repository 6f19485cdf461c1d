//! The island at the document's end: by the time it wakes, every island before it is awake.

use crate::elapsed::Patterns;
use leptos::prelude::*;

/// Starts all behaviours of the document and marks it: `<html data-hydrated>`.
#[island]
pub fn Enhance(
    /// How ages are written in the page's language.
    ages: Patterns,
    /// When the server answered; ages count from it whatever the browser's clock says.
    now_ms: f64,
    /// The event stream; strangers have none.
    #[prop(optional_no_strip)]
    live: Option<String>,
) -> impl IntoView {
    #[cfg(feature = "hydrate")]
    start(ages, now_ms, live);
    #[cfg(not(feature = "hydrate"))]
    let _ = (ages, now_ms, live);
    view! { <span hidden></span> }
}

#[cfg(feature = "hydrate")]
fn start(ages: Patterns, now_ms: f64, live: Option<String>) {
    use super::{chart_cursor, clock, copy, dialog, dom, forms, hotkeys, live as stream, toast};

    clock::start(ages, now_ms);
    copy::start();
    dialog::start();
    forms::start();
    toast::start();
    hotkeys::start();
    chart_cursor::start();
    if let Some(address) = live {
        stream::start(address);
    }
    dom::mark("data-hydrated", Some(""));
}
