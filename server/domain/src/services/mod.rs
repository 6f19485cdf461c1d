//! What the console does, over the ports. Each public method: authorise, then act.

pub mod alerts;
pub mod audit;
pub mod caches;
pub mod compensations;
pub mod outbox;
pub mod rates;
pub mod records;
mod recovery;
pub mod stuck;
