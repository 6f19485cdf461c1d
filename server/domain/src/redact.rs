//! Bodies for the eye: sensitive values masked, everything else as stored.

use crate::evidence::{Finding, Reason};
use serde_json::Value;

/// Words in a field's name that make its value sensitive (compared without case, `_` and `-`).
const SENSITIVE: [&str; 24] = [
    "card",
    "pan",
    "cvv",
    "cvc",
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "signature",
    "sign",
    "phone",
    "mobile",
    "email",
    "idcard",
    "idno",
    "certno",
    "ssn",
    "iban",
    "accountno",
    "bankaccount",
    "address",
    "realname",
    "authorization",
];

/// Words that are sensitive only as the whole name: as a part they are too common (`company` holds `pan`).
const WHOLE_NAME_ONLY: [&str; 3] = ["pan", "sign", "card"];

/// Whether a field of this name is masked.
pub fn is_sensitive(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SENSITIVE.iter().any(|word| {
        if WHOLE_NAME_ONLY.contains(word) {
            plain == *word || plain == format!("{word}no")
        } else {
            plain.contains(word)
        }
    })
}

/// A masked value: the last four characters of a long one stay, to tell two apart.
pub fn mask(text: &str) -> String {
    let count = text.chars().count();
    if count < 8 {
        return "••••".to_owned();
    }
    let tail: String = text.chars().skip(count - 4).collect();
    format!("•••• {tail}")
}

/// Masks the sensitive values of a JSON tree in place.
pub fn mask_json(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if is_sensitive(name) { hide(field) } else { mask_json(field) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_json),
        Value::String(text) if looks_like_card(text) => *text = mask(text),
        _ => {}
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::String(text) => *text = mask(text),
        Value::Number(number) => *value = Value::String(mask(&number.to_string())),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Masks the sensitive columns of a finding, wherever their values stand.
pub fn mask_finding(finding: &mut Finding) {
    for table in &mut finding.rows {
        let hidden: Vec<bool> = table.columns.iter().map(|column| is_sensitive(column)).collect();
        for row in &mut table.rows {
            row.iter_mut().zip(&hidden).filter(|(_, hidden)| **hidden).for_each(|(cell, _)| mask_cell(cell));
        }
    }
    for comparison in finding.comparisons.iter_mut().filter(|comparison| is_sensitive(&comparison.field)) {
        mask_cell(&mut comparison.request);
        mask_cell(&mut comparison.business);
    }
    for reason in &mut finding.reasons {
        match reason {
            Reason::FieldDiffers { field, request, business, .. } if is_sensitive(field) => {
                mask_cell(request);
                mask_cell(business);
            }
            Reason::OutsideExpected { field, value, .. } if is_sensitive(field) => mask_cell(value),
            Reason::NumberDiffers { field, value, wanted, .. } if is_sensitive(field) => {
                mask_cell(value);
                mask_cell(wanted);
            }
            _ => {}
        }
    }
}

fn mask_cell(cell: &mut Option<String>) {
    if let Some(text) = cell {
        *text = mask(text);
    }
}

/// 13 to 19 digits of a card network's range that pass the Luhn check.
fn looks_like_card(text: &str) -> bool {
    let digits: Vec<u32> =
        text.chars().filter(|c| !matches!(c, ' ' | '-')).map_while(|c| c.to_digit(10)).collect();
    let all_digits = text.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-'));
    let network = digits.first().is_some_and(|first| (3..=6).contains(first));
    if !all_digits || !network || !(13..=19).contains(&digits.len()) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => *digit,
            (_, doubled) if doubled > 9 => doubled - 9,
            (_, doubled) => doubled,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Masks JSON by field and form bodies by `name=value` pair; `None` for anything else, which is hidden whole.
pub fn masked(text: &str) -> Option<String> {
    if let Some(mut value) = crate::json::parse(text) {
        mask_json(&mut value);
        return Some(value.to_string());
    }
    let is_form = text.contains('=') && !text.contains(['\n', ' ', '<']);
    is_form.then(|| {
        let pairs = text.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if is_sensitive(name) => format!("{name}={}", mask(value)),
            _ => pair.to_owned(),
        });
        pairs.collect::<Vec<_>>().join("&")
    })
}

/// [`masked`], with an English sentence in place of what is hidden whole.
pub fn mask_text(text: &str) -> String {
    masked(text).unwrap_or_else(|| format!("({} characters, shown only when revealed)", text.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{CheckRows, Comparison, Verdict};

    #[test]
    fn sensitive_values_are_masked_at_any_depth_and_the_rest_is_kept() {
        let text = r#"{"orderNo":"20261201184412007731","userId":9007199254740993,"amount":128.00,"payer":{"card_no":"6222021234567894","phone":13800138000},"company":"Pan Ltd","note":"4111 1111 1111 1111"}"#;
        let masked = mask_text(text);
        assert!(masked.contains("20261201184412007731") && masked.contains("9007199254740993"));
        assert!(masked.contains("128.00") && masked.contains("Pan Ltd"));
        for secret in ["6222021234567894", "13800138000", "4111 1111"] {
            assert!(!masked.contains(secret), "{secret} shows in {masked}");
        }
    }

    #[test]
    fn a_finding_hides_sensitive_columns_in_rows_comparisons_and_sentences() {
        let value = || Some("13800138000".to_owned());
        let check = || "order".to_owned();
        let mut finding = Finding {
            verdict: Verdict::Mismatch,
            rows: vec![CheckRows {
                check: check(),
                columns: vec!["order_no".into(), "phone".into()],
                rows: vec![vec![Some("7".into()), value()]],
                places: vec![],
                truncated: false,
            }],
            comparisons: vec![Comparison {
                check: check(),
                field: "phone".into(),
                request: value(),
                business: None,
                agrees: false,
            }],
            reasons: vec![Reason::FieldDiffers {
                check: check(),
                field: "phone".into(),
                request: value(),
                business: None,
            }],
            read_from: "primary".into(),
        };
        assert!(!finding.explanation().contains("13800138000"));
        mask_finding(&mut finding);
        let text = serde_json::to_string(&finding).unwrap();
        assert!(!text.contains("13800138000") && text.contains("•••• 8000") && text.contains("\"7\""));
    }

    #[test]
    fn a_form_body_masks_by_name_and_unknown_text_is_hidden() {
        assert_eq!(mask_text("order=1&phone=13800138000"), "order=1&phone=•••• 8000");
        assert!(!mask_text("<xml>secret</xml>").contains("secret"));
    }
}
