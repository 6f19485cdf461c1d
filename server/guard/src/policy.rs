//! How one route is protected.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::request::Parts;

use crate::error::GuardError;
use crate::mechanism::Mechanism;
use crate::problem::Voice;
use crate::window::Window;

/// Where the idempotency key of a request comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The `Idempotency-Key` header, chosen by the caller.
    Header,
    /// Business numbers out of the body (JSON, or a form): for callbacks, whose senders know nothing of keys.
    Template(Template),
    /// Whatever code finds, e.g. in an encrypted body.
    Computed(Compute),
}

/// Code that finds a value in a request, after authentication and before anything is run.
#[derive(Clone)]
pub struct Compute(Arc<ComputeFn>);

type ComputeFn = dyn Fn(&Parts, &[u8]) -> Option<String> + Send + Sync;

impl Compute {
    /// The value is found by `find`, from the request's head and body.
    pub fn new(find: impl Fn(&Parts, &[u8]) -> Option<String> + Send + Sync + 'static) -> Compute {
        Compute(Arc::new(find))
    }

    pub(crate) fn find(&self, parts: &Parts, body: &[u8]) -> Option<String> {
        self.0(parts, body)
    }
}

impl fmt::Debug for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compute")
    }
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

/// Where a value of a request is found.
#[derive(Debug, Clone)]
pub enum Pick {
    /// A JSON pointer into the request body.
    Pointer(String),
    Header(HeaderName),
    Computed(Compute),
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

/// Where the handler's effects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effects {
    /// A claim is lasting before the handler runs.
    #[default]
    Anywhere,
    /// Only in the guard's own database, or noted by [`crate::Claim::sending`] before they happen. PostgreSQL then need
    /// not wait for its disk at the claim: no later commit is lasting without it.
    ThisDatabase,
}

/// What a 4xx answer of the handler means for the key, when the handler does not say it by an [`crate::Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRefusal {
    /// Refused before any effect, so the same key may run again; unless the handler took its transaction or sent
    /// something elsewhere: then the refusal is the answer.
    #[default]
    RetryUnlessTouched,
    /// The refusal is the answer, now and for duplicates.
    Store,
    /// The handler refuses only before any effect: what it wrote in its transaction is rolled back.
    Retry,
}

/// Which headers of a response duplicates get too. Those of one connection or one visitor, `Set-Cookie` first of
/// all, are never among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeptHeaders {
    #[default]
    All,
    Only(Vec<HeaderName>),
}

/// How long final answers of a route are remembered outside its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remember {
    /// In the memory of a process; zero: not at all.
    pub here: Duration,
    /// In Redis: longer than the longest run, shorter than the table's retention.
    pub shared: Duration,
}

impl Default for Remember {
    /// Ten minutes here, a day in Redis.
    fn default() -> Self {
        Remember { here: Duration::from_secs(10 * 60), shared: Duration::from_secs(24 * 3600) }
    }
}

/// What is kept of a request, and when.
#[derive(Debug, Clone, Default)]
pub enum Keep {
    /// A record, claimed before the handler runs and settled with its outcome.
    #[default]
    Record,
    /// A record that is settled before the handler runs: it runs at most once and may be lost, however it ends.
    /// Duplicates hear that the request was taken.
    RecordFirst,
    /// No record: this process' memory, for a short time.
    Window(Window),
}

/// The protection of one route.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Keys of two business types never meet.
    pub biz_type: String,
    /// Whose request it is, where several tenants share a table: their keys never meet. A request without it is refused.
    pub tenant: Option<Pick>,
    pub key: KeySource,
    /// Without it the record has no biz_no and no reverse check can find its effect.
    pub biz_no: Option<Pick>,
    /// How long a claim is held without a sign of life; renewed while the handler runs.
    pub lease: Duration,
    /// Renewals end after this long.
    pub max_run: Duration,
    /// How long a duplicate waits for the first answer.
    pub max_wait: Duration,
    pub effects: Effects,
    pub on_unknown: OnUnknown,
    pub on_refusal: OnRefusal,
    /// Longest request body, in bytes.
    pub max_request: usize,
    /// Longest response body kept for duplicates, in bytes; a longer one leaves only its status.
    pub max_response: usize,
    pub headers: KeptHeaders,
    pub remember: Remember,
    pub keep: Keep,
    /// What two requests with one key must share to be the same request; without it method, path, query and body.
    pub same: Option<Compute>,
    /// Whether answers name the business type and number under which the T+1 reconciliation finds them.
    pub reconciled: bool,
    /// Further conditions, asked in this order.
    pub mechanisms: Vec<Arc<dyn Mechanism>>,
    /// Who says the guard's own problems; problem details in JSON without one.
    pub voice: Option<Arc<dyn Voice>>,
}

impl Policy {
    /// Half a minute of lease, ten seconds of waiting, unknown outcomes held, bodies of at most one MiB.
    pub fn new(biz_type: impl Into<String>, key: KeySource) -> Policy {
        Policy {
            biz_type: biz_type.into(),
            tenant: None,
            key,
            biz_no: None,
            lease: Duration::from_secs(30),
            max_run: Duration::from_secs(30 * 60),
            max_wait: Duration::from_secs(10),
            effects: Effects::default(),
            on_unknown: OnUnknown::default(),
            on_refusal: OnRefusal::default(),
            max_request: 1 << 20,
            max_response: 1 << 20,
            headers: KeptHeaders::default(),
            remember: Remember::default(),
            keep: Keep::default(),
            same: None,
            reconciled: false,
            mechanisms: Vec::new(),
            voice: None,
        }
    }

    /// The same with the business number at a JSON pointer of the body.
    pub fn biz_no_from(mut self, pointer: impl Into<String>) -> Policy {
        self.biz_no = Some(Pick::Pointer(pointer.into()));
        self
    }

    /// The same, run at most once: recorded first, and never run again, whatever becomes of it.
    pub fn at_most_once(mut self) -> Policy {
        self.keep = Keep::RecordFirst;
        // What is still PROCESSING has not begun.
        self.on_unknown = OnUnknown::ReExecute;
        self
    }

    /// What would break a promise, in words that say what to write instead.
    pub(crate) fn check(&self, retention: Duration) -> Result<(), GuardError> {
        let wrong = |what: &str| Err(GuardError::Policy(format!("biz_type {:?}: {what}", self.biz_type)));
        if self.biz_type.is_empty() {
            return wrong("the business type is empty; name the kind of request");
        }
        if self.lease < Duration::from_millis(100) {
            return wrong("the lease is shorter than 100 ms; a healthy worker could not renew it in time");
        }
        if self.remember.shared <= self.max_run {
            return wrong(
                "remember.shared must be longer than max_run: a cache that forgets sooner answers nothing",
            );
        }
        if self.remember.shared >= retention || self.remember.here >= retention {
            return wrong("remember.here and remember.shared must be shorter than the table's retention");
        }
        Ok(())
    }

    /// The same with one more mechanism, asked after those before it.
    pub fn with(mut self, mechanism: impl Mechanism + 'static) -> Policy {
        self.mechanisms.push(Arc::new(mechanism));
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
