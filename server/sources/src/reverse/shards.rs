//! One question to many tables in several databases. Absent means that every one of them was asked and had nothing.

use super::route::Routing;
use super::sql::{Answer, Question};
use super::{Opener, dialect_of};
use crate::config::{Fallback, ShardTable, Sharding};
use crate::judge::{Outcome, Rows};
use crate::named::{Param, Statement};
use db::{Db, DbError, Query};
use domain::evidence::Reason;
use futures::StreamExt;
use std::sync::OnceLock;
use std::time::Duration;

/// A shard set, opened.
pub(super) struct Fan {
    shards: Vec<Shard>,
    databases: Vec<Database>,
    route: Option<Routing>,
    concurrency: usize,
    timeout: Duration,
}

struct Database {
    db: Db,
    /// What people call it.
    name: String,
}

struct Shard {
    statement: Statement,
    /// Its place in `Fan::databases`.
    database: usize,
    /// Empty when the database is one shard.
    table: String,
}

/// What one shard said: its rows, or why it said nothing.
type Said = Result<Answer, String>;

impl Fan {
    pub(super) fn verify(sql: &str, sharding: &Sharding, own: &str) -> Result<(), String> {
        if let Some(route) = &sharding.route {
            Routing::new(route, dialect_of(own)?, sharding.len())?;
        }
        for set in &sharding.sets {
            statements(sql, set.url.expose(), &set.table.0)?;
        }
        Ok(())
    }

    pub(super) fn open(sql: &str, sharding: &Sharding, opener: &mut Opener<'_>) -> Result<Self, String> {
        let own = dialect_of(opener.source.url.expose())?;
        let route = sharding.route.as_ref();
        let mut fan = Self {
            shards: Vec::with_capacity(sharding.len()),
            databases: Vec::with_capacity(sharding.sets.len()),
            route: route.map(|route| Routing::new(route, own, sharding.len())).transpose()?,
            concurrency: sharding.concurrency,
            timeout: sharding.timeout,
        };
        for (database, set) in sharding.sets.iter().enumerate() {
            let db = opener.database(set.url.expose(), sharding.timeout, sharding.concurrency)?;
            let name = set.name.clone().unwrap_or_else(|| named_by(db.shown_url()));
            fan.databases.push(Database { db, name });
            let statements = statements(sql, set.url.expose(), &set.table.0)?;
            fan.shards.extend(statements.into_iter().map(|(table, statement)| Shard {
                statement,
                database,
                table,
            }));
        }
        Ok(fan)
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        self.databases.iter().map(|database| database.db.shown_url())
    }

    pub(super) fn statements(&self) -> impl Iterator<Item = (&Statement, &Db)> {
        self.shards.iter().map(|shard| (&shard.statement, &self.databases[shard.database].db))
    }

    /// Asks the shard that the route names, and all others unless it has rows.
    pub(super) async fn ask(&self, own: &Db, question: &Question<'_>) -> Result<Outcome, Reason> {
        let queries = self.shards.iter().map(|shard| question.query(&shard.statement));
        let queries = queries.collect::<Result<Vec<_>, _>>()?;
        let down: Vec<OnceLock<String>> = self.databases.iter().map(|_| OnceLock::new()).collect();
        let ask = |at: usize| self.ask_shard(at, &queries[at], question, &down);
        let mut said = Vec::with_capacity(self.shards.len());
        if let Some(route) = &self.route {
            match route.shard(own, question).await {
                Ok(at) => {
                    let routed = ask(at).await;
                    let has_rows = routed.1.as_ref().is_ok_and(|answer| !answer.rows.rows.is_empty());
                    said.push(routed);
                    if has_rows || route.fallback == Fallback::None {
                        return self.together(said, question);
                    }
                }
                Err(reason) if route.fallback == Fallback::None => return Err(reason),
                Err(_) => {}
            }
        }
        let asked = said.first().map(|(at, _)| *at);
        let rest = (0..self.shards.len()).filter(|at| Some(*at) != asked).map(ask);
        said.extend(futures::stream::iter(rest).buffer_unordered(self.concurrency).collect::<Vec<_>>().await);
        said.sort_by_key(|(at, _)| *at);
        self.together(said, question)
    }

    async fn ask_shard(
        &self,
        at: usize,
        query: &Query,
        question: &Question<'_>,
        down: &[OnceLock<String>],
    ) -> (usize, Said) {
        let shard = &self.shards[at];
        let (db, down) = (&self.databases[shard.database].db, &down[shard.database]);
        // One of its tables found out already that the database does not answer.
        if let Some(message) = down.get() {
            return (at, Err(message.clone()));
        }
        let said = match tokio::time::timeout(self.timeout, question.answer(query, db)).await {
            Err(_) => Err(format!("no answer within {} ms", self.timeout.as_millis())),
            Ok(Err(error)) => {
                let message = error.to_string();
                if matches!(error, DbError::Unavailable(_)) {
                    down.get_or_init(|| message.clone());
                }
                Err(message)
            }
            // A row that is late on a replica may be there on its primary.
            Ok(Ok(Answer { rows, is_primary: false })) if rows.rows.is_empty() => {
                Err("a replica, so a missing row proves nothing".to_owned())
            }
            Ok(Ok(answer)) => Ok(answer),
        };
        (at, said)
    }

    /// One verdict on what the asked shards said.
    fn together(&self, said: Vec<(usize, Said)>, question: &Question<'_>) -> Result<Outcome, Reason> {
        let total = said.len();
        let mut rows = Rows::default();
        let mut missed = Vec::new();
        for (at, said) in said {
            match said {
                Ok(answer) => add(&mut rows, answer.rows, &self.place(at), question.label)?,
                Err(message) => missed.push((at, message)),
            }
        }
        let outcome = question.judged(rows, self.params());
        let Some((_, message)) = missed.first() else { return outcome };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let reason = Reason::ShardsMissing {
            check: question.label.to_owned(),
            missed: count(missed.len()),
            total: count(total),
            shards: self.listed(&missed),
            message: message.clone(),
        };
        outcome.map(|outcome| outcome.incomplete(reason))
    }

    /// Every shard asks the same.
    fn params(&self) -> &[Param] {
        self.shards.first().map_or(&[], |shard| &shard.statement.params)
    }

    fn place(&self, at: usize) -> String {
        let shard = &self.shards[at];
        let name = &self.databases[shard.database].name;
        if shard.table.is_empty() { name.clone() } else { format!("{name}/{}", shard.table) }
    }

    /// The missed shards in a few words: by database, from the first to the last.
    fn listed(&self, missed: &[(usize, String)]) -> String {
        let of = |database: usize| {
            let ats = missed.iter().map(|(at, _)| *at);
            let tables: Vec<usize> = ats.filter(|at| self.shards[*at].database == database).collect();
            match tables.as_slice() {
                [] => None,
                [only] => Some(self.place(*only)),
                [first, .., last] => {
                    let between = if tables.len() == 2 { ", " } else { " … " };
                    Some(format!("{}{between}{}", self.place(*first), self.shards[*last].table))
                }
            }
        };
        (0..self.databases.len()).filter_map(of).collect::<Vec<_>>().join(", ")
    }
}

/// The statement of every table of one database.
fn statements(sql: &str, url: &str, tables: &[ShardTable]) -> Result<Vec<(String, Statement)>, String> {
    let dialect = dialect_of(url)?;
    if tables.is_empty() {
        return Ok(vec![(String::new(), Statement::parse(sql, dialect)?)]);
    }
    if !["{table}", "{n}"].iter().any(|placeholder| sql.contains(placeholder)) {
        return Err("shards name tables that sql does not use; write FROM {table}".into());
    }
    let each =
        tables.iter().map(|table| Ok((table.name.clone(), Statement::parse_for(sql, dialect, table)?)));
    each.collect()
}

fn add(rows: &mut Rows, more: Rows, place: &str, check: &str) -> Result<(), Reason> {
    if more.rows.is_empty() {
        return Ok(());
    }
    if !rows.columns.is_empty() && rows.columns != more.columns {
        let message = format!("{place} answers with other columns than the shards before it");
        return Err(Reason::QueryFailed { check: check.to_owned(), message });
    }
    rows.places.extend(more.rows.iter().map(|_| place.to_owned()));
    rows.columns = more.columns;
    rows.rows.extend(more.rows);
    Ok(())
}

/// Host and database of a shown URL, or the file of an SQLite one.
fn named_by(shown_url: &str) -> String {
    let address = shown_url.split_once("://").map_or(shown_url, |(_, address)| address);
    match shown_url.starts_with("sqlite") {
        true => address.rsplit('/').next().unwrap_or(address).to_owned(),
        false => address.rsplit_once('@').map_or(address, |(_, host)| host).to_owned(),
    }
}
