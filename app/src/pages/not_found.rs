//! The pages for what is not there, and for what this role may not open.

use super::{Sheet, page, set_status};
use crate::components::empty;
use crate::context::Visit;
use crate::frame::Bare;
use crate::routes::{self, Route};
use crate::words;
use domain::roles::{Actor, Role};
use leptos::prelude::*;
use leptos_axum::ResponseOptions;
use leptos_meta::Title;

/// No route has this address. Who is signed in keeps the rail to go on from; strangers get the bare frame.
#[component]
pub fn NotFound() -> impl IntoView {
    let visit = Visit::here();
    let t = &visit.texts().not_found;
    set_status(use_context::<ResponseOptions>().as_ref(), 404);
    if visit.actor().is_some() {
        return page(&routes::NOT_FOUND, |signed| async move { Ok(missing(&signed.visit)) });
    }
    view! {
        <Title text=t.title/>
        <Bare visit=visit.clone()>
            <h1>{t.title}</h1>
            {not_there(&visit)}
        </Bare>
    }
    .into_any()
}

/// The page exists, the thing on it does not.
pub(super) fn missing(visit: &Visit) -> Sheet {
    Sheet::new(visit.texts().not_found.title, not_there(visit))
}

/// The role lacks the right that the page needs.
pub(super) fn denied(visit: &Visit, entry: &Route, actor: &Actor, least: Role) -> Sheet {
    let t = visit.texts();
    let page = (entry.title)(t);
    let lead = t.denied.lead(page, words::role(t, actor.role));
    let hint = t.denied.hint(words::role(t, least));
    Sheet::new(t.denied.title, empty::notice(lead, hint, ()))
}

fn not_there(visit: &Visit) -> impl IntoView + use<> {
    let t = &visit.texts().not_found;
    let home = view! { <a class="btn" href=visit.href("/")>{t.home}</a> };
    empty::notice(t.lead, t.hint, home)
}
