//! What moves in the browser, and only that. Pages work without any of it.
//!
//! One island, [`enhance`], wakes small behaviours that listen on the document and find their places by `data-`
//! attributes, so that parts refreshed later need no waking. Their texts come with the page: no language ships here.
//!
//! | behaviour | finds | does |
//! | --- | --- | --- |
//! | `dialog` | `data-opens`, `data-confirm`, `data-cancel` | shows the one dialog as a modal, locks it while pending |
//! | `forms` | `data-autosubmit`, every form | applies filters at once, leaves empty fields out, posts once |
//! | `live` | `data-live-topic` | refreshes parts when the event stream says so |
//! | `clock` | `time[data-live]` | keeps ages moving |
//! | `copy` | `data-copy`, `data-copy-from` | copies |
//! | `toast` | `data-toast`, `data-dismiss` | dismisses |
//! | `hotkeys` | `data-hotkey`, `data-row` | the keyboard |
//! | `chart_cursor` | `data-chart` | reads a chart's values under the pointer |
//! | `preview` | `data-preview`, `data-mirrors` | shows a form's outcome while it is filled in |
//!
//! A page that needs more adds an island of its own here: small serialisable props, children from the server.

pub mod enhance;

#[cfg(feature = "hydrate")]
mod chart_cursor;
#[cfg(feature = "hydrate")]
mod clock;
#[cfg(feature = "hydrate")]
mod copy;
#[cfg(feature = "hydrate")]
mod dialog;
#[cfg(feature = "hydrate")]
mod dom;
#[cfg(feature = "hydrate")]
mod forms;
#[cfg(feature = "hydrate")]
mod hotkeys;
#[cfg(feature = "hydrate")]
mod live;
#[cfg(feature = "hydrate")]
mod preview;
#[cfg(feature = "hydrate")]
mod toast;
