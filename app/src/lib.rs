//! What people see: server-rendered pages, and the islands that enhance them in the browser.
//!
//! Feature `ssr` builds the pages into the server; feature `hydrate` builds the islands into wasm. Every page works
//! without the second.

#[cfg(all(feature = "ssr", feature = "hydrate"))]
compile_error!("build `app` with `ssr` (server) or with `hydrate` (browser), never with both");

#[cfg(any(feature = "ssr", feature = "hydrate"))]
pub mod elapsed;
#[cfg(any(feature = "ssr", feature = "hydrate"))]
pub mod islands;

#[cfg(feature = "ssr")]
pub mod api;
#[cfg(feature = "ssr")]
pub mod components;
#[cfg(feature = "ssr")]
pub mod context;
#[cfg(feature = "ssr")]
pub mod cookies;
#[cfg(feature = "ssr")]
pub mod format;
#[cfg(feature = "ssr")]
pub mod frame;
#[cfg(feature = "ssr")]
pub mod i18n;
#[cfg(feature = "ssr")]
pub mod pages;
#[cfg(feature = "ssr")]
pub mod routes;
#[cfg(feature = "ssr")]
pub mod rule_form;
#[cfg(feature = "ssr")]
pub mod shell;
#[cfg(feature = "ssr")]
pub mod words;

/// Called once by the document's script after the wasm module is there; the script then wakes each island.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    leptos::mount::hydrate_islands();
}
