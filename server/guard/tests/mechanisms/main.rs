//! The promises of the mechanisms, on every database, and with Redis where they can live there.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod callbacks;
mod kit;
mod locks;
mod outbox;
mod presets;
mod tokens;
mod transitions;
