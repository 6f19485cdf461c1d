//! A form whose outcome shows while it is filled in: a form with `data-preview="<id>"` fetches its own GET address
//! a moment after the last change and takes that part. Sliders mirror the field they name in `data-mirrors`.

use super::{dom, live};
use leptos::ev;
use leptos::prelude::{document, set_timeout, window_event_listener};
use leptos::task::spawn_local;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, FormData, HtmlFormElement, HtmlInputElement, UrlSearchParams};

/// The pause after which a change counts as the last one.
const SETTLES: Duration = Duration::from_millis(300);

pub fn start() {
    let latest = Rc::new(Cell::new(0_u32));
    window_event_listener(ev::input, move |event| {
        mirror(&event);
        let Some(form) = dom::about(&event, "form[data-preview]") else { return };
        let turn = latest.get().wrapping_add(1);
        latest.set(turn);
        let latest = Rc::clone(&latest);
        let look = move || {
            if latest.get() == turn {
                spawn_local(async move {
                    let fresh = fetch(&form).await;
                    // A later change has its own answer on the way.
                    if let Some((id, fresh)) = fresh
                        && latest.get() == turn
                    {
                        show(&id, &fresh);
                    }
                });
            }
        };
        set_timeout(look, SETTLES);
    });
}

async fn fetch(form: &Element) -> Option<(String, web_sys::Document)> {
    let form: &HtmlFormElement = form.dyn_ref()?;
    let fields = FormData::new_with_form(form).ok()?;
    let query = UrlSearchParams::new_with_str_sequence_sequence(&fields).ok()?;
    let address = [form.get_attribute("action")?.as_str(), "?", &String::from(query.to_string())].concat();
    Some((form.get_attribute("data-preview")?, live::fetch(&address).await?))
}

fn show(id: &str, fresh: &web_sys::Document) {
    if let (Some(old), Some(new)) = (document().get_element_by_id(id), fresh.get_element_by_id(id)) {
        old.set_inner_html(&new.inner_html());
    }
}

/// Slider to field, and field to its sliders.
fn mirror(event: &Event) {
    let Some(control) = dom::about(event, "input") else { return };
    let Some(input) = control.dyn_ref::<HtmlInputElement>() else { return };
    if let Some(id) = control.get_attribute("data-mirrors") {
        copy(input, document().get_element_by_id(&id));
    } else if !control.id().is_empty() {
        copy(input, dom::first(&format!("[data-mirrors={:?}]", control.id())));
    }
}

fn copy(from: &HtmlInputElement, to: Option<Element>) {
    if let Some(to) = to.and_then(|to| to.dyn_into::<HtmlInputElement>().ok()) {
        to.set_value(&from.value());
    }
}
