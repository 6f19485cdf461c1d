//! Times kept as text in a declared format: read here, compared in SQL without ever failing on a text that is none.

use crate::sql::around;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use db::{Cell, Dialect, TimeKind};
use sea_query::{Expr, ExprTrait};

/// Years outside these are damage, here and in SQL alike.
const YEARS: (i32, i32) = (1001, 9998);

/// A format of fields that are always at the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spelling {
    pieces: Vec<Piece>,
    zone: Tz,
    /// ISO 8601: a fraction of any length and a `Z` may follow.
    iso: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(char),
    Field(Field),
}

/// From the longest to the shortest, which is the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Fraction(usize),
}

impl Field {
    fn width(self) -> usize {
        match self {
            Self::Year => 4,
            Self::Fraction(digits) => digits,
            _ => 2,
        }
    }

    fn range(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Year => Some(("1001", "9998")),
            Self::Month => Some(("01", "12")),
            Self::Day => Some(("01", "31")),
            Self::Hour => Some(("00", "23")),
            Self::Minute | Self::Second => Some(("00", "59")),
            Self::Fraction(_) => None,
        }
    }
}

/// What a text says.
#[derive(Default)]
struct Said {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
}

impl Spelling {
    /// `YYYY-MM-DDTHH:MM:SS[.f…][Z]`, in UTC.
    pub(crate) fn iso() -> Self {
        use Field::{Day, Hour, Minute, Month, Second, Year};
        let field = Piece::Field;
        let literal = Piece::Literal;
        let pieces = vec![
            field(Year),
            literal('-'),
            field(Month),
            literal('-'),
            field(Day),
            literal('T'),
            field(Hour),
            literal(':'),
            field(Minute),
            literal(':'),
            field(Second),
        ];
        Self { pieces, zone: Tz::UTC, iso: true }
    }

    /// A format of `%Y %m %d %H %M %S %3f %6f` and other characters; the error says what it may hold.
    pub(crate) fn parse(format: &str, zone: Tz) -> Result<Self, String> {
        let refused = || {
            format!(
                "format {format:?} cannot be compared; write %Y, %m, %d, each once, with %H, %M, %S, %3f or %6f as they are there, like \"%Y/%m/%d %H:%M\""
            )
        };
        let mut pieces = Vec::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            pieces.push(match c {
                '%' => Piece::Field(match (chars.next().ok_or_else(refused)?, chars.as_str()) {
                    ('Y', _) => Field::Year,
                    ('m', _) => Field::Month,
                    ('d', _) => Field::Day,
                    ('H', _) => Field::Hour,
                    ('M', _) => Field::Minute,
                    ('S', _) => Field::Second,
                    (digits @ ('3' | '6'), rest) if rest.starts_with('f') => {
                        chars.next();
                        Field::Fraction(if digits == '3' { 3 } else { 6 })
                    }
                    _ => return Err(refused()),
                }),
                literal => Piece::Literal(literal),
            });
        }
        let spelling = Self { pieces, zone, iso: false };
        let fields = spelling.in_order();
        let whole =
            [Field::Year, Field::Month, Field::Day].iter().all(|day| fields.iter().any(|(_, f)| f == day));
        let repeated = (1..fields.len()).any(|at| fields[at].1 == fields[at - 1].1);
        if whole && !repeated { Ok(spelling) } else { Err(refused()) }
    }

    /// Every field with its place (counted from 1), the longest first.
    fn in_order(&self) -> Vec<(usize, Field)> {
        let mut at = 1;
        let mut fields = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(_) => at += 1,
                Piece::Field(field) => {
                    fields.push((at, *field));
                    at += field.width();
                }
            }
        }
        fields.sort_by_key(|(_, field)| *field);
        fields
    }

    /// The instant a cell says; a day that its month does not have is the month's last, as the order of texts wants it.
    pub(crate) fn read(&self, cell: &Cell) -> Option<DateTime<Utc>> {
        let text = cell.as_text()?;
        let chars: Vec<char> = text.chars().collect();
        let mut said = Said::default();
        let mut at = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Literal(expected) => {
                    let found = *chars.get(at)?;
                    if found != *expected && !(self.iso && *expected == 'T' && found == ' ') {
                        return None;
                    }
                    at += 1;
                }
                Piece::Field(field) => {
                    said.take(*field, number(chars.get(at..at + field.width())?)?)?;
                    at += field.width();
                }
            }
        }
        let rest: String = chars[at..].iter().collect();
        match self.iso {
            false if rest.is_empty() => {}
            false => return None,
            true => said.nanos = iso_fraction(&rest)?,
        }
        TimeKind::Calendar(self.zone).read(&Cell::Time(said.time()?))
    }

    /// What sorts as time does: the text itself where its fields are in order.
    pub(crate) fn sorted(&self, dialect: Dialect, col: impl Fn() -> Expr) -> Expr {
        if self.iso {
            let sql = "CONCAT(REPLACE(LEFT(?, 19), 'T', ' '), '.', RPAD(SUBSTR(REPLACE(?, 'Z', ''), 21, 3), 3, '0'))";
            return around(dialect, sql, [col(), col()]);
        }
        let fields = self.in_order();
        if fields.is_sorted() {
            return col();
        }
        let each = fields.iter().map(|(at, field)| format!("SUBSTR(?, {at}, {})", field.width()));
        let sql = match dialect {
            Dialect::Sqlite => each.collect::<Vec<_>>().join(" || "),
            Dialect::Postgres | Dialect::Mysql => format!("CONCAT({})", each.collect::<Vec<_>>().join(", ")),
        };
        around(dialect, &format!("({sql})"), fields.iter().map(|_| col()))
    }

    /// `at` as `sorted` would spell it, rounded up to the grid.
    pub(crate) fn bound(&self, at: DateTime<Utc>) -> String {
        if self.iso {
            return at.naive_utc().format("%Y-%m-%d %H:%M:%S%.3f").to_string();
        }
        let up = TimeDelta::nanoseconds(self.unit_nanos() - 1);
        let local = (at + up).with_timezone(&self.zone).naive_local();
        let fields = self.in_order();
        match fields.is_sorted() {
            true => self.spelled(local),
            false => fields.iter().map(|(_, field)| field_text(*field, local)).collect(),
        }
    }

    /// `at` as the column spells it.
    pub(crate) fn written(&self, at: DateTime<Utc>) -> String {
        if self.iso {
            return at.naive_utc().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        }
        self.spelled(at.with_timezone(&self.zone).naive_local())
    }

    fn spelled(&self, local: NaiveDateTime) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Literal(c) => c.to_string(),
            Piece::Field(field) => field_text(*field, local),
        });
        pieces.collect()
    }

    /// Whether a text is spelled so; never an error, whatever the text.
    pub(crate) fn is_valid(&self, dialect: Dialect, col: impl Fn() -> Expr) -> Expr {
        let pattern = Expr::val(self.pattern(dialect));
        let spelled = match dialect {
            Dialect::Sqlite => around(dialect, "? GLOB ?", [col(), pattern]),
            Dialect::Postgres => around(dialect, "? ~ ?", [col(), pattern]),
            Dialect::Mysql => around(dialect, "? REGEXP ?", [col(), pattern]),
        };
        let ranges = self.in_order().into_iter().filter_map(|(at, field)| {
            let (least, most) = field.range()?;
            let part = around(dialect, &format!("SUBSTR(?, {at}, {})", field.width()), [col()]);
            Some(part.between(least, most))
        });
        ranges.fold(spelled, ExprTrait::and)
    }

    fn pattern(&self, dialect: Dialect) -> String {
        let glob = dialect == Dialect::Sqlite;
        let each = self.pieces.iter().map(|piece| match piece {
            Piece::Field(field) if glob => "[0-9]".repeat(field.width()),
            Piece::Field(field) => format!("[0-9]{{{}}}", field.width()),
            Piece::Literal('T') if self.iso => "[T ]".to_owned(),
            Piece::Literal(c) if c.is_alphanumeric() || matches!(c, ' ' | '-' | '/' | ':' | ',') => {
                c.to_string()
            }
            // A class of one character means itself, but for a few that begin one.
            Piece::Literal('^' | '\\' | ']') if !glob => ".".to_owned(),
            Piece::Literal(c) => format!("[{c}]"),
        });
        let body: String = each.collect();
        match (glob, self.iso) {
            (true, _) => body,
            (false, true) => format!("^{body}([.][0-9]+)?Z?$"),
            (false, false) => format!("^{body}$"),
        }
    }

    /// The step of the last field.
    fn unit_nanos(&self) -> i64 {
        match self.in_order().last() {
            Some((_, Field::Fraction(3))) => 1_000_000,
            Some((_, Field::Fraction(_))) => 1_000,
            Some((_, Field::Second)) => 1_000_000_000,
            Some((_, Field::Minute)) => 60_000_000_000,
            Some((_, Field::Hour)) => 3_600_000_000_000,
            _ => 86_400_000_000_000,
        }
    }

    /// The same in milliseconds (at least 1); ISO texts are written to the millisecond.
    pub(crate) fn unit_ms(&self) -> i64 {
        if self.iso { 1 } else { Ord::max(self.unit_nanos() / 1_000_000, 1) }
    }
}

impl Said {
    fn take(&mut self, field: Field, value: u32) -> Option<()> {
        let fits = |least: u32, most: u32| (least..=most).contains(&value).then_some(value);
        match field {
            Field::Year => self.year = fits(YEARS.0.unsigned_abs(), YEARS.1.unsigned_abs())?,
            Field::Month => self.month = fits(1, 12)?,
            Field::Day => self.day = fits(1, 31)?,
            Field::Hour => self.hour = fits(0, 23)?,
            Field::Minute => self.minute = fits(0, 59)?,
            Field::Second => self.second = fits(0, 59)?,
            Field::Fraction(digits) => {
                self.nanos = value * 10_u32.pow(9_u32.saturating_sub(u32::try_from(digits).ok()?))
            }
        }
        Some(())
    }

    fn time(&self) -> Option<NaiveDateTime> {
        let year = i32::try_from(self.year).ok()?;
        let date = (28..=Ord::max(self.day, 28)).rev().find_map(|last| {
            let day = Ord::min(self.day, last);
            NaiveDate::from_ymd_opt(year, self.month, day)
        })?;
        date.and_hms_nano_opt(self.hour, self.minute, self.second, self.nanos)
    }
}

fn number(digits: &[char]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |all, digit| Some(all * 10 + digit.to_digit(10)?))
}

/// `.123456Z`, `Z` or nothing, as nanoseconds to the millisecond that SQL compares by.
fn iso_fraction(rest: &str) -> Option<u32> {
    let rest = rest.strip_suffix('Z').unwrap_or(rest);
    if rest.is_empty() {
        return Some(0);
    }
    let digits = rest
        .strip_prefix('.')
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|d| d.is_ascii_digit()))?;
    let millis: String = digits.chars().chain("000".chars()).take(3).collect();
    Some(millis.parse::<u32>().ok()? * 1_000_000)
}

fn field_text(field: Field, at: NaiveDateTime) -> String {
    match field {
        Field::Year => format!("{:04}", at.year()),
        Field::Month => format!("{:02}", at.month()),
        Field::Day => format!("{:02}", at.day()),
        Field::Hour => format!("{:02}", at.hour()),
        Field::Minute => format!("{:02}", at.minute()),
        Field::Second => format!("{:02}", at.second()),
        Field::Fraction(digits) => {
            format!("{:09}", at.nanosecond() % 1_000_000_000).chars().take(digits).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, text: &str) -> Option<String> {
        let spelling = Spelling::parse(format, Tz::Asia__Shanghai).unwrap();
        spelling.read(&Cell::Text(text.into())).map(|at| at.to_rfc3339())
    }

    #[test]
    fn declared_formats_are_read_and_written_back() {
        assert_eq!(read("%Y/%m/%d %H:%M", "2026/12/01 18:30").as_deref(), Some("2026-12-01T10:30:00+00:00"));
        assert_eq!(
            read("%d.%m.%Y %H:%M:%S", "01.12.2026 18:30:05").as_deref(),
            Some("2026-12-01T10:30:05+00:00")
        );
        assert_eq!(
            read("%Y%m%d%H%M%S%3f", "20261201183005123").as_deref(),
            Some("2026-12-01T10:30:05.123+00:00")
        );
        for wrong in
            ["", "yesterday", "2026/13/01 10:00", "2026/12/00 10:00", "2026/12/01 10:0", "2026/12/01 10:00x"]
        {
            assert_eq!(read("%Y/%m/%d %H:%M", wrong), None, "{wrong}");
        }
        let spelling = Spelling::parse("%d.%m.%Y %H:%M", Tz::UTC).unwrap();
        let at: DateTime<Utc> = "2026-12-01T10:30:05Z".parse().unwrap();
        assert_eq!(
            (spelling.written(at), spelling.bound(at)),
            ("01.12.2026 10:30".into(), "202612011031".into())
        );
        for wrong in ["%Y", "%b %d %Y", "%Y-%m-%d %Y", "%Y-%m-%d %"] {
            assert!(Spelling::parse(wrong, Tz::UTC).unwrap_err().contains("%Y/%m/%d"), "{wrong}");
        }
    }

    #[test]
    fn iso_texts_are_read_to_the_millisecond() {
        let read = |text: &str| Spelling::iso().read(&Cell::Text(text.into())).map(|at| at.to_rfc3339());
        assert_eq!(read("2026-12-01T10:00:00Z").as_deref(), Some("2026-12-01T10:00:00+00:00"));
        assert_eq!(read("2026-12-01 10:00:00.1239Z").as_deref(), Some("2026-12-01T10:00:00.123+00:00"));
        assert_eq!(read("2026-02-31T10:00:00").as_deref(), Some("2026-02-28T10:00:00+00:00"));
        for wrong in ["2026-12-01", "2026-12-01T10:00:00.", "2026-12-01T10:00:00+08:00"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
