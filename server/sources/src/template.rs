//! `{name}` templates for stored responses, replay headers and the questions to query endpoints.

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
    escape: Escape,
}

/// What values are made fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    Nothing,
    /// The template is a JSON document.
    Json,
    /// A part of a URL, or of a form body.
    Url,
    Xml,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Name(String),
}

impl Template {
    /// A placeholder is `{name}` or `{/pointer}`; every other brace is text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("the template is empty; write the text with {column} where values go".into());
        }
        let pieces = pieces(text);
        // Any value in place of the placeholders shows whether the text around them is JSON.
        let sample: String = pieces.iter().map(|piece| piece.or("0")).collect();
        // A placeholder at the start is no brace of JSON.
        let opens = matches!(pieces.first(), Some(Piece::Text(first)) if first.trim_start().starts_with(['{', '[', '"']));
        let json = opens && domain::json::parse(&sample).is_some();
        Ok(Self { pieces, escape: if json { Escape::Json } else { Escape::Nothing } })
    }

    /// A template whose surroundings are known.
    pub(crate) fn parse_as(text: &str, escape: Escape) -> Self {
        Self { pieces: pieces(text), escape }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Name(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text with every value in its place; the error says which placeholder has none, or that the values spoil the JSON.
    pub(crate) fn render(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Name(name) => {
                    let value = value(name)
                        .ok_or_else(|| format!("the template needs {{{name}}}, which has no value here"))?;
                    let value = self.fitted(&text, value);
                    text.push_str(&value);
                }
            }
        }
        if self.escape == Escape::Json && domain::json::parse(&text).is_none() {
            return Err(
                "the template gives no JSON with these values; put quotes around its placeholders".into()
            );
        }
        Ok(text)
    }

    /// The value as it may stand behind `text`: between the strings of JSON, JSON itself stays whole.
    fn fitted(&self, text: &str, value: String) -> String {
        let is_json = || domain::json::parse(&value).is_some();
        match self.escape {
            Escape::Json if !ends_in_string(text) && is_json() => value,
            escape => escape.apply(value),
        }
    }
}

/// Whether a string of JSON is open at the end of this beginning.
fn ends_in_string(json: &str) -> bool {
    let (mut open, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if open => escaped = true,
            b'"' => open = !open,
            _ => {}
        }
    }
    open
}

impl Escape {
    fn apply(self, value: String) -> String {
        match self {
            Self::Nothing => value,
            Self::Json => escaped(&value),
            Self::Url => percent_encoded(&value),
            Self::Xml => value
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
                .replace('\'', "&apos;"),
        }
    }
}

impl Piece {
    fn or<'p>(&'p self, value: &'p str) -> &'p str {
        match self {
            Piece::Text(text) => text,
            Piece::Name(_) => value,
        }
    }
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        plain.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        match after.find('}').filter(|close| is_name(&after[..*close])) {
            Some(close) => {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Name(after[..close].to_owned()));
                rest = &after[close + 1..];
            }
            None => {
                plain.push('{');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    pieces.push(Piece::Text(plain));
    pieces
}

fn is_name(text: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    match text.strip_prefix('/') {
        Some(pointer) => !pointer.is_empty() && pointer.chars().all(|c| word(c) || matches!(c, '/' | '~')),
        None => text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(word),
    }
}

/// The value as it stands between the quotes of a JSON string.
fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Nothing but unreserved characters stays as it is, so a value can end no part of a URL.
fn percent_encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte))
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str, values: &[(&str, &str)]) -> Result<String, String> {
        let value = |name: &str| values.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Template::parse(template).unwrap().render(value)
    }

    #[test]
    fn values_are_escaped_for_json_and_for_nothing_else() {
        let json = r#"{"code":0,"orderNo":"{order_no}","amount":{amount},"of":"{/user/id}"}"#;
        assert_eq!(
            render(
                json,
                &[("order_no", "a\"b\\c\n键"), ("amount", "128.00"), ("/user/id", "9007199254740993")]
            )
            .unwrap(),
            r#"{"code":0,"orderNo":"a\"b\\c\n键","amount":128.00,"of":"9007199254740993"}"#
        );
        assert_eq!(render("{key}", &[("key", "a\"b")]).unwrap(), "a\"b");
        assert_eq!(render("ok {key} {", &[("key", "\"x\"")]).unwrap(), "ok \"x\" {");
    }

    #[test]
    fn values_cannot_leave_their_place_in_a_url_or_in_xml() {
        let rendered = |escape, template| {
            Template::parse_as(template, escape).render(|_| Some("a/b?<&键 '".to_owned())).unwrap()
        };
        assert_eq!(rendered(Escape::Url, "/q/{biz_no}?n=1"), "/q/a%2Fb%3F%3C%26%E9%94%AE%20%27?n=1");
        assert_eq!(rendered(Escape::Xml, "<no>{biz_no}</no>"), "<no>a/b?&lt;&amp;键 &apos;</no>");
        assert_eq!(rendered(Escape::Nothing, "{column.no}"), "a/b?<&键 '");
    }

    #[test]
    fn json_between_the_strings_of_json_stays_whole() {
        let entry = r#"{"s":"\"{key}","response":{response}}"#;
        let render = |response: &str| render(entry, &[("key", "a\"b"), ("response", response)]);
        assert_eq!(
            render(r#"{"code":0,"n":9007199254740993}"#).unwrap(),
            r#"{"s":"\"a\"b","response":{"code":0,"n":9007199254740993}}"#
        );
        assert!(render("0},\"s\":{\"x\":1").is_err() && render("plain").is_err());
    }

    #[test]
    fn a_missing_or_spoiling_value_is_refused() {
        assert!(render(r#"{"a":"{gone}"}"#, &[]).unwrap_err().contains("{gone}"));
        assert!(render(r#"{"a":{n}}"#, &[("n", "1,\"b\":2")]).is_err());
        assert!(Template::parse("  ").is_err());
    }
}
