//! The three actions: what each would do, or why it is not offered; and the dialog that carries it out.

use crate::components::confirm::{Confirm, opener, refused};
use crate::components::icon::Icon;
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::i18n::Texts;
use crate::words;
use domain::actions::{Action, Why, recommended};
use domain::record::{Body, State};
use domain::services::records::{Offer, RecordView};
use domain::{json, redact};
use leptos::prelude::*;

/// What the dialogs of one page share. The command keys are minted with the page, one an action: however often a
/// dialog is sent, it is one command.
pub struct Dialogs<'a> {
    pub visit: &'a Visit,
    pub view: &'a RecordView,
    pub recent: Vec<String>,
    pub command_keys: [String; 3],
    /// Asked for only where mark-succeeded is offered.
    pub response: Option<Preview>,
}

/// The response that would be rebuilt from the business row, if the table keeps one; or why it cannot be.
pub type Preview = domain::Result<Option<String>>;

pub fn offers(dialogs: Dialogs<'_>) -> AnyView {
    if let Some(why) = common_refusal(&dialogs.view.offers) {
        return none_offered(dialogs.visit, &dialogs.view.offers, why);
    }
    let fresh = dialogs.view.evidence.as_ref().filter(|_| dialogs.view.evidence_is_fresh);
    let first = fresh.and_then(|evidence| recommended(evidence.finding.verdict));
    let keys = dialogs.command_keys.iter();
    let offers = dialogs
        .view
        .offers
        .iter()
        .zip(keys)
        .map(|(offer, key)| shown(&dialogs, offer, key, first == Some(offer.action)));
    let offers = offers.collect_view();
    view! { <section class="offers" aria-label=dialogs.visit.texts().record.actions>{offers}</section> }
        .into_any()
}

/// The one reason why nothing is offered, if it is one.
fn common_refusal(offers: &[Offer]) -> Option<&Why> {
    let (first, others) = offers.split_first()?;
    let why = first.permit.why()?;
    others.iter().all(|offer| offer.permit.why() == Some(why)).then_some(why)
}

/// All actions refused alike: the reason once, the actions still in sight.
fn none_offered(visit: &Visit, offers: &[Offer], why: &Why) -> AnyView {
    const REASON: &str = "why-none";
    let t = visit.texts();
    let buttons = offers.iter().map(|offer| {
        let label = words::action(t, offer.action);
        view! { <button class="btn" type="button" disabled aria-describedby=REASON>{label}</button> }
    });
    view! {
        <section class="offers" aria-label=t.record.actions>
            <div class="act alike"><p id=REASON>{words::why(t, why)}</p>{buttons.collect_view()}</div>
        </section>
    }
    .into_any()
}

fn shown(dialogs: &Dialogs<'_>, offer: &Offer, key: &str, is_recommended: bool) -> AnyView {
    let t = dialogs.visit.texts();
    let (id, label) = (offer.action.as_str(), words::action(t, offer.action));
    let content = match offer.permit.why() {
        Some(why) => refused(id, label, words::why(t, why)),
        None => {
            let class = if is_recommended { "btn primary" } else { "btn" };
            view! {
                {opener(dialogs.visit, id, label, class)}
                <p>{would(t, offer.action)}</p>
                {dialog(dialogs, offer.action, key)}
            }
            .into_any()
        }
    };
    view! { <div class="act">{content}</div> }.into_any()
}

fn would(t: &Texts, action: Action) -> &'static str {
    match action {
        Action::MarkSucceeded => t.record.would_mark_succeeded,
        Action::MarkTimedOut => t.record.would_mark_timed_out,
        Action::Replay => t.record.would_replay,
    }
}

fn dialog(dialogs: &Dialogs<'_>, action: Action, key: &str) -> AnyView {
    let (visit, row) = (dialogs.visit, &dialogs.view.detail.row);
    let t = visit.texts();
    let title = t.record.confirm_title(words::action(t, action), super::name(visit, row));
    let evidence = dialogs.view.evidence.as_ref().map(|evidence| evidence.id.clone());
    let confirm = Confirm::new(action.as_str(), title, visit.href("/api/fn/settle"))
        .verb(verb(t, action))
        .consequence(consequence(t, action))
        .carry("id", &row.id)
        .carry("action", action)
        .carry("if_version", &row.version)
        .carry("evidence_id", evidence.unwrap_or_default())
        .carry("command_key", key)
        .carry("back", visit.address_with(&[("confirm", None)]))
        .recent(dialogs.recent.clone())
        .extra(
            view! { {statement(dialogs, action)}{(action == Action::MarkSucceeded).then(|| response(dialogs))} },
        );
    let confirm = changes(dialogs, action, confirm);
    if action == Action::Replay { confirm.danger().view(visit) } else { confirm.view(visit) }
}

fn verb(t: &Texts, action: Action) -> &'static str {
    match action {
        Action::MarkSucceeded => t.record.verb_mark_succeeded,
        Action::MarkTimedOut => t.record.verb_mark_timed_out,
        Action::Replay => t.record.verb_replay,
    }
}

fn consequence(t: &Texts, action: Action) -> &'static str {
    match action {
        Action::MarkSucceeded => t.record.consequence_mark_succeeded,
        Action::MarkTimedOut => t.record.consequence_mark_timed_out,
        Action::Replay => t.record.consequence_replay,
    }
}

/// Before → after.
fn changes(dialogs: &Dialogs<'_>, action: Action, confirm: Confirm) -> Confirm {
    let (visit, detail) = (dialogs.visit, &dialogs.view.detail);
    let texts = visit.texts();
    let t = &texts.record;
    let state = |state| words::state(texts, state);
    let stored = |body: &Body| match body.bytes() {
        Some(bytes) => t.request_stored(format::bytes(visit.locale(), bytes.len() as u64)),
        _ => t.response_empty.to_owned(),
    };
    let kept = |body: &Body| match body {
        Body::Stored(_) | Body::Decoded(_) => t.response_kept,
        _ => t.response_empty,
    };
    let before = state(detail.row.state);
    match action {
        Action::MarkSucceeded => confirm.change(t.state, before, state(State::Success)).change(
            t.response,
            stored(&detail.response),
            match &dialogs.response {
                None | Some(Ok(Some(_))) => t.response_built,
                Some(Ok(None)) => kept(&detail.response),
                Some(Err(_)) => t.response_given,
            },
        ),
        Action::MarkTimedOut => confirm.change(t.state, before, state(State::Timeout)).change(
            t.response,
            stored(&detail.response),
            kept(&detail.response),
        ),
        Action::Replay => confirm.change(t.state, before, t.after_replay).change(
            t.request,
            stored(&detail.request),
            t.request_sent,
        ),
    }
}

/// The exact statement in words, and the evidence it stands on.
fn statement(dialogs: &Dialogs<'_>, action: Action) -> AnyView {
    let visit = dialogs.visit;
    let texts = visit.texts();
    let t = &texts.record;
    let before = words::state(texts, dialogs.view.detail.row.state);
    let text = match action {
        Action::MarkSucceeded => t.statement_mark(words::state(texts, State::Success), before),
        Action::MarkTimedOut => t.statement_mark(words::state(texts, State::Timeout), before),
        Action::Replay => t.statement_replay(before),
    };
    let evidence = dialogs.view.evidence.as_ref().map(|evidence| {
        let verdict = words::verdict(texts, evidence.finding.verdict);
        view! { <p class="ground">{t.evidence}" · "{verdict}" · "{time::moment(visit, evidence.checked_at)}</p> }
    });
    view! { <p class="statement">{text}</p>{evidence} }.into_any()
}

/// The response that later duplicates get: as it would be rebuilt, masked, or to be given because it cannot be.
fn response(dialogs: &Dialogs<'_>) -> AnyView {
    let t = dialogs.visit.texts();
    match &dialogs.response {
        // A table without a response takes none.
        Some(Ok(None)) => ().into_any(),
        Some(Ok(Some(text))) => view! { {rebuilt(dialogs.visit, text)}{other_response(t, false)} }.into_any(),
        Some(Err(error)) => {
            let why = words::error(dialogs.visit.locale(), error);
            view! { <p class="note processing">{Icon::Warning.view()}<span>{why}</span></p>{other_response(t, true)} }.into_any()
        }
        None => other_response(t, false),
    }
}

fn rebuilt(visit: &Visit, text: &str) -> AnyView {
    let t = &visit.texts().record;
    let shown = redact::masked(text).map_or_else(
        || t.hidden_text(format::bytes(visit.locale(), text.len() as u64)),
        |masked| {
            json::parse(&masked).and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or(masked)
        },
    );
    view! { <figure class="rebuilt"><figcaption>{t.response_preview}</figcaption><pre>{shown}</pre></figure> }
        .into_any()
}

/// The response to give instead of the one rebuilt from the business row.
fn other_response(t: &Texts, needed: bool) -> AnyView {
    view! {
        <details class="field" open=needed>
            <summary>{t.record.give_response}</summary>
            <textarea name="response_body" rows="4" spellcheck="false" aria-label=t.record.give_response
                aria-describedby="response-hint" required=needed></textarea>
            {(!needed).then(|| view! { <small id="response-hint">{t.record.give_response_hint}</small> })}
        </details>
    }
    .into_any()
}
