//! The kits that pages are made of. Server-rendered, no scripts; islands find them by their `data-` attributes.
//!
//! | kit | for |
//! | --- | --- |
//! | [`table`] | rows; cards on a phone |
//! | [`pager`] | first and next page |
//! | [`filter_bar`] | filters as a GET form |
//! | [`field`] | label, control, hint, error |
//! | [`tag`] | state and verdict: shape and word |
//! | [`figure`] | a row of numbers |
//! | [`panel`] | a framed section |
//! | [`empty`] | nothing wrong, nothing matches, loading, failed |
//! | [`flash`] | what the last action did |
//! | [`confirm`] | the one dialog |
//! | [`body_view`] | request and response |
//! | [`time`] | ages and moments |
//! | [`copy`] | long keys |
//! | [`live`] | parts that refresh themselves |
//! | [`chart`] | rates over time |
//! | [`icon`] | the sprite |

pub mod body_view;
pub mod chart;
pub mod confirm;
pub mod copy;
pub mod empty;
pub mod field;
pub mod figure;
pub mod filter_bar;
pub mod flash;
pub mod icon;
pub mod live;
pub mod pager;
pub mod panel;
pub mod table;
pub mod tag;
pub mod time;

#[cfg(test)]
mod tests;
