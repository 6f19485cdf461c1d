//! Live parts: one event stream a page, closed while nobody looks. When a topic changed, the page's own address is
//! fetched again and each part of that topic takes its new content; the server stays the only renderer.

use super::dom;
use leptos::ev;
use leptos::prelude::{document, set_timeout, window, window_event_listener};
use leptos::task::spawn_local;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{DomParser, Element, Event, EventSource, MessageEvent, Response, SupportedType};

/// Changes within this time are fetched together.
const GATHERS: Duration = Duration::from_millis(1_000);
/// What a part shows, in one word; see `components::live::live_at`.
const VERSION: &str = "data-live-version";
/// The wait before a stream that the server refused is tried again.
const RETRIES: Duration = Duration::from_secs(10);

/// The parts of the page and the stream that moves them.
struct Stream {
    address: String,
    source: RefCell<Option<EventSource>>,
    dirty: RefCell<BTreeSet<String>>,
    waiting: Cell<bool>,
    /// Topics of parts that somebody is busy with; they follow when the focus moves on, or at the next change.
    later: RefCell<BTreeSet<String>>,
    /// New content of lists that waits to be shown, by part.
    offered: RefCell<BTreeMap<String, String>>,
}

/// Opens the stream that `data-live` names; strangers have none.
pub fn start(body: &Element) {
    let Some(address) = body.get_attribute("data-live") else { return };
    let stream = Rc::new(Stream {
        address,
        source: RefCell::default(),
        dirty: RefCell::default(),
        waiting: Cell::new(false),
        later: RefCell::default(),
        offered: RefCell::default(),
    });
    stream.open();
    let on_click = Rc::clone(&stream);
    window_event_listener(ev::click, move |event| on_click.show_offered(&event));
    let on_leave = Rc::clone(&stream);
    window_event_listener(ev::focusout, move |_| on_leave.catch_up());
    window_event_listener(ev::visibilitychange, move |_| {
        if dom::is_hidden() {
            stream.close();
        } else {
            stream.open();
            stream.everything_changed();
        }
    });
}

impl Stream {
    fn open(self: &Rc<Self>) {
        if self.source.borrow().is_some() || dom::is_hidden() {
            return;
        }
        let Ok(source) = EventSource::new(&self.address) else { return };
        let stream = Rc::clone(self);
        listen(&source, "changed", move |event| {
            if let Some(topic) =
                event.dyn_ref::<MessageEvent>().and_then(|message| message.data().as_string())
            {
                stream.changed(topic.trim_matches('"'));
            }
        });
        let stream = Rc::clone(self);
        listen(&source, "open", move |_| {
            let interrupted =
                document().document_element().is_some_and(|root| root.has_attribute("data-live-off"));
            dom::mark("data-live-off", None);
            // What was still going on when the page was made may have ended before the stream opened.
            if interrupted || dom::first("[data-live-unfinished]").is_some() {
                stream.everything_changed();
            }
        });
        let stream = Rc::clone(self);
        listen(&source, "error", move |_| stream.interrupted());
        self.source.replace(Some(source));
    }

    fn close(&self) {
        if let Some(source) = self.source.take() {
            source.close();
        }
    }

    /// The browser reconnects by itself unless the server refused; then we try again, slowly.
    fn interrupted(self: &Rc<Self>) {
        dom::mark("data-live-off", Some(""));
        let refused =
            self.source.borrow().as_ref().is_some_and(|source| source.ready_state() == EventSource::CLOSED);
        if refused {
            self.close();
            let stream = Rc::clone(self);
            set_timeout(move || stream.open(), RETRIES);
        }
    }

    fn changed(self: &Rc<Self>, topic: &str) {
        if !dom::all(&["[data-live-topic~='", topic, "']"].concat()).is_empty() {
            self.dirty.borrow_mut().insert(topic.to_owned());
            self.dirty.borrow_mut().append(&mut self.later.borrow_mut());
            self.refresh_soon();
        }
    }

    fn catch_up(self: &Rc<Self>) {
        if !self.later.borrow().is_empty() {
            self.dirty.borrow_mut().append(&mut self.later.borrow_mut());
            self.refresh_soon();
        }
    }

    fn everything_changed(self: &Rc<Self>) {
        let topics = dom::all("[data-live-topic]")
            .into_iter()
            .filter_map(|part| part.get_attribute("data-live-topic"));
        let topics: BTreeSet<String> =
            topics.flat_map(|topics| topics.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
        if !topics.is_empty() {
            self.dirty.borrow_mut().extend(topics);
            self.refresh_soon();
        }
    }

    fn refresh_soon(self: &Rc<Self>) {
        if self.waiting.replace(true) {
            return;
        }
        let stream = Rc::clone(self);
        let refresh = move || {
            spawn_local(async move {
                let topics = stream.dirty.take();
                if let Some(fresh) = fetch_page().await {
                    stream.take_in(&fresh, &topics);
                }
                stream.waiting.set(false);
                if !stream.dirty.borrow().is_empty() {
                    stream.refresh_soon();
                }
            });
        };
        set_timeout(refresh, GATHERS);
    }

    fn take_in(self: &Rc<Self>, fresh: &web_sys::Document, topics: &BTreeSet<String>) {
        for part in dom::all("[data-live-topic]") {
            let concerns = part.get_attribute("data-live-topic").unwrap_or_default();
            let Some(new) = fresh.get_element_by_id(&part.id()) else { continue };
            if !concerns.split(' ').any(|topic| topics.contains(topic)) || is_same(&part, &new) {
                continue;
            }
            if part.get_attribute("data-live-mode").as_deref() == Some("announce") {
                self.announce(&part, &new);
            } else if dom::holds_focus(&part) || holds_dialog(&part) {
                // Replacing it would drop the focus, or the dialog somebody reads.
                self.later.borrow_mut().extend(concerns.split(' ').map(str::to_owned));
            } else {
                swap(&part, &new);
                dom::set(&part, VERSION, new.get_attribute(VERSION).as_deref());
            }
        }
    }

    /// Known rows take their new content in place, vanished ones fade, new ones are counted and wait.
    fn announce(&self, part: &Element, new: &Element) {
        let (old_rows, new_rows) = (rows(part), rows(new));
        for (id, row) in &old_rows {
            match new_rows.get(id) {
                Some(fresh) => update(row, fresh),
                None => dom::set(row, "data-gone", Some("")),
            }
        }
        let arrived = new_rows.keys().filter(|id| !old_rows.contains_key(*id)).count();
        if old_rows.is_empty() || new_rows.is_empty() {
            part.set_inner_html(&new.inner_html());
        } else if arrived > 0 {
            self.offered.borrow_mut().insert(part.id(), new.inner_html());
            offer(part, arrived);
        }
    }

    fn show_offered(&self, event: &Event) {
        let part = dom::about(event, "[data-live-show]")
            .and_then(|button| button.closest("[data-live-topic]").ok().flatten());
        let Some(part) = part else { return };
        if let Some(content) = self.offered.borrow_mut().remove(&part.id()) {
            part.set_inner_html(&content);
        }
    }
}

/// Parts that carry a version are compared by it; others by what they say.
fn is_same(part: &Element, new: &Element) -> bool {
    match (part.get_attribute(VERSION), new.get_attribute(VERSION)) {
        (Some(old), Some(new)) => old == new,
        _ => part.inner_html() == new.inner_html(),
    }
}

/// Replaces a part's content; what the reader unfolded stays unfolded.
fn swap(part: &Element, new: &Element) {
    let unfolded: Vec<bool> =
        dom::within(part, "details").iter().map(|details| details.has_attribute("open")).collect();
    part.set_inner_html(&new.inner_html());
    let details = dom::within(part, "details");
    if details.len() == unfolded.len() {
        for (details, open) in details.iter().zip(unfolded) {
            dom::set(details, "open", open.then_some(""));
        }
    }
}

fn holds_dialog(part: &Element) -> bool {
    part.query_selector("dialog[open]").is_ok_and(|dialog| dialog.is_some())
}

fn rows(part: &Element) -> BTreeMap<String, Element> {
    dom::within(part, "[data-row]")
        .into_iter()
        .filter_map(|row| Some((row.get_attribute("data-row")?, row)))
        .collect()
}

fn update(row: &Element, fresh: &Element) {
    dom::set(row, "data-gone", None);
    let busy = dom::is_hovered(row)
        || dom::holds_focus(row)
        || row.query_selector(":checked").is_ok_and(|found| found.is_some());
    if !busy && row.inner_html() != fresh.inner_html() {
        row.set_inner_html(&fresh.inner_html());
    }
}

fn offer(part: &Element, arrived: usize) {
    let Ok(Some(line)) = part.query_selector(".live-more") else { return };
    if let Ok(Some(count)) = line.query_selector("[data-live-count]") {
        let pattern = count.get_attribute("data-live-count").unwrap_or_default();
        count.set_text_content(Some(&pattern.replace('%', &arrived.to_string())));
    }
    dom::set(&line, "hidden", None);
}

/// The page as the server renders it now; nothing when it answers otherwise (signed out, down).
async fn fetch_page() -> Option<web_sys::Document> {
    fetch(&page_address()?).await
}

/// Any page of the console as the server renders it now.
pub(super) async fn fetch(address: &str) -> Option<web_sys::Document> {
    let response: Response = JsFuture::from(window().fetch_with_str(address)).await.ok()?.dyn_into().ok()?;
    if !response.ok() || response.redirected() {
        return None;
    }
    let html = JsFuture::from(response.text().ok()?).await.ok()?.as_string()?;
    DomParser::new().ok()?.parse_from_string(&html, SupportedType::TextHtml).ok()
}

/// This page without its fragment.
fn page_address() -> Option<String> {
    let location = window().location();
    Some(format!("{}{}", location.pathname().ok()?, location.search().ok()?))
}

fn listen(source: &EventSource, event: &str, handler: impl Fn(Event) + 'static) {
    let handler = Closure::<dyn Fn(Event)>::new(handler);
    if source.add_event_listener_with_callback(event, handler.as_ref().unchecked_ref()).is_ok() {
        // Lives as long as the page; a closed source never calls it again.
        let _: JsValue = handler.into_js_value();
    }
}
