//! PostgreSQL: every value arrives in its type's binary form; domains are read as what they stand on.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use sqlx::postgres::{PgTypeInfo, PgTypeKind, PgValueFormat, PgValueRef};
use sqlx::{Decode, Postgres, TypeInfo, ValueRef};

use super::{text_or_bytes, unreadable};
use crate::Cell;

pub(super) fn cell(value: PgValueRef<'_>) -> Cell {
    if value.is_null() {
        return Cell::Null;
    }
    let info = value.type_info().into_owned();
    let Ok(bytes) = value.as_bytes() else { return Cell::Null };
    if value.format() == PgValueFormat::Text {
        return text_or_bytes(bytes);
    }
    if let PgTypeKind::Array(element) = info.kind() {
        return array(value, element).unwrap_or_else(|| unreadable(info.name()));
    }
    scalar(&info, bytes).unwrap_or_else(|| unreadable(info.name()))
}

fn scalar(info: &PgTypeInfo, bytes: &[u8]) -> Option<Cell> {
    match info.kind() {
        PgTypeKind::Domain(base) => return scalar(base, bytes),
        PgTypeKind::Enum(_) => return Some(text_or_bytes(bytes)),
        PgTypeKind::Simple | PgTypeKind::Pseudo => {}
        PgTypeKind::Composite(_) | PgTypeKind::Array(_) | PgTypeKind::Range(_) => return None,
    }
    Some(match info.name().to_ascii_lowercase().as_str() {
        "bool" => Cell::Bool(*bytes.first()? != 0),
        "int2" => Cell::Int(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        "int4" => Cell::Int(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        "int8" => Cell::Int(int8(bytes)?),
        "oid" => Cell::Int(u32::from_be_bytes(bytes.try_into().ok()?).into()),
        "float4" => float4(bytes)?,
        "float8" => Cell::Float(f64::from_be_bytes(bytes.try_into().ok()?)),
        "numeric" => numeric(bytes)?,
        "text" | "varchar" | "name" | "unknown" | "\"char\"" | "citext" | "xml" => text_or_bytes(bytes),
        // The type's padding is no content: PostgreSQL ignores it too, and MySQL does not even send it.
        "char" | "bpchar" => text_or_bytes(unpadded(bytes)),
        "bytea" => Cell::Bytes(bytes.to_vec()),
        "uuid" => Cell::Uuid(uuid(bytes)?),
        "json" => Cell::Json(std::str::from_utf8(bytes).ok()?.to_owned()),
        // One version byte stands before the document.
        "jsonb" => Cell::Json(std::str::from_utf8(bytes.get(1..)?).ok()?.to_owned()),
        "timestamptz" => Cell::Instant(timestamp(bytes)?.and_utc()),
        "timestamp" => Cell::Time(timestamp(bytes)?),
        "date" => Cell::Text(date(bytes)?.to_string()),
        "time" => Cell::Text((NaiveTime::MIN + TimeDelta::microseconds(int8(bytes)?)).to_string()),
        _ => return None,
    })
}

fn unpadded(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &bytes[..end]
}

fn int8(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(bytes.try_into().ok()?))
}

/// The shortest decimal that means the same `f32`.
fn float4(bytes: &[u8]) -> Option<Cell> {
    let number = f32::from_be_bytes(bytes.try_into().ok()?);
    Some(Cell::Float(number.to_string().parse().unwrap_or(f64::from(number))))
}

/// Microseconds since 2000; `infinity` lies outside the calendar and is no time.
fn timestamp(bytes: &[u8]) -> Option<NaiveDateTime> {
    const EPOCH_2000: i64 = 946_684_800_000_000;
    let micros = int8(bytes)?;
    if micros == i64::MAX || micros == i64::MIN {
        return None;
    }
    Some(DateTime::from_timestamp_micros(micros.checked_add(EPOCH_2000)?)?.naive_utc())
}

/// Days since 2000.
fn date(bytes: &[u8]) -> Option<NaiveDate> {
    let days = i32::from_be_bytes(bytes.try_into().ok()?);
    NaiveDate::from_ymd_opt(2000, 1, 1)?.checked_add_signed(TimeDelta::try_days(days.into())?)
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let digits = hex::encode(<[u8; 16]>::try_from(bytes).ok()?);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Some(parts.join("-"))
}

/// The number in its own digits: base-10000 groups, the place of the first, and how many decimals to show.
fn numeric(bytes: &[u8]) -> Option<Cell> {
    let word = |at: usize| Some(u16::from_be_bytes(bytes.get(2 * at..2 * at + 2)?.try_into().ok()?));
    let (groups, weight, sign, scale) =
        (usize::from(word(0)?), word(1)? as i16, word(2)?, usize::from(word(3)?));
    let sign = match sign {
        0x0000 => "",
        0x4000 => "-",
        0xC000 => return Some(Cell::Text("NaN".into())),
        0xD000 => return Some(Cell::Text("Infinity".into())),
        _ => return Some(Cell::Text("-Infinity".into())),
    };
    let group = |place: i64| match usize::try_from(i64::from(weight) - place) {
        Ok(at) if at < groups => word(4 + at),
        _ => Some(0),
    };
    let mut whole = String::new();
    for place in (0..=i64::from(weight)).rev() {
        whole.push_str(&format!("{:04}", group(place)?));
    }
    let mut fraction = String::new();
    for place in 1..=scale.div_ceil(4) {
        fraction.push_str(&format!("{:04}", group(-(place as i64))?));
    }
    fraction.truncate(scale);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let point = if scale > 0 { "." } else { "" };
    Some(Cell::Decimal(format!("{sign}{whole}{point}{fraction}")))
}

/// One-dimensional arrays of plain types, as a JSON list.
fn array(value: PgValueRef<'_>, element: &PgTypeInfo) -> Option<Cell> {
    let list = match element.name() {
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" => list::<String>(value),
        "INT2" => list::<i16>(value),
        "INT4" => list::<i32>(value),
        "INT8" => list::<i64>(value),
        "BOOL" => list::<bool>(value),
        _ => None,
    }?;
    Some(Cell::Json(list.to_string()))
}

fn list<T>(value: PgValueRef<'_>) -> Option<serde_json::Value>
where
    T: for<'r> Decode<'r, Postgres> + sqlx::Type<Postgres> + Into<serde_json::Value>,
{
    let items = <Vec<Option<T>> as Decode<Postgres>>::decode(value).ok()?;
    Some(items.into_iter().map(|item| item.map_or(serde_json::Value::Null, Into::into)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn numerics_keep_every_digit() {
        for (wire, shown) in [
            (words(&[0, 0, 0, 0]), "0"),
            (words(&[0, 0, 0, 2]), "0.00"),
            (words(&[2, 0, 0, 2, 12, 5000]), "12.50"),
            (words(&[2, 1, 0x4000, 0, 1, 2345]), "-12345"),
            (words(&[1, 1, 0, 0, 1]), "10000"),
            (words(&[1, 0xffff, 0, 4, 50]), "0.0050"),
            (words(&[1, 0xfffe, 0, 8, 7]), "0.00000007"),
        ] {
            assert_eq!(numeric(&wire), Some(Cell::Decimal(shown.into())));
        }
        assert_eq!(numeric(&words(&[9, 0, 0, 0, 1])[..9]), None);
    }

    #[test]
    fn values_outside_the_calendar_are_no_time() {
        assert_eq!(timestamp(&i64::MAX.to_be_bytes()), None);
        assert_eq!(timestamp(&(i64::MAX - 1).to_be_bytes()), None);
        assert_eq!(date(&i32::MAX.to_be_bytes()), None);
        assert_eq!(timestamp(&[1, 2]), None);
    }
}
