//! The one table of allowed actions: pages, API and services all ask it.
//!
//! | verdict (fresh) | mark succeeded | mark timed out | replay |
//! | --- | --- | --- | --- |
//! | found | one person | never | never |
//! | absent | never | one person | one person |
//! | mismatch, partial, unavailable | second person | second person | second person |
//! | none or expired | check first | check first | check first |

use crate::evidence::{Evidence, Verdict};
use crate::record::{Abilities, State};
use crate::roles::{Permission, Role};
use crate::unable::Unable;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What an operator can do to one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    MarkSucceeded,
    MarkTimedOut,
    Replay,
}

impl Action {
    pub const ALL: [Action; 3] = [Action::MarkSucceeded, Action::MarkTimedOut, Action::Replay];

    pub fn as_str(self) -> &'static str {
        match self {
            Action::MarkSucceeded => "mark_succeeded",
            Action::MarkTimedOut => "mark_timed_out",
            Action::Replay => "replay",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Action {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        Action::ALL.into_iter().find(|action| action.as_str() == text).ok_or_else(|| {
            crate::Error::invalid(format!(
                "{text:?} is no action; write mark_succeeded, mark_timed_out or replay"
            ))
        })
    }
}

/// Why an action is not offered. `Display` is the English sentence; `code` is for translation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Why {
    /// The role may not settle records.
    Role { role: Role },
    /// The record is settled: SUCCESS, or already in the state the action would set.
    Settled { state: State },
    /// The record's own state is not one Amends understands.
    UnknownState,
    /// Still inside its time: a worker may be running it.
    StillRunning,
    /// The mapping or configuration cannot express the action.
    NotExpressible { unable: Unable },
    /// Somebody is settling this record right now.
    BeingSettled,
    /// No reverse check of this version yet.
    NoEvidence,
    /// The evidence is older than its life.
    EvidenceExpired,
    /// The effect exists, so doing it again or calling it off would do harm.
    EffectExists { action: Action },
    /// There is no effect, so the record must not claim one.
    NoEffect,
    /// A second person has to decide on this verdict.
    SecondPerson { verdict: Verdict },
}

impl Why {
    pub fn code(&self) -> &'static str {
        match self {
            Why::Role { .. } => "role",
            Why::Settled { .. } => "settled",
            Why::UnknownState => "unknown_state",
            Why::StillRunning => "still_running",
            Why::NotExpressible { .. } => "not_expressible",
            Why::BeingSettled => "being_settled",
            Why::NoEvidence => "no_evidence",
            Why::EvidenceExpired => "evidence_expired",
            Why::EffectExists { .. } => "effect_exists",
            Why::NoEffect => "no_effect",
            Why::SecondPerson { .. } => "second_person",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Role { role } => {
                write!(f, "Your role is {role}; settling records needs operator or higher.")
            }
            Why::Settled { state } => write!(f, "The record is already {state}; there is nothing to settle."),
            Why::UnknownState => {
                write!(f, "The record's state is not mapped; map it before settling anything.")
            }
            Why::StillRunning => {
                write!(
                    f,
                    "The record is still inside its time; a worker may be running it. Wait until it is stuck."
                )
            }
            Why::NotExpressible { unable } => unable.fmt(f),
            Why::BeingSettled => {
                write!(f, "Somebody is settling this record right now; read it again in a moment.")
            }
            Why::NoEvidence => {
                write!(f, "Run a reverse check first: nothing is known about the effect of this version.")
            }
            Why::EvidenceExpired => write!(f, "The evidence is too old; run the reverse check again."),
            Why::EffectExists { action: Action::Replay } => {
                write!(f, "The effect exists. Replaying could make it happen twice.")
            }
            Why::EffectExists { .. } => {
                write!(f, "The effect exists. Timed out would invite the user to do it twice.")
            }
            Why::NoEffect => {
                write!(f, "No effect exists. Succeeded would promise something that never happened.")
            }
            Why::SecondPerson { verdict } => write!(
                f,
                "The verdict is {verdict}, which one person cannot decide alone. It needs a second person's approval, which is not available yet."
            ),
        }
    }
}

/// Whether an action may be done, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permit {
    Allowed,
    /// One person may not; with another person's approval it could be done.
    SecondPerson(Why),
    Refused(Why),
}

impl Permit {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Permit::Allowed)
    }

    pub fn why(&self) -> Option<&Why> {
        match self {
            Permit::Allowed => None,
            Permit::SecondPerson(why) | Permit::Refused(why) => Some(why),
        }
    }
}

/// What is known about the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Known {
    Nothing,
    Expired,
    Fresh(Verdict),
}

impl Known {
    pub fn of(evidence: Option<&Evidence>, now: DateTime<Utc>) -> Self {
        match evidence {
            None => Known::Nothing,
            Some(evidence) if evidence.is_fresh(now) => Known::Fresh(evidence.finding.verdict),
            Some(_) => Known::Expired,
        }
    }
}

/// Everything the table looks at.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    pub role: Role,
    pub state: State,
    pub stuck: bool,
    pub abilities: &'a Abilities,
    pub being_settled: bool,
    pub known: Known,
}

/// The table: may this be done, now, by this role, on this evidence?
pub fn permit(action: Action, situation: &Situation<'_>) -> Permit {
    match refusal(action, situation) {
        Some(why) => Permit::Refused(why),
        None => match situation.known {
            Known::Nothing => Permit::Refused(Why::NoEvidence),
            Known::Expired => Permit::Refused(Why::EvidenceExpired),
            Known::Fresh(verdict) => by_verdict(action, verdict),
        },
    }
}

/// What the record and the role alone forbid, whatever the evidence says.
fn refusal(action: Action, situation: &Situation<'_>) -> Option<Why> {
    let ability = match action {
        Action::MarkSucceeded => &situation.abilities.mark_succeeded,
        Action::MarkTimedOut => &situation.abilities.mark_timed_out,
        Action::Replay => &situation.abilities.replay,
    };
    if !situation.role.may(Permission::Compensate) {
        return Some(Why::Role { role: situation.role });
    }
    match situation.state {
        State::Success => return Some(Why::Settled { state: State::Success }),
        State::Timeout | State::Failed if action == Action::MarkTimedOut => {
            return Some(Why::Settled { state: situation.state });
        }
        State::Ignored => return Some(Why::Settled { state: State::Ignored }),
        State::Unknown => return Some(Why::UnknownState),
        State::Processing if !situation.stuck => return Some(Why::StillRunning),
        State::Processing | State::Timeout | State::Failed => {}
    }
    if let Err(unable) = ability {
        return Some(Why::NotExpressible { unable: unable.clone() });
    }
    situation.being_settled.then_some(Why::BeingSettled)
}

/// What a fresh verdict allows; also asked again inside the changing transaction.
pub fn by_verdict(action: Action, verdict: Verdict) -> Permit {
    match (verdict, action) {
        (Verdict::Found, Action::MarkSucceeded) => Permit::Allowed,
        (Verdict::Found, _) => Permit::Refused(Why::EffectExists { action }),
        (Verdict::Absent, Action::MarkSucceeded) => Permit::Refused(Why::NoEffect),
        (Verdict::Absent, _) => Permit::Allowed,
        (Verdict::Mismatch | Verdict::Partial | Verdict::Unavailable, _) => {
            Permit::SecondPerson(Why::SecondPerson { verdict })
        }
    }
}

/// What to do about a verdict, when one thing is clearly right.
pub fn recommended(verdict: Verdict) -> Option<Action> {
    match verdict {
        Verdict::Found => Some(Action::MarkSucceeded),
        Verdict::Absent => Some(Action::MarkTimedOut),
        Verdict::Mismatch | Verdict::Partial | Verdict::Unavailable => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn able() -> Abilities {
        Abilities { mark_succeeded: Ok(()), mark_timed_out: Ok(()), replay: Ok(()) }
    }

    fn known() -> impl Strategy<Value = Known> {
        prop_oneof![
            Just(Known::Nothing),
            Just(Known::Expired),
            prop::sample::select(Verdict::ALL.to_vec()).prop_map(Known::Fresh)
        ]
    }

    prop_compose! {
        fn situations()(
            role in prop::sample::select(Role::ALL.to_vec()),
            state in prop::sample::select(State::ALL.to_vec()),
            stuck: bool,
            being_settled: bool,
            known in known(),
            action in prop::sample::select(Action::ALL.to_vec()),
            unable: [bool; 3],
        ) -> (Action, Role, State, bool, bool, Known, Abilities) {
            let ability = |no: bool| if no { Err(Unable::NoRequest) } else { Ok(()) };
            let abilities = Abilities {
                mark_succeeded: ability(unable[0]),
                mark_timed_out: ability(unable[1]),
                replay: ability(unable[2]),
            };
            (action, role, state, stuck, being_settled, known, abilities)
        }
    }

    proptest! {
        /// Promise 3, stated independently of the code's order of tests.
        #[test]
        fn an_action_is_allowed_exactly_when_every_condition_holds(
            (action, role, state, stuck, being_settled, known, abilities) in situations()
        ) {
            let able = match action {
                Action::MarkSucceeded => abilities.mark_succeeded.is_ok(),
                Action::MarkTimedOut => abilities.mark_timed_out.is_ok(),
                Action::Replay => abilities.replay.is_ok(),
            };
            let open = match state {
                State::Processing => stuck,
                State::Timeout | State::Failed => action != Action::MarkTimedOut,
                State::Success | State::Ignored | State::Unknown => false,
            };
            let proved = match action {
                Action::MarkSucceeded => known == Known::Fresh(Verdict::Found),
                Action::MarkTimedOut | Action::Replay => known == Known::Fresh(Verdict::Absent),
            };
            let expected = role != Role::Viewer && able && open && proved && !being_settled;
            let situation = Situation { role, state, stuck, abilities: &abilities, being_settled, known };
            let got = permit(action, &situation);
            prop_assert_eq!(got.is_allowed(), expected);
            prop_assert_eq!(got.why().is_none(), expected);
        }

        #[test]
        fn found_never_permits_a_replay_not_even_to_two_people(
            (_, role, state, stuck, being_settled, _, abilities) in situations()
        ) {
            let known = Known::Fresh(Verdict::Found);
            let situation = Situation { role, state, stuck, abilities: &abilities, being_settled, known };
            prop_assert!(matches!(permit(Action::Replay, &situation), Permit::Refused(_)));
        }
    }

    #[test]
    fn c43_a_record_inside_its_time_is_not_selectable() {
        let situation = Situation {
            role: Role::Admin,
            state: State::Processing,
            stuck: false,
            abilities: &able(),
            being_settled: false,
            known: Known::Fresh(Verdict::Absent),
        };
        assert_eq!(permit(Action::Replay, &situation), Permit::Refused(Why::StillRunning));
    }
}
