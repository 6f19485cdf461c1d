//! The signature of a question: a keyed hash over what the endpoint wants signed.

use crate::config::{Algorithm, Encoding, SecretEncoding, Sign};
use crate::template::{Escape, Template};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::HeaderName;
use sha2::{Digest, Sha256, Sha512};

/// Signs rendered templates.
pub(super) struct Signer {
    pub(super) header: Option<HeaderName>,
    pub(super) template: Template,
    secret: Vec<u8>,
    algorithm: Algorithm,
    encoding: Encoding,
}

impl Signer {
    pub(super) fn new(sign: &Sign) -> Result<Self, String> {
        let header = sign
            .header
            .as_ref()
            .map(|name| name.parse().map_err(|_| format!("sign.header: {name:?} is no header name")));
        let written = sign.secret.expose();
        let secret = match sign.secret_encoding {
            SecretEncoding::Text => Some(written.as_bytes().to_vec()),
            SecretEncoding::Hex => hex::decode(written).ok(),
            SecretEncoding::Base64 => STANDARD.decode(written).ok(),
        };
        let secret = secret.filter(|secret| !secret.is_empty()).ok_or(
            "sign.secret is empty or not written as secret_encoding says; take it from the environment, like secret = \"${CHANNEL_SECRET}\"",
        )?;
        Ok(Self {
            header: header.transpose()?,
            template: Template::parse_as(sign.template.expose(), Escape::Nothing),
            secret,
            algorithm: sign.algorithm,
            encoding: sign.encoding,
        })
    }

    /// Whether the signature covers parts of the finished request.
    pub(super) fn covers_request(&self) -> bool {
        self.template.names().any(|name| matches!(name, "url" | "host" | "path" | "body" | "body_sha256"))
    }

    pub(super) fn signature(&self, text: &str) -> String {
        let digest = match self.algorithm {
            Algorithm::HmacSha256 => keyed::<Hmac<Sha256>>(&self.secret, text),
            Algorithm::HmacSha512 => keyed::<Hmac<Sha512>>(&self.secret, text),
        };
        match self.encoding {
            Encoding::Hex => hex::encode(digest),
            Encoding::Base64 => STANDARD.encode(digest),
        }
    }
}

fn keyed<M: Mac + KeyInit>(secret: &[u8], text: &str) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(secret).expect("an HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(more: &str) -> Signer {
        let sign = toml::from_str(&format!("secret = \"Jefe\"\ntemplate = \"{{body}}\"\n{more}")).unwrap();
        Signer::new(&sign).unwrap()
    }

    #[test]
    fn signatures_are_those_of_rfc_4231() {
        let text = "what do ya want for nothing?";
        assert_eq!(
            signer("").signature(text),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            signer("encoding = \"base64\"").signature(text),
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="
        );
        assert!(
            signer("algorithm = \"hmac_sha512\"")
                .signature(text)
                .starts_with("164b7a7bfcf819e2e395fbe73b56e0a3")
        );
    }

    #[test]
    fn a_secret_that_is_not_what_it_says_is_refused_without_showing_it() {
        let sign =
            toml::from_str("secret = \"not hex\"\nsecret_encoding = \"hex\"\ntemplate = \"x\"").unwrap();
        let message = Signer::new(&sign).err().unwrap();
        assert!(message.contains("secret_encoding") && !message.contains("not hex"));
    }
}
