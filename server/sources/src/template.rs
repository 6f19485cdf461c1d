//! `{name}` templates for stored responses and replay headers.

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
    /// The template is a JSON document, so values are escaped for it.
    json: bool,
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
        Ok(Self { pieces, json })
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
                    text.push_str(&if self.json { escaped(&value) } else { value });
                }
            }
        }
        if self.json && domain::json::parse(&text).is_none() {
            return Err(
                "the template gives no JSON with these values; put quotes around its placeholders".into()
            );
        }
        Ok(text)
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
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    match text.strip_prefix('/') {
        Some(pointer) => {
            !pointer.is_empty() && pointer.chars().all(|c| word(c) || matches!(c, '/' | '~' | '.'))
        }
        None => text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(word),
    }
}

/// The value as it stands between the quotes of a JSON string.
fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
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
    fn a_missing_or_spoiling_value_is_refused() {
        assert!(render(r#"{"a":"{gone}"}"#, &[]).unwrap_err().contains("{gone}"));
        assert!(render(r#"{"a":{n}}"#, &[("n", "1,\"b\":2")]).is_err());
        assert!(Template::parse("  ").is_err());
    }
}
