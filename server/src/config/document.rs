//! The file as a tree that still knows its lines: environment variables filled in, errors located.

use super::Fault;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A parsed file.
pub(super) struct Document<'t> {
    root: Spanned<DeTable<'t>>,
    places: Places,
}

/// Where every key of the file is.
#[derive(Default)]
pub(super) struct Places {
    /// Byte offsets at which lines start.
    lines: Vec<usize>,
    keys: Vec<Place>,
    /// (value, how the file spells it): what came from the environment may be secret.
    secrets: Vec<(String, String)>,
}

struct Place {
    /// `source[0].biz[1].replay.url`
    path: String,
    key: Range<usize>,
    value: Range<usize>,
}

impl<'t> Document<'t> {
    pub(super) fn parse(text: &'t str, folder: &Path, environment: Environment<'_>) -> Result<Self, Fault> {
        let mut places = Places::of(text);
        let mut root = DeTable::parse(text).map_err(|error| places.fault(&error))?;
        let mut filling = Filling { folder, environment, places: &mut places };
        filling.table(root.get_mut(), "")?;
        Ok(Self { root, places })
    }

    /// The file as `T`; on an error, what to correct and where.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<(T, Places), Fault> {
        match T::deserialize(Deserializer::from(self.root)) {
            Ok(read) => Ok((read, self.places)),
            Err(error) => Err(self.places.fault(&error)),
        }
    }
}

impl Places {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { lines: std::iter::once(0).chain(ends).collect(), ..Self::default() }
    }

    /// The line, counted from 1, that a byte offset lies in.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// The line of a key such as `source[0].url`.
    pub(super) fn line_of(&self, path: &str) -> Option<usize> {
        self.keys.iter().find(|place| place.path == path).map(|place| self.line(place.key.start))
    }

    fn fault(&self, error: &toml::de::Error) -> Fault {
        let mut message = error.message().to_owned();
        for (value, spelling) in &self.secrets {
            message = message.replace(value.as_str(), spelling);
        }
        let span = error.span();
        Fault {
            line: span.as_ref().map(|span| self.line(span.start)),
            key: span.and_then(|span| self.key_at(&span)),
            message,
        }
    }

    /// The innermost key that holds the span, without the indices of lists.
    fn key_at(&self, span: &Range<usize>) -> Option<String> {
        let holds = |range: &Range<usize>| range.start <= span.start && span.end <= range.end;
        let holding = self.keys.iter().filter(|place| holds(&place.key) || holds(&place.value));
        Some(without_indices(&holding.max_by_key(|place| place.path.len())?.path))
    }
}

/// `source.biz.replay.url` of `source[0].biz[1].replay.url`: people count lines, not tables.
fn without_indices(path: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside => {}
            _ => plain.push(c),
        }
    }
    plain
}

/// One walk through the tree: fills in values and notes where keys are.
struct Filling<'a> {
    folder: &'a Path,
    environment: Environment<'a>,
    places: &'a mut Places,
}

impl Filling<'_> {
    fn table(&mut self, table: &mut DeTable<'_>, above: &str) -> Result<(), Fault> {
        for (key, value) in table.iter_mut() {
            let name = key.get_ref();
            let path = if above.is_empty() { name.to_string() } else { format!("{above}.{name}") };
            self.places.keys.push(Place { path: path.clone(), key: key.span(), value: value.span() });
            let is_url = name == "url" || path == "store";
            self.value(value.get_mut(), &path, key.span().start, is_url)?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        value: &mut DeValue<'_>,
        path: &str,
        offset: usize,
        is_url: bool,
    ) -> Result<(), Fault> {
        match value {
            DeValue::Table(table) => self.table(table, path),
            DeValue::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let offset = item.span().start;
                    self.value(item.get_mut(), &format!("{path}[{index}]"), offset, is_url)?;
                }
                Ok(())
            }
            DeValue::String(text) => {
                let mut filled = self.fill(text).map_err(|message| Fault {
                    line: Some(self.places.line(offset)),
                    key: Some(without_indices(path)),
                    message,
                })?;
                if is_url && let Some(anchored) = anchored(&filled, self.folder) {
                    filled = anchored;
                }
                *text = filled.into();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Replaces every `${NAME}` by the environment's value; `$${` stands for the two characters themselves.
    fn fill(&mut self, text: &str) -> Result<String, String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                filled.push_str(before);
                filled.push_str("${");
                rest = after;
                continue;
            }
            let (name, after) = after.split_once('}').filter(|(name, _)| is_name(name)).ok_or(
                "${ must be followed by the name of an environment variable and }; write $${ for the characters themselves",
            )?;
            let value = (self.environment)(name).ok_or_else(|| {
                format!("the environment variable {name} is not set; set it, or write the value here")
            })?;
            filled.push_str(before);
            filled.push_str(&value);
            self.note_secret(value, name);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn note_secret(&mut self, value: String, name: &str) {
        if !value.is_empty() {
            self.places.secrets.push((value, format!("${{{name}}}")));
        }
    }
}

fn is_name(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// A relative SQLite path, made to start at the file's folder; `None` for everything else.
fn anchored(url: &str, folder: &Path) -> Option<String> {
    let rest = url.strip_prefix("sqlite:")?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    if rest.is_empty() || rest.starts_with([':', '?']) || Path::new(rest).is_absolute() {
        return None;
    }
    // In a URL these would end the path or start an escape.
    let folder = folder.to_str()?.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
    Some(format!("sqlite://{folder}/{rest}"))
}
