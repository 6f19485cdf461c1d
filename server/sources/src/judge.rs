//! From business rows to a verdict. Comparing uses the true values; what is kept for the eye is masked.

use crate::config::{ReverseCheck, RowsExpected};
use crate::reading::cell_text;
use db::Row;
use domain::evidence::{CheckRows, Comparison, Finding, Reason, Verdict};
use domain::json::{same_scalar, scalar_at};
use domain::redact::{is_sensitive, mask, mask_text};
use serde_json::Value;

/// Rows kept for the eye.
pub(crate) const SHOWN_ROWS: usize = 20;
/// No effect consists of more rows than this.
const MOST_ROWS: usize = 10_000;

/// The rows of one check, as text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// Where each row was seen; empty when there is one place only.
    pub(crate) places: Vec<String>,
}

/// What one check came to.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) rows: Rows,
    comparisons: Vec<Comparison>,
    reasons: Vec<Reason>,
    check: String,
}

impl Outcome {
    pub(crate) fn unavailable(check: &str, reason: Reason) -> Self {
        Self {
            verdict: Verdict::Unavailable,
            rows: Rows::default(),
            comparisons: Vec::new(),
            reasons: vec![reason],
            check: check.to_owned(),
        }
    }

    /// What other words than rows say, with whatever they show.
    pub(crate) fn said(check: &str, verdict: Verdict, rows: Rows, reasons: Vec<Reason>) -> Self {
        Self { verdict, rows, comparisons: Vec::new(), reasons, check: check.to_owned() }
    }

    /// The same when not everything could be asked: what disagrees disagrees whatever the rest says, and nothing
    /// else is proved. The rows stay for the eye.
    pub(crate) fn incomplete(mut self, reason: Reason) -> Self {
        if self.verdict != Verdict::Mismatch {
            self.verdict = Verdict::Unavailable;
        }
        self.reasons.retain(|reason| !matches!(reason, Reason::NoRow { .. }));
        self.reasons.push(reason);
        self
    }
}

/// How many rows make the effect complete; the error names the pointer that leads nowhere.
pub(crate) fn expected_rows(check: &ReverseCheck, request: Option<&Value>) -> Result<usize, Reason> {
    match &check.rows {
        None => Ok(1),
        Some(RowsExpected::Exactly(rows)) => Ok((*rows as usize).clamp(1, MOST_ROWS)),
        Some(RowsExpected::Counted { pointer }) => {
            let counted = request.and_then(|request| request.pointer(pointer.as_str()));
            let rows = match counted {
                Some(Value::Array(items)) => Some(items.len()),
                Some(Value::Number(number)) => number.to_string().parse().ok(),
                _ => None,
            };
            match rows {
                Some(rows) => Ok(rows.clamp(1, MOST_ROWS)),
                None => Err(Reason::RequestLacks { pointer: pointer.as_str().to_owned() }),
            }
        }
    }
}

/// The verdict on one check's rows.
pub(crate) fn judge(
    check: &ReverseCheck,
    label: &str,
    rows: Rows,
    expected: usize,
    request: Option<&Value>,
) -> Outcome {
    let mut judgement =
        Judgement { label, request, rows: &rows, comparisons: Vec::new(), reasons: Vec::new() };
    let verdict = judgement.verdict(check, expected);
    let Judgement { comparisons, reasons, .. } = judgement;
    Outcome { verdict, comparisons, reasons, check: label.to_owned(), rows }
}

/// All checks of a biz_type as one finding.
pub(crate) fn combine(outcomes: Vec<Outcome>, read_from: String) -> Finding {
    let any = |verdict| outcomes.iter().any(|outcome| outcome.verdict == verdict);
    let verdict = if any(Verdict::Mismatch) {
        Verdict::Mismatch
    } else if any(Verdict::Unavailable) || outcomes.is_empty() {
        Verdict::Unavailable
    } else if any(Verdict::Partial) || (any(Verdict::Found) && any(Verdict::Absent)) {
        Verdict::Partial
    } else if any(Verdict::Absent) {
        Verdict::Absent
    } else {
        Verdict::Found
    };
    let mut finding =
        Finding { verdict, rows: Vec::new(), comparisons: Vec::new(), reasons: Vec::new(), read_from };
    for outcome in outcomes {
        finding.rows.push(for_the_eye(&outcome.check, &outcome.rows));
        finding.comparisons.extend(outcome.comparisons);
        finding.reasons.extend(outcome.reasons);
    }
    finding
}

struct Judgement<'a> {
    label: &'a str,
    request: Option<&'a Value>,
    rows: &'a Rows,
    comparisons: Vec<Comparison>,
    reasons: Vec<Reason>,
}

impl Judgement<'_> {
    fn check(&self) -> String {
        self.label.to_owned()
    }

    fn verdict(&mut self, check: &ReverseCheck, expected: usize) -> Verdict {
        let found = self.rows.rows.len();
        if found == 0 {
            self.reasons.push(Reason::NoRow { check: self.check() });
            return Verdict::Absent;
        }
        let known = |column: &String| self.rows.columns.contains(column);
        let named = check.found_when.keys().chain(check.deleted_when.keys()).chain(check.compare.keys());
        if let Some(missing) = named.into_iter().find(|column| !known(column)) {
            let message = format!("the result has no column {missing}; select it or drop it from the check");
            self.reasons.push(Reason::QueryFailed { check: self.check(), message });
            return Verdict::Unavailable;
        }
        self.deleted_rows(check);
        self.unexpected_rows(check);
        let lacking = self.compared_rows(check);
        let disagrees = !self.reasons.is_empty();
        self.reasons.extend(lacking.iter().cloned());
        if found > expected {
            let rows = u32::try_from(found).unwrap_or(u32::MAX);
            self.reasons.push(Reason::SeveralRows { check: self.check(), rows });
        }
        if disagrees || found > expected {
            Verdict::Mismatch
        } else if !lacking.is_empty() {
            Verdict::Unavailable
        } else if found < expected {
            let business = Some(found.to_string());
            let field = "rows".to_owned();
            let request = Some(expected.to_string());
            self.reasons.push(Reason::FieldDiffers { check: self.check(), field, request, business });
            Verdict::Partial
        } else {
            self.reasons.push(Reason::RowAgrees { check: self.check() });
            Verdict::Found
        }
    }

    fn deleted_rows(&mut self, check: &ReverseCheck) {
        let rows = 0..self.rows.rows.len();
        let deleted = rows.filter(|row| {
            check.deleted_when.iter().any(|(column, test)| test.holds(self.rows.value(*row, column)))
        });
        if deleted.count() > 0 {
            self.reasons.push(Reason::SoftDeleted { check: self.check() });
        }
    }

    fn unexpected_rows(&mut self, check: &ReverseCheck) {
        for row in 0..self.rows.rows.len() {
            for (column, test) in &check.found_when {
                let value = self.rows.value(row, column);
                if !test.holds(value) {
                    let value = masked(column, value);
                    let reason = Reason::OutsideExpected {
                        check: self.check(),
                        field: column.clone(),
                        value,
                        expected: test.expected(),
                    };
                    self.reasons.push(reason);
                }
            }
        }
    }

    /// Compares every row with the request; what the request lacks is handed back, for it is no disagreement.
    fn compared_rows(&mut self, check: &ReverseCheck) -> Vec<Reason> {
        let mut lacking = Vec::new();
        for (column, pointer) in &check.compare {
            let request = self.request.and_then(|request| scalar_at(request, pointer.as_str()));
            let Some(request) = request else {
                lacking.push(Reason::RequestLacks { pointer: pointer.as_str().to_owned() });
                continue;
            };
            for row in 0..self.rows.rows.len() {
                let business = self.rows.value(row, column);
                let agrees = business.is_some_and(|business| same_scalar(business, &request));
                let (shown_request, shown_business) =
                    (masked(column, Some(&request)), masked(column, business));
                if !agrees {
                    self.reasons.push(Reason::FieldDiffers {
                        check: self.check(),
                        field: column.clone(),
                        request: shown_request.clone(),
                        business: shown_business.clone(),
                    });
                }
                self.comparisons.push(Comparison {
                    check: self.check(),
                    field: column.clone(),
                    request: shown_request,
                    business: shown_business,
                    agrees,
                });
            }
        }
        lacking
    }
}

impl Rows {
    /// What a database answered.
    pub(crate) fn read(rows: &[Row]) -> Self {
        Self {
            columns: rows.first().map(|row| row.columns().to_vec()).unwrap_or_default(),
            rows: rows.iter().map(|row| row.cells().iter().map(cell_text).collect()).collect(),
            places: Vec::new(),
        }
    }

    /// The value of a column in a row; `None` for NULL and for a column that is not there.
    pub(crate) fn value(&self, row: usize, column: &str) -> Option<&str> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.rows.get(row)?.get(place)?.as_deref()
    }
}

fn for_the_eye(check: &str, rows: &Rows) -> CheckRows {
    let shown = rows.rows.iter().take(SHOWN_ROWS).map(|row| {
        let cells = rows.columns.iter().zip(row);
        cells.map(|(column, value)| masked(column, value.as_deref())).collect()
    });
    CheckRows {
        check: check.to_owned(),
        columns: rows.columns.clone(),
        rows: shown.collect(),
        places: rows.places.iter().take(SHOWN_ROWS).cloned().collect(),
        truncated: rows.rows.len() > SHOWN_ROWS,
    }
}

fn masked(column: &str, value: Option<&str>) -> Option<String> {
    let value = value?;
    Some(if is_sensitive(column) {
        mask(value)
    } else if value.starts_with(['{', '[']) {
        mask_text(value)
    } else {
        value.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> ReverseCheck {
        toml::from_str(&format!("sql = \"SELECT 1\"\n{text}")).unwrap()
    }

    fn rows(columns: &[&str], rows: &[&[Option<&str>]]) -> Rows {
        Rows {
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: rows.iter().map(|row| row.iter().map(|value| value.map(str::to_owned)).collect()).collect(),
            places: vec![],
        }
    }

    fn verdict(config: &str, seen: Rows, request: &str) -> Verdict {
        let (check, request) = (check(config), domain::json::parse(request));
        match expected_rows(&check, request.as_ref()) {
            Ok(expected) => judge(&check, "order", seen, expected, request.as_ref()).verdict,
            Err(_) => Verdict::Unavailable,
        }
    }

    #[test]
    fn rows_and_request_decide_the_verdict() {
        const PAID: &str = "found_when = { status = [\"PAID\"] }\ncompare = { amount = \"/amount\" }";
        let row = |status, amount| rows(&["status", "amount"], &[&[Some(status), amount]]);
        for (config, seen, request, expected) in [
            (PAID, rows(&[], &[]), r#"{"amount":1}"#, Verdict::Absent),
            (PAID, row("PAID", Some("128.0")), r#"{"amount":128.00}"#, Verdict::Found),
            (PAID, row("PAID", Some("128.01")), r#"{"amount":128.00}"#, Verdict::Mismatch),
            (PAID, row("PAID", None), r#"{"amount":128.00}"#, Verdict::Mismatch),
            (PAID, row("CLOSED", Some("128")), r#"{"amount":128.00}"#, Verdict::Mismatch),
            (PAID, row("PAID", Some("128")), r#"{"total":128.00}"#, Verdict::Unavailable),
            (PAID, row("PAID", Some("128")), "not json", Verdict::Unavailable),
            (PAID, rows(&["status"], &[&[Some("PAID")]]), r#"{"amount":1}"#, Verdict::Unavailable),
            ("", rows(&["a"], &[&[None], &[None]]), "{}", Verdict::Mismatch),
            ("rows = 2", rows(&["a"], &[&[None], &[None]]), "{}", Verdict::Found),
            ("rows = 3", rows(&["a"], &[&[None], &[None]]), "{}", Verdict::Partial),
            (
                "rows = { pointer = \"/items\" }",
                rows(&["a"], &[&[None]]),
                r#"{"items":[1,2]}"#,
                Verdict::Partial,
            ),
            ("rows = { pointer = \"/items\" }", rows(&["a"], &[&[None]]), "{}", Verdict::Unavailable),
            ("deleted_when = { d = [1] }", rows(&["d"], &[&[Some("1")]]), "{}", Verdict::Mismatch),
            ("deleted_when = { d = { not_null = true } }", rows(&["d"], &[&[None]]), "{}", Verdict::Found),
        ] {
            assert_eq!(verdict(config, seen, request), expected, "{config} {request}");
        }
    }

    #[test]
    fn sensitive_values_are_compared_truly_and_shown_masked() {
        let check = check("compare = { card_no = \"/card\" }");
        let seen = rows(&["card_no"], &[&[Some("6222021234567894")]]);
        let request = domain::json::parse(r#"{"card":"6222021234567895"}"#);
        let outcome = judge(&check, "card", seen, 1, request.as_ref());
        assert_eq!(outcome.verdict, Verdict::Mismatch);
        let finding = combine(vec![outcome], "db".into());
        let all = format!("{finding:?} {}", finding.explanation());
        assert!(!all.contains("6222021234567894") && !all.contains("6222021234567895"), "{all}");
    }

    #[test]
    fn several_checks_are_found_together_or_partial() {
        let outcome = |verdict| Outcome {
            verdict,
            rows: Rows::default(),
            comparisons: vec![],
            reasons: vec![],
            check: String::new(),
        };
        for (verdicts, expected) in [
            (vec![Verdict::Found, Verdict::Found], Verdict::Found),
            (vec![Verdict::Found, Verdict::Absent], Verdict::Partial),
            (vec![Verdict::Absent, Verdict::Absent], Verdict::Absent),
            (vec![Verdict::Found, Verdict::Mismatch, Verdict::Absent], Verdict::Mismatch),
            (vec![Verdict::Absent, Verdict::Unavailable], Verdict::Unavailable),
            (vec![Verdict::Partial, Verdict::Found], Verdict::Partial),
            (vec![], Verdict::Unavailable),
        ] {
            let outcomes = verdicts.iter().copied().map(outcome).collect();
            assert_eq!(combine(outcomes, String::new()).verdict, expected, "{verdicts:?}");
        }
    }
}
