//! The key and the physical locator: one to four columns, and what a search does to what an operator types.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use serde::Deserialize;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// One to four columns that together find a record: `"idempotency_key"` or `["user_id", "idempotency_key"]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "OneOrMany")]
pub struct KeyColumns(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a column name or a list of one to four column names")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl TryFrom<OneOrMany> for KeyColumns {
    type Error = String;

    fn try_from(raw: OneOrMany) -> Result<Self, String> {
        let parts = match raw {
            OneOrMany::One(name) => vec![name],
            OneOrMany::Many(names) => names,
        };
        let repeated = (1..parts.len()).any(|at| parts[..at].contains(&parts[at]));
        match parts.len() {
            1..=4 if !repeated => Ok(Self(parts)),
            1..=4 => Err("a column is there twice; write each once".into()),
            found => {
                Err(format!("{found} columns; write one to four, like [\"user_id\", \"idempotency_key\"]"))
            }
        }
    }
}

impl KeyColumns {
    /// A key of one column.
    pub fn one(column: impl Into<String>) -> Self {
        Self(vec![column.into()])
    }

    /// The columns, in order; at least one.
    pub fn parts(&self) -> &[String] {
        &self.0
    }
}

/// What the service did to the key before it stored it, so that a search for the key as people know it finds the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyTransform {
    Sha256Hex,
    Sha256Base64,
    Sha1Hex,
    Sha1Base64,
    Md5,
}

impl KeyTransform {
    /// What is stored for a key as typed.
    pub fn apply(self, typed: &str) -> String {
        match self {
            Self::Sha256Hex => hex::encode(Sha256::digest(typed)),
            Self::Sha256Base64 => STANDARD.encode(Sha256::digest(typed)),
            Self::Sha1Hex => hex::encode(Sha1::digest(typed)),
            Self::Sha1Base64 => STANDARD.encode(Sha1::digest(typed)),
            Self::Md5 => hex::encode(Md5::digest(typed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_give_what_services_store() {
        assert_eq!(KeyTransform::Md5.apply("abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(KeyTransform::Sha1Base64.apply("abc"), "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
        assert!(KeyTransform::Sha256Hex.apply("abc").starts_with("ba7816bf8f01cfea"));
    }
}
