//! A row of cells and its typed getters.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::{Cell, DbError, TimeKind};

/// A row, decoded cell by cell.
#[derive(Debug, Clone)]
pub struct Row {
    columns: Arc<[String]>,
    cells: Vec<Cell>,
}

/// A column by place (from 0) or by name.
pub trait ColumnRef {
    /// The place of the column among `columns`.
    fn place(&self, columns: &[String]) -> Option<usize>;
    /// The column in words, for messages.
    fn label(&self) -> String;
}

impl ColumnRef for usize {
    fn place(&self, columns: &[String]) -> Option<usize> {
        (*self < columns.len()).then_some(*self)
    }

    fn label(&self) -> String {
        format!("column {self}")
    }
}

impl ColumnRef for &str {
    fn place(&self, columns: &[String]) -> Option<usize> {
        columns.iter().position(|name| name == self)
    }

    fn label(&self) -> String {
        format!("column {self}")
    }
}

/// A getter that refuses NULL and one that gives `None` for it.
macro_rules! getters {
    ($($(#[$doc:meta])* $get:ident, $opt:ident -> $type:ty, $expected:literal, $read:expr;)*) => {$(
        $(#[$doc])*
        pub fn $get(&self, column: impl ColumnRef) -> Result<$type, DbError> {
            self.read(column, $expected, $read)
        }

        /// The same, `None` for NULL.
        pub fn $opt(&self, column: impl ColumnRef) -> Result<Option<$type>, DbError> {
            self.read_opt(column, $expected, $read)
        }
    )*};
}

impl Row {
    pub(crate) fn new(columns: Arc<[String]>, cells: Vec<Cell>) -> Self {
        Row { columns, cells }
    }

    /// The column names, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// All cells, in column order.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The cell as it came. Fails only when there is no such column.
    pub fn cell(&self, column: impl ColumnRef) -> Result<&Cell, DbError> {
        match column.place(&self.columns) {
            Some(place) => Ok(&self.cells[place]),
            None => Err(DbError::Decode(format!("the result has no {}", column.label()))),
        }
    }

    getters! {
        /// Text, or anything with one plain spelling; bytes when they are UTF-8.
        text, opt_text -> String, "text", |cell| cell.clone().into_text();
        /// A whole number, however it is kept.
        i64, opt_i64 -> i64, "a whole number", Cell::as_i64;
        /// Any number.
        f64, opt_f64 -> f64, "a number", Cell::as_f64;
        /// A boolean, or 0 and 1.
        bool, opt_bool -> bool, "yes or no", Cell::as_bool;
        /// Bytes of binary or text data.
        bytes, opt_bytes -> Vec<u8>, "bytes", |cell| cell.as_bytes().map(<[u8]>::to_vec);
        /// A JSON document, however it is kept.
        json, opt_json -> serde_json::Value, "JSON", |cell| serde_json::from_slice(cell.as_bytes()?).ok();
    }

    /// The instant the column means under `kind`.
    pub fn timestamp(&self, column: impl ColumnRef, kind: TimeKind) -> Result<DateTime<Utc>, DbError> {
        self.read(column, "a time", |cell| kind.read(cell))
    }

    /// The same, `None` for NULL.
    pub fn opt_timestamp(
        &self,
        column: impl ColumnRef,
        kind: TimeKind,
    ) -> Result<Option<DateTime<Utc>>, DbError> {
        self.read_opt(column, "a time", |cell| kind.read(cell))
    }

    fn read<T>(
        &self,
        column: impl ColumnRef,
        expected: &str,
        read: impl FnOnce(&Cell) -> Option<T>,
    ) -> Result<T, DbError> {
        let label = column.label();
        let cell = self.cell(column)?;
        read(cell).ok_or_else(|| {
            DbError::Decode(format!("{label} holds {} where {expected} was expected", cell.kind()))
        })
    }

    fn read_opt<T>(
        &self,
        column: impl ColumnRef,
        expected: &str,
        read: impl FnOnce(&Cell) -> Option<T>,
    ) -> Result<Option<T>, DbError> {
        let label = column.label();
        match self.cell(column)? {
            Cell::Null => Ok(None),
            cell => match read(cell) {
                Some(value) => Ok(Some(value)),
                None => Err(DbError::Decode(format!(
                    "{label} holds {} where {expected} was expected",
                    cell.kind()
                ))),
            },
        }
    }
}
