//! What every answer says to the browser: what may run, what may be kept, who may look.

use super::web::Web;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use leptos::nonce::Nonce;

const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
/// Nothing of what is not a document needs to run or to be framed.
const INERT: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const NO_DEVICES: HeaderValue =
    HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()");
const A_YEAR_OF_HTTPS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Mints the nonce of this request's scripts and sets the security headers of its answer.
pub async fn secure(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    let nonce = Nonce::new();
    request.extensions_mut().insert(nonce.clone());
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let policy = if is_html(headers) { policy(&nonce) } else { INERT };
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(PERMISSIONS_POLICY, NO_DEVICES);
    if web.app.settings.secure_cookies {
        headers.insert(STRICT_TRANSPORT_SECURITY, A_YEAR_OF_HTTPS);
    }
    // Assets say for themselves how long they last; everything else is somebody's data.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn is_html(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Scripts run by this request's nonce only; nothing comes from, goes to, or is framed by another site.
fn policy(nonce: &Nonce) -> HeaderValue {
    let policy = format!(
        "default-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; img-src 'self' data:; \
         font-src 'self'; style-src 'self'; connect-src 'self'; \
         script-src 'nonce-{nonce}' 'strict-dynamic' 'wasm-unsafe-eval'"
    );
    HeaderValue::from_str(&policy).unwrap_or(INERT)
}
