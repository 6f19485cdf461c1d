//! MySQL and MariaDB: type, flags and character set of the column decide together.

use sqlx::mysql::types::MySqlTime;
use sqlx::mysql::{MySqlTypeInfo, MySqlValueRef};
use sqlx::{Decode, MySql, Type, TypeInfo, ValueRef};

use chrono::{NaiveDate, NaiveDateTime};

use super::{text_or_bytes, unreadable};
use crate::Cell;

pub(super) fn cell(value: MySqlValueRef<'_>) -> Cell {
    let info = value.type_info().into_owned();
    if value.is_null() {
        // The driver takes '0000-00-00' for NULL; it is a value, and one that means no time at all.
        return match <&[u8] as Decode<MySql>>::decode(value) {
            Ok(_) => unreadable(&format!("zero {}", info.name())),
            Err(_) => Cell::Null,
        };
    }
    match info.name() {
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => integer(value, &info),
        "YEAR" | "TINYINT UNSIGNED" | "SMALLINT UNSIGNED" | "MEDIUMINT UNSIGNED" | "INT UNSIGNED"
        | "BIGINT UNSIGNED" => read::<u64>(value, &info, Cell::UInt),
        "FLOAT" => read::<f32>(value, &info, shortest),
        "DOUBLE" => read::<f64>(value, &info, Cell::Float),
        "DECIMAL" => {
            read::<&[u8]>(value, &info, |digits| Cell::Decimal(String::from_utf8_lossy(digits).into_owned()))
        }
        "BIT" => read::<&[u8]>(value, &info, bits),
        "DATE" => read::<NaiveDate>(value, &info, |date| Cell::Text(date.to_string())),
        "TIME" => read::<MySqlTime>(value, &info, |time| Cell::Text(time.to_string())),
        "DATETIME" => read::<NaiveDateTime>(value, &info, Cell::Time),
        // Sessions run at +00:00, so the wall clock the server sends is UTC.
        "TIMESTAMP" => read::<NaiveDateTime>(value, &info, |at| Cell::Instant(at.and_utc())),
        "JSON" => read::<&[u8]>(value, &info, |json| match text_or_bytes(json) {
            Cell::Text(json) => Cell::Json(json),
            other => other,
        }),
        "GEOMETRY" => unreadable("GEOMETRY"),
        // `_bin` collations carry the binary flag as true binary does; only the character set tells them apart.
        _ if <str as Type<MySql>>::compatible(&info) || matches!(info.name(), "ENUM" | "SET") => {
            read::<&[u8]>(value, &info, text_or_bytes)
        }
        _ => read::<&[u8]>(value, &info, |bytes| Cell::Bytes(bytes.to_vec())),
    }
}

/// `TINYINT(1)` is an integer like any other, and may be unsigned.
fn integer(value: MySqlValueRef<'_>, info: &MySqlTypeInfo) -> Cell {
    read::<i64>(value, info, Cell::Int)
}

fn read<'r, T: Decode<'r, MySql>>(
    value: MySqlValueRef<'r>,
    info: &MySqlTypeInfo,
    cell: impl FnOnce(T) -> Cell,
) -> Cell {
    T::decode(value).map_or_else(|_| unreadable(info.name()), cell)
}

/// The shortest decimal that means the same `f32`, so that 0.1 does not show as 0.10000000149.
fn shortest(number: f32) -> Cell {
    Cell::Float(number.to_string().parse().unwrap_or(f64::from(number)))
}

fn bits(bytes: &[u8]) -> Cell {
    match bytes.len() {
        0..=8 => Cell::UInt(bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))),
        _ => Cell::Bytes(bytes.to_vec()),
    }
}
