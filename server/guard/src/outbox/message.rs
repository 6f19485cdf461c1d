//! Putting a message into the outbox, in the transaction of the business write.

use axum::http::HeaderValue;
use db::{DbError, Tx};
use sea_query::{Expr, ExprTrait, Query as Sql};
use sha2::{Digest, Sha256};

use super::{PENDING, TABLE};

/// Longest key that receivers take as it is.
const MAX_KEY: usize = 255;
const MAX_KIND: usize = 64;

/// What must reach another service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it says, at most 64 characters; one record stages one message of a kind.
    pub kind: String,
    /// The name under which the outbox knows the receiver.
    pub target: String,
    pub content_type: String,
    pub body: String,
}

impl Message {
    /// A message with a JSON body.
    pub fn json(kind: impl Into<String>, target: impl Into<String>, body: &serde_json::Value) -> Message {
        Message {
            kind: kind.into(),
            target: target.into(),
            content_type: "application/json".to_owned(),
            body: body.to_string(),
        }
    }
}

/// The record on whose behalf a message is staged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// Its id: unlike a key, no other tenant has it.
    pub record: &'a str,
    pub biz_type: &'a str,
    pub biz_no: Option<&'a str>,
}

/// Why a message was not staged; the business transaction must not be committed without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// The record has already staged another message of this kind: give the second one another kind.
    #[error("the record has already staged another message of kind {0:?}; give this one another kind")]
    KindTaken(String),
    /// What is wrong with the message.
    #[error("the message cannot be sent: {0}")]
    Malformed(&'static str),
    #[error(transparent)]
    Database(#[from] DbError),
}

/// Stages `message`: it exists exactly when `tx` is committed. The same message staged again is staged once.
pub(crate) async fn stage(tx: &mut Tx, origin: Origin<'_>, message: &Message) -> Result<(), StageError> {
    check(message)?;
    let key = message_key(origin, &message.kind);
    let now = || tx.dialect().now_ms();
    let mut insert = Sql::insert();
    insert
        .into_table(TABLE)
        .columns([
            "message_key",
            "biz_type",
            "biz_no",
            "kind",
            "target",
            "content_type",
            "body",
            "status",
            "due_at",
            "created_at",
        ])
        .values_panic([
            key.as_str().into(),
            origin.biz_type.into(),
            origin.biz_no.map(str::to_owned).into(),
            message.kind.as_str().into(),
            message.target.as_str().into(),
            message.content_type.as_str().into(),
            message.body.as_str().into(),
            PENDING.into(),
            now(),
            now(),
        ]);
    match tx.insert_if_absent(&insert).await? || is_staged(tx, &key, message).await? {
        true => Ok(()),
        false => Err(StageError::KindTaken(message.kind.clone())),
    }
}

async fn is_staged(tx: &mut Tx, key: &str, message: &Message) -> Result<bool, DbError> {
    let mut select = Sql::select();
    select.columns(["target", "body"]).from(TABLE).and_where(Expr::col("message_key").eq(key));
    let select = tx.query(&select);
    let Some(row) = tx.fetch_optional(&select).await? else { return Ok(false) };
    Ok(row.text("target")? == message.target && row.text("body")? == message.body)
}

fn check(message: &Message) -> Result<(), StageError> {
    if message.kind.is_empty() || message.kind.chars().count() > MAX_KIND {
        return Err(StageError::Malformed("its kind is empty or longer than 64 characters"));
    }
    if message.target.is_empty() || message.target.chars().count() > MAX_KIND {
        return Err(StageError::Malformed("its target is empty or longer than 64 characters"));
    }
    if HeaderValue::from_str(&message.content_type).is_err() || message.content_type.len() > 128 {
        return Err(StageError::Malformed("its content type cannot be sent in a header"));
    }
    if message.body.contains('\0') {
        return Err(StageError::Malformed("its body has a NUL character, which no database keeps in text"));
    }
    Ok(())
}

/// The key by which the receiver tells a message sent again from a new one: made of the record, so that it is the
/// same however often the record's work is done again.
fn message_key(origin: Origin<'_>, kind: &str) -> String {
    let plain = format!("{}:{}/{kind}", origin.biz_type, origin.record);
    let sendable = plain.len() <= MAX_KEY && plain.bytes().all(|byte| byte.is_ascii_graphic());
    if sendable { plain } else { hex::encode(Sha256::digest(plain)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: &str) -> String {
        message_key(Origin { record: of, biz_type: "ORDER", biz_no: None }, "PAID")
    }

    #[test]
    fn every_record_gives_a_key_that_receivers_take() {
        assert_eq!(key("P-1"), "ORDER:P-1/PAID");
        let long = "a".repeat(255);
        for odd in ["订单 1", "a b", &long] {
            assert_eq!(key(odd).len(), 64, "{odd}");
            assert_eq!(key(odd), key(odd));
        }
        assert_ne!(key("a b"), key("a  b"));
    }
}
