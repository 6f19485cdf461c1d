//! Values of the configuration that say themselves whether they are right, so that the file's reader can name the line.

use chrono_tz::Tz;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A value that no message, log line or page ever shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that connects with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A time zone by its IANA name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Zone(pub Tz);

impl Default for Zone {
    fn default() -> Self {
        Self(Tz::UTC)
    }
}

impl TryFrom<String> for Zone {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refused =
            |_| format!("{text:?} is no time zone; write an IANA name like \"Asia/Shanghai\" or \"UTC\"");
        Tz::from_str(&text).map(Self).map_err(refused)
    }
}

/// A length of time: `500ms`, `10s`, `10m`, `2h`, `1d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(Duration);

impl Span {
    pub const fn new(duration: Duration) -> Self {
        Self(duration)
    }

    pub const fn get(self) -> Duration {
        self.0
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refused =
            || format!("{text:?} is no length of time; write a number and ms, s, m, h or d, like \"10m\"");
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
        let (number, unit) = text.split_at(unit_at);
        let number: u64 = number.parse().map_err(|_| refused())?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(refused()),
        };
        // A year keeps every later sum inside the calendar.
        const LONGEST: u64 = 366 * 86_400_000;
        match number.checked_mul(millis) {
            Some(total @ 1..=LONGEST) => Ok(Self(Duration::from_millis(total))),
            _ => Err(format!("{text:?} is too short or too long; write between 1ms and 366d")),
        }
    }
}

/// So many in so long: `5/s`, `30/m`, `100/h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Rate {
    pub count: u32,
    pub per: Duration,
}

impl Rate {
    /// At least one.
    pub fn per_second(self) -> u32 {
        let seconds = u32::try_from(self.per.as_secs()).unwrap_or(u32::MAX).max(1);
        (self.count / seconds).max(1)
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refused = || format!("{text:?} is no rate; write a number per s, m or h, like \"5/s\"");
        let (count, unit) = text.split_once('/').ok_or_else(refused)?;
        let per = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => return Err(refused()),
        };
        match count.parse() {
            Ok(count @ 1..=1_000_000) => Ok(Self { count, per: Duration::from_secs(per) }),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            1 => "s",
            60 => "m",
            _ => "h",
        };
        write!(f, "{}/{unit}", self.count)
    }
}

/// A table, with its schema (PostgreSQL) or database (MySQL) if need be: `"schema.table"`; where the name itself holds a dot,
/// `{ name = "cap.Received" }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawTable")]
pub struct Table {
    pub schema: Option<String>,
    pub name: String,
}

impl Default for Table {
    fn default() -> Self {
        Self { schema: None, name: "idempotent_record".into() }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a table's name, \"schema.name\" or { schema = \"…\", name = \"…\" }")]
enum RawTable {
    Text(String),
    Parts {
        #[serde(default)]
        schema: Option<String>,
        name: String,
    },
}

impl TryFrom<RawTable> for Table {
    type Error = String;

    fn try_from(raw: RawTable) -> Result<Self, String> {
        let (schema, name) = match raw {
            RawTable::Text(text) => match text.split_once('.') {
                Some((schema, name)) => (Some(schema.to_owned()), name.to_owned()),
                None => (None, text),
            },
            RawTable::Parts { schema, name } => (schema, name),
        };
        if name.is_empty() || schema.as_deref() == Some("") {
            return Err("that is no table; write its name or \"schema.name\"".into());
        }
        Ok(Self { schema, name })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A constant SQL condition, like `del_flag = 0`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Predicate(String);

impl Predicate {
    pub fn sql(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Predicate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let commented = text.contains("--") || text.contains("/*");
        if text.trim().is_empty() || text.contains([';', '?', '$']) || commented || !is_closed(&text) {
            return Err(
                "a SQL condition here is one constant condition without ;, ?, $ and comments, with every quote and bracket closed, like \"del_flag = 0\"".into(),
            );
        }
        Ok(Self(text))
    }
}

/// Whether quotes and brackets are closed, so that a condition in brackets stays inside them.
fn is_closed(sql: &str) -> bool {
    let (mut depth, mut quote) = (0_i32, None);
    for c in sql.chars() {
        match (quote, c) {
            // Databases differ on what a backslash does to a quote.
            (Some(_), '\\') => return false,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') if depth == 0 => return false,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
    }
    depth == 0 && quote.is_none()
}

/// A place in the stored request (RFC 6901): `/amount`, `/items/0/sku`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Pointer(String);

impl Pointer {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self(text));
        }
        Err(format!("{text:?} is no JSON pointer; write the path into the request, like \"/amount\""))
    }
}

/// A regular expression with one group: `pay:(\\d+):.*`. It must match the whole text.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Regex);

/// A compiled pattern takes no more memory than this.
const PATTERN_MAX_BYTES: usize = 256 * 1024;

impl Pattern {
    /// What the first group took, when the whole text matches.
    pub fn first_group<'t>(&self, text: &'t str) -> Option<&'t str> {
        Some(self.0.captures(text)?.get(1)?.as_str())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let whole = format!("^(?:{text})$");
        let built = RegexBuilder::new(&whole).size_limit(PATTERN_MAX_BYTES).build();
        match built {
            Ok(pattern) if pattern.captures_len() >= 2 => Ok(Self(pattern)),
            Ok(_) => Err(format!(
                "{text:?} has no group; put ( ) around the part that counts, like \"pay:(\\d+):.*\""
            )),
            Err(_) => Err(format!("{text:?} is no regular expression; write one like \"pay:(\\d+):.*\"")),
        }
    }
}

/// One literal value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a text, a whole number, true or false")]
pub enum Scalar {
    Bool(bool),
    Integer(i64),
    Text(String),
}

impl Scalar {
    /// Whether a stored value's text says this; a boolean may be stored as 0 and 1.
    pub fn is(&self, stored: &str) -> bool {
        match self {
            Scalar::Bool(true) => matches!(stored, "true" | "1" | "t"),
            Scalar::Bool(false) => matches!(stored, "false" | "0" | "f"),
            Scalar::Integer(number) => number.to_string() == stored,
            Scalar::Text(text) => text == stored,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Integer(value) => write!(f, "{value}"),
            Scalar::Text(value) => f.write_str(value),
        }
    }
}

/// What a business column is tested for: one of some values, `{ null = true }` or `{ not_null = true }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawTest")]
pub enum ValueTest {
    OneOf(Vec<Scalar>),
    Null,
    NotNull,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a value, a list of values, { null = true } or { not_null = true }")]
enum RawTest {
    One(Scalar),
    Many(Vec<Scalar>),
    Flag(BTreeMap<String, bool>),
}

impl TryFrom<RawTest> for ValueTest {
    type Error = String;

    fn try_from(raw: RawTest) -> Result<Self, String> {
        match raw {
            RawTest::One(value) => Ok(Self::OneOf(vec![value])),
            RawTest::Many(values) if values.is_empty() => {
                Err("an empty list matches nothing; write the values that count".into())
            }
            RawTest::Many(values) => Ok(Self::OneOf(values)),
            RawTest::Flag(flag) => match flag.into_iter().collect::<Vec<_>>().as_slice() {
                [(name, true)] if name == "null" => Ok(Self::Null),
                [(name, true)] if name == "not_null" => Ok(Self::NotNull),
                _ => Err("write { null = true } or { not_null = true }".into()),
            },
        }
    }
}

impl ValueTest {
    pub fn holds(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::Null, value) => value.is_none(),
            (Self::NotNull, value) => value.is_some(),
            (Self::OneOf(values), Some(value)) => values
                .iter()
                .any(|wanted| wanted.is(value) || domain::json::same_scalar(&wanted.to_string(), value)),
            (Self::OneOf(_), None) => false,
        }
    }

    /// The accepted values in words.
    pub fn expected(&self) -> Vec<String> {
        match self {
            Self::OneOf(values) => values.iter().map(Scalar::to_string).collect(),
            Self::Null => vec!["nothing".into()],
            Self::NotNull => vec!["any value".into()],
        }
    }
}

/// What an action writes into a column: a literal, `{ now = true }`, `{ null = true }`, `{ add = 1 }` or `{ response = true }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawWrite")]
pub enum WriteValue {
    Literal(Scalar),
    Now,
    Null,
    Add(i64),
    /// The response that later duplicates shall get.
    Response,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a value, { now = true }, { null = true }, { add = 1 } or { response = true }"
)]
enum RawWrite {
    Literal(Scalar),
    Special(BTreeMap<String, Scalar>),
}

impl TryFrom<RawWrite> for WriteValue {
    type Error = String;

    fn try_from(raw: RawWrite) -> Result<Self, String> {
        let special = match raw {
            RawWrite::Literal(value) => return Ok(Self::Literal(value)),
            RawWrite::Special(special) => special,
        };
        match special.into_iter().collect::<Vec<_>>().as_slice() {
            [(name, Scalar::Bool(true))] if name == "now" => Ok(Self::Now),
            [(name, Scalar::Bool(true))] if name == "null" => Ok(Self::Null),
            [(name, Scalar::Bool(true))] if name == "response" => Ok(Self::Response),
            [(name, Scalar::Integer(by))] if name == "add" => Ok(Self::Add(*by)),
            _ => Err("write { now = true }, { null = true }, { add = 1 } or { response = true }".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_rates_are_read_or_say_what_to_write() {
        assert_eq!(Span::try_from("10m".to_owned()).unwrap().get(), Duration::from_secs(600));
        assert_eq!(Span::try_from("500ms".to_owned()).unwrap().get(), Duration::from_millis(500));
        for wrong in ["", "10", "m", "0s", "10 m", "-1s", "99999999999999999999s", "400d", "十m"] {
            assert!(Span::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        assert_eq!(Rate::try_from("30/m".to_owned()).unwrap().to_string(), "30/m");
        for wrong in ["", "5", "0/s", "5/d", "-1/s", "/s"] {
            assert!(Rate::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_condition_stays_inside_its_brackets() {
        for right in ["a = 1", "(a = 1) OR (b = '(')", "a = 'it''s'", "data #>> '{a}' = 'x'"] {
            assert!(Predicate::try_from(right.to_owned()).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "a = 1) OR (1 = 1",
            "a = 1; DROP TABLE t",
            "a = 'x",
            "a = 1 -- b",
            "a = 1 /* b",
            "a = '\\' OR 1 = 1",
            "(a",
        ] {
            assert!(Predicate::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("postgres://me:s3cret@db/x");
        assert!(!format!("{secret} {secret:?}").contains("s3cret"));
    }

    #[test]
    fn values_are_tested_as_text_and_numbers_as_decimals() {
        let paid = ValueTest::OneOf(vec![Scalar::Text("PAID".into()), Scalar::Integer(2)]);
        assert!(paid.holds(Some("PAID")) && paid.holds(Some("2")) && paid.holds(Some("2.00")));
        assert!(!paid.holds(Some("paid")) && !paid.holds(Some("12")) && !paid.holds(None));
        let deleted = ValueTest::OneOf(vec![Scalar::Bool(true)]);
        assert!(deleted.holds(Some("1")) && deleted.holds(Some("true")) && !deleted.holds(Some("0")));
        assert!(ValueTest::NotNull.holds(Some("x")) && ValueTest::Null.holds(None));
    }
}
