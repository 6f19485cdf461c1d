//! Keyset pages: a limit, an opaque cursor, never an offset.

use crate::error::{Error, Result};
use crate::invalid::Invalid;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Rows per page: 1 to 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit(u16);

impl Limit {
    pub const MAX: u16 = 200;

    pub fn new(rows: i64) -> Result<Self> {
        match u16::try_from(rows) {
            Ok(rows @ 1..=Self::MAX) => Ok(Self(rows)),
            _ => Err(Error::invalid(format!("limit is {rows}; write 1 to {}", Self::MAX))),
        }
    }

    pub fn get(self) -> usize {
        self.0.into()
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(50)
    }
}

/// One page and the cursor of the next, if there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(f).collect(), next_cursor: self.next_cursor }
    }
}

/// Packs the place where the next page starts into an opaque, URL-safe cursor.
pub fn encode_cursor<T: Serialize>(place: &T) -> String {
    // A cursor is built from plain numbers and strings, which always serialise.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(place).unwrap_or_default())
}

/// Unpacks a cursor; anything that this build did not hand out is refused.
pub fn decode_cursor<T: DeserializeOwned>(cursor: &str) -> Result<T> {
    let refused = || Error::invalid(Invalid::Cursor);
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refused())?;
    serde_json::from_slice(&bytes).map_err(|_| refused())
}
