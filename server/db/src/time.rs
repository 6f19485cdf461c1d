//! What a stored time means.

use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::Cell;

/// How a column keeps time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeKind {
    /// A calendar time; where the value itself names no zone, it is read in this one.
    Calendar(Tz),
    /// Whole or fractional seconds since 1970 UTC.
    EpochSeconds,
    /// Milliseconds since 1970 UTC.
    EpochMillis,
    /// Microseconds since 1970 UTC.
    EpochMicros,
}

impl TimeKind {
    /// The instant a cell means; `None` when the cell holds no such time.
    pub fn read(self, cell: &Cell) -> Option<DateTime<Utc>> {
        match self {
            TimeKind::Calendar(zone) => calendar(cell, zone),
            TimeKind::EpochSeconds => epoch(cell, 1_000_000),
            TimeKind::EpochMillis => epoch(cell, 1_000),
            TimeKind::EpochMicros => epoch(cell, 1),
        }
    }
}

fn epoch(cell: &Cell, micros_per_unit: i64) -> Option<DateTime<Utc>> {
    let micros = match cell.as_i64() {
        Some(whole) => whole.checked_mul(micros_per_unit)?,
        None => whole_micros(cell.as_f64()? * micros_per_unit as f64)?,
    };
    DateTime::from_timestamp_micros(micros)
}

fn whole_micros(micros: f64) -> Option<i64> {
    (micros.is_finite() && micros.abs() < 9e18).then(|| micros.round() as i64)
}

fn calendar(cell: &Cell, zone: Tz) -> Option<DateTime<Utc>> {
    match cell {
        Cell::Instant(at) => Some(*at),
        Cell::Time(at) => in_zone(*at, zone),
        other => parse(other.as_text()?.trim(), zone),
    }
}

/// A repeated wall-clock hour is read as its first pass; a skipped one as if the clocks had not yet moved.
fn in_zone(at: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&at) {
        LocalResult::Single(t) | LocalResult::Ambiguous(t, _) => Some(t.with_timezone(&Utc)),
        LocalResult::None => {
            let step = TimeDelta::hours(3);
            let before = zone.from_local_datetime(&at.checked_sub_signed(step)?).earliest()?;
            before.with_timezone(&Utc).checked_add_signed(step)
        }
    }
}

fn parse(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.with_timezone(&Utc));
    }
    if let Ok(at) = DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%#z") {
        return Some(at.with_timezone(&Utc));
    }
    let naive = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .or_else(|| Some(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_time(NaiveTime::MIN)))?;
    in_zone(naive, zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: TimeKind, cell: Cell) -> String {
        kind.read(&cell).map_or("none".into(), |at| at.to_rfc3339())
    }

    #[test]
    fn zoneless_times_are_read_in_the_given_zone() {
        let shanghai = TimeKind::Calendar(chrono_tz::Asia::Shanghai);
        for text in [
            "2026-03-01 09:30:00",
            "2026-03-01T09:30:00.000",
            "2026-03-01 01:30:00Z",
            "2026-03-01 09:30:00+08",
        ] {
            assert_eq!(read(shanghai, Cell::Text(text.into())), "2026-03-01T01:30:00+00:00", "{text}");
        }
        assert_eq!(read(shanghai, Cell::Text("yesterday".into())), "none");
        assert_eq!(read(shanghai, Cell::Null), "none");
    }

    #[test]
    fn skipped_and_repeated_hours_still_mean_one_instant() {
        let berlin = TimeKind::Calendar(chrono_tz::Europe::Berlin);
        assert_eq!(read(berlin, Cell::Text("2026-03-29 02:30:00".into())), "2026-03-29T01:30:00+00:00");
        assert_eq!(read(berlin, Cell::Text("2026-10-25 02:30:00".into())), "2026-10-25T00:30:00+00:00");
    }

    #[test]
    fn epochs_are_read_by_their_unit_and_never_overflow() {
        assert_eq!(read(TimeKind::EpochSeconds, Cell::Float(1.5)), "1970-01-01T00:00:01.500+00:00");
        assert_eq!(read(TimeKind::EpochMillis, Cell::Text("1500".into())), "1970-01-01T00:00:01.500+00:00");
        assert_eq!(read(TimeKind::EpochMicros, Cell::Int(1_500_000)), "1970-01-01T00:00:01.500+00:00");
        assert_eq!(read(TimeKind::EpochSeconds, Cell::Int(i64::MAX)), "none");
        assert_eq!(read(TimeKind::EpochSeconds, Cell::Float(f64::INFINITY)), "none");
    }
}
