//! One flight per key in this process: the first request leads, the others wait for what it learns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

struct Flight {
    fingerprint: String,
    told: watch::Receiver<Option<Told>>,
}

#[derive(Clone, Default)]
pub(crate) struct Flights(Arc<Mutex<HashMap<String, Flight>>>);

pub(crate) enum Join {
    Lead(Lead),
    Follow(Follow),
    /// The key is in flight with another request.
    Mismatch,
}

impl Flights {
    pub(crate) fn join(&self, key: &str, fingerprint: &str) -> Join {
        let mut flights = self.lock();
        match flights.get(key) {
            Some(flight) if flight.fingerprint == fingerprint => Join::Follow(Follow(flight.told.clone())),
            Some(_) => Join::Mismatch,
            None => {
                let (tell, told) = watch::channel(None);
                flights.insert(key.to_owned(), Flight { fingerprint: fingerprint.to_owned(), told });
                Join::Lead(Lead { key: key.to_owned(), flights: self.clone(), tell })
            }
        }
    }

    /// The map is whole after every step, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to speak for a key; dropping it silently sends the others to ask anew.
pub(crate) struct Lead {
    key: String,
    flights: Flights,
    tell: watch::Sender<Option<Told>>,
}

impl Lead {
    pub(crate) fn tell(self, told: Told) {
        self.tell.send_replace(Some(told));
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
        self.tell.send_if_modified(|told| told.is_none() && told.replace(Told::Again).is_none());
    }
}

pub(crate) struct Follow(watch::Receiver<Option<Told>>);

impl Follow {
    /// What the leader said; `None` when it said nothing until `deadline`.
    pub(crate) async fn until(mut self, deadline: Instant) -> Option<Told> {
        let told = timeout_at(deadline, self.0.wait_for(Option::is_some)).await.ok()?;
        Some(told.ok().and_then(|told| told.clone()).unwrap_or(Told::Again))
    }
}
