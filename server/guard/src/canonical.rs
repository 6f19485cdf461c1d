//! JSON and forms by their meaning, not their spelling: what two spellings of one request have in common.

/// Deeper nesting is nobody's request; such a body counts byte for byte.
const MAX_DEPTH: usize = 128;

/// JSON without spacing, names sorted, strings unescaped, numbers digit for digit, repeated names all kept in their
/// order. `None`: no JSON, or nested too deeply.
pub(crate) fn json(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let mut reader = Reader { text, at: 0 };
    let mut out = Vec::with_capacity(body.len());
    reader.space();
    reader.value(MAX_DEPTH, &mut out)?;
    reader.space();
    (reader.at == text.len()).then_some(out)
}

/// The pairs of `a=1&b=2`, decoded, sorted by name; pairs of one name keep their order.
pub(crate) fn form(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs: Vec<_> = text
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let cut = pair.iter().position(|byte| *byte == b'=');
            let (name, value) = cut.map_or((pair, &[][..]), |cut| (&pair[..cut], &pair[cut + 1..]));
            (decoded(name), decoded(value))
        })
        .collect();
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    pairs
}

/// `+` and `%41` as they are meant; a broken escape stays as it is.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(digit(*high) << 4 | digit(*low));
                rest = after;
            }
            (other, _) => out.push(*other),
        }
    }
    out
}

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        b'a'..=b'f' => hex - b'a' + 10,
        _ => hex - b'A' + 10,
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over `byte` if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let next = self.peek() == Some(byte);
        self.at += usize::from(next);
        next
    }

    fn value(&mut self, depth: usize, out: &mut Vec<u8>) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(depth.checked_sub(1)?, out),
            b'[' => self.array(depth.checked_sub(1)?, out),
            b'"' => self.string(out),
            b't' => self.word("true", out),
            b'f' => self.word("false", out),
            b'n' => self.word("null", out),
            _ => self.number(out),
        }
    }

    fn object(&mut self, depth: usize, out: &mut Vec<u8>) -> Option<()> {
        let mut fields = Vec::new();
        self.at += 1;
        self.space();
        if !self.take(b'}') {
            loop {
                let (mut name, mut value) = (Vec::new(), Vec::new());
                self.space();
                self.string(&mut name)?;
                self.space();
                self.take(b':').then_some(())?;
                self.space();
                self.value(depth, &mut value)?;
                fields.push((name, value));
                self.space();
                if self.take(b'}') {
                    break;
                }
                self.take(b',').then_some(())?;
            }
        }
        // Stable, so that repeated names keep their order.
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        out.push(b'{');
        for (place, (name, value)) in fields.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Some(())
    }

    fn array(&mut self, depth: usize, out: &mut Vec<u8>) -> Option<()> {
        self.at += 1;
        out.push(b'[');
        self.space();
        if !self.take(b']') {
            loop {
                self.space();
                self.value(depth, out)?;
                self.space();
                if self.take(b']') {
                    break;
                }
                self.take(b',').then_some(())?;
                out.push(b',');
            }
        }
        out.push(b']');
        Some(())
    }

    /// Only the quote, the backslash and control characters stay escaped, always in the same way.
    fn string(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.take(b'"').then_some(())?;
        out.push(b'"');
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.escape(out)?,
                0..0x20 => return None,
                byte => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        out.push(b'"');
        Some(())
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.at += 1;
        let kind = self.peek()?;
        self.at += 1;
        let unit = match kind {
            b'"' | b'\\' | b'/' => u32::from(kind),
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => self.unit()?,
            _ => return None,
        };
        let code = if (0xd800..0xdc00).contains(&unit) { self.pair(unit) } else { unit };
        match char::from_u32(code) {
            Some(c) if c != '"' && c != '\\' && c >= ' ' => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            // Half a pair is no character, yet JSON allows it.
            _ => out.extend_from_slice(format!("\\u{code:04x}").as_bytes()),
        }
        Some(())
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        self.at += 4;
        Some(digits.iter().fold(0, |code, hex| code << 4 | u32::from(digit(*hex))))
    }

    /// The character that `high` makes with the escape behind it; `high` itself when there is none that fits.
    fn pair(&mut self, high: u32) -> u32 {
        let before = self.at;
        if self.take(b'\\')
            && self.take(b'u')
            && let Some(low @ 0xdc00..0xe000) = self.unit()
        {
            return 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
        }
        self.at = before;
        high
    }

    fn word(&mut self, word: &str, out: &mut Vec<u8>) -> Option<()> {
        self.text[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        out.extend_from_slice(word.as_bytes());
        Some(())
    }

    /// As it is written: 1, 1.0 and 1e0 are three amounts.
    fn number(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        out.extend_from_slice(&self.text.as_bytes()[start..self.at]);
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> Option<String> {
        json(body.as_bytes()).map(|out| String::from_utf8(out).unwrap())
    }

    #[test]
    fn json_is_written_one_way() {
        for (body, canonical) in [
            (" {\"b\" : 1.0,\n\"a\":[ 1, 2e+0 ,-0.50]} ", r#"{"a":[1,2e+0,-0.50],"b":1.0}"#),
            (r#"{"a":1,"a":2,"A":3}"#, r#"{"A":3,"a":1,"a":2}"#),
            (r#""\u0041\/\n\u001F\ud83d\ude02\ud83d""#, r#""A/\u000a\u001f😂\ud83d""#),
            (r#"{"\u0061":"\"\\"}"#, r#"{"a":"\u0022\u005c"}"#),
            (
                r#"[123456789012345678901234567890, true, null, {}, []]"#,
                r#"[123456789012345678901234567890,true,null,{},[]]"#,
            ),
        ] {
            assert_eq!(text(body).as_deref(), Some(canonical), "{body}");
        }
        assert_ne!(text(r#"{"a":1,"a":2}"#), text(r#"{"a":2,"a":1}"#));
        assert_ne!(text(r#"{"$serde_json::private::Number":"1"}"#), text("1"));
    }

    #[test]
    fn what_is_no_json_is_not_taken_for_it() {
        for body in [
            "",
            "a=1",
            "{",
            "[1,]",
            "{\"a\"}",
            "01",
            "1.",
            "+1",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12\"",
            "1 2",
            "nul",
            "'a'",
            "\"\\ud83d\\u",
        ] {
            assert_eq!(text(body), None, "{body}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(text(&nested(128)).is_some());
        assert_eq!(text(&nested(129)), None);
        assert_eq!(text(&nested(1_000_000)), None);
    }

    #[test]
    fn pairs_are_decoded_and_sorted_by_name_only() {
        let pairs = |text: &str| form(text.as_bytes());
        assert_eq!(pairs("b=2&a=1%20x&a=0"), pairs("a=1+x&a=0&&b=2"));
        assert_ne!(pairs("a=1&a=0"), pairs("a=0&a=1"));
        assert_eq!(pairs("a=%zz%4"), [(b"a".to_vec(), b"%zz%4".to_vec())]);
    }
}
