//! Everything that speaks HTTP.

pub mod events;
pub mod password;
mod problem;
mod throttle;
