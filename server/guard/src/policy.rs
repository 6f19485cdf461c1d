//! How one route is protected.

use std::time::Duration;

use axum::http::HeaderName;

/// Where the idempotency key of a request comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The `Idempotency-Key` header, chosen by the caller.
    Header,
    /// Business numbers out of the JSON body: for callbacks, whose senders know nothing of keys.
    Template(Template),
}

/// Text with JSON pointers in braces: `{/paymentNo}:{/event}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Pointer(String),
}

impl Template {
    /// Understands `text`; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((literal, tail)) = rest.split_once('{') {
            let (pointer, after) =
                tail.split_once('}').ok_or_else(|| format!("{text:?} opens a brace without closing it"))?;
            if !pointer.starts_with('/') {
                return Err(format!(
                    "{pointer:?} in {text:?} is no JSON pointer; write it with a leading slash"
                ));
            }
            pieces.push(Piece::Literal(literal.to_owned()));
            pieces.push(Piece::Pointer(pointer.to_owned()));
            rest = after;
        }
        if pieces.is_empty() {
            return Err(format!("{text:?} names no JSON pointer, so every request would have the same key"));
        }
        pieces.push(Piece::Literal(rest.to_owned()));
        Ok(Template(pieces))
    }

    /// The template filled from `body`; `None` when a pointer finds no text or number.
    pub(crate) fn fill(&self, body: &serde_json::Value) -> Option<String> {
        self.0.iter().try_fold(String::new(), |mut out, piece| {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Pointer(pointer) => out.push_str(&scalar(body.pointer(pointer)?)?),
            }
            Some(out)
        })
    }
}

/// The text of a string or the digits of a number; an empty text is no value.
pub(crate) fn scalar(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) if !text.is_empty() => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Where the business number of a request is found.
#[derive(Debug, Clone)]
pub enum Pick {
    /// A JSON pointer into the request body.
    Pointer(String),
    Header(HeaderName),
}

/// What to do with a record whose worker is gone and whose outcome nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnUnknown {
    /// Keep it for an operator: the effect may have happened.
    #[default]
    Hold,
    /// Run the request again when the lease is over: only for work that does no harm when done twice.
    ReExecute,
}

/// What a 4xx answer of the handler means for the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRefusal {
    /// The refusal is the answer, now and for duplicates.
    #[default]
    Store,
    /// The handler refuses only before any effect: the same key may run again.
    Retry,
}

/// The protection of one route.
#[derive(Debug, Clone)]
pub struct Policy {
    pub biz_type: String,
    pub key: KeySource,
    /// Without it the record has no biz_no and no reverse check can find its effect.
    pub biz_no: Option<Pick>,
    /// How long a claim is held without a sign of life; renewed while the handler runs.
    pub lease: Duration,
    /// Renewals end after this long.
    pub max_run: Duration,
    /// How long a duplicate waits for the first answer.
    pub max_wait: Duration,
    pub on_unknown: OnUnknown,
    pub on_refusal: OnRefusal,
}

impl Policy {
    /// Half a minute of lease, ten seconds of waiting, unknown outcomes held.
    pub fn new(biz_type: impl Into<String>, key: KeySource) -> Policy {
        Policy {
            biz_type: biz_type.into(),
            key,
            biz_no: None,
            lease: Duration::from_secs(30),
            max_run: Duration::from_secs(30 * 60),
            max_wait: Duration::from_secs(10),
            on_unknown: OnUnknown::default(),
            on_refusal: OnRefusal::default(),
        }
    }

    /// The same with the business number at a JSON pointer of the body.
    pub fn biz_no_from(mut self, pointer: impl Into<String>) -> Policy {
        self.biz_no = Some(Pick::Pointer(pointer.into()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a7_a_callback_key_is_made_of_number_and_event() {
        let template = Template::parse("{/paymentNo}:{/event}").unwrap();
        let body = serde_json::from_str(r#"{"paymentNo":"P1","event":"PAID","n":1.50}"#).unwrap();
        assert_eq!(template.fill(&body).as_deref(), Some("P1:PAID"));
        assert_eq!(Template::parse("n={/n}").unwrap().fill(&body).as_deref(), Some("n=1.50"));
        assert_eq!(Template::parse("{/missing}").unwrap().fill(&body), None);
    }

    #[test]
    fn a_template_that_cannot_tell_requests_apart_is_refused() {
        for text in ["", "fixed", "{/open", "{name}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
