//! One flight per key in this process: the first request leads, the others wait for what it learns.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::answer::{Refusal, Stored};

/// What the leader tells those who waited.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Stored(Arc<Stored>),
    Refused(Refusal),
    /// The key is free again, or only the table knows: ask anew.
    Again,
}

/// What a follower hears until its deadline.
pub(crate) enum Heard {
    Told(Told),
    /// The leader is still at it, with a claim that holds so long.
    Nothing {
        lease_left: Duration,
    },
}

#[derive(Clone)]
struct State {
    told: Option<Told>,
    lease_until: Instant,
}

struct Flight {
    number: u64,
    fingerprint: String,
    state: watch::Receiver<State>,
}

/// All flights of a guard.
#[derive(Clone)]
pub(crate) struct Flights(Arc<Inner>);

struct Inner {
    by_key: Mutex<HashMap<String, Flight>>,
    numbers: AtomicU64,
    waiting: AtomicUsize,
    max_waiting: usize,
}

pub(crate) enum Join {
    Lead(Lead),
    Follow(Follow),
    /// The key is in flight with another request.
    Mismatch,
    /// As many wait as may.
    Crowded {
        lease_left: Duration,
    },
}

impl Flights {
    pub(crate) fn new(max_waiting: usize) -> Flights {
        Flights(Arc::new(Inner {
            by_key: Mutex::default(),
            numbers: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            max_waiting,
        }))
    }

    /// Leads or follows; a new flight's claim is taken to last for `lease`.
    pub(crate) fn join(&self, key: &str, fingerprint: &str, lease: Duration) -> Join {
        let mut flights = self.lock();
        match flights.get(key) {
            Some(flight) if flight.fingerprint == fingerprint => self.follow(&flight.state),
            Some(_) => Join::Mismatch,
            None => {
                let number = self.0.numbers.fetch_add(1, Ordering::Relaxed);
                let (tell, state) = watch::channel(State { told: None, lease_until: Instant::now() + lease });
                flights.insert(key.to_owned(), Flight { number, fingerprint: fingerprint.to_owned(), state });
                Join::Lead(Lead { key: key.to_owned(), number, flights: self.clone(), tell })
            }
        }
    }

    fn follow(&self, state: &watch::Receiver<State>) -> Join {
        if self.0.waiting.fetch_add(1, Ordering::Relaxed) >= self.0.max_waiting {
            self.0.waiting.fetch_sub(1, Ordering::Relaxed);
            return Join::Crowded { lease_left: lease_left(&state.borrow()) };
        }
        Join::Follow(Follow { state: state.clone(), flights: self.clone() })
    }

    /// The map is whole after every step, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Flight>> {
        self.0.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lease_left(state: &State) -> Duration {
    state.lease_until.saturating_duration_since(Instant::now())
}

/// The right to speak for a key; dropping it silently sends the others to ask anew.
pub(crate) struct Lead {
    key: String,
    number: u64,
    flights: Flights,
    tell: watch::Sender<State>,
}

impl Lead {
    pub(crate) fn tell(self, told: Told) {
        self.say(told);
    }

    /// The claim holds for `lease` from now.
    pub(crate) fn renewed(&self, lease: Duration) {
        self.tell.send_modify(|state| state.lease_until = Instant::now() + lease);
    }

    /// The leader has lost its claim or works without one: the others ask the table.
    pub(crate) fn step_aside(&self) {
        self.leave();
        self.say(Told::Again);
    }

    /// The first word stands.
    fn say(&self, told: Told) {
        self.tell.send_if_modified(|state| state.told.is_none() && state.told.replace(told).is_none());
    }

    fn leave(&self) {
        let mut flights = self.flights.lock();
        if flights.get(&self.key).is_some_and(|flight| flight.number == self.number) {
            flights.remove(&self.key);
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.step_aside();
    }
}

/// A place among those who wait.
pub(crate) struct Follow {
    state: watch::Receiver<State>,
    flights: Flights,
}

impl Follow {
    /// What the leader says until `deadline`.
    pub(crate) async fn until(mut self, deadline: Instant) -> Heard {
        let told = timeout_at(deadline, self.state.wait_for(|state| state.told.is_some()))
            .await
            .map(|heard| heard.ok().and_then(|state| state.told.clone()).unwrap_or(Told::Again));
        match told {
            Ok(told) => Heard::Told(told),
            Err(_late) => Heard::Nothing { lease_left: lease_left(&self.state.borrow()) },
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.flights.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
