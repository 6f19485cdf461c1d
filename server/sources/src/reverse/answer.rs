//! What a query endpoint's answer means. Whatever no rule covers proves nothing.

use super::sql::Question;
use crate::config::{AnswerField, AnswerRule, HttpCheck};
use crate::judge::{Outcome, Rows};
use domain::evidence::{Reason, Verdict};
use domain::json::scalar_at;
use domain::redact::{is_sensitive, mask, mask_text};
use serde_json::{Map, Value};

/// So much of an answer is shown, in characters.
const EXCERPT: usize = 300;

/// An answer as it came.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) is_form: bool,
}

/// The verdict on an answer. `secrets` never reach the eye, even if the endpoint gives them back.
pub(super) fn judged(
    config: &HttpCheck,
    question: &Question<'_>,
    answered: &Answered,
    endpoint: &str,
    secrets: &[String],
) -> Outcome {
    let label = question.label;
    let answer = answered.value();
    let says =
        |rules: &[AnswerRule]| rules.iter().position(|rule| rule.covers(answered.status, answer.as_ref()));
    let rows = || row(config, answer.as_ref(), endpoint);
    match (says(&config.found), says(&config.absent), says(&config.mismatch)) {
        (Some(_), None, None) => {
            let judged = question.judged(rows(), &[]);
            judged.unwrap_or_else(|reason| Outcome::unavailable(label, reason))
        }
        (None, Some(_), None) => {
            let reason = Reason::SaysAbsent { check: label.to_owned(), status: answered.status };
            Outcome::said(label, Verdict::Absent, Rows::default(), vec![reason])
        }
        // An answer that also says something else is a mismatch all the same: it is no clear word.
        (_, _, Some(rule)) => {
            let reasons =
                disagreements(config, &config.mismatch[rule], answered.status, answer.as_ref(), label);
            Outcome::said(label, Verdict::Mismatch, rows(), reasons)
        }
        (Some(_), Some(_), None) | (None, None, None) => {
            let excerpt = answered.excerpt(secrets);
            let reason = Reason::Unclear { check: label.to_owned(), status: answered.status, excerpt };
            Outcome::unavailable(label, reason)
        }
    }
}

impl Answered {
    /// The answer as a document: JSON, or the fields of a form.
    fn value(&self) -> Option<Value> {
        let text = std::str::from_utf8(&self.body).ok()?;
        if !self.is_form {
            return domain::json::parse(text);
        }
        let fields = url::form_urlencoded::parse(text.as_bytes());
        Some(Value::Object(
            fields.map(|(name, value)| (name.into_owned(), value.into())).collect::<Map<_, _>>(),
        ))
    }

    /// Its beginning, masked.
    fn excerpt(&self, secrets: &[String]) -> String {
        let Ok(text) = std::str::from_utf8(&self.body) else {
            return format!("({} bytes that are no text)", self.body.len());
        };
        if text.is_empty() {
            return "(empty)".to_owned();
        }
        let mut shown = mask_text(text);
        for secret in secrets {
            shown = shown.replace(secret.as_str(), "***");
        }
        match shown.char_indices().nth(EXCERPT) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        }
    }
}

impl AnswerRule {
    fn covers(&self, status: u16, answer: Option<&Value>) -> bool {
        let value = |pointer: &str| answer.and_then(|answer| scalar_at(answer, pointer));
        self.status.contains(&status)
            && (self.when.is_empty() || answer.is_some())
            && self.when.iter().all(|(pointer, test)| test.holds(value(pointer.as_str()).as_deref()))
    }
}

/// The answer as a business row: the configured columns, then what the rules look at.
fn row(config: &HttpCheck, answer: Option<&Value>, endpoint: &str) -> Rows {
    let value = |pointer: &str| answer.and_then(|answer| scalar_at(answer, pointer));
    let mut columns: Vec<String> = config.row.keys().cloned().collect();
    let mut cells: Vec<Option<String>> = config.row.values().map(|field| field.read(answer)).collect();
    let rules = config.found.iter().chain(&config.mismatch);
    for pointer in rules.flat_map(|rule| rule.when.keys()) {
        let name = pointer.as_str().to_owned();
        if !columns.contains(&name) {
            cells.push(value(&name));
            columns.push(name);
        }
    }
    Rows { columns, rows: vec![cells], places: vec![endpoint.to_owned()] }
}

/// Every value that makes it a mismatch, beside what `found` expects there.
fn disagreements(
    config: &HttpCheck,
    rule: &AnswerRule,
    status: u16,
    answer: Option<&Value>,
    label: &str,
) -> Vec<Reason> {
    if rule.when.is_empty() {
        let expected = config.found.iter().flat_map(|found| &found.status).map(u16::to_string).collect();
        let value = Some(status.to_string());
        return vec![Reason::OutsideExpected {
            check: label.to_owned(),
            field: "status".into(),
            value,
            expected,
        }];
    }
    let each = rule.when.keys().map(|pointer| {
        let field = pointer.as_str().to_owned();
        let value = answer.and_then(|answer| scalar_at(answer, &field));
        let value = value.map(|value| if is_sensitive(&field) { mask(&value) } else { value });
        let expected = config.found.iter().filter_map(|found| found.when.get(pointer));
        let expected: Vec<String> = expected.flat_map(|test| test.expected()).collect();
        let expected = if expected.is_empty() { vec!["something else".to_owned()] } else { expected };
        Reason::OutsideExpected { check: label.to_owned(), field, value, expected }
    });
    each.collect()
}

impl AnswerField {
    fn read(&self, answer: Option<&Value>) -> Option<String> {
        let text = scalar_at(answer?, self.pointer.as_str())?;
        if self.shift == 0 { Some(text) } else { shifted(&text, self.shift) }
    }
}

/// A plain decimal with its point moved to the right; `None` for anything else.
fn shifted(text: &str, places: i8) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || ![whole, fraction].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let by = usize::from(places.unsigned_abs());
    let (whole, fraction) = if places < 0 {
        let padded = format!("{}{whole}", "0".repeat(by));
        let (left, right) = padded.split_at(padded.len() - by);
        (left.to_owned(), format!("{right}{fraction}"))
    } else {
        let padded = format!("{fraction:0<by$}");
        let (left, right) = padded.split_at(by);
        (format!("{whole}{left}"), right.to_owned())
    };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        rest => rest,
    };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_point_moves_without_floats() {
        for (text, places, expected) in [
            ("12800", -2, Some("128.00")),
            ("5", -2, Some("0.05")),
            ("0", -2, Some("0.00")),
            ("-150", -2, Some("-1.50")),
            ("128.5", 2, Some("12850")),
            ("1", 2, Some("100")),
            ("900719925474099312", -2, Some("9007199254740993.12")),
            ("1e3", -2, None),
            ("", -2, None),
            ("abc", 1, None),
        ] {
            assert_eq!(shifted(text, places).as_deref(), expected, "{text} {places}");
        }
        assert_eq!(shifted("128.123", 2).as_deref(), Some("12812.3"));
    }
}
