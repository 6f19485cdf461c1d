//! The island at the document's end: by the time it wakes, every island before it is awake.
//!
//! What it needs stands on `<body>` (see [`crate::shell`]) instead of in props: reading three attributes keeps the JSON
//! reader out of the browser half.

use leptos::prelude::*;

/// Starts all behaviours of the document and marks it: `<html data-hydrated>`.
#[island]
pub fn Enhance() -> impl IntoView {
    #[cfg(feature = "hydrate")]
    start();
    view! { <span hidden></span> }
}

#[cfg(feature = "hydrate")]
fn start() {
    use super::{chart_cursor, clock, copy, dialog, dom, forms, hotkeys, live, preview, toast};

    if let Some(body) = dom::first("body") {
        clock::start(&body);
        live::start(&body);
    }
    copy::start();
    dialog::start();
    forms::start();
    toast::start();
    hotkeys::start();
    chart_cursor::start();
    preview::start();
    dom::mark("data-hydrated", Some(""));
}
