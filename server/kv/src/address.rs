//! Where Redis is: the URL forms.

use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsMode};
use url::Url;

use crate::KvError;

const FORMS: &str = "write redis://host:6379/0, redis+cluster://host1:6379,host2:6379 or \
                     redis+sentinel://host1:26379,host2:26379/master_name/0 (rediss… for TLS)";

/// A checked address; shown without its password.
#[derive(Debug, Clone)]
pub struct Address {
    pub(crate) target: Target,
    shown: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Target {
    Single(ConnectionInfo),
    Cluster(Vec<ConnectionInfo>),
    Sentinel(Sentinel),
}

/// A master known by name to some sentinels; user and password are those of both.
#[derive(Debug, Clone)]
pub(crate) struct Sentinel {
    nodes: Vec<(String, u16)>,
    master: String,
    db: i64,
    login: Login,
    tls: bool,
}

#[derive(Clone, Default)]
struct Login {
    user: Option<String>,
    password: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Address {
    /// Understands a URL; the error says what to write and holds no password.
    pub fn parse(url: &str) -> Result<Address, KvError> {
        let shown = redact_url(url);
        let wrong = || KvError::Invalid(format!("{shown} is no Redis address; {FORMS}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let tls = scheme.starts_with("rediss");
        let target = match scheme {
            "redis" | "rediss" | "redis+unix" | "unix" => {
                Target::Single(url.into_connection_info().map_err(|_| wrong())?)
            }
            "redis+cluster" | "rediss+cluster" => Target::Cluster(cluster(rest, tls).ok_or_else(wrong)?),
            "redis+sentinel" | "rediss+sentinel" => Target::Sentinel(sentinel(rest, tls).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        };
        Ok(Address { target, shown })
    }

    /// The URL fit for logs and pages.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl Sentinel {
    pub(crate) fn client(&self) -> Result<redis::sentinel::SentinelClient, KvError> {
        let nodes = self.nodes.iter().map(|(host, port)| ConnectionAddr::Tcp(host.clone(), *port));
        let mut builder = SentinelClientBuilder::new(nodes, self.master.clone(), SentinelServerType::Master)?
            .set_client_to_redis_db(self.db);
        if self.tls {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(user) = &self.login.user {
            builder = builder.set_client_to_redis_username(user).set_client_to_sentinel_username(user);
        }
        if let Some(password) = &self.login.password {
            builder =
                builder.set_client_to_redis_password(password).set_client_to_sentinel_password(password);
        }
        Ok(builder.build()?)
    }
}

impl Target {
    pub(crate) fn is_tls(&self) -> bool {
        let secure = |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        match self {
            Target::Single(info) => secure(info),
            Target::Cluster(infos) => infos.iter().any(secure),
            Target::Sentinel(sentinel) => sentinel.tls,
        }
    }
}

/// `user:password@h1:p1,h2:p2`; a cluster has no databases.
fn cluster(rest: &str, tls: bool) -> Option<Vec<ConnectionInfo>> {
    let rest = rest.split(['/', '?']).next()?;
    let (login, hosts) = rest.rsplit_once('@').map_or(("", rest), |(login, hosts)| (login, hosts));
    let at = if login.is_empty() { "" } else { "@" };
    let scheme = if tls { "rediss" } else { "redis" };
    let url = |host: &str| format!("{scheme}://{login}{at}{host}").into_connection_info().ok();
    hosts.split(',').map(|host| url(host).filter(|_| !host.is_empty())).collect()
}

/// `user:password@h1:p1,h2:p2/master/db`.
fn sentinel(rest: &str, tls: bool) -> Option<Sentinel> {
    let (authority, path) = rest.split_once('/')?;
    let (login, hosts) = authority.rsplit_once('@').map_or(("", authority), |(login, hosts)| (login, hosts));
    let nodes = hosts.split(',').map(node).collect::<Option<Vec<_>>>()?;
    let mut path = path.split('/');
    let master = path.next().filter(|name| !name.is_empty())?.to_owned();
    let db = path.next().filter(|db| !db.is_empty()).map_or(Some(0), |db| db.parse().ok())?;
    Some(Sentinel { nodes, master, db, login: self::login(login)?, tls })
}

fn node(host: &str) -> Option<(String, u16)> {
    let url = Url::parse(&format!("redis://{host}")).ok()?;
    Some((url.host_str()?.to_owned(), url.port().unwrap_or(26379)))
}

/// A URL's own rules decide what is escaped in a user name and a password.
fn login(text: &str) -> Option<Login> {
    if text.is_empty() {
        return Some(Login::default());
    }
    let info = format!("redis://{text}@localhost").into_connection_info().ok()?;
    let redis = info.redis_settings();
    Some(Login { user: redis.username().map(str::to_owned), password: redis.password().map(str::to_owned) })
}

/// A Redis URL fit for logs and pages: the password is replaced, options are left out.
pub fn redact_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let rest = rest.split('?').next().unwrap_or_default();
    let (login, place) = rest.rsplit_once('@').map_or(("", rest), |(login, place)| (login, place));
    match login.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***@{place}"),
        None if login.is_empty() => format!("{scheme}://{place}"),
        None => format!("{scheme}://{login}@{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_and_shown_without_their_password() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
            ("redis://:s3cret@cache:6379/2?protocol=resp3", "redis://:***@cache:6379/2"),
            ("rediss://me:s3c@ret@cache/1", "rediss://me:***@cache/1"),
            ("redis+cluster://me:s3cret@a:7000,b:7001", "redis+cluster://me:***@a:7000,b:7001"),
            ("redis+sentinel://:s3cret@a:26379,b/mymaster/3", "redis+sentinel://:***@a:26379,b/mymaster/3"),
        ] {
            // The second of these has an @ in its password that a URL must escape.
            if let Ok(address) = Address::parse(url) {
                assert!(!format!("{address:?}").contains("s3cret"), "{address:?}");
                assert_eq!(address.shown(), shown);
            } else {
                assert!(url.contains("s3c@ret"), "{url}");
            }
            assert_eq!(redact_url(url), shown);
        }
    }

    #[test]
    fn what_is_no_address_says_what_to_write_and_no_secret() {
        for url in [
            "",
            "s3cret",
            "http://s3cret:s3cret@cache",
            "redis+sentinel://a:26379",
            "redis+cluster://",
            "redis+cluster://a,,b",
            "redis+sentinel://a/master/s3cret",
            "redis://me:s3cret@cache:notaport",
        ] {
            let message = Address::parse(url).expect_err(url).to_string();
            assert!(message.contains("redis+sentinel://"), "{message}");
            assert!(!message.contains(":s3cret"), "{message}");
        }
    }
}
