//! One record: what it is and what happened to it on the left, the evidence and the three actions on the right.

mod actions;
mod bodies;
mod cache;
mod evidence;
mod identity;
mod notices;
mod timeline;

use super::{Sheet, Signed, page};
use crate::components::icon::Icon;
use crate::components::live::{live_at, live_inline};
use crate::components::tag::{Tone, tag};
use crate::context::Visit;
use crate::cookies;
use crate::format;
use crate::routes;
use crate::words;
use actions::{Dialogs, Preview};
use domain::actions::Action;
use domain::console::Console;
use domain::page::encode_cursor;
use domain::ports::Topic;
use domain::record::{RecordDetail, RecordId, RecordRow, State};
use domain::roles::Actor;
use domain::services::records::RecordView;
use http::request::Parts;
use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

#[component]
pub fn Record() -> impl IntoView {
    let id = use_params_map().read_untracked().get("id").unwrap_or_default();
    let reveals = asked_to_reveal(&id);
    page(&routes::RECORD, move |Signed { visit, actor, console }| async move {
        let id: RecordId = id.parse()?;
        let view = console.records.view(&actor, &id).await?;
        let revealed = if reveals { Some(console.records.reveal(&actor, &id).await) } else { None };
        let recent = console.compensations.recent_reasons(&actor).await.unwrap_or_default();
        let command_keys = [(); 3].map(|()| console.records.ids.next());
        let response = response_preview(&actor, &console, &view).await;
        let dialogs = Dialogs { visit: &visit, view: &view, recent, command_keys, response };
        Ok(sheet(&visit, &actor, &view, dialogs, revealed))
    })
}

/// What mark-succeeded would store, where it is offered at all.
async fn response_preview(actor: &Actor, console: &Console, view: &RecordView) -> Option<Preview> {
    let offered =
        view.offers.iter().any(|offer| offer.action == Action::MarkSucceeded && offer.permit.is_allowed());
    let evidence = view.evidence.as_ref().filter(|_| offered)?;
    Some(console.records.response_preview(actor, &view.detail, &evidence.finding).await)
}

fn sheet(
    visit: &Visit,
    actor: &Actor,
    view: &RecordView,
    dialogs: Dialogs<'_>,
    revealed: Option<domain::Result<RecordDetail>>,
) -> Sheet {
    let side = view! {
        <div class="panel side-card">
            {evidence::card(visit, actor, view)}
            {actions::offers(dialogs)}
        </div>
    };
    let (version, topics) = (version(view), [Topic::Records]);
    let body = view! {
        {live_at("record-notices", &topics, version.clone(), notices::notices(visit, view))}
        <div class="two record">
            <div class="stack">
                {live_at("record-identity", &topics, version.clone(), identity::panel(visit, view))}
                {live_at("record-timeline", &topics, version.clone(), timeline::panel(visit, view))}
                {bodies::panels(visit, actor, view, revealed)}
            </div>
            <div class="aside">{live_at("record-side", &topics, version, side)}</div>
        </div>
    };
    let row = &view.detail.row;
    let audit = visit.href(&format!("/audit?record={}", row.id));
    let audit = view! { <a class="btn" href=audit>{Icon::Page.view()}{visit.texts().record.audit}</a> };
    Sheet::new(name(visit, row), body).heading(heading(visit, row)).actions(audit)
}

/// Whether a post just before asked to show this record's bodies.
fn asked_to_reveal(id: &str) -> bool {
    let base_path = &Visit::here().settings().base_path.clone();
    use_context::<Parts>()
        .and_then(|parts| cookies::take_reveal(base_path, &parts))
        .is_some_and(|asked| asked == id)
}

/// What people call this record: business type and number, else the key.
fn name(visit: &Visit, row: &RecordRow) -> String {
    let kind = row.biz_type.as_deref().unwrap_or(visit.texts().record.nameless);
    let number = row.biz_no.as_deref().unwrap_or(&row.key);
    format!("{kind} · {number}")
}

fn heading(visit: &Visit, row: &RecordRow) -> impl IntoView + use<> {
    let kind = row.biz_type.clone().unwrap_or_else(|| visit.texts().record.nameless.to_owned());
    let number = row.biz_no.clone().unwrap_or_else(|| row.key.clone());
    let state = live_inline("record-state", &[Topic::Records], state(visit, row));
    view! { {kind}" · "<code>{number}</code>" "{state} }
}

/// The state, and for how long it has been processing.
fn state(visit: &Visit, row: &RecordRow) -> AnyView {
    let t = visit.texts();
    let word = words::state(t, row.state);
    let text = match row.age_seconds.filter(|age| row.state == State::Processing && *age >= 0) {
        Some(age) => format!("{word} {}", t.record.for_age(format::age(visit.locale(), age))),
        None => word.to_owned(),
    };
    let tone = match row.state {
        State::Processing => Tone::Processing,
        State::Success => Tone::Good,
        State::Failed => Tone::Bad,
        State::Timeout => Tone::Ended,
        State::Ignored => Tone::Ended,
        State::Unknown => Tone::Unknown,
    };
    tag(tone, text)
}

/// Changes whenever something on the page would say something else, ages aside.
fn version(view: &RecordView) -> String {
    let evidence = view.evidence.as_ref().map(|evidence| &evidence.id);
    let running = view.running.as_ref().map(|running| &running.id);
    let version = view.detail.row.version.to_string();
    let cache = cache::version(view);
    encode_cursor(&(version, evidence, view.evidence_is_fresh, running, view.history.len(), cache))
}

#[cfg(test)]
mod tests;
