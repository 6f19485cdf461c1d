//! Which keys are asked for again and again, and which were asked for at all.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::answer::Refusal;
use crate::generations::Generations;

/// Beats are counted in windows of this length.
const WINDOW: Duration = Duration::from_secs(1);

/// So many duplicates in one window are a burst.
const BURST: u32 = 5;

/// A key with so many duplicates in one window is hot.
const HOT: u32 = 20;

/// How long a hot key's refusal is repeated without asking the database.
const REPEAT: Duration = Duration::from_millis(250);

/// Keys watched at once.
const KEYS: usize = 65_536;

struct Pulse {
    window: Instant,
    beats: u32,
    refused: Option<(Instant, String, Refusal)>,
}

/// What a duplicate did to its key's pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    Ordinary,
    /// This one made it a burst.
    Burst,
    /// This one made the key hot.
    Hot,
}

/// Counts duplicates per key in bounded memory.
pub(crate) struct Heat {
    hasher: RandomState,
    pulses: Mutex<Generations<u64, Pulse>>,
}

impl Heat {
    pub(crate) fn new() -> Heat {
        Heat { hasher: RandomState::new(), pulses: Mutex::new(Generations::new(KEYS)) }
    }

    /// Notes that this process has met the key; whether it had before.
    pub(crate) fn meet(&self, key: &str, now: Instant) -> bool {
        let hash = self.hasher.hash_one(key);
        let mut pulses = self.lock();
        if pulses.get(&hash, |_| 1).is_some() {
            return true;
        }
        pulses.insert(hash, Pulse { window: now, beats: 0, refused: None }, 1);
        false
    }

    /// Counts a duplicate.
    pub(crate) fn beat(&self, key: &str, now: Instant) -> Beat {
        let hash = self.hasher.hash_one(key);
        let mut pulses = self.lock();
        let Some(pulse) = pulses.get(&hash, |_| 1) else {
            pulses.insert(hash, Pulse { window: now, beats: 1, refused: None }, 1);
            return Beat::Ordinary;
        };
        if now - pulse.window > WINDOW {
            (pulse.window, pulse.beats) = (now, 0);
        }
        pulse.beats += 1;
        match pulse.beats {
            BURST => Beat::Burst,
            HOT => Beat::Hot,
            _ => Beat::Ordinary,
        }
    }

    /// Keeps what the database said about the key.
    pub(crate) fn refused(&self, key: &str, fingerprint: &str, refusal: &Refusal, now: Instant) {
        if !matches!(refusal, Refusal::Held | Refusal::InProgress { .. }) {
            return;
        }
        if let Some(pulse) = self.lock().get(&self.hasher.hash_one(key), |_| 1) {
            pulse.refused = Some((now, fingerprint.to_owned(), refusal.clone()));
        }
    }

    /// What the database said a moment ago, if the key is hot. A refusal is always safe to repeat.
    pub(crate) fn repeat(&self, key: &str, fingerprint: &str, now: Instant) -> Option<Refusal> {
        let mut pulses = self.lock();
        let pulse = pulses.get(&self.hasher.hash_one(key), |_| 1)?;
        let (said, of, refusal) = pulse.refused.as_ref()?;
        let hot = pulse.beats >= HOT && now - pulse.window <= WINDOW;
        (hot && now - *said <= REPEAT && of == fingerprint).then(|| refusal.clone())
    }

    /// The map is whole after every step, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Generations<u64, Pulse>> {
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c34_a_hot_key_hears_the_same_refusal_without_the_database_for_a_moment() {
        let heat = Heat::new();
        let now = Instant::now();
        assert!(!heat.meet("k", now));
        assert!(heat.meet("k", now));
        let beats: Vec<Beat> = (0..HOT).map(|_| heat.beat("k", now)).collect();
        assert_eq!(beats.iter().filter(|beat| **beat == Beat::Burst).count(), 1);
        assert_eq!(beats.last(), Some(&Beat::Hot));
        heat.refused("k", "f", &Refusal::Held, now);
        assert_eq!(heat.repeat("k", "f", now), Some(Refusal::Held));
        assert_eq!(heat.repeat("k", "other", now), None);
        assert_eq!(heat.repeat("k", "f", now + REPEAT + Duration::from_millis(1)), None);
        heat.refused("cold", "f", &Refusal::Held, now);
        assert_eq!(heat.repeat("cold", "f", now), None);
    }
}
