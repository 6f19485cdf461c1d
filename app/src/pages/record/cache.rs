//! The cache entry beside the record: its key, what it says, for how long, and whether the table says the same.

use crate::components::icon::Icon;
use crate::components::tag::state_tag;
use crate::context::Visit;
use crate::format;
use crate::words;
use domain::cache::{CacheEntry, Cached, Held, Standing};
use domain::record::State;
use domain::services::records::RecordView;
use leptos::prelude::*;

/// The line among the facts around the evidence.
pub fn line(visit: &Visit, view: &RecordView) -> AnyView {
    let Some(cached) = &view.cached else { return visit.texts().record.no_cache.into_any() };
    let standing = cached.standing(view.detail.row.state);
    let key = (!cached.key.is_empty()).then(|| view! { <code>{cached.key.clone()}</code>" " });
    view! { {key}{held(visit, cached, standing)} }.into_any()
}

fn held(visit: &Visit, cached: &Cached, standing: Standing) -> AnyView {
    let t = &visit.texts().cache;
    match &cached.held {
        Held::Nothing => t.nothing.into_any(),
        Held::Entry(entry) => said(visit, entry, standing),
        Held::Unreadable(why) => t.unreadable(why).into_any(),
        Held::Unknown(why) => t.unknown(why).into_any(),
    }
}

fn said(visit: &Visit, entry: &CacheEntry, standing: Standing) -> AnyView {
    let texts = visit.texts();
    let t = &texts.cache;
    let state = state_tag(texts, entry.means.first().copied().unwrap_or(State::Unknown));
    let (class, word) = match standing {
        Standing::Agrees | Standing::Empty => ("good", t.agrees),
        Standing::Disagrees => ("bad", t.disagrees),
        Standing::Unclear => ("quiet", t.unclear),
    };
    let native = entry.native.as_deref().map(|native| t.stored_as(native));
    let life = match entry.ttl {
        Some(ttl) => t.ends_in(format::age(visit.locale(), i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX))),
        None => t.never_ends.to_owned(),
    };
    view! { {state}" "<span class=class>{word}</span>" "<small>{native}" "{life}</small> }.into_any()
}

/// What must be known about the cache before anything else.
pub fn notices(visit: &Visit, view: &RecordView) -> Option<AnyView> {
    let pending = view.cache_pending.as_ref().map(|change| {
        let t = &visit.texts().cache;
        let why = change.why.clone();
        note(
            "note busy",
            t.pending_title,
            view! { <p>{t.pending_line(u64::from(change.attempts))}" "<small>{why}</small></p> },
        )
    });
    pending.or_else(|| disagreement(visit, view))
}

fn disagreement(visit: &Visit, view: &RecordView) -> Option<AnyView> {
    let texts = visit.texts();
    let row = &view.detail.row;
    let cached = view.cached.as_ref().filter(|cached| cached.standing(row.state) == Standing::Disagrees)?;
    let says = words::state(texts, cached.state()?);
    let line = texts.cache.disagrees_line(says, words::state(texts, row.state));
    Some(note("note bad", texts.cache.disagrees_title, view! { <p>{line}</p> }))
}

fn note(class: &'static str, title: &'static str, text: impl IntoView + 'static) -> AnyView {
    view! { <div class=class role="status">{Icon::Warning.view()}<div><strong>{title}</strong>{text}</div></div> }
        .into_any()
}

/// The value, when it is more than the state's own spelling.
pub fn value(view: &RecordView) -> Option<&[u8]> {
    match &view.cached.as_ref()?.held {
        Held::Entry(entry) if entry.native.as_deref().map(str::as_bytes) != Some(&entry.value) => {
            Some(&entry.value).filter(|value| !value.is_empty()).map(Vec::as_slice)
        }
        _ => None,
    }
}

/// Changes when the page would say something else about the cache, its remaining life aside.
pub fn version(view: &RecordView) -> (String, Option<u32>) {
    let cached = view.cached.as_ref().map(|cached| match &cached.held {
        Held::Nothing => "nothing".to_owned(),
        Held::Entry(entry) => format!("{:?} {}", entry.means, entry.value.len()),
        Held::Unreadable(why) | Held::Unknown(why) => why.clone(),
    });
    (cached.unwrap_or_default(), view.cache_pending.as_ref().map(|change| change.attempts))
}
