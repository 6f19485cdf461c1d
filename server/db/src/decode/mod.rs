//! From what each database sends to cells. Nothing here fails a row: what cannot be read says so in its cell.

mod mysql;
mod postgres;
mod sqlite;

use std::sync::Arc;

use sqlx::{Column, Row as _};

use crate::{Cell, Row};

/// Decodes rows of one result; the column names are shared by all of them.
#[derive(Default)]
pub(crate) struct Decoder {
    columns: Option<Arc<[String]>>,
}

macro_rules! decode_row {
    ($name:ident, $row:ty, $cell:path) => {
        pub(crate) fn $name(&mut self, row: &$row) -> Row {
            let columns = self
                .columns
                .get_or_insert_with(|| row.columns().iter().map(|column| column.name().to_owned()).collect())
                .clone();
            let cells = (0..columns.len())
                .map(|at| row.try_get_raw(at).map_or_else(|_| unreadable("?"), $cell))
                .collect();
            Row::new(columns, cells)
        }
    };
}

impl Decoder {
    decode_row!(sqlite, sqlx::sqlite::SqliteRow, sqlite::cell);
    decode_row!(postgres, sqlx::postgres::PgRow, postgres::cell);
    decode_row!(mysql, sqlx::mysql::MySqlRow, mysql::cell);
}

fn unreadable(type_name: &str) -> Cell {
    Cell::Unreadable { type_name: type_name.to_owned() }
}

/// Text when the bytes are UTF-8, the bytes themselves when they are not.
fn text_or_bytes(bytes: &[u8]) -> Cell {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cell::Text(text.to_owned()),
        Err(_) => Cell::Bytes(bytes.to_vec()),
    }
}
