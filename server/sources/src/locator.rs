//! Keys and locators as text: rendered without ambiguity, and read back.

use crate::catalogue::{Class, Declared};
use db::Cell;

/// What finds a row: one to four columns.
#[derive(Debug, Clone)]
pub(crate) struct Locator {
    pub(crate) columns: Vec<Declared>,
}

/// How a part's text tells NULL from every value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marking {
    /// The column is never NULL.
    None,
    /// The only part: NULL is a character that no key is.
    Alone,
    /// One of several: `-` is NULL, a value starts with `=`.
    Prefixed,
}

pub(crate) const NULL_ALONE: &str = "\u{1}";
pub(crate) const NULL_PART: &str = "-";
pub(crate) const VALUE_MARK: &str = "=";

impl Locator {
    pub(crate) fn marking(&self, declared: &Declared) -> Marking {
        match (declared.nullable, self.columns.len()) {
            (false, _) => Marking::None,
            (true, 1) => Marking::Alone,
            (true, _) => Marking::Prefixed,
        }
    }

    /// One cell as its part, exactly as the database sorts it; an unreadable cell locates nothing.
    pub(crate) fn part(&self, declared: &Declared, cell: &Cell) -> String {
        let text = match (&declared.class, cell) {
            (_, Cell::Null) => None,
            (Class::Binary, cell) => cell.as_bytes().map(hex::encode),
            (_, cell) => shown(cell),
        };
        match (self.marking(declared), text) {
            (Marking::None, text) => text.unwrap_or_default(),
            (Marking::Alone, text) => text.unwrap_or_else(|| NULL_ALONE.to_owned()),
            (Marking::Prefixed, None) => NULL_PART.to_owned(),
            (Marking::Prefixed, Some(text)) => format!("{VALUE_MARK}{text}"),
        }
    }

    /// What a part says: `Some(None)` for NULL, `None` when it is none of this column's.
    pub(crate) fn unmarked<'p>(&self, declared: &Declared, part: &'p str) -> Option<Option<&'p str>> {
        match self.marking(declared) {
            Marking::None => Some(Some(part)),
            Marking::Alone => Some((part != NULL_ALONE).then_some(part)),
            Marking::Prefixed if part == NULL_PART => Some(None),
            Marking::Prefixed => part.strip_prefix(VALUE_MARK).map(Some),
        }
    }
}

/// The parts of a key as people see it: `|` between them, `\` before a `|` or `\` of their own, `\N` for NULL.
pub(crate) fn rendered(parts: &[Option<String>]) -> String {
    if let [only] = parts {
        return only.clone().unwrap_or_default();
    }
    let shown: Vec<String> = parts.iter().map(|part| part.as_deref().map_or("\\N".into(), escaped)).collect();
    shown.join("|")
}

fn escaped(part: &str) -> String {
    part.replace('\\', "\\\\").replace('|', "\\|")
}

/// The parts of a rendered key of `count` parts; `None` when the text is none.
pub(crate) fn parsed(text: &str, count: usize) -> Option<Vec<Option<String>>> {
    if count == 1 {
        return Some(vec![Some(text.to_owned())]);
    }
    let mut parts = vec![Some(String::new())];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, parts.last_mut()?) {
            ('|', _) => parts.push(Some(String::new())),
            ('\\', part) => match (chars.next()?, part) {
                ('N', part) if part.as_deref() == Some("") => *part = None,
                (c @ ('\\' | '|'), Some(part)) => part.push(c),
                _ => return None,
            },
            (c, Some(part)) => part.push(c),
            (_, None) => return None,
        }
    }
    (parts.len() == count).then_some(parts)
}

/// A key part for the eye: bytes that are no printable text as hex.
pub(crate) fn shown(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Bytes(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
            _ => hex::encode(bytes),
        }),
        cell => crate::reading::cell_text(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_several_parts_are_read_back_as_rendered() {
        let some = |text: &str| Some(text.to_owned());
        for parts in [
            vec![some("app"), some("topic"), some(""), some("m1")],
            vec![some("a|b"), some("c\\"), None, some("\\N")],
            vec![None, some("")],
            vec![some("a"), some("b|c")],
            vec![some("a|b"), some("c")],
        ] {
            let text = rendered(&parts);
            assert_eq!(parsed(&text, parts.len()).as_ref(), Some(&parts), "{text}");
        }
        assert_ne!(rendered(&[some("a"), some("b|c")]), rendered(&[some("a|b"), some("c")]));
        assert_eq!(parsed("a|b", 3), None);
        assert_eq!(parsed("a\\x|b", 2), None);
    }
}
