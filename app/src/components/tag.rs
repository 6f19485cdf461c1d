//! States and verdicts as tags: a shape and a word beside the colour, so that colour never carries alone.

use crate::i18n::Texts;
use crate::words;
use domain::evidence::Verdict;
use domain::record::State;
use leptos::prelude::*;

/// The meaning of a tag's colour and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Running: half-filled, amber.
    Processing,
    /// Good: filled circle, green.
    Good,
    /// Bad: square, red.
    Bad,
    /// Ended without effect: ring, violet.
    Ended,
    /// Not known: half-filled, slate.
    Unknown,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Processing => "tag processing half",
            Self::Good => "tag good",
            Self::Bad => "tag bad square",
            Self::Ended => "tag ended ring",
            Self::Unknown => "tag unknown half",
        }
    }
}

/// Any tag.
pub fn tag(tone: Tone, word: impl Into<String>) -> AnyView {
    view! { <span class=tone.class()>{word.into()}</span> }.into_any()
}

pub fn state_tag(t: &Texts, state: State) -> AnyView {
    let tone = match state {
        State::Processing => Tone::Processing,
        State::Success => Tone::Good,
        State::Failed => Tone::Bad,
        State::Timeout => Tone::Ended,
        State::Ignored => Tone::Ended,
        State::Unknown => Tone::Unknown,
    };
    tag(tone, words::state(t, state))
}

/// The tag of the latest verdict; `None` is a record nobody has checked.
pub fn verdict_tag(t: &Texts, verdict: Option<Verdict>) -> AnyView {
    match verdict {
        None => tag(Tone::Unknown, t.verdict.unchecked),
        Some(verdict) => {
            let tone = match verdict {
                Verdict::Found => Tone::Good,
                Verdict::Absent => Tone::Ended,
                Verdict::Mismatch | Verdict::Partial => Tone::Bad,
                Verdict::Unavailable => Tone::Unknown,
            };
            tag(tone, words::verdict(t, verdict))
        }
    }
}
