//! The composition root of Amends: configuration, command line, HTTP, background tasks and the demo.

mod accounts;
pub mod cli;
pub mod compose;
pub mod config;
mod connections;
mod defaults;
pub mod demo;
pub mod http;
pub mod jobs;
pub mod runtime;
pub mod serving;
pub mod state;
pub mod telemetry;
