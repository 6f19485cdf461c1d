//! The few cookies of the pages themselves: preferences that last, and one message that crosses a redirect.
//! None is a secret; the session's cookie is the server's business.

use crate::context::Flash;
use http::header::{COOKIE, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use leptos::prelude::use_context;
use leptos_axum::ResponseOptions;

pub const THEME: &str = "amends_theme";
pub const LANGUAGE: &str = "amends_lang";
pub const ZONE: &str = "amends_zone";
const FLASH: &str = "amends_flash";
/// The record whose bodies the next page shows, asked for by a post.
const REVEAL: &str = "amends_reveal";

const YEAR_SECONDS: u32 = 365 * 86_400;
const FLASH_SECONDS: u32 = 60;
/// Characters of a message; browsers refuse cookies above 4 KiB, and a character may take twelve bytes encoded.
const FLASH_LENGTH: usize = 300;

/// The value of a request cookie, decoded.
pub fn read(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| decode(value))
}

/// Keeps a preference for a year.
pub fn keep(base_path: &str, name: &str, value: &str) {
    set(base_path, name, value, YEAR_SECONDS);
}

/// Leaves a message for the next page.
pub fn leave_flash(base_path: &str, flash: &Flash) {
    let text: String = flash.text.chars().take(FLASH_LENGTH).collect();
    set(base_path, FLASH, &format!("{}:{text}", flash.kind.as_str()), FLASH_SECONDS);
}

/// Takes the message that the last request left, so that it shows once.
pub fn take_flash(base_path: &str, parts: &Parts) -> Option<Flash> {
    let value = read(&parts.headers, FLASH)?;
    set(base_path, FLASH, "", 0);
    let (kind, text) = value.split_once(':')?;
    Some(Flash { kind: kind.parse().ok()?, text: text.to_owned() })
}

/// Lets the next page show the bodies of one record; that page checks the right and writes the audit entry.
pub fn leave_reveal(base_path: &str, record: &str) {
    set(base_path, REVEAL, record, FLASH_SECONDS);
}

/// The record whose bodies this page was asked to show, so that they show once.
pub fn take_reveal(base_path: &str, parts: &Parts) -> Option<String> {
    let record = read(&parts.headers, REVEAL)?;
    set(base_path, REVEAL, "", 0);
    Some(record)
}

fn set(base_path: &str, name: &str, value: &str, max_age: u32) {
    let Some(response) = use_context::<ResponseOptions>() else { return };
    let value = encode(value);
    let cookie = format!("{name}={value}; Path={base_path}/; Max-Age={max_age}; SameSite=Lax; HttpOnly");
    // The base path is checked at start and everything else is encoded, so this is always a header.
    if let Ok(header) = HeaderValue::from_str(&cookie) {
        response.append_header(SET_COOKIE, header);
    }
}

fn encode(value: &str) -> String {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

fn decode(value: &str) -> String {
    let pair = format!("={value}");
    url::form_urlencoded::parse(pair.as_bytes())
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookie: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(cookie))])
    }

    #[test]
    fn a_cookie_is_found_among_others_and_decoded() {
        let headers = headers("a=1; amends_zone=Asia%2FShanghai; amends_theme=dark");
        assert_eq!(read(&headers, ZONE).as_deref(), Some("Asia/Shanghai"));
        assert_eq!(read(&headers, THEME).as_deref(), Some("dark"));
        assert_eq!(read(&headers, LANGUAGE), None);
    }

    #[test]
    fn hostile_text_survives_as_text() {
        let text = "a;b=c\r\nSet-Cookie: x=1 & 中文 +%";
        assert!(encode(text).bytes().all(|byte| byte.is_ascii_graphic() && byte != b';'));
        assert_eq!(decode(&encode(text)), text);
    }
}
