//! How a database is opened, and how its URL may be shown.

use std::time::Duration;

use url::Url;

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Most connections held at once (readers on SQLite, which has one writer).
    pub max_connections: u32,
    /// Longest a statement may run; MySQL proper (not MariaDB) bounds only reading ones itself.
    pub statement_timeout: Duration,
    /// Longest to wait for a connection.
    pub connect_timeout: Duration,
    /// Longest to wait for another transaction's lock.
    pub lock_timeout: Duration,
    /// SQLite only: create the file if it is missing and use a write-ahead log. Off, a file is taken as it is.
    pub own_file: bool,
}

impl Default for Options {
    /// For a database that belongs to somebody else: nothing about it is changed.
    fn default() -> Self {
        Options {
            max_connections: 8,
            statement_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(5),
            own_file: false,
        }
    }
}

impl Options {
    /// For a database of our own: a missing SQLite file is created.
    pub fn own() -> Self {
        Options { own_file: true, ..Options::default() }
    }
}

/// A database URL fit for logs and pages: the password and secret-looking options are replaced.
pub fn redact_url(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        return match url.split_once(':') {
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => format!("{scheme}:…"),
            _ => "…".to_owned(),
        };
    };
    if parsed.cannot_be_a_base() || parsed.scheme() == "sqlite" {
        return url.split('?').next().unwrap_or_default().to_owned();
    }
    if parsed.password().is_some() && parsed.set_password(Some("***")).is_err() {
        return format!("{}:…", parsed.scheme());
    }
    parsed.set_query(None);
    parsed.into()
}

#[cfg(test)]
mod tests {
    use super::redact_url;

    #[test]
    fn redacted_urls_carry_no_secret() {
        for (url, shown) in [
            ("postgres://me:s3cret@db:5432/shop?sslpassword=s3cret", "postgres://me:***@db:5432/shop"),
            ("mysql://me:p%40ss@db/shop", "mysql://me:***@db/shop"),
            ("postgres://me@db/shop", "postgres://me@db/shop"),
            ("sqlite://data/amends.db?mode=rwc", "sqlite://data/amends.db"),
            ("postgres://me:s3cret@db:notaport/x", "postgres:…"),
            ("s3cret", "…"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
    }
}
