//! Live events: one hub per process, small "changed" messages, no data.

use domain::ports::{Events, Topic};
use tokio::sync::broadcast;

/// Messages a slow reader may fall behind before it is told to read everything again.
const BACKLOG: usize = 64;

/// Passes "this changed" from the services to every open page.
#[derive(Clone)]
pub struct EventHub {
    sender: broadcast::Sender<Topic>,
}

impl EventHub {
    pub fn new() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG) }
    }

    /// Everything that changes from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Topic> {
        self.sender.subscribe()
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
