//! Live events: one hub per process, small "changed" messages, no data.

use super::problem::Problem;
use super::visitor::Visitor;
use super::web::Web;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use domain::ports::{Events, Topic};
use futures::Stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Messages a slow reader may fall behind before it is told to read everything again.
const BACKLOG: usize = 64;
/// How often an open stream looks whether its reader is still signed in.
const RECHECK: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const ALL_TOPICS: [Topic; 5] = [Topic::Records, Topic::Rates, Topic::Alerts, Topic::Audit, Topic::Sources];

/// Passes "this changed" from the services to every open page.
#[derive(Clone)]
pub struct EventHub {
    sender: broadcast::Sender<Topic>,
    closed: CancellationToken,
}

impl EventHub {
    pub fn new() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG), closed: CancellationToken::new() }
    }

    /// Everything that changes from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Topic> {
        self.sender.subscribe()
    }

    /// Ends every stream, so that a server that stops need not wait for pages that stay open.
    pub fn close(&self) {
        self.closed.cancel();
    }
}

impl Default for EventHub {
    fn default() -> Self {
        Self::new()
    }
}

impl Events for EventHub {
    /// Nobody listening is no error: pages read afresh when they open.
    fn changed(&self, topic: Topic) {
        let _ = self.sender.send(topic);
    }
}

/// One page's stream.
struct Live {
    web: Web,
    visitor: Visitor,
    changes: broadcast::Receiver<Topic>,
    recheck: Interval,
    /// Topics that are still to be told.
    waiting: Vec<Topic>,
    _place: OwnedSemaphorePermit,
}

/// `GET /live`: a `changed` event with the topic as its data. A reader that comes back with Last-Event-ID missed some
/// changes and reads its page again by itself, so nothing is replayed.
pub async fn live(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    visitor.actor()?;
    let place = Arc::clone(&web.streams).try_acquire_owned().map_err(|_| {
        let detail = "Too many pages are open at once; close some.";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", detail).retry_after(30)
    })?;
    let mut recheck = interval(RECHECK);
    recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate, and this request was checked already.
    recheck.reset();
    let changes = web.app.hub.subscribe();
    let live = Live { web, visitor, changes, recheck, waiting: Vec::new(), _place: place };
    let events = futures::stream::unfold(live, |mut live| async move {
        let topic = live.next().await?;
        let event = Event::default().event("changed").data(word(topic));
        Some((Ok(event), live))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

impl Live {
    /// The next change; `None` when the reader is no longer signed in or the server stops.
    async fn next(&mut self) -> Option<Topic> {
        loop {
            if let Some(topic) = self.waiting.pop() {
                return Some(topic);
            }
            tokio::select! {
                () = self.web.app.hub.closed.cancelled() => return None,
                _ = self.recheck.tick() => {
                    if !self.visitor.still_signed_in(&self.web).await {
                        return None;
                    }
                }
                change = self.changes.recv() => match change {
                    Ok(topic) => return Some(topic),
                    Err(RecvError::Lagged(_)) => self.waiting.extend(ALL_TOPICS),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

fn word(topic: Topic) -> &'static str {
    match topic {
        Topic::Records => "records",
        Topic::Rates => "rates",
        Topic::Alerts => "alerts",
        Topic::Audit => "audit",
        Topic::Sources => "sources",
    }
}
