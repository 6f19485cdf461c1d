//! The composition root of Amends: configuration, command line, HTTP, background tasks and the demo.

pub mod http;
pub mod jobs;
pub mod runtime;
pub mod state;
pub mod telemetry;
