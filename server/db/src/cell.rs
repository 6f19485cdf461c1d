//! One value as the database sent it.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, Utc};

/// One value of one row. What the wire gives decides, not what the column was declared as.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    /// An exact number in its own digits, trailing zeros kept.
    Decimal(String),
    /// Text, and dates and times of day in ISO form.
    Text(String),
    Bytes(Vec<u8>),
    /// A calendar time that names no zone.
    Time(NaiveDateTime),
    Instant(DateTime<Utc>),
    Json(String),
    Uuid(String),
    /// A value of a type that cannot be read, or a value outside what its type should hold.
    Unreadable {
        type_name: String,
    },
}

impl Cell {
    /// Whether the database said NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Cell::Null)
    }

    /// A short name of the kind of value, for messages: never the value.
    pub fn kind(&self) -> &str {
        match self {
            Cell::Null => "null",
            Cell::Bool(_) => "a boolean",
            Cell::Int(_) | Cell::UInt(_) => "an integer",
            Cell::Float(_) | Cell::Decimal(_) => "a number",
            Cell::Text(_) => "text",
            Cell::Bytes(_) => "bytes",
            Cell::Time(_) | Cell::Instant(_) => "a time",
            Cell::Json(_) => "JSON",
            Cell::Uuid(_) => "a UUID",
            Cell::Unreadable { .. } => "an unreadable value",
        }
    }

    /// The text of anything that is text or has one plain spelling; bytes only when they are UTF-8.
    pub fn as_text(&self) -> Option<String> {
        Some(match self {
            Cell::Text(text) | Cell::Json(text) | Cell::Uuid(text) | Cell::Decimal(text) => text.clone(),
            Cell::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.to_owned(),
            Cell::Int(n) => n.to_string(),
            Cell::UInt(n) => n.to_string(),
            Cell::Float(n) => n.to_string(),
            Cell::Bool(b) => b.to_string(),
            Cell::Time(at) => at.format("%Y-%m-%d %H:%M:%S%.f").to_string(),
            Cell::Instant(at) => at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            Cell::Null | Cell::Unreadable { .. } => return None,
        })
    }

    /// Consumes the cell into its text; see [`Cell::as_text`].
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Cell::Text(text) | Cell::Json(text) => Some(text),
            other => other.as_text(),
        }
    }

    /// A whole number, however the database keeps it: an integer, an exact or floating number without a fraction,
    /// a boolean, a text of digits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Cell::Int(n) => Some(*n),
            Cell::UInt(n) => i64::try_from(*n).ok(),
            Cell::Bool(b) => Some(i64::from(*b)),
            Cell::Float(n) => (n.fract() == 0.0 && n.abs() < 9e15).then_some(*n as i64),
            Cell::Decimal(text) => whole(text).parse().ok(),
            Cell::Text(text) => text.trim().parse().ok(),
            Cell::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    /// Any number as a floating one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Cell::Float(n) => Some(*n),
            Cell::Int(n) => Some(*n as f64),
            Cell::UInt(n) => Some(*n as f64),
            Cell::Decimal(text) | Cell::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A yes or no: a boolean, or the integers 0 and 1.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Cell::Bool(b) => Some(*b),
            other => match other.as_i64()? {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
        }
    }

    /// The bytes of binary or text data.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Cell::Bytes(bytes) => Some(bytes),
            Cell::Text(text) | Cell::Json(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The value for showing as JSON: exact numbers and times as text, bytes as `0x…`, what cannot be read named so.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Cell::Null => serde_json::Value::Null,
            Cell::Bool(b) => (*b).into(),
            Cell::Int(n) => (*n).into(),
            Cell::UInt(n) => (*n).into(),
            Cell::Float(n) => (*n).into(),
            Cell::Bytes(bytes) => format!("0x{}", hex::encode(bytes)).into(),
            Cell::Unreadable { type_name } => format!("(unreadable {type_name})").into(),
            other => other.as_text().into(),
        }
    }
}

/// The digits before a fraction of nothing but zeros.
fn whole(decimal: &str) -> &str {
    match decimal.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => decimal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_however_they_are_kept() {
        for cell in [
            Cell::Int(42),
            Cell::UInt(42),
            Cell::Float(42.0),
            Cell::Decimal("42.00".into()),
            Cell::Text(" 42".into()),
            Cell::Bytes(b"42".to_vec()),
        ] {
            assert_eq!(cell.as_i64(), Some(42), "{cell:?}");
        }
        for cell in [Cell::UInt(u64::MAX), Cell::Float(1.5), Cell::Decimal("1.50".into()), Cell::Null] {
            assert_eq!(cell.as_i64(), None, "{cell:?}");
        }
    }

    #[test]
    fn bytes_are_text_only_when_they_are_utf8() {
        assert_eq!(Cell::Bytes("键".into()).as_text().as_deref(), Some("键"));
        assert_eq!(Cell::Bytes(vec![0xff]).as_text(), None);
        assert_eq!(Cell::Bytes(vec![0xff]).to_json(), "0xff");
    }
}
