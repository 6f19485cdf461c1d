//! Requests that take effect exactly once: a tower layer over one table.
//!
//! A request claims its key by one atomic insert, runs detached from its connection, and writes its answer back in
//! the transaction of its business write. Duplicates wait, hold no connection, and get the first answer byte for byte.
//!
//! ```no_run
//! # use guard::{Claim, Guard, KeySource, Policy, Settings};
//! # async fn pay(claim: axum::Extension<Claim>) -> &'static str { "{}" }
//! # async fn example(db: db::Db) -> Result<(), guard::GuardError> {
//! guard::schema::create(&db).await?;
//! let guard = Guard::open(db, Settings::new("shop-1")).await?;
//! let policy = Policy::new("PAYMENT", KeySource::Header).biz_no_from("/paymentNo");
//! let app: axum::Router = axum::Router::new()
//!     .route("/api/payments", axum::routing::post(pay).layer(guard.protect(policy)?));
//! # Ok(()) }
//! ```

mod answer;
mod at_most_once;
mod breaker;
pub mod callback;
mod canonical;
mod capture;
mod claim;
mod direct;
mod error;
mod fingerprint;
mod flight;
mod generations;
mod guard;
mod happening;
mod heat;
mod layer;
mod lock;
mod mechanism;
mod memory;
pub mod outbox;
mod policy;
mod preset;
mod problem;
mod report;
mod run;
pub mod schema;
mod search;
mod settings;
mod shared;
mod table;
mod ticket;
mod tokens;
mod transition;
mod window;

pub use claim::{Claim, ClaimTx, Outcome};
pub use direct::{Call, Entered, Pending};
pub use error::GuardError;
pub use fingerprint::fingerprint;
pub use guard::Guard;
pub use happening::{Happening, Meter, NoMeter};
pub use layer::{GuardLayer, Guarded};
pub use lock::{Lease, LockError, LockRules, Locks, Serial};
pub use mechanism::{Ended, Entry, Mechanism, Pass};
pub use policy::{
    Compute, Effects, Keep, KeptHeaders, KeySource, OnRefusal, OnUnknown, Pick, Policy, Remember, Template,
};
pub use preset::{Preset, Presets};
pub use problem::{Problem, Voice};
pub use report::{ConsoleMeter, ConsoleRules, Meters, PrometheusMeter};
pub use settings::{Cache, Local, Settings, Shared};
pub use table::{STATUS_FAILED, STATUS_PROCESSING, STATUS_SUCCESS, STATUS_TIMEOUT, TABLE};
pub use tokens::{Subject, SubjectFrom, TOKEN_HEADER, TokenError, TokenGate, TokenRules, Tokens};
pub use transition::{Moved, Seen, State, Transition, TransitionError};
pub use window::{Covers, Window, WindowRules};
