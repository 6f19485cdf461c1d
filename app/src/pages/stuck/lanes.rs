//! The lanes: one card a verdict, each a filter, each with what to do about it.

use super::queue::Queue;
use super::run;
use crate::components::live::live_at;
use crate::components::tag::{Tone, tag};
use crate::context::Visit;
use crate::format;
use crate::i18n::Texts;
use crate::pages::record_row;
use domain::ports::Topic;
use domain::record::RecordRow;
use domain::roles::Actor;
use domain::stuck::Lane;
use leptos::prelude::*;

/// The words of a lane.
struct Words {
    tone: Tone,
    name: &'static str,
    says: &'static str,
    recommends: &'static str,
}

fn words(t: &Texts, lane: Lane) -> Words {
    let t = &t.stuck;
    let (tone, name, says, recommends) = match lane {
        Lane::EffectExists => (Tone::Good, t.lane_effect_exists, t.says_effect_exists, t.do_effect_exists),
        Lane::NoEffect => (Tone::Ended, t.lane_no_effect, t.says_no_effect, t.do_no_effect),
        Lane::LookCloser => (Tone::Bad, t.lane_look_closer, t.says_look_closer, t.do_look_closer),
        Lane::CouldNotCheck => {
            (Tone::Unknown, t.lane_could_not_check, t.says_could_not_check, t.do_could_not_check)
        }
        Lane::NotChecked => (Tone::Unknown, t.lane_not_checked, t.says_not_checked, t.do_not_checked),
    };
    Words { tone, name, says, recommends }
}

/// The name of a lane, for the list under it.
pub fn name(t: &Texts, lane: Lane) -> &'static str {
    words(t, lane).name
}

pub fn lanes(visit: &Visit, actor: &Actor, queue: &Queue) -> AnyView {
    let lanes: Vec<_> = Lane::ALL
        .into_iter()
        .map(|lane| (lane, queue.lane(lane)))
        .filter(|(lane, rows)| *lane != Lane::NotChecked || !rows.is_empty())
        .collect();
    let version: Vec<_> = lanes.iter().map(|(_, rows)| rows.len().to_string()).collect();
    let first = lanes.iter().filter_map(|(_, rows)| rows.first()).map(|row| row.id.to_string());
    let version = version.into_iter().chain(first).collect::<Vec<_>>().join("-");
    let cards = lanes.iter().map(|(lane, rows)| card(visit, actor, queue, *lane, rows)).collect_view();
    let label = visit.texts().stuck.lanes;
    let content = view! { <nav class="lanes" aria-label=label>{cards}</nav> };
    live_at("stuck-lanes", &[Topic::Records], version, content)
}

/// The whole card leads to its lane, and back to all lanes when it is the chosen one.
fn card(visit: &Visit, actor: &Actor, queue: &Queue, lane: Lane, rows: &[&RecordRow]) -> AnyView {
    let Words { tone, name, says, recommends } = words(visit.texts(), lane);
    let chosen = queue.scope.lane == Some(lane);
    let href = visit.href_with(&[("lane", (!chosen).then(|| lane.as_str())), ("cursor", None)]);
    let current = chosen.then_some("true");
    let class = if rows.is_empty() { "lane none" } else { "lane" };
    view! {
        <div class=class data-lane=lane.as_str()>
            <a class="cover" href=href aria-current=current>{tag(tone, name)}<b>{format::number(rows.len() as u64)}</b></a>
            <p>{says}</p>
            {rows.first().map(|first| next(visit, actor, queue, lane, first, recommends))}
        </div>
    }
    .into_any()
}

/// The lane's own button: the first record to settle, or the checks to make.
fn next(
    visit: &Visit,
    actor: &Actor,
    queue: &Queue,
    lane: Lane,
    first: &RecordRow,
    recommends: &'static str,
) -> AnyView {
    let t = &visit.texts().stuck;
    let button = match lane {
        Lane::CouldNotCheck | Lane::NotChecked => {
            let count = queue.lane(lane).len() as u64;
            run::check_form(visit, actor, &queue.scope_of(Some(lane)), t.check_these(count), "btn sm")
        }
        Lane::EffectExists | Lane::NoEffect | Lane::LookCloser => {
            let class = if lane == Lane::EffectExists { "btn sm primary" } else { "btn sm" };
            view! { <a class=class href=record_row::href(visit, &first.id)>{t.review_first}</a> }.into_any()
        }
    };
    view! { <div class="next"><small>{recommends}</small>{button}</div> }.into_any()
}
