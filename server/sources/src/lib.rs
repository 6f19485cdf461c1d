//! Attached tables: where the records are. Nothing in them is altered but by a compensation, and no DDL ever runs.
//!
//! * [`config`] is one `[[source]]` of the configuration file; [`Attached`] is that source opened.
//! * `catalogue`, `join` and `layout` put the mapping on the live table; `states`, `locator`, `time_form`, `spelling` and `body`
//!   say what its cells mean; `reading`, `listing` and `writing` build every statement from it; `parts` are the several tables
//!   that one source may be spread over.
//! * `cache` is the Redis that services keep beside the table.
//! * [`check`] tells what is right and wrong about a source before it is used.
//! * `named`, `reverse` and `judge` ask the business data; `settle` is the compare-and-set; `replay` sends again.

mod attached;
mod body;
mod cache;
mod catalogue;
mod check;
pub mod config;
mod join;
mod json_path;
mod judge;
mod layout;
mod listing;
mod locator;
mod named;
mod outage;
mod outbox;
mod parts;
mod reading;
mod replay;
mod reverse;
mod settle;
mod spelling;
mod sql;
mod states;
mod status;
mod template;
mod time_form;
mod writing;

pub use attached::{Attached, OpenError};
pub use check::{Finding, Level, Report, check};
pub use config::SourceConfig;
pub use replay::HttpSettings;
