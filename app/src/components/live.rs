//! Parts of a page that refresh themselves when the event stream says that their topic changed.
//!
//! The browser fetches the page's own address again and takes the part with the same id. [`Refresh::Swap`] replaces it
//! at once (numbers, charts); [`Refresh::Announce`] counts the rows that are new and offers them as "+N", because
//! nothing may move under the cursor. Topics are the words of the `/live` stream. Content that shows something still
//! going on carries `data-live-unfinished`: it is asked for again as soon as the stream is open.

use crate::context::Visit;
use domain::ports::Topic;
use leptos::prelude::*;

/// The word of a topic in the stream's `data`.
fn word(topic: Topic) -> &'static str {
    match topic {
        Topic::Records => "records",
        Topic::Rates => "rates",
        Topic::Alerts => "alerts",
        Topic::Audit => "audit",
        Topic::Sources => "sources",
    }
}

/// How new content comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    Swap,
    Announce,
}

/// A live part. Ids are unique in the page; parts are not nested.
pub fn live(
    id: &'static str,
    topics: &[Topic],
    refresh: Refresh,
    content: impl IntoView + 'static,
) -> AnyView {
    let (mode, more) = match refresh {
        Refresh::Swap => ("swap", None),
        Refresh::Announce => ("announce", Some(more())),
    };
    view! {
        <div class="live" id=id data-live-topic=words(topics) data-live-mode=mode>{more}{content}</div>
    }
    .into_any()
}

/// A live part that is replaced only when `version` is another than the one shown: nothing moves for a mere second's
/// difference in an age. For parts with buttons.
pub fn live_at(
    id: &'static str,
    topics: &[Topic],
    version: String,
    content: impl IntoView + 'static,
) -> AnyView {
    view! {
        <div class="live" id=id data-live-topic=words(topics) data-live-mode="swap" data-live-version=version>{content}</div>
    }
    .into_any()
}

/// A live part inside a heading or a sentence.
pub fn live_inline(id: &'static str, topics: &[Topic], content: impl IntoView + 'static) -> AnyView {
    view! { <span class="live" id=id data-live-topic=words(topics) data-live-mode="swap">{content}</span> }
        .into_any()
}

fn words(topics: &[Topic]) -> String {
    topics.iter().map(|topic| word(*topic)).collect::<Vec<_>>().join(" ")
}

/// The line that offers new rows; empty and hidden until there are some.
fn more() -> AnyView {
    let t = &Visit::here().texts().live;
    view! {
        <p class="live-more" role="status" hidden>
            <span data-live-count=t.more></span>
            <button class="btn sm" type="button" data-live-show="">{t.show}</button>
        </p>
    }
    .into_any()
}
