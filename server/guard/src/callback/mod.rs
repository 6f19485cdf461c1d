//! Callback routes: notifications of a channel that sends again until it gets exactly what it wants to hear.
//!
//! The key is made of the business number and the kind of event, never of anything that differs from sending to
//! sending. Only what was committed is acknowledged; everything else is answered so that the channel sends again.

mod layer;
mod open;
mod order;
mod profile;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::Value;

pub use layer::{CallbackLayer, Notified};
pub use open::{FormBody, JsonBody, OpenError, Opener, Verify, WechatBody};
pub use order::EventTime;
pub use profile::Profile;

use crate::error::GuardError;
use crate::guard::Guard;
use crate::lock::{LockRules, Locks, Serial};
use crate::policy::{Compute, KeySource, OnRefusal, Pick, Policy, scalar};
use crate::problem::{Problem, Voice};
use order::EventOrder;

/// How long a notification waits for the first one's answer: channels wait five seconds.
const MAX_WAIT: Duration = Duration::from_secs(4);

/// Names under which channels send what differs from sending to sending.
const NEVER_A_KEY: [&str; 10] = [
    "nonce",
    "nonce_str",
    "noncestr",
    "notify_id",
    "notify_time",
    "timestamp",
    "sign",
    "signature",
    "request_id",
    "random",
];

/// An answer, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    pub content_type: HeaderValue,
    pub body: Bytes,
}

impl Ack {
    /// `body` under `content_type`.
    pub fn new(content_type: &'static str, body: impl Into<Bytes>) -> Ack {
        Ack { content_type: HeaderValue::from_static(content_type), body: body.into() }
    }

    fn response(&self, status: StatusCode) -> Response {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, self.content_type.clone());
        response
    }
}

/// What a notification says, in the extensions of the handler's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification(pub Value);

/// Which kind of event a notification is about: one number has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// At a JSON pointer of the notification.
    At(String),
    /// The route takes one kind only.
    Only(String),
}

/// One callback route.
#[derive(Clone)]
pub struct Callback {
    pub biz_type: String,
    opener: Arc<dyn Opener>,
    number: String,
    event: EventKind,
    agreed: Vec<String>,
    ack: Ack,
    ack_status: StatusCode,
    nack: Ack,
    max_wait: Duration,
    serial: Option<Serial>,
    order: Option<EventTime>,
}

impl Callback {
    /// Notifications that `opener` understands, about the business number at the JSON pointer `number`. Errors: a
    /// number or kind that differs from sending to sending.
    pub fn new(
        biz_type: impl Into<String>,
        opener: impl Opener + 'static,
        number: impl Into<String>,
        event: EventKind,
        ack: Ack,
        nack: Ack,
    ) -> Result<Callback, GuardError> {
        let callback = Callback {
            biz_type: biz_type.into(),
            opener: Arc::new(opener),
            number: number.into(),
            event,
            agreed: Vec::new(),
            ack,
            ack_status: StatusCode::OK,
            nack,
            max_wait: MAX_WAIT,
            serial: None,
            order: None,
        };
        callback.check()?;
        Ok(callback)
    }

    /// WeChat Pay v3 payments: key from `out_trade_no` and `event_type`, the amount must agree.
    pub fn wechat_pay(biz_type: impl Into<String>, opener: WechatBody) -> Callback {
        let (number, event) = ("/resource/out_trade_no", EventKind::At("/event_type".into()));
        let (ack, nack) = (Profile::WechatPay.ack(), Profile::WechatPay.nack());
        Callback::new(biz_type, opener, number, event, ack, nack)
            .expect("the channel's own fields")
            .agreeing_on(["/resource/amount/total"])
    }

    /// Alipay payments: key from `out_trade_no` and `trade_status`, the amount must agree. `verify` checks the
    /// channel's signature.
    pub fn alipay(biz_type: impl Into<String>, verify: Box<Verify>) -> Callback {
        let (number, event) = ("/out_trade_no", EventKind::At("/trade_status".into()));
        let (ack, nack) = (Profile::Alipay.ack(), Profile::Alipay.nack());
        Callback::new(biz_type, FormBody(verify), number, event, ack, nack)
            .expect("the channel's own fields")
            .agreeing_on(["/total_amount"])
    }

    /// The same with fields on which all notifications of one key must agree, e.g. the amount; one that does not is
    /// refused and counted as a mismatch.
    pub fn agreeing_on<S: Into<String>>(mut self, pointers: impl IntoIterator<Item = S>) -> Callback {
        self.agreed = pointers.into_iter().map(Into::into).collect();
        self
    }

    /// The same understood another way, e.g. for a poller that brings JSON of the same fields to the same key.
    pub fn opened_by(mut self, opener: impl Opener + 'static) -> Callback {
        self.opener = Arc::new(opener);
        self
    }

    /// The same acknowledged with another status than 200.
    pub fn acknowledged_with(mut self, status: StatusCode) -> Callback {
        self.ack_status = status;
        self
    }

    /// The same with another limit to how long a notification waits while the first one is processing.
    pub fn waiting_at_most(mut self, max_wait: Duration) -> Callback {
        self.max_wait = max_wait;
        self
    }

    /// The same with notifications about one business number taking turns.
    pub fn one_at_a_time(mut self, locks: Locks, rules: LockRules) -> Callback {
        self.serial = Some(Serial::new(locks, rules));
        self
    }

    /// The same with events about one number in the order of their own times, taking turns.
    pub fn in_order(self, time: EventTime, locks: Locks, rules: LockRules) -> Callback {
        Callback { order: Some(time), ..self.one_at_a_time(locks, rules) }
    }

    /// The key of the record for an event about a number, e.g. to look it up.
    pub fn key(number: &str, event: &str) -> String {
        format!("{number}:{event}")
    }

    fn check(&self) -> Result<(), GuardError> {
        let event = match &self.event {
            EventKind::At(pointer) => Some(pointer),
            EventKind::Only(_) => None,
        };
        for pointer in [Some(&self.number), event].into_iter().flatten() {
            let name = pointer.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
            let why = match () {
                () if !pointer.starts_with('/') => "is no JSON pointer; write it with a leading slash",
                () if NEVER_A_KEY.contains(&name.as_str()) => {
                    "differs from sending to sending; take the business number and the kind of event"
                }
                () => continue,
            };
            return Err(GuardError::Policy(format!("biz_type {:?}: {pointer:?} {why}", self.biz_type)));
        }
        Ok(())
    }

    fn policy(&self) -> Policy {
        let picks = self.clone();
        let key = move |notification: &Value| {
            let event = match &picks.event {
                EventKind::At(pointer) => at(notification, pointer)?,
                EventKind::Only(event) => event.clone(),
            };
            Some(Callback::key(&at(notification, &picks.number)?, &event))
        };
        let (number, agreed) = (self.number.clone(), self.agreed.clone());
        // A field that is not there is one that all of them lack.
        let same = move |notification: &Value| {
            let fields: Vec<Option<String>> = agreed.iter().map(|field| at(notification, field)).collect();
            serde_json::to_string(&fields).ok()
        };
        let mut policy = Policy::new(self.biz_type.clone(), KeySource::Computed(noticed(key)));
        policy.biz_no = Some(Pick::Computed(noticed(move |notification| at(notification, &number))));
        policy.same = Some(noticed(same));
        // The channel sends the same notification again: a refusal must not stay for ever.
        policy.on_refusal = OnRefusal::Retry;
        policy.max_wait = self.max_wait;
        policy.voice = Some(Arc::new(Nack(self.nack.clone())));
        let serial = self.serial.clone();
        let policy = serial.into_iter().fold(policy, Policy::with);
        let order = self.order.clone().map(|time| EventOrder {
            time,
            ack: self.ack.clone(),
            status: self.ack_status,
        });
        order.into_iter().fold(policy, Policy::with)
    }
}

impl Guard {
    /// The layer for a callback route. Whatever its handler answers well is sent as the acknowledgement.
    pub fn callback(&self, callback: Callback) -> Result<CallbackLayer, GuardError> {
        let inner = self.protect(callback.policy())?;
        Ok(CallbackLayer { callback: Arc::new(callback), guard: inner })
    }
}

/// A value found in the notification that the layer put into the request.
fn noticed(find: impl Fn(&Value) -> Option<String> + Send + Sync + 'static) -> Compute {
    Compute::new(move |parts, _| find(&parts.extensions.get::<Notification>()?.0))
}

fn at(notification: &Value, pointer: &str) -> Option<String> {
    scalar(notification.pointer(pointer)?)
}

/// Says the guard's problems in the channel's words.
#[derive(Debug)]
struct Nack(Ack);

impl Voice for Nack {
    fn say(&self, problem: &Problem) -> Response {
        let mut response = self.0.response(problem.status);
        if let Some(wait) = problem.retry_after {
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            let seconds = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}
