//! Version 1: one file an endpoint group. Handlers read the request, ask one service, and shape the answer.

pub mod alert_rules;
pub mod alerts;
pub mod audit;
pub mod checks;
pub mod compensations;
pub mod demo;
pub mod events;
pub mod outbox;
pub mod rates;
pub mod records;
pub mod session;
pub mod sources;

mod documents;

use crate::http::problem::Problem;
use axum::Json;
use domain::page::Limit;
use domain::record::RecordId;
use serde::Serialize;
use utoipa::ToSchema;

/// What most handlers answer.
type Answer<T> = Result<Json<T>, Problem>;

/// The record an address names. One that holds NUL exists nowhere.
pub(in crate::http) fn record_id(segment: &str) -> Result<RecordId, Problem> {
    let id: RecordId = segment.parse()?;
    if id.locator.iter().any(|part| part.contains('\0')) {
        return Err(domain::Error::not_found("That record").into());
    }
    Ok(id)
}

/// A page's size as the query gives it.
fn limit(rows: Option<i64>) -> Result<Limit, Problem> {
    Ok(rows.map(Limit::new).transpose()?.unwrap_or_default())
}

/// A whole list.
#[derive(Serialize, ToSchema)]
struct Items<T> {
    items: Vec<T>,
}
