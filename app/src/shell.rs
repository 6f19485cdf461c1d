//! The document around every page: language, theme, styles, the script that wakes the islands.

use crate::components::icon::Sprite;
use crate::context::{Theme, Visit};
use crate::format;
use crate::islands::enhance::Enhance;
use crate::pages::App;
use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::MetaTags;

pub use crate::context::Assets;

/// The whole document of one request. The server renders it for every route of [`App`].
pub fn shell() -> impl IntoView {
    let visit = Visit::begin();
    let assets = visit.settings().assets.clone();
    let theme = match visit.prefs().theme {
        Theme::System => None,
        chosen => Some(chosen.as_str()),
    };
    let live = visit.actor().map(|_| visit.href("/live"));
    view! {
        <!DOCTYPE html>
        <html lang=visit.locale().tag() data-theme=theme>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="icon" type="image/svg+xml" href=visit.href(&assets.icon)/>
                <link rel="stylesheet" href=visit.href(&assets.css)/>
                <Boot js=visit.href(&assets.js) wasm=visit.href(&assets.wasm) built=!assets.js.is_empty()/>
                <MetaTags/>
            </head>
            <body data-ages=format::patterns(visit.locale()).to_attribute() data-now=format::machine(visit.now()) data-live=live>
                <Sprite/>
                <App/>
                <Enhance/>
            </body>
        </html>
    }
}

/// Fetches the browser half early and starts it. Without a front build the pages stay plain, and work.
#[component]
fn Boot(js: String, wasm: String, built: bool) -> impl IntoView {
    // Islands carry their own data; nothing else of the page is hydrated.
    if let Some(shared) = Owner::current_shared_context() {
        shared.set_is_hydrating(false);
    }
    built.then(|| {
        let nonce = use_nonce();
        let script = include_str!("shell/boot.js").replace("__FILES__", &format!("[{js:?}, {wasm:?}]"));
        view! {
            <link rel="modulepreload" href=js nonce=nonce.clone()/>
            <link rel="preload" href=wasm r#as="fetch" r#type="application/wasm" crossorigin="anonymous"/>
            <script type="module" nonce=nonce inner_html=script></script>
        }
    })
}
