//! Changes are taken from this console's own pages and from programs, never from another site's page.

use super::problem::Problem;
use super::web::Web;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses (403) every change that a page of another site could have sent.
pub async fn refuse_cross_site(State(web): State<Web>, request: Request, next: Next) -> Response {
    if request.method().is_safe() || is_ours(request.headers(), &web.app.settings.allowed_origins) {
        return next.run(request).await;
    }
    let detail = "This came from another site's page. Send it from the console itself, or name the console's public \
                  address in allowed_origins if a proxy changes it.";
    Problem::new(StatusCode::FORBIDDEN, "cross_site", detail).into_response()
}

/// What the browser says about the page decides; then its origin. Programs say neither and bring no cookie.
fn is_ours(headers: &HeaderMap, allowed: &[String]) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let origin = text(&ORIGIN);
    if origin.is_some_and(|origin| allowed.iter().any(|allowed| allowed.trim_end_matches('/') == origin)) {
        return true;
    }
    match (text(&SEC_FETCH_SITE), origin) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => text(&HOST).is_some_and(|host| authority(origin) == Some(host)),
        (None, None) => !headers.contains_key(COOKIE),
    }
}

fn authority(origin: &str) -> Option<&str> {
    origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        is_ours(&map, &["https://ops.example.com".into()])
    }

    #[test]
    fn a_change_is_taken_from_the_console_itself_or_from_a_program() {
        assert!(ours(&[("sec-fetch-site", "same-origin"), ("cookie", "a=1")]));
        assert!(ours(&[("sec-fetch-site", "none")]));
        assert!(ours(&[("origin", "http://127.0.0.1:3000"), ("host", "127.0.0.1:3000"), ("cookie", "a=1")]));
        assert!(ours(&[("origin", "https://ops.example.com"), ("sec-fetch-site", "same-site")]));
        assert!(ours(&[("authorization", "Bearer x")]));
        assert!(ours(&[]));
    }

    #[test]
    fn a_change_from_another_sites_page_is_refused() {
        assert!(!ours(&[("sec-fetch-site", "cross-site")]));
        assert!(!ours(&[
            ("sec-fetch-site", "same-site"),
            ("origin", "http://a.example"),
            ("host", "b.example")
        ]));
        assert!(!ours(&[("origin", "http://evil.example"), ("host", "127.0.0.1:3000")]));
        assert!(!ours(&[("origin", "null"), ("host", "127.0.0.1:3000")]));
        assert!(!ours(&[("origin", "http://127.0.0.1:3000")]));
        assert!(!ours(&[("cookie", "a=1")]));
    }
}
