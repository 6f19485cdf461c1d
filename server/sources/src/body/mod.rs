//! Requests and responses: which columns hold them, and what the stored bytes say to a person.

mod decode;

use crate::catalogue::{Class, Declared};
use crate::config::{BodyColumn, BodyFrom, Charset, Decoder, Pointer};
use crate::json_path::JsonPath;
use crate::layout::Look;
use crate::reading::cell_text;
use db::{Cell, Dialect, Row};
use domain::record::{Body, Decoded};
use sea_query::SelectStatement;
use serde_json::Value;

/// A body on the live table.
#[derive(Debug, Clone)]
pub(crate) struct BodyForm {
    kept: Kept,
    json: Option<Pointer>,
    decode: Vec<Decoder>,
    by: Option<By>,
    charset: Option<Charset>,
}

#[derive(Debug, Clone)]
enum Kept {
    /// The first column that is not NULL.
    First(Vec<Declared>),
    /// An object of several columns.
    Parts(Vec<(String, Declared)>),
}

/// The column whose value names the decoders.
#[derive(Debug, Clone)]
struct By {
    column: Declared,
    map: Vec<(String, Vec<Decoder>)>,
}

impl BodyForm {
    pub(crate) fn resolve(part: &str, body: &BodyColumn, look: &mut Look<'_>) -> Option<Self> {
        let kept = match &body.from {
            BodyFrom::Column(name) => Kept::First(vec![look.required(part, name)?]),
            BodyFrom::Coalesce(names) => {
                Kept::First(names.iter().map(|name| look.required(part, name)).collect::<Option<_>>()?)
            }
            BodyFrom::Parts(parts) => {
                let each =
                    parts.iter().map(|(name, column)| Some((name.clone(), look.required(part, column)?)));
                Kept::Parts(each.collect::<Option<_>>()?)
            }
        };
        let by = match &body.decode_by {
            Some(by) => Some(By {
                column: look.required(part, &by.column)?,
                map: by.map.iter().map(|(value, decoders)| (value.clone(), decoders.clone())).collect(),
            }),
            None => None,
        };
        Some(Self { kept, json: body.json.clone(), decode: body.decode.clone(), by, charset: body.charset })
    }

    /// Adds what is read to a SELECT, under names that start with `alias`.
    pub(crate) fn select(&self, select: &mut SelectStatement, alias: &str) {
        for (at, column) in self.columns().into_iter().enumerate() {
            select.expr_as(column.expr(), format!("{alias}_{at}"));
        }
        if let Some(by) = &self.by {
            select.expr_as(by.column.expr(), format!("{alias}_by"));
        }
    }

    fn columns(&self) -> Vec<&Declared> {
        match &self.kept {
            Kept::First(columns) => columns.iter().collect(),
            Kept::Parts(parts) => parts.iter().map(|(_, column)| column).collect(),
        }
    }

    /// The body of a row.
    pub(crate) fn read(&self, row: &Row, alias: &str) -> Body {
        let cell = |at: usize| row.cell(format!("{alias}_{at}").as_str()).unwrap_or(&Cell::Null);
        match &self.kept {
            Kept::First(columns) => {
                let filled = (0..columns.len()).find(|at| !cell(*at).is_null());
                match filled {
                    Some(at) => self.of_cell(&columns[at], cell(at), self.decoders(row, alias)),
                    None => Body::Empty,
                }
            }
            Kept::Parts(parts) => {
                let values =
                    parts.iter().enumerate().map(|(at, (name, _))| (name.clone(), as_json(cell(at))));
                let whole: serde_json::Map<String, Value> = values.collect();
                if whole.values().all(Value::is_null) {
                    return Body::Empty;
                }
                Body::Decoded(Box::new(Decoded {
                    original: None,
                    text: Some(Value::Object(whole).to_string()),
                    how: "put together from several columns".into(),
                    truncated_at: None,
                }))
            }
        }
    }

    fn decoders(&self, row: &Row, alias: &str) -> Vec<Decoder> {
        let Some(by) = &self.by else { return self.decode.clone() };
        let named = row.cell(format!("{alias}_by").as_str()).ok().and_then(Cell::as_text).unwrap_or_default();
        let exact = by.map.iter().find(|(value, _)| *value == named);
        let part = || by.map.iter().find(|(value, _)| !value.is_empty() && named.contains(value.as_str()));
        exact.or_else(part).map_or_else(|| self.decode.clone(), |(_, decoders)| decoders.clone())
    }

    fn of_cell(&self, declared: &Declared, cell: &Cell, decoders: Vec<Decoder>) -> Body {
        let bytes = match cell {
            Cell::Null => return Body::Empty,
            Cell::Unreadable { type_name } => {
                return Body::Unreadable(format!("a value of type {type_name} cannot be read"));
            }
            cell => cell.as_bytes().map(<[u8]>::to_vec).or_else(|| cell.as_text().map(String::into_bytes)),
        };
        let Some(bytes) = bytes else { return Body::Unreadable(format!("{} cannot be shown", cell.kind())) };
        let bytes = match &self.json {
            None => bytes,
            Some(pointer) => match within(&bytes, pointer) {
                Ok(Some(part)) => part,
                Ok(None) => return Body::Empty,
                Err(reason) => return Body::Unreadable(reason),
            },
        };
        if bytes.is_empty() {
            return Body::Empty;
        }
        let truncated_at = cut_off(declared, &bytes);
        if decoders.is_empty() && self.charset.is_none() && truncated_at.is_none() {
            return Body::Stored(bytes);
        }
        let decoded = decode::chain(&bytes, &decoders, self.charset);
        Body::Decoded(Box::new(Decoded {
            original: Some(bytes),
            text: decoded.text,
            how: decoded.how,
            truncated_at: truncated_at.or(decoded.cut_at),
        }))
    }

    /// How the database can look for a place in this body by itself.
    pub(crate) fn looked_into(&self, pointer: &Pointer, dialect: Dialect) -> Option<JsonPath> {
        match &self.kept {
            Kept::First(columns) if columns.len() == 1 && self.decode.is_empty() && self.by.is_none() => {
                let pointers: Vec<&Pointer> = self.json.iter().chain([pointer]).collect();
                JsonPath::of(columns.first()?, &pointers, dialect)
            }
            Kept::First(_) | Kept::Parts(_) => None,
        }
    }

    /// The column that a new body is written into as it is; the error says why there is none.
    pub(crate) fn written(&self) -> Result<&Declared, String> {
        let encoded =
            !self.decode.is_empty() || self.by.is_some() || self.charset.is_some() || self.json.is_some();
        match &self.kept {
            Kept::First(columns) if !encoded => match columns.first().filter(|column| column.is_writable()) {
                Some(column) => Ok(column),
                None => Err("The response is kept in a table or column that cannot be written from here.".into()),
            },
            Kept::First(_) | Kept::Parts(_) => Err(
                "Responses are kept encoded or inside something larger, which is only read; map response = \"not stored\" if later duplicates need none."
                    .into(),
            ),
        }
    }
}

/// A column's value inside a JSON object.
fn as_json(cell: &Cell) -> Value {
    match cell {
        Cell::Json(text) => domain::json::parse(text).unwrap_or_else(|| text.clone().into()),
        Cell::Null => Value::Null,
        Cell::Bool(_) | Cell::Int(_) | Cell::UInt(_) => cell.to_json(),
        cell => cell_text(cell).into(),
    }
}

/// The part of a JSON document at a pointer; a text without its quotes.
fn within(bytes: &[u8], pointer: &Pointer) -> Result<Option<Vec<u8>>, String> {
    let text = std::str::from_utf8(bytes).ok();
    let document = text.and_then(domain::json::parse);
    let document = document.ok_or("the column holds no JSON to look into")?;
    Ok(match document.pointer(pointer.as_str()) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone().into_bytes()),
        Some(part) => Some(part.to_string().into_bytes()),
    })
}

/// C24: JSON that does not end, and is exactly as long as its column can hold, was cut off there.
fn cut_off(declared: &Declared, bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let size =
        declared.size.filter(|_| matches!(declared.class, Class::Text | Class::Binary | Class::Padded))?;
    let full = bytes.len() as u64 == size || text.chars().count() as u64 == size;
    let begins = text.trim_start().starts_with(['{', '[', '"']);
    (full && begins && domain::json::parse(text).is_none()).then_some(size)
}
