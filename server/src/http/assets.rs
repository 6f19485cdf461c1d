//! The browser assets, carried inside the binary and served as they were packed: nothing is compressed while a person waits.

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Names change with their content, so a copy stays good for ever.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// One embedded file in the forms it can be sent in.
struct Asset {
    role: &'static str,
    name: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// The paths of the assets a page links, without the base path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteAssets {
    pub js: String,
    pub wasm: String,
    pub css: String,
    pub icon: String,
}

/// The assets of this binary; in one built without them the paths lead nowhere and pages still work as plain HTML.
pub fn site() -> SiteAssets {
    SiteAssets {
        js: path(ASSETS, "js", "amends.js"),
        wasm: path(ASSETS, "wasm", "amends.wasm"),
        css: path(ASSETS, "css", "main.css"),
        icon: path(ASSETS, "icon", "favicon.svg"),
    }
}

/// Serves `/assets/{name}`.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{name}", get(serve))
}

fn path(assets: &[Asset], role: &str, otherwise: &str) -> String {
    let name = assets.iter().find(|asset| asset.role == role).map_or(otherwise, |asset| asset.name);
    format!("/assets/{name}")
}

async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    respond(ASSETS, &name, &headers)
}

fn respond(assets: &'static [Asset], name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = assets.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (encoding, body) = choose(asset, headers);
    let tag = format!("\"{name}{}\"", encoding.map(|encoding| format!("-{encoding}")).unwrap_or_default());
    let unchanged = headers
        .get(IF_NONE_MATCH)
        .and_then(|seen| seen.to_str().ok())
        .is_some_and(|seen| matches(seen, &tag));
    let mut response =
        if unchanged { StatusCode::NOT_MODIFIED.into_response() } else { body.into_response() };
    let sent = response.headers_mut();
    sent.insert(CACHE_CONTROL, FOREVER);
    sent.insert(VARY, HeaderValue::from_static("accept-encoding"));
    sent.extend(HeaderValue::try_from(tag).ok().map(|tag| (ETAG, tag)));
    if !unchanged {
        sent.insert(CONTENT_TYPE, HeaderValue::from_static(kind(name)));
        sent.extend(encoding.map(|encoding| (CONTENT_ENCODING, HeaderValue::from_static(encoding))));
    }
    response
}

/// The smallest form the client accepts.
fn choose(asset: &Asset, headers: &HeaderMap) -> (Option<&'static str>, &'static [u8]) {
    [("br", asset.brotli), ("gzip", asset.gzip)]
        .into_iter()
        .find_map(|(encoding, packed)| Some((Some(encoding), packed?)).filter(|_| accepts(headers, encoding)))
        .unwrap_or((None, asset.plain))
}

fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let offers: Vec<(&str, bool)> = values.flat_map(|value| value.split(',')).map(offer).collect();
    let named = offers.iter().find(|(name, _)| name.eq_ignore_ascii_case(encoding));
    named.or_else(|| offers.iter().find(|(name, _)| *name == "*")).is_some_and(|(_, wanted)| *wanted)
}

/// An entry of Accept-Encoding and whether its quality is above zero.
fn offer(entry: &str) -> (&str, bool) {
    let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
    let quality = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
    let refused =
        quality.is_some_and(|quality| quality.trim().parse::<f32>().is_ok_and(|quality| quality <= 0.0));
    (name.trim(), !refused)
}

fn matches(seen: &str, tag: &str) -> bool {
    seen.split(',')
        .map(|entry| entry.trim().trim_start_matches("W/"))
        .any(|entry| entry == tag || entry == "*")
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    static SAMPLE: &[Asset] = &[
        Asset { role: "js", name: "amends.1.js", plain: b"plain", brotli: Some(b"br"), gzip: Some(b"gz") },
        Asset { role: "icon", name: "favicon.2.svg", plain: b"<svg/>", brotli: None, gzip: None },
    ];

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    async fn body(response: Response) -> Vec<u8> {
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn the_smallest_accepted_form_is_sent() {
        for (accepted, encoding, bytes) in [
            ("gzip, deflate, br, zstd", Some("br"), "br"),
            ("gzip", Some("gzip"), "gz"),
            ("br;q=0, gzip;q=0.5", Some("gzip"), "gz"),
            ("*", Some("br"), "br"),
            ("br;q=0, *;q=0", None, "plain"),
            ("identity", None, "plain"),
            (",;;q=,br ;q=x", Some("br"), "br"),
        ] {
            let response = respond(SAMPLE, "amends.1.js", &headers(&[("accept-encoding", accepted)]));
            let sent = response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap());
            assert_eq!(sent, encoding, "{accepted}");
            assert_eq!(response.headers()[VARY], "accept-encoding");
            assert_eq!(body(response).await, bytes.as_bytes(), "{accepted}");
        }
    }

    #[tokio::test]
    async fn an_asset_is_typed_and_kept_for_ever() {
        let response = respond(SAMPLE, "favicon.2.svg", &headers(&[("accept-encoding", "br")]));
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], "image/svg+xml");
        assert_eq!(response.headers()[CACHE_CONTROL], FOREVER);
        assert!(!response.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(body(response).await, b"<svg/>");
    }

    #[test]
    fn a_copy_that_is_still_good_is_not_sent_again() {
        let accepts = ("accept-encoding", "br");
        let response = respond(SAMPLE, "amends.1.js", &headers(&[accepts]));
        assert_eq!(response.headers()[ETAG], "\"amends.1.js-br\"");
        let again =
            respond(SAMPLE, "amends.1.js", &headers(&[accepts, ("if-none-match", "W/\"amends.1.js-br\"")]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let other_form = respond(SAMPLE, "amends.1.js", &headers(&[("if-none-match", "\"amends.1.js-br\"")]));
        assert_eq!(other_form.status(), StatusCode::OK);
    }

    #[test]
    fn a_binary_without_assets_still_names_paths() {
        assert_eq!(path(&[], "js", "amends.js"), "/assets/amends.js");
        assert_eq!(path(SAMPLE, "js", "amends.js"), "/assets/amends.1.js");
    }

    #[tokio::test]
    async fn an_unknown_or_hostile_name_is_not_found() {
        for name in ["nothing.js", "..%2f..%2fetc%2fpasswd", "%00", "amends"] {
            let request = Request::get(format!("/assets/{name}")).body(Body::empty()).unwrap();
            let response = router::<()>().oneshot(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{name}");
        }
    }

    #[tokio::test]
    async fn every_asset_of_this_binary_is_served_under_the_path_pages_link() {
        let site = site();
        let mut paths = vec![site.js, site.wasm, site.css, site.icon];
        paths.retain(|path| ASSETS.iter().any(|asset| path.ends_with(asset.name)));
        assert_eq!(paths.len(), ASSETS.len());
        for path in paths {
            let response =
                router::<()>().oneshot(Request::get(&path).body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{path}");
        }
    }
}
