//! One connection, made when first needed and made anew when it breaks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisFuture, Value};
use tokio::time::{Instant, timeout};

use crate::KvError;
use crate::address::{Address, Target};

/// How Redis is spoken to.
#[derive(Debug, Clone)]
pub struct Options {
    /// Longest to wait for a connection.
    pub connect_timeout: Duration,
    /// Longest to wait for an answer.
    pub response_timeout: Duration,
    /// How long calls fail at once after a connection failed.
    pub pause_after_failure: Duration,
}

impl Default for Options {
    /// A cache that takes longer than this is slower than the database behind it.
    fn default() -> Self {
        Options {
            connect_timeout: Duration::from_millis(500),
            response_timeout: Duration::from_millis(500),
            pause_after_failure: Duration::from_secs(1),
        }
    }
}

/// A connection that many calls share.
#[derive(Clone)]
pub(crate) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Connection::Single(connection) => connection.req_packed_command(cmd),
            Connection::Cluster(connection) => connection.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Connection::Single(connection) => connection.req_packed_commands(pipeline, offset, count),
            Connection::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Connection::Single(connection) => connection.get_db(),
            Connection::Cluster(connection) => connection.get_db(),
        }
    }
}

/// Hands out the connection.
pub(crate) struct Connector {
    pub(crate) address: Address,
    options: Options,
    current: Mutex<Current>,
    /// Held while connecting, so that a crowd connects once.
    connecting: tokio::sync::Mutex<()>,
}

enum Current {
    None,
    Open { connection: Connection, number: u64 },
    Failed { until: Instant, error: KvError },
}

/// A connection and its number, by which its failure is told from an older one's.
pub(crate) struct Lent {
    pub(crate) connection: Connection,
    pub(crate) number: u64,
}

impl Connector {
    pub(crate) fn new(address: Address, options: Options) -> Connector {
        if address.target.is_tls() {
            // Two providers are compiled in, so none is the default; an application may have chosen one already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Connector {
            address,
            options,
            current: Mutex::new(Current::None),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// The connection, made if need be. Errors at once for a moment after a failure.
    pub(crate) async fn get(&self) -> Result<Lent, KvError> {
        if let Some(known) = self.known() {
            return known;
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let connected = match timeout(self.options.connect_timeout * 2, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(KvError::Unavailable("no connection in time".into())),
        };
        self.keep(connected)
    }

    /// Forgets a connection that broke, so that the next call makes a new one.
    pub(crate) fn broke(&self, number: u64) {
        let mut current = self.lock();
        if matches!(&*current, Current::Open { number: open, .. } if *open == number) {
            *current = Current::None;
        }
    }

    fn known(&self) -> Option<Result<Lent, KvError>> {
        match &*self.lock() {
            Current::Open { connection, number } => {
                Some(Ok(Lent { connection: connection.clone(), number: *number }))
            }
            Current::Failed { until, error } if Instant::now() < *until => Some(Err(error.clone())),
            Current::Failed { .. } | Current::None => None,
        }
    }

    fn keep(&self, connected: Result<Connection, KvError>) -> Result<Lent, KvError> {
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        match connected {
            Ok(connection) => {
                let number = NUMBERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                *self.lock() = Current::Open { connection: connection.clone(), number };
                Ok(Lent { connection, number })
            }
            Err(error) => {
                let until = Instant::now() + self.options.pause_after_failure;
                *self.lock() = Current::Failed { until, error: error.clone() };
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<Connection, KvError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.connect_timeout))
            .set_response_timeout(Some(self.options.response_timeout));
        Ok(match &self.address.target {
            Target::Single(info) => {
                let client = Client::open(info.clone())?;
                Connection::Single(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            Target::Sentinel(sentinel) => {
                let client = sentinel.client()?.async_get_client().await?;
                Connection::Single(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            Target::Cluster(nodes) => {
                let client = ClusterClientBuilder::new(nodes.iter().cloned())
                    .connection_timeout(self.options.connect_timeout)
                    .response_timeout(self.options.response_timeout)
                    .retries(2)
                    .build()?;
                Connection::Cluster(client.get_async_connection().await?)
            }
        })
    }

    /// Nothing is left half-changed under this lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
