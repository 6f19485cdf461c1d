//! Bounded counting of sign-in attempts: a guesser is slowed by name and by address, everybody else notices nothing.

use chrono::{DateTime, Duration, Utc};
use domain::{Error, Result};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

const WINDOW_SECONDS: i64 = 60;
const TRIES_PER_NAME: u32 = 10;
const TRIES_PER_ADDRESS: u32 = 60;
/// More of a name than any user has is not remembered: memory must not grow with what strangers type.
const NAME_KEPT: usize = 64;
/// The most names, and the most addresses, that are remembered at once.
const REMEMBERED: usize = 10_000;

/// Attempts of the running minute, by name and by address.
#[derive(Default)]
pub struct Throttle {
    tries: Mutex<Tries>,
}

#[derive(Default)]
struct Tries {
    names: Counters<String>,
    addresses: Counters<IpAddr>,
}

impl Throttle {
    /// Counts an attempt before it is made, so that simultaneous guesses cannot slip past the limit.
    pub fn take(&self, name: &str, address: IpAddr, now: DateTime<Utc>) -> Result<()> {
        let mut tries = self.lock();
        tries.addresses.take(address, TRIES_PER_ADDRESS, now)?;
        tries.names.take(kept(name), TRIES_PER_NAME, now)
    }

    /// The attempt was right: it does not count, and neither do this name's earlier ones.
    pub fn forgive(&self, name: &str, address: IpAddr) {
        let mut tries = self.lock();
        tries.names.0.remove(&kept(name));
        if let Some(counter) = tries.addresses.0.get_mut(&address) {
            counter.tries = counter.tries.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tries> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kept(name: &str) -> String {
    name.chars().take(NAME_KEPT).flat_map(char::to_lowercase).collect()
}

struct Counter {
    since: DateTime<Utc>,
    tries: u32,
}

impl Counter {
    fn is_over(&self, now: DateTime<Utc>) -> bool {
        now - self.since >= Duration::seconds(WINDOW_SECONDS)
    }
}

struct Counters<K>(HashMap<K, Counter>);

impl<K> Default for Counters<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Counters<K> {
    fn take(&mut self, key: K, most: u32, now: DateTime<Utc>) -> Result<()> {
        self.make_room(now);
        let counter = self.0.entry(key).or_insert(Counter { since: now, tries: 0 });
        if counter.is_over(now) {
            *counter = Counter { since: now, tries: 0 };
        }
        if counter.tries >= most {
            let left = WINDOW_SECONDS - (now - counter.since).num_seconds();
            return Err(Error::TooMany { retry_after_seconds: u32::try_from(left.max(1)).unwrap_or(1) });
        }
        counter.tries += 1;
        Ok(())
    }

    /// Forgetting everybody under a flood of made-up names costs less than remembering them.
    fn make_room(&mut self, now: DateTime<Utc>) {
        if self.0.len() < REMEMBERED {
            return;
        }
        self.0.retain(|_, counter| !counter.is_over(now));
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::seconds(second)
    }

    #[test]
    fn a_name_is_refused_after_ten_tries_and_says_when_to_come_back() {
        let throttle = Throttle::default();
        for _ in 0..TRIES_PER_NAME {
            throttle.take("Mei", HERE, at(0)).unwrap();
        }
        assert_eq!(throttle.take("mei", HERE, at(20)), Err(Error::TooMany { retry_after_seconds: 40 }));
        assert!(throttle.take("li", HERE, at(20)).is_ok());
        assert!(throttle.take("mei", HERE, at(60)).is_ok());
    }

    #[test]
    fn an_address_is_refused_however_many_names_it_tries() {
        let throttle = Throttle::default();
        let refused =
            (0..TRIES_PER_ADDRESS + 5).filter(|n| throttle.take(&n.to_string(), HERE, at(0)).is_err());
        assert_eq!(refused.count(), 5);
    }

    #[test]
    fn the_right_password_is_never_counted() {
        let throttle = Throttle::default();
        for _ in 0..500 {
            throttle.take("mei", HERE, at(0)).unwrap();
            throttle.forgive("mei", HERE);
        }
    }

    #[test]
    fn memory_is_bounded_under_a_flood_of_names() {
        let throttle = Throttle::default();
        for n in 0..3 * u32::try_from(REMEMBERED).unwrap() {
            let _ = throttle.take(&n.to_string(), IpAddr::from(n.to_be_bytes()), at(0));
        }
        let tries = throttle.lock();
        assert!(tries.names.0.len() <= REMEMBERED && tries.addresses.0.len() <= REMEMBERED);
    }

    #[test]
    fn memory_does_not_grow_with_the_length_of_a_name() {
        let throttle = Throttle::default();
        throttle.take(&"İ".repeat(1 << 20), HERE, at(0)).unwrap();
        assert!(throttle.lock().names.0.keys().all(|name| name.capacity() < 1024));
    }
}
