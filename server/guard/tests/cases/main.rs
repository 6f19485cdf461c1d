//! The guard's promises, case by case, on every database.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod bodies;
mod caching;
mod claiming;
mod columns;
#[path = "../common/mod.rs"]
mod common;
mod finishing;
#[path = "../common/redis.rs"]
mod redis;
mod reporting;
mod storms;
