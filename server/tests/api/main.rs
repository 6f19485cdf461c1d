//! The API and the pages as they are served, in process, over a real store and a real source.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops, and says where")]

mod app;
mod compensations;
mod exports;
mod health;
mod hostile;
mod live;
mod matrix;
mod openapi;
mod outbox;
mod pages;
mod records;
mod rules;
mod session;
