//! The classes of operation, and the mechanisms each needs.

use std::str::FromStr;
use std::time::Duration;

use crate::lock::{LockRules, Locks, Serial};
use crate::policy::{Keep, KeySource, Policy};
use crate::tokens::{TokenGate, Tokens};
use crate::window::{Covers, Window, WindowRules, view_of_caller};

/// How long a read is answered from memory.
const READ_SPAN: Duration = Duration::from_secs(1);
/// How long an overwrite with a key is answered from memory.
const OVERWRITE_SPAN: Duration = Duration::from_secs(60);

/// A class of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Preset {
    /// Token, state machine and unique index: what a route gets that says nothing.
    #[default]
    Standard,
    /// Changes nothing; equal questions of one caller share one answer for a moment.
    Read,
    /// Inserts what has no number of its own: the token is its number.
    InsertWithoutKey,
    /// Inserts what has a key or number of its own: duplicates get the first answer.
    InsertWithKey,
    /// Sets what is there to what the request says: harmless when repeated.
    Overwrite,
    /// Moves a state machine: the record stops repetition, [`crate::Transition`] stops moves from the wrong state.
    Transition,
    /// Adds or subtracts money: everything at once, and a hint for reconciliation.
    Amount,
}

impl Preset {
    pub const ALL: [Preset; 7] = [
        Preset::Standard,
        Preset::Read,
        Preset::InsertWithoutKey,
        Preset::InsertWithKey,
        Preset::Overwrite,
        Preset::Transition,
        Preset::Amount,
    ];

    /// The word for configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Preset::Standard => "standard",
            Preset::Read => "read",
            Preset::InsertWithoutKey => "insert_without_key",
            Preset::InsertWithKey => "insert_with_key",
            Preset::Overwrite => "overwrite",
            Preset::Transition => "transition",
            Preset::Amount => "amount",
        }
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(word: &str) -> Result<Preset, String> {
        Preset::ALL.into_iter().find(|preset| preset.as_str() == word).ok_or_else(|| {
            let words = Preset::ALL.map(Preset::as_str).join(", ");
            format!("{word:?} is no preset; write one of {words}")
        })
    }
}

/// Makes policies of presets: one line for each route.
///
/// ```no_run
/// # use guard::{Guard, Locks, Preset, Presets, TokenRules, Tokens};
/// # async fn pay() {}
/// # fn example(db: db::Db, guard: Guard, entropy: fn() -> [u8; 16]) -> Result<(), guard::GuardError> {
/// let tokens = Tokens::in_table(db.clone(), entropy, TokenRules::default());
/// let presets = Presets { tokens, locks: Locks::in_table(db, "shop-1") };
/// let payment = presets.policy(Preset::Amount, "PAYMENT").biz_no_from("/paymentNo");
/// let app: axum::Router = axum::Router::new()
///     .route("/api/tokens/payment", presets.tokens.issuer("PAYMENT"))
///     .route("/api/payments", axum::routing::post(pay).layer(guard.protect(payment)?));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Presets {
    pub tokens: Tokens,
    pub locks: Locks,
}

impl Presets {
    /// The policy of a route of `biz_type`; anything in it may be changed afterwards.
    pub fn policy(&self, preset: Preset, biz_type: impl Into<String>) -> Policy {
        let biz_type = biz_type.into();
        match preset {
            Preset::Standard | Preset::InsertWithoutKey => self.with_token(biz_type),
            Preset::InsertWithKey | Preset::Transition => Policy::new(biz_type, KeySource::Header),
            Preset::Read => in_memory(biz_type, view_of_caller(), READ_SPAN, Covers::Reads),
            Preset::Overwrite => in_memory(biz_type, KeySource::Header, OVERWRITE_SPAN, Covers::Keyed),
            Preset::Amount => {
                let serial = Serial::new(self.locks.clone(), LockRules::default());
                Policy { reconciled: true, ..self.with_token(biz_type) }.with(serial)
            }
        }
    }

    fn with_token(&self, biz_type: String) -> Policy {
        let gate = TokenGate::new(self.tokens.clone(), biz_type.clone());
        Policy::new(biz_type, TokenGate::key()).with(gate)
    }
}

fn in_memory(biz_type: String, key: KeySource, span: Duration, covers: Covers) -> Policy {
    let window = Window::new(WindowRules::new(span, covers));
    Policy { keep: Keep::Window(window), ..Policy::new(biz_type, key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_one_word() {
        for preset in Preset::ALL {
            assert_eq!(preset.as_str().parse(), Ok(preset));
        }
        assert!("money".parse::<Preset>().unwrap_err().contains("insert_without_key"));
    }
}
