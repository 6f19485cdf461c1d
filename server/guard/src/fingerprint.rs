//! What makes two requests the same request.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 (hex) of method, path with query, and body. A JSON body counts by its meaning: spacing and the order of
/// names do not matter, the digits of numbers do. Any other body counts byte for byte.
pub fn fingerprint(method: &str, path_and_query: &str, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [method.as_bytes(), path_and_query.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(json) => {
            let mut text = String::with_capacity(body.len());
            canonical(&json, &mut text);
            hash.update(text);
        }
        Err(_) => hash.update(body),
    }
    hex::encode(hash.finalize())
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            list(out, ['{', '}'], fields, |(name, field), out| {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                canonical(field, out);
            });
        }
        Value::Array(items) => list(out, ['[', ']'], items, canonical),
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    fn of(body: &str) -> String {
        fingerprint("POST", "/pay", body.as_bytes())
    }

    #[test]
    fn spacing_and_order_do_not_matter_but_digits_do() {
        let first = of(r#"{"orderNo":"1","amount":128.00,"items":[1,2]}"#);
        assert_eq!(first, of("{ \"items\": [1, 2], \"amount\": 128.00,\n\"orderNo\": \"1\" }"));
        for other in [
            r#"{"orderNo":"1","amount":128.0,"items":[1,2]}"#,
            r#"{"orderNo":"1","amount":128.00,"items":[2,1]}"#,
            r#"{"orderNo":1,"amount":128.00,"items":[1,2]}"#,
        ] {
            assert_ne!(first, of(other));
        }
    }

    #[test]
    fn c70_long_numbers_are_told_apart() {
        assert_ne!(of(r#"{"userId":4634343214213523454}"#), of(r#"{"userId":4634343214213523455}"#));
    }

    #[test]
    fn other_bodies_count_byte_for_byte_and_routes_are_told_apart() {
        assert_ne!(of("a=1&b=2"), of("a=1&b=3"));
        assert_ne!(fingerprint("POST", "/a", b"{}"), fingerprint("POST", "/b", b"{}"));
        assert_ne!(fingerprint("POST", "/a", b"{}"), fingerprint("PUT", "/a", b"{}"));
    }
}
