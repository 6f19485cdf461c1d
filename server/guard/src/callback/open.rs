//! Understanding a notification: from its bytes to the JSON its numbers are picked from.

use axum::body::Bytes;
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use serde_json::{Map, Value};

/// Turns a notification into JSON, after making sure who sent it. Errors end in a refusal: the channel sends again.
pub trait Opener: Send + Sync {
    fn open(&self, parts: &Parts, body: &Bytes) -> Result<Value, OpenError>;
}

/// Why a notification is not understood. Texts hold nothing of the notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not from the channel.
    #[error("the notification is not signed by the channel")]
    NotGenuine,
    #[error("{0}")]
    Unreadable(&'static str),
}

/// A check of the sender's signature over the head and the bytes of a notification.
pub type Verify = dyn Fn(&Parts, &[u8]) -> bool + Send + Sync;

/// A JSON body.
pub struct JsonBody(pub Box<Verify>);

/// A form body: each field becomes a member of the same name, its value a text.
pub struct FormBody(pub Box<Verify>);

/// A WeChat Pay v3 notification: JSON whose `resource` is encrypted; here it is replaced by what it holds.
pub struct WechatBody {
    verify: Box<Verify>,
    key: LessSafeKey,
}

impl Opener for JsonBody {
    fn open(&self, parts: &Parts, body: &Bytes) -> Result<Value, OpenError> {
        genuine(&self.0, parts, body)?;
        json(body)
    }
}

impl Opener for FormBody {
    fn open(&self, parts: &Parts, body: &Bytes) -> Result<Value, OpenError> {
        genuine(&self.0, parts, body)?;
        let mut fields = Map::new();
        for (name, value) in form_urlencoded::parse(body) {
            // A field given twice could mean one thing to us and another to the handler.
            if fields.insert(name.into_owned(), value.into_owned().into()).is_some() {
                return Err(OpenError::Unreadable("a field of the form is there twice"));
            }
        }
        Ok(Value::Object(fields))
    }
}

impl WechatBody {
    /// `api_v3_key` is the merchant's 32 bytes. Errors say what is wrong with it, and hold nothing of it.
    pub fn new(api_v3_key: &[u8], verify: Box<Verify>) -> Result<WechatBody, String> {
        let key = UnboundKey::new(&AES_256_GCM, api_v3_key)
            .map_err(|_| format!("the API v3 key has {} bytes; it has 32", api_v3_key.len()))?;
        Ok(WechatBody { verify, key: LessSafeKey::new(key) })
    }

    fn decrypt(&self, resource: &Value) -> Result<Value, OpenError> {
        let closed = OpenError::Unreadable("the resource of the notification cannot be decrypted");
        let text = |name: &str| resource[name].as_str().unwrap_or_default();
        let mut sealed = STANDARD.decode(text("ciphertext")).map_err(|_| closed)?;
        let nonce = Nonce::try_assume_unique_for_key(text("nonce").as_bytes()).map_err(|_| closed)?;
        let additional = Aad::from(text("associated_data").as_bytes());
        let plain = self.key.open_in_place(nonce, additional, &mut sealed).map_err(|_| closed)?;
        json(plain)
    }
}

impl Opener for WechatBody {
    fn open(&self, parts: &Parts, body: &Bytes) -> Result<Value, OpenError> {
        genuine(&self.verify, parts, body)?;
        let mut notification = json(body)?;
        let resource = self.decrypt(&notification["resource"])?;
        match &mut notification {
            Value::Object(members) => members.insert("resource".to_owned(), resource),
            _ => return Err(OpenError::Unreadable("the notification is no JSON object")),
        };
        Ok(notification)
    }
}

fn genuine(verify: &Verify, parts: &Parts, body: &[u8]) -> Result<(), OpenError> {
    if verify(parts, body) { Ok(()) } else { Err(OpenError::NotGenuine) }
}

fn json(bytes: &[u8]) -> Result<Value, OpenError> {
    serde_json::from_slice(bytes).map_err(|_| OpenError::Unreadable("the notification is no JSON"))
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;

    use super::*;

    fn open(opener: &dyn Opener, body: &str) -> Result<Value, OpenError> {
        let (parts, ()) = Request::post("/").body(()).unwrap().into_parts();
        opener.open(&parts, &Bytes::from(body.to_owned()))
    }

    #[test]
    fn a_form_becomes_its_fields_and_says_nothing_twice() {
        let form = FormBody(Box::new(|_, _| true));
        let fields = open(&form, "out_trade_no=P%201&subject=%E8%AE%A2%E5%8D%95&empty=").unwrap();
        assert_eq!(fields, serde_json::json!({ "out_trade_no": "P 1", "subject": "订单", "empty": "" }));
        assert!(open(&form, "a=1&a=2").is_err());
        assert_eq!(open(&FormBody(Box::new(|_, _| false)), "a=1"), Err(OpenError::NotGenuine));
    }

    #[test]
    fn an_encrypted_resource_is_opened_with_the_right_key_only() {
        let key = [7u8; 32];
        let seal = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap());
        let mut sealed = br#"{"out_trade_no":"P1"}"#.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(b"abcdefghijkl").unwrap();
        seal.seal_in_place_append_tag(nonce, Aad::from(b"transaction"), &mut sealed).unwrap();
        let resource = serde_json::json!({
            "ciphertext": STANDARD.encode(&sealed), "nonce": "abcdefghijkl", "associated_data": "transaction"
        });
        let body =
            serde_json::json!({ "event_type": "TRANSACTION.SUCCESS", "resource": resource }).to_string();
        let opened = open(&WechatBody::new(&key, Box::new(|_, _| true)).unwrap(), &body).unwrap();
        assert_eq!(opened["resource"]["out_trade_no"], "P1");
        let other = WechatBody::new(&[8u8; 32], Box::new(|_, _| true)).unwrap();
        for body in [&body, "{}", "[]", "no", r#"{"resource":{"nonce":"short"}}"#] {
            assert!(matches!(open(&other, body), Err(OpenError::Unreadable(_))), "{body}");
        }
        assert!(WechatBody::new(b"short", Box::new(|_, _| true)).is_err_and(|why| why.contains("32")));
    }
}
