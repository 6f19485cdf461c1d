//! Reverse checks: the configured questions, asked of the business data, read-only and on the primary.
//!
//! * `subject` is what a check takes from the record; `own_rows` leaves out what a database took for it.
//! * `sql` asks one database, `shards` many, `route` says which shard first; `http` asks a query endpoint and `answer`
//!   says what it answered, `sign` signs the question.

mod answer;
mod http;
mod own_rows;
mod route;
mod shards;
mod sign;
mod sql;
mod subject;

pub(crate) use sql::is_primary;
pub(crate) use subject::Subject;

use crate::config::{Ask, Home, ReverseCheck, SourceConfig};
use crate::judge::Outcome;
use crate::named::{Param, Statement};
use db::{Db, Dialect, Options, Tx};
use domain::clock::Clock;
use domain::evidence::Reason;
use http::Endpoint;
use shards::Fan;
use sql::Question;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// One configured check, ready to run.
pub(crate) struct Check {
    pub(crate) label: String,
    pub(crate) config: ReverseCheck,
    asks: Asks,
}

/// Whom a check asks.
enum Asks {
    /// The database that holds the records: inside the transaction that changes one, if need be.
    Own(Statement),
    Other(Statement, Db),
    Shards(Fan),
    Http(Box<Endpoint>),
}

/// Opens what checks need; a database that is named several times is opened once.
pub(crate) struct Opener<'a> {
    pub(crate) source: &'a SourceConfig,
    pub(crate) client: reqwest::Client,
    pub(crate) clock: Arc<dyn Clock>,
    opened: HashMap<(String, Duration), Db>,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(source: &'a SourceConfig, client: reqwest::Client, clock: Arc<dyn Clock>) -> Self {
        Self { source, client, clock, opened: HashMap::new() }
    }

    /// A pool of at least `connections`, the first time it is asked for.
    fn database(&mut self, url: &str, timeout: Duration, connections: usize) -> Result<Db, String> {
        let key = (url.to_owned(), timeout);
        if let Some(db) = self.opened.get(&key) {
            return Ok(db.clone());
        }
        let options = Options {
            max_connections: self.source.max_connections.max(u32::try_from(connections).unwrap_or(u32::MAX)),
            statement_timeout: timeout,
            connect_timeout: self.source.connect_timeout.get().min(timeout),
            ..Options::default()
        };
        let db = Db::open(url, &options).map_err(|error| error.to_string())?;
        self.opened.insert(key, db.clone());
        Ok(db)
    }
}

impl Check {
    /// Whether a check makes sense as written, without opening anything; the message says what to write.
    pub(crate) fn verify(config: &ReverseCheck, source: &SourceConfig) -> Result<(), String> {
        if let Some((param, _)) = config.params.iter().find(|(param, _)| !asks_with(config, param)) {
            return Err(format!("params names {param}, which the check does not use"));
        }
        match &config.ask {
            Ask::Http(http) => Endpoint::verify(http),
            Ask::Sql { sql, home: Home::Source } => statement(sql, source.url.expose()).map(drop),
            Ask::Sql { sql, home: Home::Elsewhere { url, .. } } => statement(sql, url.expose()).map(drop),
            Ask::Sql { sql, home: Home::Shards(sharding) } => Fan::verify(sql, sharding, source.url.expose()),
        }
    }

    /// The checks of a biz_type; the error names what cannot be understood.
    pub(crate) fn all(configs: &[ReverseCheck], opener: &mut Opener<'_>) -> Result<Vec<Self>, String> {
        let each = configs.iter().enumerate().map(|(place, config)| {
            Ok(Self { label: config.label(place), asks: Asks::open(config, opener)?, config: config.clone() })
        });
        each.collect()
    }

    /// Whether it reads something that no transaction on the source's own database covers.
    pub(crate) fn is_elsewhere(&self) -> bool {
        !matches!(self.asks, Asks::Own(_))
    }

    /// Asks with transactions of its own, where there are any.
    pub(crate) async fn ask(&self, own: &Db, subject: &Subject<'_>) -> Outcome {
        let question = match Question::new(&self.config, &self.label, subject) {
            Ok(question) => question,
            Err(reason) => return Outcome::unavailable(&self.label, reason),
        };
        let asked = match &self.asks {
            Asks::Own(statement) => question.ask(statement, own).await,
            Asks::Other(statement, db) => question.ask(statement, db).await,
            Asks::Shards(fan) => fan.ask(own, &question).await,
            Asks::Http(endpoint) => endpoint.ask(&question).await,
        };
        asked.unwrap_or_else(|reason| Outcome::unavailable(&self.label, reason))
    }

    /// Asks inside a transaction that is open already; only for a check that is not elsewhere.
    pub(crate) async fn ask_within(&self, tx: &mut Tx, own: &Db, subject: &Subject<'_>) -> Outcome {
        let Asks::Own(statement) = &self.asks else { return self.ask(own, subject).await };
        let asked = match Question::new(&self.config, &self.label, subject) {
            Ok(question) => question.ask_within(statement, tx, own.shown_url()).await,
            Err(reason) => Err(reason),
        };
        asked.unwrap_or_else(|reason| Outcome::unavailable(&self.label, reason))
    }

    /// Whom it asks, for the eye; never a credential.
    pub(crate) fn servers<'a>(&'a self, own: &'a Db) -> Vec<&'a str> {
        match &self.asks {
            Asks::Own(_) => vec![own.shown_url()],
            Asks::Other(_, db) => vec![db.shown_url()],
            Asks::Shards(fan) => fan.servers().collect(),
            Asks::Http(endpoint) => vec![endpoint.shown()],
        }
    }

    /// Every statement with its database, for trying them out; none for a query endpoint.
    pub(crate) fn statements<'a>(&'a self, own: &'a Db) -> Vec<(&'a Statement, &'a Db)> {
        match &self.asks {
            Asks::Own(statement) => vec![(statement, own)],
            Asks::Other(statement, db) => vec![(statement, db)],
            Asks::Shards(fan) => fan.statements().collect(),
            Asks::Http(_) => Vec::new(),
        }
    }

    /// The columns of an answer that no statement tells.
    pub(crate) fn answered_columns(&self) -> Vec<String> {
        match &self.asks {
            Asks::Http(endpoint) => endpoint.columns(),
            _ => Vec::new(),
        }
    }

    /// A parameter's value as this check binds it.
    pub(crate) fn bound(&self, subject: &Subject<'_>, param: &Param) -> Result<db::Value, Reason> {
        subject.bound(&self.config, &self.label, param)
    }
}

impl Asks {
    fn open(config: &ReverseCheck, opener: &mut Opener<'_>) -> Result<Self, String> {
        let source = opener.source;
        match &config.ask {
            Ask::Http(http) => Endpoint::new(http, opener).map(|endpoint| Self::Http(Box::new(endpoint))),
            Ask::Sql { sql, home: Home::Source } => statement(sql, source.url.expose()).map(Self::Own),
            // The same database by another key: one transaction can then cover record and business data.
            Ask::Sql { sql, home: Home::Elsewhere { url, timeout: None } } if *url == source.url => {
                statement(sql, url.expose()).map(Self::Own)
            }
            Ask::Sql { sql, home: Home::Elsewhere { url, timeout } } => {
                let timeout = timeout.unwrap_or(source.statement_timeout).get();
                let statement = statement(sql, url.expose())?;
                Ok(Self::Other(statement, opener.database(url.expose(), timeout, 1)?))
            }
            Ask::Sql { sql, home: Home::Shards(sharding) } => {
                Fan::open(sql, sharding, opener).map(Self::Shards)
            }
        }
    }
}

fn dialect_of(url: &str) -> Result<Dialect, String> {
    Dialect::of_url(url).map_err(|error| error.to_string())
}

fn statement(sql: &str, url: &str) -> Result<Statement, String> {
    Statement::parse(sql, dialect_of(url)?)
}

/// Whether the question of a check holds the parameter. What cannot be read is another check's finding.
fn asks_with(config: &ReverseCheck, param: &Param) -> bool {
    match &config.ask {
        Ask::Http(http) => Endpoint::params(http).contains(param),
        Ask::Sql { sql, .. } => match param {
            Param::Request(pointer) => sql.contains(&format!(":\"{}\"", pointer.as_str())),
            other => sql.contains(&format!(":{other}")),
        },
    }
}
