//! How one time column keeps time: reading it, comparing with it so that its index helps, writing it.

use crate::catalogue::{Class, Declared};
use crate::config::{TimeColumn, TimeUnit, Zone};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use db::{Cell, Dialect, TimeKind};
use sea_query::{Condition, Expr, ExprTrait};

/// Times outside these years are sentinels or damage, not times.
const FIRST: i64 = -30_610_051_200_000;
const LAST: i64 = 253_402_127_999_999;

/// A mapped time column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeForm {
    pub(crate) column: String,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// SQLite text `YYYY-MM-DD HH:MM:SS[.f…]`.
    Text(Tz),
    /// SQLite text `YYYY-MM-DDTHH:MM:SS[.f…]Z`.
    IsoText,
    /// PostgreSQL or MySQL; `zone` is UTC for types that mean instants.
    Native { zone: Tz, digits: u32, cast: &'static str },
    /// An integer, in units of so many microseconds.
    Epoch { micros: i64 },
}

impl TimeForm {
    /// The form of a column of a live table; the error says what to write instead.
    pub(crate) fn of(
        time: &TimeColumn,
        declared: &Declared,
        source_zone: Zone,
        dialect: Dialect,
    ) -> Result<Self, String> {
        let Zone(zone) = time.zone.unwrap_or(source_zone);
        let form = match (time.kind, dialect, &declared.class) {
            (Some(TimeUnit::EpochS), _, _) => Form::Epoch { micros: 1_000_000 },
            (Some(TimeUnit::EpochMs), _, _) => Form::Epoch { micros: 1_000 },
            (Some(TimeUnit::EpochUs), _, _) => Form::Epoch { micros: 1 },
            (Some(TimeUnit::IsoText), Dialect::Sqlite, _) => Form::IsoText,
            (None, Dialect::Sqlite, Class::Text | Class::Other(_)) => Form::Text(zone),
            (None, _, Class::Time { zoned, digits }) => {
                let zone = if *zoned { Tz::UTC } else { zone };
                Form::Native { zone, digits: (*digits).clamp(0, 6), cast: cast(dialect, *zoned) }
            }
            _ => {
                return Err(format!(
                    "{0} is {1}, which does not tell how it keeps time; write {{ column = \"{0}\", kind = \"epoch_ms\" }} (or epoch_s, epoch_us)",
                    declared.name, declared.declared
                ));
            }
        };
        Ok(Self { column: declared.name.clone(), form })
    }

    /// The instant a cell means; `None` for NULL, damage and sentinels.
    pub(crate) fn read(&self, cell: &Cell) -> Option<DateTime<Utc>> {
        let at = self.kind().read(cell)?;
        (FIRST..=LAST).contains(&at.timestamp_millis()).then_some(at)
    }

    fn kind(&self) -> TimeKind {
        match self.form {
            Form::Text(zone) | Form::Native { zone, .. } => TimeKind::Calendar(zone),
            Form::IsoText => TimeKind::Calendar(Tz::UTC),
            Form::Epoch { micros: 1_000_000 } => TimeKind::EpochSeconds,
            Form::Epoch { micros: 1_000 } => TimeKind::EpochMillis,
            Form::Epoch { .. } => TimeKind::EpochMicros,
        }
    }

    fn col(&self) -> Expr {
        Expr::col(self.column.clone())
    }

    /// What is compared and sorted by: the column itself wherever its order is the order of time.
    pub(crate) fn sorted(&self) -> Expr {
        match self.form {
            Form::IsoText => Expr::cust_with_exprs("strftime('%Y-%m-%d %H:%M:%f', ?)", [self.col()]),
            _ => self.col(),
        }
    }

    /// The column's times before `at`.
    pub(crate) fn before(&self, at: DateTime<Utc>) -> Expr {
        self.sorted().lt(self.bound(at))
    }

    /// The column's times at or after `at`.
    pub(crate) fn from(&self, at: DateTime<Utc>) -> Expr {
        self.sorted().gte(self.bound(at))
    }

    /// `at` in the column's own representation, rounded up to its grid: right for `<` and `>=` alike.
    fn bound(&self, at: DateTime<Utc>) -> Expr {
        // Beyond these years databases refuse to compare, and no readable time is there.
        let at = shifted(at, 0);
        match self.form {
            Form::Epoch { micros } => Expr::val(ceiling(at.timestamp_micros(), micros)),
            Form::Native { zone, cast, .. } => {
                Expr::val(local(at, zone).format("%Y-%m-%d %H:%M:%S%.6f").to_string()).cast_as(cast)
            }
            // A shorter text sorts before its longer forms, so the fraction ends at its last digit that counts.
            Form::Text(zone) => Expr::val(trimmed(local(at, zone))),
            Form::IsoText => Expr::val(at.naive_utc().format("%Y-%m-%d %H:%M:%S%.3f").to_string()),
        }
    }

    /// Rows whose time can be read; together with `undated` every row.
    pub(crate) fn dated(&self) -> Condition {
        let within =
            Condition::all().add(self.from(instant(FIRST))).add(self.sorted().lte(self.bound(instant(LAST))));
        match self.form {
            // SQLite keeps any text, also days that no calendar has.
            Form::Text(_) | Form::IsoText => within.add(Expr::cust_with_exprs(
                "COALESCE(date(substr(?, 1, 10)) = substr(?, 1, 10) AND julianday(?) IS NOT NULL, 0)",
                [self.col(), self.col(), self.col()],
            )),
            Form::Native { .. } | Form::Epoch { .. } => within,
        }
    }

    /// Rows without a time that can be read.
    pub(crate) fn undated(&self) -> Condition {
        Condition::any().add(self.col().is_null()).add(self.dated().not())
    }

    /// The first instant on the column's grid at or before `now` that is not `seen`: what a change may write.
    pub(crate) fn marker(&self, now: DateTime<Utc>, seen: &Cell) -> DateTime<Utc> {
        let unit = self.unit_ms(seen);
        let ms = now.timestamp_millis().div_euclid(unit) * unit;
        let taken = self.read(seen).map(|at| at.timestamp_millis());
        instant(if taken == Some(ms) { ms + unit } else { ms })
    }

    /// The finest step, in milliseconds, that the column keeps (at least 1).
    fn unit_ms(&self, seen: &Cell) -> i64 {
        let digits = match self.form {
            Form::Native { digits, .. } => digits,
            Form::Epoch { micros: 1_000_000 } => 0,
            Form::Epoch { .. } => 3,
            Form::Text(_) | Form::IsoText => shape(seen).digits,
        };
        10_i64.pow(3 - digits.clamp(0, 3))
    }

    /// `at` as the column keeps it; SQLite text takes the shape of the value `seen` there before.
    pub(crate) fn written(&self, at: DateTime<Utc>, seen: &Cell) -> Expr {
        let fraction = |digits: u32| match digits {
            0 => String::new(),
            digits => {
                format!(".{:06}", at.timestamp_subsec_micros()).chars().take(digits as usize + 1).collect()
            }
        };
        match self.form {
            Form::Epoch { micros } => Expr::val(at.timestamp_micros().div_euclid(micros)),
            Form::Native { zone, cast, .. } => {
                Expr::val(local(at, zone).format("%Y-%m-%d %H:%M:%S%.6f").to_string()).cast_as(cast)
            }
            Form::Text(zone) => {
                let seconds = local(at, zone).format("%Y-%m-%d %H:%M:%S");
                Expr::val(format!("{seconds}{}", fraction(shape(seen).digits)))
            }
            Form::IsoText => {
                let seconds = at.naive_utc().format("%Y-%m-%dT%H:%M:%S");
                Expr::val(format!("{seconds}{}Z", fraction(shape(seen).digits)))
            }
        }
    }
}

/// The type that a bound text is cast to, so that the server compares times and not texts.
fn cast(dialect: Dialect, zoned: bool) -> &'static str {
    match (dialect, zoned) {
        (Dialect::Mysql, _) => "DATETIME(6)",
        // Every session's zone is UTC.
        (_, true) => "timestamptz",
        (_, false) => "timestamp",
    }
}

/// How a text time is spelled.
struct Shape {
    digits: u32,
}

fn shape(seen: &Cell) -> Shape {
    const USUAL: u32 = 3;
    let Cell::Text(text) = seen else { return Shape { digits: USUAL } };
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.chars().take_while(char::is_ascii_digit).count();
    Shape { digits: u32::try_from(digits).unwrap_or(USUAL).clamp(0, 6) }
}

fn local(at: DateTime<Utc>, zone: Tz) -> NaiveDateTime {
    at.with_timezone(&zone).naive_local()
}

fn trimmed(at: NaiveDateTime) -> String {
    let text = match at.nanosecond() {
        0 => return at.format("%Y-%m-%d %H:%M:%S").to_string(),
        _ => at.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
    };
    text.trim_end_matches('0').to_owned()
}

fn ceiling(value: i64, unit: i64) -> i64 {
    value.div_euclid(unit) + i64::from(value.rem_euclid(unit) != 0)
}

fn instant(ms: i64) -> DateTime<Utc> {
    domain::clock::from_millis(ms)
}

/// `at` moved by so many milliseconds, kept inside the calendar that columns can hold.
pub(crate) fn shifted(at: DateTime<Utc>, ms: i64) -> DateTime<Utc> {
    let moved = TimeDelta::try_milliseconds(ms).and_then(|by| at.checked_add_signed(by));
    let ms = moved.unwrap_or(at).timestamp_millis();
    instant(ms.clamp(FIRST, LAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(zone: Tz) -> TimeForm {
        TimeForm { column: "t".into(), form: Form::Text(zone) }
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_marker_survives_the_columns_precision_and_differs_from_what_was_seen() {
        let now = at("2026-12-01T10:00:00.987Z");
        let whole = TimeForm {
            column: "t".into(),
            form: Form::Native { zone: Tz::UTC, digits: 0, cast: "DATETIME(6)" },
        };
        assert_eq!(whole.marker(now, &Cell::Null), at("2026-12-01T10:00:00Z"));
        let seen = Cell::Time(at("2026-12-01T10:00:00Z").naive_utc());
        assert_eq!(whole.marker(now, &seen), at("2026-12-01T10:00:01Z"));
        let seconds = TimeForm { column: "t".into(), form: Form::Epoch { micros: 1_000_000 } };
        assert_eq!(seconds.marker(now, &Cell::Int(1)), at("2026-12-01T10:00:00Z"));
        assert_eq!(text(Tz::UTC).marker(now, &Cell::Null), now);
        assert_eq!(
            text(Tz::UTC).marker(now, &Cell::Text("2026-12-01 09:00:00.5".into())),
            at("2026-12-01T10:00:00.900Z")
        );
        assert_eq!(
            text(Tz::UTC).marker(now, &Cell::Text("2026-12-01 10:00:00".into())),
            at("2026-12-01T10:00:01Z")
        );
    }

    #[test]
    fn c57_units_are_declared_never_guessed() {
        let form = |micros| TimeForm { column: "t".into(), form: Form::Epoch { micros } };
        assert_eq!(form(1_000_000).read(&Cell::Int(999_999_999)), Some(at("2001-09-09T01:46:39Z")));
        assert_eq!(form(1_000).read(&Cell::Int(999_999_999)), Some(at("1970-01-12T13:46:39.999Z")));
        assert_eq!(form(1).read(&Cell::Int(-1_000_000)), Some(at("1969-12-31T23:59:59Z")));
        assert_eq!(form(1_000_000).read(&Cell::Int(i64::MAX)), None);
    }

    #[test]
    fn bounds_of_text_sort_with_texts_of_any_precision() {
        let shown = |when: &str| trimmed(local(at(when), Tz::Asia__Shanghai));
        assert_eq!(shown("2026-12-01T10:00:00Z"), "2026-12-01 18:00:00");
        assert_eq!(shown("2026-12-01T10:00:00.500Z"), "2026-12-01 18:00:00.5");
    }
}
