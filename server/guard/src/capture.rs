//! Taking a handler's response apart: what the record keeps, and what the first client gets.

use axum::body::{Body, Bytes};
use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, PROXY_AUTHENTICATE, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use futures::{StreamExt, stream};
use http_body_util::BodyExt;

use crate::answer::Stored;
use crate::policy::{KeptHeaders, Policy};

/// Headers of one connection or one visitor: never given to a duplicate.
const NOT_KEPT: [HeaderName; 12] = [
    SET_COOKIE,
    HeaderName::from_static("set-cookie2"),
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    DATE,
    TE,
    TRAILER,
    UPGRADE,
    WWW_AUTHENTICATE,
    PROXY_AUTHENTICATE,
];

/// What the record keeps of `response` under `policy`, and the whole response again.
pub(crate) async fn capture(policy: &Policy, response: Response) -> (Stored, Response) {
    let (parts, body) = response.into_parts();
    let (kept, body) =
        if is_endless(&parts.headers) { (None, body) } else { read(body, policy.max_response).await };
    let stored = Stored {
        status: parts.status,
        headers: kept_headers(&policy.headers, &parts.headers),
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

fn kept_headers(kept: &KeptHeaders, headers: &HeaderMap) -> HeaderMap {
    let wanted = |name: &HeaderName| match kept {
        KeptHeaders::All => true,
        KeptHeaders::Only(names) => name == CONTENT_TYPE || names.contains(name),
    };
    let mut kept = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| wanted(name) && !NOT_KEPT.contains(name)) {
        kept.append(name, value.clone());
    }
    kept
}
