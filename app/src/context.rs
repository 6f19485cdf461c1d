//! What a request brings to the pages, and who sets it.
//!
//! The server provides, for every page and every server function:
//! [`Settings`] (once, from the configuration), [`Now`] (from its clock), [`SessionHandle`] (its sessions), the
//! signed-in `domain::roles::Actor` when there is one, and `domain::console::Console` with the services.
//! leptos_axum provides the request's `Parts` and the response options; the nonce is re-provided by the server.
//! Everything else is worked out here by [`Visit::begin`]: language, zone, theme, address, the message left behind.

use crate::cookies;
use crate::i18n::{Locale, Texts};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::console::Console;
use domain::roles::Actor;
use http::header::ACCEPT_LANGUAGE;
use http::request::Parts;
use leptos::prelude::{expect_context, provide_context, use_context};
use std::str::FromStr;
use std::sync::Arc;

/// What the configuration fixes for all requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Where the console is mounted: empty for the root, else `/amends` with no slash at its end.
    pub base_path: String,
    /// The zone of people who chose none.
    pub display_zone: Tz,
    pub assets: Assets,
}

/// Paths of the built files, without the base path: `/assets/amends.<hash>.js` and so on. Empty means not built.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assets {
    pub js: String,
    pub wasm: String,
    pub css: String,
    pub icon: String,
}

/// The instant at which the request is answered; every relative time on the page counts from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now(pub DateTime<Utc>);

/// The server's sessions, as the pages need them.
#[async_trait::async_trait]
pub trait Session: Send + Sync {
    /// Starts a session when name and password are right, and says who signed in.
    async fn sign_in(&self, username: &str, password: &str) -> domain::Result<Actor>;
    /// Ends this session; no session is no error.
    async fn sign_out(&self) -> domain::Result<()>;
}

/// The session port of this request, as it lies in the context.
#[derive(Clone)]
pub struct SessionHandle(pub Arc<dyn Session>);

/// Light or dark, or whatever the system says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Theme; 3] = [Theme::System, Theme::Light, Theme::Dark];

    /// The word of the cookie and of `data-theme`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == word)
    }
}

/// How this person reads the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefs {
    pub locale: Locale,
    pub zone: Tz,
    pub theme: Theme,
}

impl Prefs {
    /// From the cookies, then the browser's language and the configured zone. Nonsense in a cookie counts as absent.
    pub fn read(parts: &Parts, settings: &Settings) -> Self {
        let cookie = |name| cookies::read(&parts.headers, name);
        let accepted = || {
            let header = parts.headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
            Locale::negotiate(header.unwrap_or_default())
        };
        Self {
            locale: cookie(cookies::LANGUAGE).and_then(|tag| Locale::from_tag(&tag)).unwrap_or_else(accepted),
            zone: cookie(cookies::ZONE).and_then(|name| name.parse().ok()).unwrap_or(settings.display_zone),
            theme: cookie(cookies::THEME).and_then(|word| Theme::from_word(&word)).unwrap_or_default(),
        }
    }
}

/// A message for the next page: what a mutation did, or why it did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flash {
    pub kind: FlashKind,
    pub text: String,
}

impl Flash {
    pub fn done(text: impl Into<String>) -> Self {
        Self { kind: FlashKind::Done, text: text.into() }
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self { kind: FlashKind::Failed, text: text.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashKind {
    Done,
    Failed,
}

impl FlashKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for FlashKind {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        [Self::Done, Self::Failed].into_iter().find(|kind| kind.as_str() == word).ok_or(())
    }
}

/// One request, as pages and kits see it. Cheap to clone; kits take it from the context with [`Visit::here`].
#[derive(Clone)]
pub struct Visit(Arc<Inner>);

struct Inner {
    settings: Settings,
    prefs: Prefs,
    now: DateTime<Utc>,
    path: String,
    query: Vec<(String, String)>,
    actor: Option<Actor>,
    flash: Option<Flash>,
}

impl Visit {
    /// Reads the request out of the context and provides the result to everything below. Called once a document.
    pub fn begin() -> Self {
        let visit = Self::read(true);
        provide_context(visit.clone());
        visit
    }

    /// The visit of a server function: the same, but the waiting message is left for the page that follows.
    pub fn of_call() -> Self {
        Self::read(false)
    }

    /// The visit that the page began.
    pub fn here() -> Self {
        expect_context()
    }

    fn read(takes_flash: bool) -> Self {
        let settings: Settings = use_context().unwrap_or_default();
        let parts = use_context::<Parts>().unwrap_or_else(|| http::Request::new(()).into_parts().0);
        let query = parts.uri.query().unwrap_or_default();
        let flash = takes_flash.then(|| cookies::take_flash(&settings.base_path, &parts)).flatten();
        Self(Arc::new(Inner {
            prefs: Prefs::read(&parts, &settings),
            now: use_context::<Now>().map_or(DateTime::UNIX_EPOCH, |now| now.0),
            path: parts.uri.path().to_owned(),
            query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            actor: use_context(),
            flash,
            settings,
        }))
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub fn prefs(&self) -> Prefs {
        self.0.prefs
    }

    pub fn locale(&self) -> Locale {
        self.0.prefs.locale
    }

    pub fn zone(&self) -> Tz {
        self.0.prefs.zone
    }

    /// The texts of this person's language.
    pub fn texts(&self) -> &'static Texts {
        self.0.prefs.locale.texts()
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.0.now
    }

    pub fn actor(&self) -> Option<&Actor> {
        self.0.actor.as_ref()
    }

    pub fn flash(&self) -> Option<&Flash> {
        self.0.flash.as_ref()
    }

    /// The path of this page without the base path.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// A query parameter that is not empty.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.0
            .query
            .iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// The query parameters of this page, in order.
    pub fn query(&self) -> &[(String, String)] {
        &self.0.query
    }

    /// A link to a path of the console, which starts with a slash.
    pub fn href(&self, path: &str) -> String {
        format!("{}{path}", self.0.settings.base_path)
    }

    /// A link to this page with some parameters set (`Some`) or removed (`None`); the others stay.
    pub fn href_with(&self, changes: &[(&str, Option<&str>)]) -> String {
        self.href(&self.address_with(changes))
    }

    /// The address of this page for a form's `back` field: path and query, without the base path.
    pub fn address(&self) -> String {
        self.address_with(&[])
    }

    /// The address of this page with some parameters set or removed, without the base path.
    pub fn address_with(&self, changes: &[(&str, Option<&str>)]) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (key, value) in &self.0.query {
            if !value.is_empty() && !changes.iter().any(|(changed, _)| changed == key) {
                query.append_pair(key, value);
            }
        }
        for (key, value) in changes {
            if let Some(value) = value {
                query.append_pair(key, value);
            }
        }
        let query = query.finish();
        if query.is_empty() { self.0.path.clone() } else { format!("{}?{query}", self.0.path) }
    }
}

/// The services, or the error that says they are not there (only while the server starts).
pub fn console() -> domain::Result<Console> {
    use_context().ok_or_else(|| domain::Error::unavailable("The console", "it is still starting; try again"))
}

/// The part of a `back` address that is safe to return to: a path of this console, never another site.
pub fn local_path(address: &str) -> &str {
    let local = address.starts_with('/')
        && !address.starts_with("//")
        && !address.contains(['\\', '\r', '\n', '\t'])
        && address.bytes().all(|byte| byte.is_ascii_graphic());
    if local { address } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leptos::prelude::Owner;

    fn visit(uri: &str, headers: &[(&str, &str)]) -> Visit {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        Owner::new().with(|| {
            provide_context(parts);
            provide_context(Settings { base_path: "/amends".into(), ..Settings::default() });
            Visit::begin()
        })
    }

    #[test]
    fn preferences_come_from_cookies_before_the_browser() {
        let visit = visit(
            "/stuck",
            &[
                ("accept-language", "en"),
                ("cookie", "amends_lang=zh-CN; amends_theme=dark; amends_zone=Mars%2FBase"),
            ],
        );
        assert_eq!(visit.locale(), Locale::ZhCn);
        assert_eq!(visit.prefs().theme, Theme::Dark);
        assert_eq!(visit.zone(), Tz::UTC);
    }

    #[test]
    fn links_keep_the_filters_and_the_base_path() {
        let visit = visit("/records?state=FAILED&q=a%26b&cursor=x", &[]);
        assert_eq!(visit.param("q"), Some("a&b"));
        assert_eq!(visit.href_with(&[("cursor", None)]), "/amends/records?state=FAILED&q=a%26b");
        assert_eq!(
            visit.href_with(&[("state", Some("SUCCESS")), ("cursor", None)]),
            "/amends/records?q=a%26b&state=SUCCESS"
        );
    }

    #[test]
    fn going_back_never_leaves_the_console() {
        assert_eq!(local_path("/stuck?a=b"), "/stuck?a=b");
        for hostile in
            ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a\r\nb", "javascript:x"]
        {
            assert_eq!(local_path(hostile), "/");
        }
    }

    #[test]
    fn a_message_is_shown_once_and_kept_as_text() {
        let visit = visit("/", &[("cookie", "amends_flash=done%3A%3Cb%3Eok%3A1")]);
        assert_eq!(visit.flash(), Some(&Flash::done("<b>ok:1")));
    }
}
