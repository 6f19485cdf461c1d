//! Everything that speaks HTTP.

pub mod events;
