//! One way to Redis: a single server, a cluster, or a master found by sentinels.
//!
//! Every call is bounded in time, and a server that is down fails the next calls at once for a moment, so that a lost
//! cache costs its callers nothing. [`KvError`] never carries a value or a password.

mod address;
mod connection;
mod error;
mod script;
mod store;

pub use address::{Address, redact_url};
pub use connection::Options;
pub use error::KvError;
pub use redis::{FromRedisValue, ToRedisArgs};
pub use script::Script;
pub use store::{Entry, HashField, Peek, Redis};
