//! Layouts of other projects' tables, by family: created as they are, attached by configuration, listed, filtered, opened and settled.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod cases;
mod fences;
mod http;
mod kit;
mod messages;
mod payments;
