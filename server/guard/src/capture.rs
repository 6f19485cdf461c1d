//! Taking a handler's response apart: what the record keeps, and what the first client gets.

use axum::body::{Body, Bytes};
use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, SET_COOKIE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use futures::{StreamExt, stream};
use http_body_util::BodyExt;

use crate::answer::Stored;

/// Headers of one connection or one visitor: never given to a duplicate.
const NOT_KEPT: [HeaderName; 7] =
    [SET_COOKIE, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, DATE, TRAILER, UPGRADE];

/// What the record keeps of `response` (at most `max` bytes of body), and the whole response again.
pub(crate) async fn capture(response: Response, max: usize) -> (Stored, Response) {
    let (parts, body) = response.into_parts();
    let (kept, body) = if is_endless(&parts.headers) { (None, body) } else { read(body, max).await };
    let stored = Stored {
        status: parts.status,
        headers: kept_headers(&parts.headers),
        tombstone: kept.is_none(),
        body: kept,
    };
    (stored, Response::from_parts(parts, body))
}

/// An event stream may never end.
fn is_endless(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

async fn read(mut body: Body, max: usize) -> (Option<Bytes>, Body) {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map(|frame| frame.into_data()) {
            Ok(Ok(data)) => read.extend_from_slice(&data),
            Ok(Err(_trailers)) => {}
            Err(e) => return (None, resumed(read, stream::iter([Err(e)]))),
        }
        if read.len() > max {
            return (None, resumed(read, body.into_data_stream()));
        }
    }
    let read = Bytes::from(read);
    (Some(read.clone()), Body::from(read))
}

fn resumed(
    read: Vec<u8>,
    rest: impl futures::Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
) -> Body {
    Body::from_stream(stream::iter([Ok(Bytes::from(read))]).chain(rest))
}

fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| !NOT_KEPT.contains(name))
        .filter_map(|(name, value)| {
            Some((name.to_string(), std::str::from_utf8(value.as_bytes()).ok()?.to_owned()))
        })
        .collect()
}
