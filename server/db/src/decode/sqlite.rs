//! SQLite: the storage class of the value decides; the declared type says nothing.

use sqlx::sqlite::SqliteValueRef;
use sqlx::{Decode, Sqlite, TypeInfo, ValueRef};

use super::{text_or_bytes, unreadable};
use crate::Cell;

pub(super) fn cell(value: SqliteValueRef<'_>) -> Cell {
    if value.is_null() {
        return Cell::Null;
    }
    let class = value.type_info().name().to_owned();
    match class.as_str() {
        "INTEGER" => <i64 as Decode<Sqlite>>::decode(value).map(Cell::Int),
        "REAL" => <f64 as Decode<Sqlite>>::decode(value).map(Cell::Float),
        "TEXT" => <&[u8] as Decode<Sqlite>>::decode(value).map(text_or_bytes),
        "BLOB" => <Vec<u8> as Decode<Sqlite>>::decode(value).map(Cell::Bytes),
        other => Ok(unreadable(other)),
    }
    .unwrap_or_else(|_| unreadable(&class))
}
