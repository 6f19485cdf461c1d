//! What happened to the record, oldest first, by day. Runs of checks that said the same are folded.

use crate::components::panel::Panel;
use crate::components::tag::{state_tag, verdict_tag};
use crate::components::time;
use crate::context::Visit;
use crate::i18n::Locale;
use crate::words;
use chrono::NaiveDate;
use domain::compensation::Ending;
use domain::record::State;
use domain::services::records::{Event, Happened, RecordView};
use leptos::prelude::*;

/// A run of equal checks longer than this shows its ends only.
const FOLDS: usize = 3;
/// How background checks sign themselves.
const AUTO_CHECK: &str = "auto-check";

pub fn panel(visit: &Visit, view: &RecordView) -> AnyView {
    let t = &visit.texts().record;
    let mut day = None;
    let lines = runs(&view.history).into_iter().map(|run| {
        let date = local_date(visit, &run[0]);
        let heading = day.replace(date).is_none_or(|last| last != date);
        let heading = heading.then(|| view! { <li class="day">{date.to_string()}</li> });
        view! { {heading}{shown(visit, run)} }
    });
    let lines = lines.collect_view();
    let list = view! { <ol class="timeline pad">{lines}</ol> };
    Panel::new(t.timeline).hint(time::zone_here(visit.zone().name())).view(list)
}

/// Neighbours that are checks with the same verdict stay together; everything else stands alone.
fn runs(history: &[Happened]) -> Vec<&[Happened]> {
    history
        .chunk_by(|left, right| match (&left.what, &right.what) {
            (Event::Checked { verdict: one, .. }, Event::Checked { verdict: other, .. }) => one == other,
            _ => false,
        })
        .collect()
}

fn shown(visit: &Visit, run: &[Happened]) -> AnyView {
    match run {
        [first, between @ .., last] if run.len() > FOLDS => {
            let text = visit.texts().record.checks_between(between.len() as u64);
            let lines = between.iter().map(|happened| line(visit, happened)).collect_view();
            view! {
                {line(visit, first)}
                <li class="fold"><details><summary>{text}</summary><ol class="timeline">{lines}</ol></details></li>
                {line(visit, last)}
            }
            .into_any()
        }
        run => run.iter().map(|happened| line(visit, happened)).collect_view().into_any(),
    }
}

fn line(visit: &Visit, happened: &Happened) -> AnyView {
    let (tone, text) = words(visit, happened);
    view! { <li>{time::time_of_day(visit, happened.at)}<i class=tone aria-hidden="true"></i><div>{text}</div></li> }
        .into_any()
}

/// The colour of a line's dot, and its words.
fn words(visit: &Visit, happened: &Happened) -> (&'static str, AnyView) {
    let texts = visit.texts();
    let t = &texts.record;
    match &happened.what {
        Event::Created => ("processing", t.created_line.into_any()),
        Event::LeaseEnds if happened.at <= visit.now() => ("", t.lease_over.into_any()),
        Event::LeaseEnds => ("", t.lease_ends.into_any()),
        Event::Updated { state } => {
            (dot(*state), view! { {t.updated_line}" "{state_tag(texts, *state)} }.into_any())
        }
        Event::Checked { verdict, by, reasons } => {
            let why = reasons.iter().map(|reason| view! { <small>{words::reason(texts, reason)}</small> });
            let why = why.collect_view();
            let text = view! { {t.checked_line(who(visit, by))}" "{verdict_tag(texts, Some(*verdict))}{why} };
            ("", text.into_any())
        }
        Event::CompensationBegan { action, by, reason } => {
            ("", t.began_line(words::action(texts, *action), who(visit, by), reason).into_any())
        }
        Event::CompensationEnded { action, by, ending, message } => {
            let line = t.ended_line(words::action(texts, *action), who(visit, by));
            let text =
                view! { {line}" "<strong>{words::ending(texts, *ending)}</strong>{english(visit, message)} };
            (ending_dot(*ending), text.into_any())
        }
        Event::CacheChangePending { message } => {
            ("", view! { {texts.cache.pending_event}{english(visit, message)} }.into_any())
        }
        Event::CacheChangeConfirmed { attempts } => {
            ("good", texts.cache.confirmed_event(u64::from(*attempts) + 1).into_any())
        }
    }
}

/// The services' own sentences are English; other languages show the words around them only.
fn english(visit: &Visit, sentence: &str) -> Option<AnyView> {
    (visit.locale() == Locale::En && !sentence.is_empty())
        .then(|| view! { <small>{sentence.to_owned()}</small> }.into_any())
}

/// Who did it; the background checks are nobody's.
pub fn who(visit: &Visit, name: &str) -> String {
    if name == AUTO_CHECK { visit.texts().record.auto_check.to_owned() } else { name.to_owned() }
}

fn dot(state: State) -> &'static str {
    match state {
        State::Success => "good",
        State::Failed => "bad",
        State::Processing => "processing",
        State::Timeout | State::Ignored | State::Unknown => "",
    }
}

fn ending_dot(ending: Ending) -> &'static str {
    match ending {
        Ending::Succeeded => "good",
        Ending::InDoubt => "bad",
        Ending::CachePending => "processing",
        Ending::Refused | Ending::Failed => "",
    }
}

fn local_date(visit: &Visit, happened: &Happened) -> NaiveDate {
    happened.at.with_timezone(&visit.zone()).date_naive()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, TimeDelta};
    use domain::evidence::Verdict;

    fn checked(second: i64, verdict: Verdict) -> Happened {
        let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(second);
        let what = Event::Checked { verdict, by: "ann".into(), reasons: Vec::new() };
        Happened { at, what }
    }

    #[test]
    fn checks_fold_only_while_they_say_the_same() {
        let mut history: Vec<_> = (0..5).map(|second| checked(second, Verdict::Absent)).collect();
        history.push(checked(5, Verdict::Found));
        history.push(Happened { at: DateTime::UNIX_EPOCH, what: Event::Created });
        history.push(checked(6, Verdict::Found));
        let lengths: Vec<_> = runs(&history).iter().map(|run| run.len()).collect();
        assert_eq!(lengths, [5, 1, 1, 1]);
    }
}
