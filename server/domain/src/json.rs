//! JSON text as it is: numbers keep every digit, keys keep their order.

use serde_json::Value;

/// Parses without losing a digit; `None` when the text is not JSON.
pub fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// The scalar at a JSON pointer as text (strings without quotes, numbers as written); `None` when it is
/// missing, null, an object or an array.
pub fn scalar_at(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Object(_) | Value::Array(_) => None,
    }
}

/// Two scalars say the same: the same text, or the same decimal number (`128.00` = `128`). Never floats.
pub fn same_scalar(left: &str, right: &str) -> bool {
    left == right || decimal(left).is_some_and(|l| decimal(right) == Some(l))
}

/// A plain decimal as (negative, integer digits, fraction digits) without insignificant zeros. A leading zero
/// makes it a code, not a number: `0012` is not 12.
fn decimal(text: &str) -> Option<(bool, &str, &str)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let coded = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || coded || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let zero = whole == "0" && fraction.is_empty();
    Some((negative && !zero, whole, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c67_a_code_with_leading_zeros_is_not_a_number() {
        assert!(!same_scalar("0012", "12"));
        assert!(!same_scalar("12abc", "12"));
        assert!(same_scalar("128.00", "128"));
        assert!(same_scalar("0.10", "0.1"));
        assert!(same_scalar("-0.0", "0"));
        assert!(!same_scalar("9007199254740993", "9007199254740992"));
    }

    #[test]
    fn c70_big_numbers_keep_every_digit() {
        let text = r#"{"orderId":4634343214213523454,"amt":0.10,"e":1E400}"#;
        let value = parse(text).unwrap();
        assert_eq!(scalar_at(&value, "/orderId").as_deref(), Some("4634343214213523454"));
        assert_eq!(scalar_at(&value, "/amt").as_deref(), Some("0.10"));
    }
}
