//! What Amends means, without IO: one type per thing from the database to the screen, the ports the
//! services need, and the services over those ports. Runs on the server only: the browser gets finished pages.

pub mod actions;
pub mod alert;
pub mod audit;
pub mod cache;
pub mod chart;
pub mod clock;
pub mod compensation;
pub mod console;
pub mod error;
pub mod evidence;
pub mod invalid;
pub mod json;
pub mod outbox;
pub mod page;
pub mod ports;
pub mod rates;
pub mod record;
pub mod redact;
pub mod roles;
pub mod services;
pub mod source;
pub mod stuck;
pub mod unable;

pub use error::{Error, Result};
