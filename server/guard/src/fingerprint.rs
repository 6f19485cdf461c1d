//! What makes two requests the same request.

use sha2::{Digest, Sha256};

use crate::canonical;

/// SHA-256 (hex) of method, path, query and body. JSON counts by its meaning: spacing, escapes and the order of names do
/// not matter, the digits of numbers and repeated names do. The query counts by its pairs. Any other body counts byte
/// for byte.
pub fn fingerprint(method: &str, path_and_query: &str, body: &[u8]) -> String {
    of(method, path_and_query, false, body)
}

/// The same; with `form`, a body that is no JSON counts by its pairs.
pub(crate) fn of(method: &str, path_and_query: &str, form: bool, body: &[u8]) -> String {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let mut print = Print(Sha256::new());
    print.part(method.as_bytes());
    print.part(path.as_bytes());
    print.pairs(query.as_bytes());
    match canonical::json(body) {
        Some(json) => print.kind(b'j').part(&json),
        None if form => print.kind(b'f').pairs(body),
        None => print.kind(b'b').part(body),
    };
    hex::encode(print.0.finalize())
}

/// Each part with its length, so that none runs into the next.
struct Print(Sha256);

impl Print {
    fn kind(&mut self, kind: u8) -> &mut Self {
        self.0.update([kind]);
        self
    }

    fn part(&mut self, part: &[u8]) -> &mut Self {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
        self
    }

    fn pairs(&mut self, text: &[u8]) -> &mut Self {
        let pairs = canonical::form(text);
        self.0.update((pairs.len() as u64).to_be_bytes());
        for (name, value) in &pairs {
            self.part(name).part(value);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_json(body: &str) -> String {
        fingerprint("POST", "/pay", body.as_bytes())
    }

    #[test]
    fn spacing_and_order_do_not_matter_but_digits_do() {
        let first = of_json(r#"{"orderNo":"1","amount":128.00,"items":[1,2]}"#);
        assert_eq!(first, of_json("{ \"items\": [1, 2], \"amount\": 128.00,\n\"orderNo\": \"1\" }"));
        for other in [
            r#"{"orderNo":"1","amount":128.0,"items":[1,2]}"#,
            r#"{"orderNo":"1","amount":128.00,"items":[2,1]}"#,
            r#"{"orderNo":1,"amount":128.00,"items":[1,2]}"#,
            r#"{"orderNo":"1","amount":128.00,"items":[1,2],"items":[1,2]}"#,
        ] {
            assert_ne!(first, of_json(other));
        }
    }

    #[test]
    fn c70_long_numbers_are_told_apart() {
        assert_ne!(
            of_json(r#"{"userId":4634343214213523454}"#),
            of_json(r#"{"userId":4634343214213523455}"#)
        );
        assert_ne!(of_json("1"), of_json("1.0"));
    }

    #[test]
    fn other_bodies_count_byte_for_byte_and_forms_by_their_pairs() {
        assert_ne!(of_json("a=1&b=2"), of_json("b=2&a=1"));
        assert_eq!(of("POST", "/a", true, b"a=1&b=2"), of("POST", "/a", true, b"b=2&a=1"));
        assert_ne!(of("POST", "/a", true, b"a=1&b=2"), of("POST", "/a", true, b"a=1&b=3"));
        assert_ne!(of("POST", "/a", true, b"{\"a\""), of("POST", "/a", false, b"{\"a\""));
    }

    #[test]
    fn routes_methods_and_queries_are_told_apart() {
        let route = |method, path| fingerprint(method, path, b"{}");
        assert_eq!(route("POST", "/a?x=1&y=2"), route("POST", "/a?y=2&x=1"));
        for other in [route("POST", "/b?x=1&y=2"), route("PUT", "/a?x=1&y=2"), route("POST", "/a?x=1&y=3")] {
            assert_ne!(route("POST", "/a?x=1&y=2"), other);
        }
    }
}
