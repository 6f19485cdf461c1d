//! Requests that take effect exactly once: a tower layer over one table.
//!
//! A request claims its key by one atomic insert, runs detached from its connection, and writes its answer back in
//! the transaction of its business write. Duplicates wait, hold no connection, and get the first answer byte for byte.
//!
//! ```no_run
//! # use guard::{Claim, Guard, KeySource, Policy, Settings};
//! # async fn pay(claim: axum::Extension<Claim>) -> &'static str { "{}" }
//! # async fn example(db: db::Db) -> Result<(), db::DbError> {
//! guard::schema::create(&db).await?;
//! let guard = Guard::new(db, Settings::new("shop-1"));
//! let policy = Policy::new("PAYMENT", KeySource::Header).biz_no_from("/paymentNo");
//! let app: axum::Router = axum::Router::new()
//!     .route("/api/payments", axum::routing::post(pay).layer(guard.protect(policy)));
//! # Ok(()) }
//! ```

mod answer;
mod capture;
mod claim;
mod fingerprint;
mod flight;
mod guard;
mod happening;
mod layer;
mod policy;
mod run;
pub mod schema;
mod table;
mod ticket;

pub use claim::{Claim, ClaimTx, Outcome};
pub use fingerprint::fingerprint;
pub use guard::{Guard, Settings};
pub use happening::{Happening, Meter, NoMeter};
pub use layer::{GuardLayer, Guarded};
pub use policy::{KeySource, OnRefusal, OnUnknown, Pick, Policy, Template};
pub use table::{STATUS_FAILED, STATUS_PROCESSING, STATUS_SUCCESS, STATUS_TIMEOUT, TABLE};
