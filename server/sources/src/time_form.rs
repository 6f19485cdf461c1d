//! How one time column keeps time: reading it, comparing with it so that its index helps, writing it.

use crate::catalogue::{Class, Declared};
use crate::config::{Sentinel, Span, TimeColumn, TimeUnit, Zone};
use crate::spelling::Spelling;
use crate::sql::{around, never, untrue};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use db::{Cell, Dialect, TimeKind};
use sea_query::{Condition, Expr, ExprTrait};

/// Times outside these years are sentinels or damage, not times.
const FIRST: i64 = -30_610_051_200_000;
const LAST: i64 = 253_402_127_999_999;

/// A mapped time column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeForm {
    pub(crate) column: String,
    pub(crate) declared: Declared,
    form: Form,
    /// Values that mean "no time".
    none: Vec<Sentinel>,
    /// The time meant is the column's and so many milliseconds.
    shift_ms: i64,
    /// A column of milliseconds that is added row by row.
    plus: Option<Declared>,
    dialect: Dialect,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// SQLite text `YYYY-MM-DD HH:MM:SS[.f…]`.
    Text(Tz),
    /// SQLite text `YYYY-MM-DDTHH:MM:SS[.f…]Z`.
    IsoText,
    /// Text of fixed places, on any database.
    Spelled(Spelling),
    /// PostgreSQL or MySQL; `zone` is UTC for types that mean instants.
    Native { zone: Tz, digits: u32, cast: &'static str },
    /// An integer, in units of so many nanoseconds.
    Epoch { nanos: i64 },
}

impl TimeForm {
    /// The form of a column of a live table; the error says what to write instead.
    pub(crate) fn of(
        time: &TimeColumn,
        declared: &Declared,
        plus: Option<Declared>,
        source_zone: Zone,
        dialect: Dialect,
    ) -> Result<Self, String> {
        let Zone(zone) = time.zone.unwrap_or(source_zone);
        let epoch = |nanos| match (&declared.class, dialect) {
            (Class::Integer, _) | (_, Dialect::Sqlite) => Ok(Form::Epoch { nanos }),
            (Class::Other(kind), _) if kind.starts_with("numeric") || kind.starts_with("decimal") => {
                Ok(Form::Epoch { nanos })
            }
            _ => Err(format!("{} is {}, not a number; drop its kind", declared.name, declared.declared)),
        };
        let form = match (time.kind, dialect, &declared.class) {
            (Some(TimeUnit::EpochS), _, _) => epoch(1_000_000_000)?,
            (Some(TimeUnit::EpochMs), _, _) => epoch(1_000_000)?,
            (Some(TimeUnit::EpochUs), _, _) => epoch(1_000)?,
            (Some(TimeUnit::EpochNs), _, _) => epoch(1)?,
            (Some(TimeUnit::IsoText), Dialect::Sqlite, _) => Form::IsoText,
            (Some(TimeUnit::IsoText), _, Class::Text | Class::Padded) => Form::Spelled(Spelling::iso()),
            (Some(TimeUnit::Text), _, Class::Text | Class::Padded | Class::Other(_)) => {
                let format = time
                    .format
                    .as_deref()
                    .ok_or("kind = \"text\" needs a format, like \"%Y/%m/%d %H:%M\"")?;
                Form::Spelled(Spelling::parse(format, zone)?)
            }
            (None, Dialect::Sqlite, Class::Text | Class::Other(_)) => Form::Text(zone),
            (None, _, Class::Time { zoned, digits }) => {
                let zone = if *zoned { Tz::UTC } else { zone };
                Form::Native { zone, digits: (*digits).clamp(0, 6), cast: cast(dialect, *zoned) }
            }
            _ => {
                return Err(format!(
                    "{0} is {1}, which does not tell how it keeps time; write {{ column = \"{0}\", kind = \"epoch_ms\" }} (or epoch_s, epoch_us, epoch_ns, iso_text, or text with a format)",
                    declared.name, declared.declared
                ));
            }
        };
        if plus.is_some() && !matches!(form, Form::Epoch { .. } | Form::Native { .. }) {
            return Err(format!(
                "{} is text, to which nothing can be added row by row; drop plus_ms",
                declared.name
            ));
        }
        let millis = |span: &Option<Span>| {
            span.map_or(0, |span| i64::try_from(span.get().as_millis()).unwrap_or(i64::MAX))
        };
        Ok(Self {
            column: declared.name.clone(),
            declared: declared.clone(),
            form,
            none: time.none.clone(),
            shift_ms: millis(&time.plus) - millis(&time.minus),
            plus,
            dialect,
        })
    }

    /// The column's own time, without what is meant besides.
    pub(crate) fn as_stored(&self) -> Self {
        Self { shift_ms: 0, plus: None, none: Vec::new(), ..self.clone() }
    }

    /// Whether some of its values are declared to mean "no time".
    pub(crate) fn has_none(&self) -> bool {
        !self.none.is_empty()
    }

    /// The instant a cell of `selected` means; `None` for NULL, damage and sentinels.
    pub(crate) fn read(&self, cell: &Cell) -> Option<DateTime<Utc>> {
        let at = self.stored(cell)?;
        let kept = (FIRST..=LAST).contains(&at.timestamp_millis())
            && !self.none.iter().any(|none| self.is_none(none, cell));
        kept.then(|| shifted(at, self.shift_ms))
    }

    /// The instant that is stored, whatever it means.
    fn stored(&self, cell: &Cell) -> Option<DateTime<Utc>> {
        match &self.form {
            Form::Text(zone) | Form::Native { zone, .. } => TimeKind::Calendar(*zone).read(cell),
            Form::IsoText => TimeKind::Calendar(Tz::UTC).read(cell),
            Form::Spelled(spelling) => spelling.read(cell),
            Form::Epoch { nanos: 1_000_000_000 } => TimeKind::EpochSeconds.read(cell),
            Form::Epoch { nanos: 1_000_000 } => TimeKind::EpochMillis.read(cell),
            Form::Epoch { nanos: 1_000 } => TimeKind::EpochMicros.read(cell),
            Form::Epoch { .. } => TimeKind::EpochMicros.read(&Cell::Int(cell.as_i64()?.div_euclid(1_000))),
        }
    }

    fn is_none(&self, none: &Sentinel, cell: &Cell) -> bool {
        match (none, &self.form) {
            (Sentinel::Integer(number), _) => cell.as_i64() == Some(*number),
            (Sentinel::Text(text), Form::Native { .. }) => {
                let meant = self.stored(&Cell::Text(text.clone()));
                meant.is_some() && meant == self.stored(cell)
            }
            (Sentinel::Text(text), _) => cell.as_text().as_deref() == Some(text),
        }
    }

    fn is_none_in_sql(&self, none: &Sentinel) -> Expr {
        match (none, &self.form) {
            (Sentinel::Integer(number), _) => self.col().eq(*number),
            (Sentinel::Text(text), Form::Native { cast, .. }) => match spelled_time(text) {
                Some(spelled) => self.col().eq(Expr::val(spelled).cast_as(*cast)),
                None => never(),
            },
            (Sentinel::Text(text), Form::Epoch { .. }) => match text.parse::<i64>() {
                Ok(number) => self.col().eq(number),
                Err(_) => never(),
            },
            (Sentinel::Text(text), _) => self.col().eq(text.as_str()),
        }
    }

    fn col(&self) -> Expr {
        self.declared.expr()
    }

    /// The column, and what is added to it row by row: what is read, too.
    pub(crate) fn selected(&self) -> Expr {
        let Some(plus) = &self.plus else { return self.col() };
        let both = [self.col(), plus.expr()];
        match (&self.form, self.dialect) {
            (Form::Epoch { nanos: unit @ 1..1_000_000 }, _) => {
                around(self.dialect, &format!("(? + ? * {})", 1_000_000 / unit), both)
            }
            (Form::Epoch { nanos }, _) => {
                around(self.dialect, &format!("(? + ? / {})", nanos / 1_000_000), both)
            }
            (_, Dialect::Mysql) => around(self.dialect, "(? + INTERVAL (? * 1000) MICROSECOND)", both),
            (_, _) => around(self.dialect, "(? + ? * INTERVAL '1 millisecond')", both),
        }
    }

    /// What is compared and sorted by: the column itself wherever its order is the order of time.
    pub(crate) fn sorted(&self) -> Expr {
        match &self.form {
            Form::IsoText => Expr::cust_with_exprs("strftime('%Y-%m-%d %H:%M:%f', ?)", [self.col()]),
            Form::Spelled(spelling) => spelling.sorted(self.dialect, || self.col()),
            _ => self.selected(),
        }
    }

    /// The column's times before `at`.
    pub(crate) fn before(&self, at: DateTime<Utc>) -> Expr {
        self.sorted().lt(self.bound(self.unshifted(at)))
    }

    /// The column's times at or after `at`.
    pub(crate) fn from(&self, at: DateTime<Utc>) -> Expr {
        self.sorted().gte(self.bound(self.unshifted(at)))
    }

    fn unshifted(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        shifted(at, self.shift_ms.saturating_neg())
    }

    /// `at` in the column's own representation, rounded up to its grid: right for `<` and `>=` alike.
    fn bound(&self, at: DateTime<Utc>) -> Expr {
        // Beyond these years databases refuse to compare, and no readable time is there.
        let at = shifted(at, 0);
        match &self.form {
            Form::Epoch { nanos } => Expr::val(in_units(at, *nanos, true)),
            Form::Native { zone, cast, .. } => {
                Expr::val(local(at, *zone).format("%Y-%m-%d %H:%M:%S%.6f").to_string()).cast_as(*cast)
            }
            // A shorter text sorts before its longer forms, so the fraction ends at its last digit that counts.
            Form::Text(zone) => Expr::val(trimmed(local(at, *zone))),
            Form::IsoText => Expr::val(at.naive_utc().format("%Y-%m-%d %H:%M:%S%.3f").to_string()),
            Form::Spelled(spelling) => Expr::val(spelling.bound(at)),
        }
    }

    /// Rows whose time can be read; together with `undated` every row.
    pub(crate) fn dated(&self) -> Condition {
        let bound = |ms| self.bound(instant(ms));
        let mut within =
            Condition::all().add(self.sorted().gte(bound(FIRST))).add(self.sorted().lte(bound(LAST)));
        for none in &self.none {
            within = within.add(self.is_none_in_sql(none).not());
        }
        match &self.form {
            // SQLite keeps any text, also days that no calendar has and the hour 24, which is no time here.
            Form::Text(_) | Form::IsoText => within.add(Expr::cust_with_exprs(
                "COALESCE(date(substr(?, 1, 10)) = substr(?, 1, 10) AND substr(?, 12, 2) <> '24' AND julianday(?) IS NOT NULL, 0)",
                [self.col(), self.col(), self.col(), self.col()],
            )),
            Form::Spelled(spelling) => within.add(spelling.is_valid(self.dialect, || self.col())),
            Form::Native { .. } | Form::Epoch { .. } => within,
        }
    }

    /// Rows without a time that can be read.
    pub(crate) fn undated(&self) -> Condition {
        Condition::any().add(self.sorted().is_null()).add(untrue(self.dated().into()))
    }

    /// The first instant on the column's grid at or before `now` that is not `seen`: what a change may write.
    pub(crate) fn marker(&self, now: DateTime<Utc>, seen: &Cell) -> DateTime<Utc> {
        let unit = self.unit_ms(seen);
        let ms = now.timestamp_millis().div_euclid(unit) * unit;
        let taken = self.stored(seen).map(|at| at.timestamp_millis());
        instant(if taken == Some(ms) { ms + unit } else { ms })
    }

    /// The finest step, in milliseconds, that the column keeps (at least 1).
    fn unit_ms(&self, seen: &Cell) -> i64 {
        let digits = match &self.form {
            Form::Native { digits, .. } => *digits,
            Form::Epoch { nanos: 1_000_000_000 } => 0,
            Form::Epoch { .. } => 3,
            Form::Text(_) | Form::IsoText => shape(seen).digits,
            Form::Spelled(spelling) => return spelling.unit_ms(),
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
        match &self.form {
            Form::Epoch { nanos } => Expr::val(in_units(at, *nanos, false)),
            Form::Native { zone, cast, .. } => {
                Expr::val(local(at, *zone).format("%Y-%m-%d %H:%M:%S%.6f").to_string()).cast_as(*cast)
            }
            Form::Text(zone) => {
                let seconds = local(at, *zone).format("%Y-%m-%d %H:%M:%S");
                Expr::val(format!("{seconds}{}", fraction(shape(seen).digits)))
            }
            Form::IsoText => {
                let seconds = at.naive_utc().format("%Y-%m-%dT%H:%M:%S");
                Expr::val(format!("{seconds}{}Z", fraction(shape(seen).digits)))
            }
            Form::Spelled(spelling) => Expr::val(spelling.written(at)),
        }
    }
}

/// An instant in units of so many nanoseconds, rounded up or down.
fn in_units(at: DateTime<Utc>, nanos: i64, up: bool) -> i64 {
    let (total, unit) = (i128::from(at.timestamp_micros()) * 1_000, i128::from(nanos));
    let units = total.div_euclid(unit) + i128::from(up && total.rem_euclid(unit) != 0);
    i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
}

/// A text that is a calendar time, as every database understands it.
pub(crate) fn spelled_time(text: &str) -> Option<String> {
    let at = TimeKind::Calendar(Tz::UTC).read(&Cell::Text(text.to_owned()))?;
    Some(at.naive_utc().format("%Y-%m-%d %H:%M:%S%.6f").to_string())
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

/// The shortest text that means `at`: a whole day and a whole minute have shorter ones.
fn trimmed(at: NaiveDateTime) -> String {
    let format = match (at.nanosecond(), at.second(), at.minute(), at.hour()) {
        (0, 0, 0, 0) => "%Y-%m-%d",
        (0, 0, ..) => "%Y-%m-%d %H:%M",
        (0, ..) => "%Y-%m-%d %H:%M:%S",
        _ => return at.format("%Y-%m-%d %H:%M:%S%.6f").to_string().trim_end_matches('0').to_owned(),
    };
    at.format(format).to_string()
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

    fn of(form: Form) -> TimeForm {
        let declared = Declared {
            name: "t".into(),
            declared: String::new(),
            class: Class::Text,
            nullable: true,
            collation: None,
            generated: false,
            primary: None,
            size: None,
            joined: None,
        };
        let column = "t".into();
        TimeForm { column, declared, form, none: vec![], shift_ms: 0, plus: None, dialect: Dialect::Mysql }
    }

    fn text(zone: Tz) -> TimeForm {
        of(Form::Text(zone))
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_marker_survives_the_columns_precision_and_differs_from_what_was_seen() {
        let now = at("2026-12-01T10:00:00.987Z");
        let whole = of(Form::Native { zone: Tz::UTC, digits: 0, cast: "DATETIME(6)" });
        assert_eq!(whole.marker(now, &Cell::Null), at("2026-12-01T10:00:00Z"));
        let seen = Cell::Time(at("2026-12-01T10:00:00Z").naive_utc());
        assert_eq!(whole.marker(now, &seen), at("2026-12-01T10:00:01Z"));
        let seconds = of(Form::Epoch { nanos: 1_000_000_000 });
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
        let form = |nanos| of(Form::Epoch { nanos });
        assert_eq!(form(1_000_000_000).read(&Cell::Int(999_999_999)), Some(at("2001-09-09T01:46:39Z")));
        assert_eq!(form(1_000_000).read(&Cell::Int(999_999_999)), Some(at("1970-01-12T13:46:39.999Z")));
        assert_eq!(form(1_000).read(&Cell::Int(-1_000_000)), Some(at("1969-12-31T23:59:59Z")));
        assert_eq!(form(1).read(&Cell::Int(1_500_000_000_000_000_000)), Some(at("2017-07-14T02:40:00Z")));
        assert_eq!(form(1_000_000_000).read(&Cell::Int(i64::MAX)), None);
    }

    #[test]
    fn declared_sentinels_are_no_time_and_a_shift_moves_the_rest() {
        let mut form = of(Form::Native { zone: Tz::UTC, digits: 0, cast: "DATETIME(6)" });
        form.none = vec![Sentinel::Text("1970-01-01 00:00:00".into())];
        form.shift_ms = -600_000;
        let cell = |text: &str| Cell::Time(at(text).naive_utc());
        assert_eq!(form.read(&cell("1970-01-01T00:00:00Z")), None);
        assert_eq!(form.read(&cell("2026-12-01T10:00:00Z")), Some(at("2026-12-01T09:50:00Z")));
    }

    #[test]
    fn bounds_of_text_sort_with_texts_of_any_precision() {
        let shown = |when: &str| trimmed(local(at(when), Tz::Asia__Shanghai));
        assert_eq!(shown("2026-12-01T10:00:01Z"), "2026-12-01 18:00:01");
        assert_eq!(shown("2026-12-01T10:00:00Z"), "2026-12-01 18:00");
        assert_eq!(shown("2026-12-01T16:00:00Z"), "2026-12-02");
        assert_eq!(shown("2026-12-01T10:00:00.500Z"), "2026-12-01 18:00:00.5");
    }
}
