//! Top-level values that say themselves whether they are right, so that the file's reader can name the line.

use crate::telemetry::DEFAULT_FILTER;
use serde::Deserialize;
use std::net::SocketAddr;
use tracing_subscriber::EnvFilter;
use url::Url;

/// Where to listen.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Address(pub SocketAddr);

impl Default for Address {
    fn default() -> Self {
        Self(SocketAddr::from(([127, 0, 0, 1], 3000)))
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| {
            format!(
                "{text:?} is no address to listen on; write an IP address and a port, like \"127.0.0.1:3000\""
            )
        })
    }
}

/// `/`, or `/some/path` without a slash at its end.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct BasePath(pub String);

impl Default for BasePath {
    fn default() -> Self {
        Self("/".into())
    }
}

impl TryFrom<String> for BasePath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        let path = text.strip_suffix('/').unwrap_or(&text);
        let parts = || path.split('/').skip(1);
        if path.is_empty() {
            return if text == "/" { Ok(Self::default()) } else { Err(refused_path(&text)) };
        }
        let good = path.starts_with('/')
            && parts().all(|part| part.chars().all(plain) && !part.trim_matches('.').is_empty());
        if good { Ok(Self(path.to_owned())) } else { Err(refused_path(&text)) }
    }
}

fn refused_path(text: &str) -> String {
    format!("{text:?} is no path to serve under; write \"/\", or a plain path like \"/amends\"")
}

/// `https://host[:port]`, as browsers send it.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Origin(pub String);

impl TryFrom<String> for Origin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let origin = Url::parse(&text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .map(|url| url.origin().ascii_serialization());
        origin.filter(|origin| *origin == text).map(Self).ok_or_else(|| {
            format!("{text:?} is no origin; write scheme and host and nothing after, like \"https://ops.example.com\"")
        })
    }
}

/// How long a session lives.
#[derive(Debug, Deserialize)]
#[serde(try_from = "i64")]
pub(super) struct Hours(pub u32);

impl Default for Hours {
    fn default() -> Self {
        Self(12)
    }
}

impl TryFrom<i64> for Hours {
    type Error = String;

    fn try_from(hours: i64) -> Result<Self, String> {
        match u32::try_from(hours) {
            Ok(hours @ 1..=720) => Ok(Self(hours)),
            _ => Err(format!("{hours} hours is too short or too long for a session; write 1 to 720")),
        }
    }
}

/// What is logged.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct LogFilter(pub String);

impl Default for LogFilter {
    fn default() -> Self {
        Self(DEFAULT_FILTER.into())
    }
}

impl TryFrom<String> for LogFilter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match EnvFilter::try_new(&text) {
            Ok(_) => Ok(Self(text)),
            Err(_) => {
                Err(format!("{text:?} is no log filter; write \"info\", \"warn\" or like \"info,sqlx=warn\""))
            }
        }
    }
}
