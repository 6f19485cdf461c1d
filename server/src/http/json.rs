//! JSON bodies that mean one thing to every reader.

use super::problem::Problem;
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;

/// By way of a value: numbers keep their digits through flattened types. What two readers could understand
/// differently is refused before.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let no_json = |error| Problem::invalid(format!("The body is no JSON as this API takes it: {error}."));
    let Unambiguous = serde_json::from_slice(bytes).map_err(no_json)?;
    let value: Value = serde_json::from_slice(bytes).map_err(no_json)?;
    if !value.is_object() {
        return Err(Problem::invalid("The body must be one JSON object."));
    }
    serde_json::from_value(value)
        .map_err(|error| Problem::invalid(format!("The body does not fit: {error}.")))
}

/// JSON in which no object names a field twice and no text holds NUL, which not every store can keep.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self, E> {
        match text.contains('\0') {
            true => Err(E::custom("a text holds a NUL character; leave it out")),
            false => Ok(self),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            Unambiguous.visit_str::<A::Error>(&name)?;
            fields.next_value::<Self>()?;
            if let Some(twice) = names.replace(name) {
                return Err(A::Error::custom(format!("the field {twice:?} comes twice; send it once")));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c70_numbers_keep_their_digits_on_the_way_in() {
        #[derive(Deserialize)]
        struct Outer {
            #[serde(flatten)]
            inner: Inner,
        }
        #[derive(Deserialize)]
        struct Inner {
            share: f64,
            count: u32,
        }
        let outer: Outer = read(br#"{"share":0.15,"count":50}"#).unwrap();
        assert_eq!((outer.inner.share, outer.inner.count), (0.15, 50));
    }

    #[test]
    fn nul_is_refused_wherever_it_hides() {
        assert!(read::<Value>(br#"{"a":["x",{"b":"\u0000"}]}"#).is_err());
        assert!(read::<Value>(br#"{"\u0000":1}"#).is_err());
        assert!(read::<Value>(br#"{"a":"\\u0000"}"#).is_ok());
    }

    #[test]
    fn a_field_that_comes_twice_is_refused_however_deep_and_however_it_is_spelled() {
        for body in [r#"{"a":1,"a":1}"#, r#"{"a":[{"b":{"c":1,"\u0063":2}}]}"#] {
            assert!(read::<Value>(body.as_bytes()).unwrap_err().detail.contains("twice"), "{body}");
        }
        assert!(read::<Value>(br#"{"a":{"b":1.5e300},"b":[{"a":1},{"a":-2}],"A":null}"#).is_ok());
    }

    #[test]
    fn only_an_object_is_a_body() {
        for body in ["[]", "null", "1", "\"x\""] {
            assert!(read::<Value>(body.as_bytes()).is_err(), "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_reading_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::<Value>(&body);
        }
    }
}
