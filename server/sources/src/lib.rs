//! Attached tables: where the records are. Nothing in them is altered but by a compensation, and no DDL ever runs.
//!
//! * [`config`] is one `[[source]]` of the configuration file; [`Attached`] is that source opened.
//! * `catalogue` and `layout` put the mapping on the live table; `reading`, `listing`, `writing` and `time_form` build
//!   every statement from it.
//! * [`check`] tells what is right and wrong about a source before it is used.
//! * `named`, `reverse` and `judge` ask the business data; `settle` is the compare-and-set; `replay` sends again.

mod attached;
mod catalogue;
mod check;
pub mod config;
mod judge;
mod layout;
mod listing;
mod named;
mod outage;
mod reading;
mod replay;
mod reverse;
mod settle;
mod status;
mod template;
mod time_form;
mod writing;

pub use attached::{Attached, OpenError};
pub use check::{Finding, Level, Report, check};
pub use config::SourceConfig;
pub use replay::HttpSettings;
