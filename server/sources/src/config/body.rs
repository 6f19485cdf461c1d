//! Where a request or response is kept, and what was done to it before it was stored.

use super::columns::NOT_STORED;
use super::value::Pointer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

/// A body: `"request_body"`, or
/// `{ column = "data", json = "/request", decode = ["base64", "gzip"], charset = "gbk" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyColumn {
    pub from: BodyFrom,
    /// Only this part of the JSON document in the column.
    pub json: Option<Pointer>,
    /// What to undo for the eye, outermost first. What is sent again is always the stored bytes.
    pub decode: Vec<Decoder>,
    /// Another column that names the decoder.
    pub decode_by: Option<DecodeBy>,
    /// The character set of the decoded text, by its WHATWG label; UTF-8 when not said.
    pub charset: Option<Charset>,
}

/// The column or columns that hold a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyFrom {
    Column(String),
    /// The first that is not NULL: `{ coalesce = ["bin_data", "data"] }`.
    Coalesce(Vec<String>),
    /// A JSON object of several columns, for the eye only: `{ parts = { method = "request_method", params = "request_params" } }`.
    Parts(BTreeMap<String, String>),
}

/// One step of undoing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decoder {
    Gzip,
    /// zlib; bytes after its end are tolerated.
    Zlib,
    /// Raw deflate, without the zlib header.
    Deflate,
    Zstd,
    Base64,
    Hex,
    /// `application/x-www-form-urlencoded`, shown as JSON.
    Form,
    /// XML; shown as it is.
    Xml,
    /// Nothing a person could read (protobuf, kryo, Java or PHP objects): shown as size and hex.
    Opaque,
}

/// A column whose value decides the decoders: `decode_by = { column = "codec", map = { gz = ["gzip"], "" = [] } }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodeBy {
    pub column: String,
    /// A text that the column's value is or contains → what to undo then.
    pub map: BTreeMap<String, Vec<Decoder>>,
}

/// A character set by its WHATWG label (`gbk`, `gb18030`, `big5`, `shift_jis`, `windows-1252`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Charset(pub &'static encoding_rs::Encoding);

impl TryFrom<String> for Charset {
    type Error = String;

    fn try_from(label: String) -> Result<Self, String> {
        let found = encoding_rs::Encoding::for_label(label.as_bytes());
        found
            .map(Self)
            .ok_or_else(|| format!("{label:?} is no character set; write \"gbk\", \"big5\" or the like"))
    }
}

impl BodyColumn {
    pub fn plain(column: impl Into<String>) -> Self {
        Self {
            from: BodyFrom::Column(column.into()),
            json: None,
            decode: Vec::new(),
            decode_by: None,
            charset: None,
        }
    }

    /// Every column it reads.
    pub fn columns(&self) -> Vec<&str> {
        let mut names: Vec<&str> = match &self.from {
            BodyFrom::Column(name) => vec![name],
            BodyFrom::Coalesce(names) => names.iter().map(String::as_str).collect(),
            BodyFrom::Parts(parts) => parts.values().map(String::as_str).collect(),
        };
        names.extend(self.decode_by.as_ref().map(|by| by.column.as_str()));
        names
    }
}

pub(super) fn optional_body<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BodyColumn>, D::Error> {
    deserializer.deserialize_any(BodyVisitor)
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Option<BodyColumn>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a column name, { column = \"…\", decode = [\"gzip\"] } or \"not stored\"")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok((name != NOT_STORED).then(|| BodyColumn::plain(name)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            #[serde(default)]
            column: Option<String>,
            #[serde(default)]
            coalesce: Option<Vec<String>>,
            #[serde(default)]
            parts: Option<BTreeMap<String, String>>,
            #[serde(default)]
            json: Option<Pointer>,
            #[serde(default)]
            decode: Vec<Decoder>,
            #[serde(default)]
            decode_by: Option<DecodeBy>,
            #[serde(default)]
            charset: Option<Charset>,
        }
        let full = Full::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        let from = match (full.column, full.coalesce, full.parts) {
            (Some(column), None, None) => BodyFrom::Column(column),
            (None, Some(names), None) if !names.is_empty() => BodyFrom::Coalesce(names),
            (None, None, Some(parts)) if !parts.is_empty() => BodyFrom::Parts(parts),
            _ => {
                return Err(A::Error::custom(
                    "write one of column = \"…\", coalesce = [\"…\", \"…\"] and parts = { name = \"…\" }",
                ));
            }
        };
        Ok(Some(BodyColumn {
            from,
            json: full.json,
            decode: full.decode,
            decode_by: full.decode_by,
            charset: full.charset,
        }))
    }
}
