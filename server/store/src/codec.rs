//! Between domain values and columns.

use chrono::{DateTime, Utc};
use db::{ColumnRef, DbError, Row};
use domain::clock::{from_millis, millis};
use domain::record::RecordId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// A document as JSON text.
pub fn to_json(document: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(document).map_err(|e| DbError::Decode(format!("a document cannot be written: {e}")))
}

/// A document from JSON text. Read through a value, because exact numbers inside tagged enums need it.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, DbError> {
    serde_json::from_str(text)
        .and_then(serde_json::from_value::<T>)
        .map_err(|e| DbError::Decode(format!("a stored document cannot be read: {e}")))
}

/// A fixed-length stand-in for something too long or too wild to be indexed.
pub fn reference(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// The reference of a record.
pub fn record_ref(record: &RecordId) -> String {
    reference(&[&record.to_string()])
}

/// The minute of an instant, counted from 1970.
pub fn minute_of(at: DateTime<Utc>) -> i64 {
    millis(at).div_euclid(60_000)
}

/// The start of a counted minute.
pub fn minute_start(minute: i64) -> DateTime<Utc> {
    from_millis(minute.saturating_mul(60_000))
}

/// The instant kept in a millisecond column.
pub fn instant(row: &Row, column: impl ColumnRef) -> Result<DateTime<Utc>, DbError> {
    Ok(from_millis(row.i64(column)?))
}

/// The same, `None` for NULL.
pub fn opt_instant(row: &Row, column: impl ColumnRef) -> Result<Option<DateTime<Utc>>, DbError> {
    Ok(row.opt_i64(column)?.map(from_millis))
}

/// A sum or count, which is never negative.
pub fn amount(row: &Row, column: impl ColumnRef) -> Result<u64, DbError> {
    Ok(row.i64(column)?.max(0).unsigned_abs())
}
