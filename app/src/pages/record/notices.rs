//! What must be known before anything else: somebody is settling the record, or an outcome is in doubt, the cache says
//! something else.

use super::cache;
use super::timeline::who;
use crate::components::icon::Icon;
use crate::components::time;
use crate::context::Visit;
use crate::words;
use domain::actions::Action;
use domain::compensation::{Compensation, Ending};
use domain::record::State;
use domain::services::records::{Event, RecordView};
use leptos::prelude::*;

pub fn notices(visit: &Visit, view: &RecordView) -> Option<AnyView> {
    let settling = match &view.running {
        Some(running) => Some(being_settled(visit, running)),
        None => in_doubt(view).map(|(action, by)| doubt(visit, action, by)),
    };
    let cache = cache::notices(visit, view);
    (settling.is_some() || cache.is_some()).then(|| view! { {settling}{cache} }.into_any())
}

/// The last compensation, when nobody knows whether it took effect and the record does not say success either.
fn in_doubt(view: &RecordView) -> Option<(Action, &str)> {
    let last = view.history.iter().rev().find_map(|happened| match &happened.what {
        Event::CompensationEnded { action, by, ending, .. } => Some((*action, by.as_str(), *ending)),
        _ => None,
    });
    last.filter(|(_, _, ending)| *ending == Ending::InDoubt && view.detail.row.state != State::Success)
        .map(|(action, by, _)| (action, by))
}

fn being_settled(visit: &Visit, running: &Compensation) -> AnyView {
    let t = visit.texts();
    let text = t.record.running_line(words::action(t, running.command.action), &running.actor);
    view! {
        <div class="note busy" role="status" data-live-unfinished="">
            {Icon::Clock.view()}
            <p><strong>{text}</strong>" "<small>{t.record.running_since}" "{time::absolute(visit, running.started_at)}</small></p>
        </div>
    }
    .into_any()
}

fn doubt(visit: &Visit, action: Action, by: &str) -> AnyView {
    let t = visit.texts();
    let line = t.record.doubt_line(words::action(t, action), who(visit, by));
    view! {
        <div class="note bad doubt" role="alert">
            {Icon::Warning.view()}
            <div><strong>{t.record.doubt_title}</strong><p>{line}</p><p>{t.record.doubt_do}</p></div>
        </div>
    }
    .into_any()
}
