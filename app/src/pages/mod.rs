//! One file a page. To add one:
//!
//! 1. `routes.rs`: a `Route` constant (path, right, title, place in the rail) and its entry in `ROUTES`;
//! 2. `pages/<name>.rs`: a component that returns `page(&routes::NAME, |signed| async move { … Ok(Sheet::new(…)) })`;
//! 3. here: its `mod` line and its line in [`App`].
//!
//! Texts go to `locales/*.toml`, mutations to `api/`, styles to `style/pages/`.

use crate::context::{Visit, console};
use crate::frame::{Frame, Surroundings};
use crate::routes::Route as Entry;
use domain::Error;
use domain::console::Console;
use domain::roles::Actor;
use leptos::prelude::*;
use leptos_axum::ResponseOptions;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::components::{Route, Router, Routes};
use leptos_router::{SsrMode, path};
use std::future::Future;

mod alerts;
mod audit;
mod login;
mod me;
mod not_found;
mod overview;
mod record;
mod record_row;
mod records;
mod source_cache;
mod source_outbox;
mod sources;
mod stuck;
#[cfg(test)]
pub(crate) mod testing;

/// All pages. The paths are those of [`crate::routes::ROUTES`]; a test compares them.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    view! {
        <Router>
            <Routes fallback=not_found::NotFound>
                <Route path=path!("/login") view=login::Login ssr=SsrMode::Async/>
                <Route path=path!("/") view=overview::Overview ssr=SsrMode::Async/>
                <Route path=path!("/stuck") view=stuck::Stuck ssr=SsrMode::Async/>
                <Route path=path!("/records") view=records::Records ssr=SsrMode::Async/>
                <Route path=path!("/records/:id") view=record::Record ssr=SsrMode::Async/>
                <Route path=path!("/alerts") view=alerts::Alerts ssr=SsrMode::Async/>
                <Route path=path!("/audit") view=audit::Audit ssr=SsrMode::Async/>
                <Route path=path!("/sources") view=sources::Sources ssr=SsrMode::Async/>
                <Route path=path!("/me") view=me::Me ssr=SsrMode::Async/>
            </Routes>
        </Router>
    }
}

/// What a page of a signed-in person starts from.
pub struct Signed {
    pub visit: Visit,
    pub actor: Actor,
    pub console: Console,
}

/// A page's content, ready for the frame.
pub struct Sheet {
    title: String,
    /// The heading when it is more than the title's words.
    heading: Option<AnyView>,
    lead: Option<AnyView>,
    actions: Option<AnyView>,
    body: AnyView,
}

impl Sheet {
    pub fn new(title: impl Into<String>, body: impl IntoView + 'static) -> Self {
        Self { title: title.into(), heading: None, lead: None, actions: None, body: body.into_any() }
    }

    /// What stands in the h1 instead of the plain title; only phrasing content.
    pub fn heading(self, heading: impl IntoView + 'static) -> Self {
        Self { heading: Some(heading.into_any()), ..self }
    }

    /// The quiet sentence beside the heading.
    pub fn lead(self, lead: impl IntoView + 'static) -> Self {
        Self { lead: Some(lead.into_any()), ..self }
    }

    /// The page's own buttons, at the right of the heading.
    pub fn actions(self, actions: impl IntoView + 'static) -> Self {
        Self { actions: Some(actions.into_any()), ..self }
    }
}

/// A page behind the sign-in: sends strangers to `/login`, refuses roles without the right, shows a failed read in
/// place of the content, and puts everything into the frame.
pub fn page<Load, Loading>(entry: &'static Entry, load: Load) -> AnyView
where
    Load: FnOnce(Signed) -> Loading + Send + 'static,
    Loading: Future<Output = domain::Result<Sheet>> + Send + 'static,
{
    let visit = Visit::here();
    let Some(actor) = visit.actor().cloned() else {
        let next = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("next", &visit.address())
            .finish();
        leptos_axum::redirect(&visit.href(&format!("/login?{next}")));
        return ().into_any();
    };
    let console = console();
    let responses = use_context::<ResponseOptions>();
    let content = async move {
        let sheet = match (&console, entry.needs.filter(|needs| !actor.role.may(*needs))) {
            (Err(error), _) => failed(&visit, entry, error),
            (Ok(_), Some(needs)) => {
                set_status(responses.as_ref(), 403);
                not_found::denied(&visit, entry, &actor, needs.least_role())
            }
            (Ok(console), None) => {
                let signed = Signed { visit: visit.clone(), actor: actor.clone(), console: console.clone() };
                load(signed).await.unwrap_or_else(|error| {
                    set_status(responses.as_ref(), error.status());
                    failed(&visit, entry, &error)
                })
            }
        };
        let around = match &console {
            Ok(console) => Surroundings::read(console, &actor).await,
            Err(_) => Surroundings::default(),
        };
        framed(visit, actor, around, sheet)
    };
    view! { <Suspense>{Suspend::new(content)}</Suspense> }.into_any()
}

fn framed(visit: Visit, actor: Actor, around: Surroundings, sheet: Sheet) -> impl IntoView {
    let Sheet { title, heading, lead, actions, body } = sheet;
    let document_title = escaped(&format!("{title} · {}", visit.texts().frame.name));
    view! {
        <Title text=document_title/>
        <Frame visit actor around>
            <header class="head">
                <h1>{heading.unwrap_or_else(|| title.into_any())}</h1>
                {lead.map(|lead| view! { <p>{lead}</p> })}
                {actions.map(|actions| view! { <div class="acts">{actions}</div> })}
            </header>
            {body}
        </Frame>
    }
}

/// The title is the one text that the renderer puts into the document as it is, and records name it.
fn escaped(title: &str) -> String {
    title.replace('&', "&amp;").replace('<', "&lt;")
}

/// The sheet of a read that failed: what could not be read, why, and how to try again.
fn failed(visit: &Visit, entry: &Entry, error: &Error) -> Sheet {
    match error {
        Error::NotFound { .. } => not_found::missing(visit),
        error => Sheet::new((entry.title)(visit.texts()), crate::components::empty::failed(visit, error)),
    }
}

fn set_status(responses: Option<&ResponseOptions>, status: u16) {
    if let (Some(responses), Ok(status)) = (responses, http::StatusCode::from_u16(status)) {
        responses.set_status(status);
    }
}

#[cfg(test)]
mod access_tests;
