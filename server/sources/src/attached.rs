//! An attached table as the services see it.

use crate::cache::RecordCache;
use crate::catalogue::Class;
use crate::config::{Biz, BizNo, SourceConfig};
use crate::judge::{Outcome, Rows, combine};
use crate::layout::Layout;
use crate::outage::Outage;
use crate::parts::{LayoutError, Part, parts};
use crate::reading::{Reading, Seen};
use crate::replay::{HttpSettings, Sender, can_send, client};
use crate::reverse::{Check, Opener, Subject};
use crate::settle::Wanted;
use crate::template::Template;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use db::{Db, DbError, Options, Query, Row};
use domain::actions::Action;
use domain::clock::Clock;
use domain::compensation::{Plan, ReplayAnswer};
use domain::error::{Error, Result};
use domain::evidence::{Finding, Reason};
use domain::outbox::Undelivered;
use domain::ports::{Applied, Cache, Change, Source};
use domain::record::{
    Abilities, Body, Place, RecordDetail, RecordFilter, RecordId, RecordRow, State, Version,
};
use domain::source::SourceStatus;
use domain::unable::Unable;
use futures::future::join_all;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// An attached table: reads it, checks the business data behind it, changes it by compare-and-set.
pub struct Attached {
    pub(crate) config: SourceConfig,
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn Clock>,
    kinds: HashMap<String, Kind>,
    client: reqwest::Client,
    cache: Option<RecordCache>,
    /// The tables that hold the records, the live ones first; at least one.
    pub(crate) parts: Vec<Part>,
    pub(crate) outage: Outage,
}

/// What is prepared once for a biz_type.
struct Kind {
    checks: Vec<Check>,
    template: Option<Template>,
    sender: Option<Sender>,
}

/// Why a source cannot be opened as configured: everything to correct, one thing a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

impl Attached {
    /// Opens the source without connecting: one that is down now may come up later. Fails only when the
    /// configuration does not make sense; the message says what to write.
    pub fn open(config: SourceConfig, http: &HttpSettings, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let problems = config.problems();
        if !problems.is_empty() {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(OpenError(lines.join("\n")));
        }
        let wrong = |message: String| OpenError(format!("source {:?}: {message}", config.name));
        let db = open_db(&config, config.url.expose()).map_err(|error| wrong(error.to_string()))?;
        let client = client(http).map_err(&wrong)?;
        let mut opener = Opener::new(&config, client.clone(), Arc::clone(&clock));
        let kinds =
            config.biz.iter().map(|biz| Ok((biz.name.clone(), Kind::new(biz, &mut opener).map_err(&wrong)?)));
        let kinds = kinds.collect::<Result<_, OpenError>>()?;
        let parts = parts(&config, &db).map_err(|error| wrong(error.to_string()))?;
        let cache = config.cache.as_ref().map(RecordCache::open).transpose().map_err(&wrong)?;
        Ok(Self { kinds, db, clock, client, cache, parts, outage: Outage::default(), config })
    }

    /// The mapping on one of the tables, read once; `status` reads it anew.
    pub(crate) async fn layout_of(&self, part: &Part) -> Result<Arc<Layout>> {
        match part.known_layout().await {
            Some(layout) => Ok(layout),
            None => self.read_layout_of(part).await,
        }
    }

    /// Reads a live table's columns and puts the mapping on them.
    pub(crate) async fn read_layout_of(&self, part: &Part) -> Result<Arc<Layout>> {
        match part.read_layout(&self.config).await {
            Ok(layout) => Ok(layout),
            Err(LayoutError::Db(error)) => Err(self.down(error)),
            Err(LayoutError::Mapping(wrong)) => Err(self.unusable(wrong.join("; "))),
        }
    }

    /// Reads the first live table anew.
    pub(crate) async fn read_layout(&self) -> Result<Arc<Layout>> {
        self.read_layout_of(&self.parts[0]).await
    }

    pub(crate) fn reading<'a>(&'a self, layout: &'a Layout) -> Reading<'a> {
        self.parts[0].reading(&self.config, layout)
    }

    /// The table that a record is in.
    pub(crate) fn part_of(&self, id: &RecordId) -> Result<&Part> {
        let label = id.locator.first().map_or("", String::as_str);
        let found = self.parts.iter().find(|part| part.label.as_deref().is_none_or(|own| own == label));
        found.ok_or_else(|| not_found(id))
    }

    pub(crate) fn down(&self, error: DbError) -> Error {
        let message = error.to_string();
        if matches!(error, DbError::Unavailable(_)) {
            self.outage.began(self.clock.now(), &message);
        }
        self.unusable(message)
    }

    /// Fails at once while the source is known to be down.
    fn expect_up(&self) -> Result<()> {
        self.outage.known(self.clock.now()).map_or(Ok(()), |message| Err(self.unusable(message)))
    }

    fn unusable(&self, message: String) -> Error {
        Error::unavailable(format!("The source {:?}", self.config.name), message)
    }

    fn kind(&self, biz_type: Option<&str>) -> Option<&Kind> {
        self.kinds.get(biz_type?)
    }

    async fn now(&self, db: &Db) -> Result<DateTime<Utc>> {
        db.now().await.map_err(|error| self.down(error))
    }

    /// The checks of a record, all asked at once and outside any transaction of ours.
    async fn ask(&self, checks: &[Check], subject: &Subject<'_>) -> Vec<Outcome> {
        join_all(checks.iter().map(|check| check.ask(&self.db, subject))).await
    }

    /// The prepared checks of a biz_type; none when it is not configured.
    pub(crate) fn checks_of(&self, biz_type: &str) -> &[Check] {
        self.kinds.get(biz_type).map_or(&[], |kind| kind.checks.as_slice())
    }

    /// How a biz_type's response is rendered, when it is.
    pub(crate) fn template_of(&self, biz_type: &str) -> Option<&Template> {
        self.kinds.get(biz_type)?.template.as_ref()
    }

    /// The checks of a record; the finding when it has none.
    pub(crate) fn checks(&self, record: &RecordDetail) -> Result<&[Check], Box<Finding>> {
        let biz_type = record.row.biz_type.as_deref();
        match self.checks_of(biz_type.unwrap_or_default()) {
            checks if !checks.is_empty() => Ok(checks),
            _ => {
                let reason = Reason::NotConfigured { biz_type: biz_type.map(str::to_owned) };
                Err(Box::new(Finding::unavailable(reason, self.db.shown_url())))
            }
        }
    }

    fn abilities(&self, reading: Reading<'_>, row: &RecordRow, request: &Body) -> Abilities {
        let biz = self.config.biz(row.biz_type.as_deref());
        if biz.is_some_and(Biz::needs_approval) {
            let needs = Err(Unable::NeedsApproval);
            return Abilities { mark_succeeded: needs.clone(), mark_timed_out: needs.clone(), replay: needs };
        }
        let sender = self.kind(row.biz_type.as_deref()).and_then(|kind| kind.sender.as_ref());
        let prepare = match self.prepare_of(row) {
            Some(Action::Replay) if self.cache().is_some() => {
                Err("The record cannot be removed while a cache entry may speak for it; write prepare = \"mark_timed_out\".".into())
            }
            Some(action) => reading.can_write(action),
            None => Ok(()),
        };
        Abilities {
            mark_succeeded: reading.can_write(Action::MarkSucceeded),
            mark_timed_out: reading.can_write(Action::MarkTimedOut),
            replay: can_send(biz, sender, request).and(prepare),
        }
    }

    fn detail(&self, reading: Reading<'_>, row: &Row, now: DateTime<Utc>) -> RecordDetail {
        let request = reading.request(row);
        let mut seen = reading.seen(row, now).row;
        if let Some(BizNo::Request { pointer }) = &self.config.columns.biz_no {
            seen.biz_no = seen.biz_no.or_else(|| request.scalar_at(pointer.as_str()));
        }
        RecordDetail {
            abilities: self.abilities(reading, &seen, &request),
            located: reading.located_by(&seen.id),
            row: seen,
            request,
            marks: reading.marks(row),
            response: reading.response(row),
            facts: reading.facts(row),
            read_at: now,
        }
    }

    /// Reads one record as a compare-and-set needs it, outside any transaction, and the source's clock.
    async fn seen(&self, reading: Reading<'_>, id: &RecordId) -> Result<(Seen, DateTime<Utc>)> {
        let db = &self.part_of(id)?.db;
        let now = self.now(db).await?;
        let located = reading.located(id).ok_or_else(|| not_found(id))?;
        let select = reading.select().and_where(located).to_owned();
        let row = db.fetch_optional(&db.query(&select)).await.map_err(|error| self.down(error))?;
        row.map(|row| (reading.seen(&row, now), now)).ok_or_else(|| not_found(id))
    }

    /// The response that mark-succeeded stores: the one given, or one rendered from the business row.
    async fn response(&self, layout: &Layout, change: &Change<'_>) -> Result<Option<String>> {
        let refused = |message: String| Error::Refused { code: "response_needed".into(), message };
        let Some(body) = &layout.response else {
            return match change.response_body {
                None => Ok(None),
                Some(_) => Err(refused("This table stores no response; leave response_body out.".into())),
            };
        };
        let column = body.written().map_err(refused)?;
        let template = change.record.row.biz_type.as_deref().and_then(|name| self.template_of(name));
        let text = match (change.response_body, template) {
            (Some(given), _) => given.to_owned(),
            (None, Some(template)) => self.rendered(template, change.record).await.map_err(refused)?,
            (None, None) => {
                return Err(refused(
                    "Give the response that later duplicates shall get (response_body), or configure [source.biz.response].".into(),
                ));
            }
        };
        if text.is_empty() || text.contains('\0') {
            return Err(refused("The response must not be empty and must not hold NUL characters.".into()));
        }
        match column.class {
            Class::Json => self.as_stored_json(&column.declared, &text).await.map(Some).map_err(refused),
            _ => Ok(Some(text)),
        }
    }

    /// JSON columns keep their own spelling, by which the change is recognised when read back.
    async fn as_stored_json(&self, declared: &str, text: &str) -> Result<String, String> {
        // The type's name comes from the live catalogue: json or jsonb.
        let sql = match self.db.dialect() {
            db::Dialect::Postgres => format!("SELECT CAST(CAST(? AS {declared}) AS TEXT)"),
            _ => "SELECT CAST(CAST(? AS JSON) AS CHAR)".to_owned(),
        };
        let row = self.db.fetch_optional(&Query::raw(sql, vec![text.into()])).await;
        let stored = row.ok().flatten().and_then(|row| row.opt_text(0).ok().flatten());
        stored.ok_or_else(|| "The response must be JSON: its column takes nothing else.".to_owned())
    }

    /// Renders from the true values of the business row, read now: the finding's are masked.
    async fn rendered(&self, template: &Template, record: &RecordDetail) -> Result<String, String> {
        let subject = Subject::of(record);
        let from_record = template.names().all(|name| subject.named(name).is_some());
        let outcomes = match self.checks(record) {
            Ok(checks) if !from_record => self.ask(checks, &subject).await,
            _ => Vec::new(),
        };
        let in_rows = |name: &str| outcomes.iter().find_map(|outcome| first_value(&outcome.rows, name));
        template.render(|name| in_rows(name).or_else(|| subject.named(name))).map_err(|message| {
            format!("{message}; give the response that later duplicates shall get (response_body).")
        })
    }
}

impl Kind {
    fn new(biz: &Biz, opener: &mut Opener<'_>) -> Result<Self, String> {
        let now = opener.clock.now();
        Ok(Self {
            checks: Check::all(&biz.reverse_check, opener)?,
            template: biz
                .response
                .as_ref()
                .map(|response| Template::parse(&response.template))
                .transpose()?,
            sender: biz.replay.as_ref().map(|replay| Sender::new(replay, now)).transpose()?,
        })
    }
}

#[async_trait]
impl Source for Attached {
    fn name(&self) -> &str {
        &self.config.name
    }

    async fn status(&self) -> SourceStatus {
        self.ask_status().await
    }

    async fn list(
        &self,
        filter: &RecordFilter,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<RecordRow>> {
        self.expect_up()?;
        self.list_all(filter, after, limit).await
    }

    async fn get(&self, id: &RecordId) -> Result<RecordDetail> {
        self.expect_up()?;
        let part = self.part_of(id)?;
        let layout = self.layout_of(part).await?;
        let reading = part.reading(&self.config, &layout);
        let now = self.now(&part.db).await?;
        let located = reading.located(id).ok_or_else(|| not_found(id))?;
        let select = reading.select_whole().and_where(located).to_owned();
        let row = part.db.fetch_optional(&part.db.query(&select)).await.map_err(|error| self.down(error))?;
        row.map(|row| self.detail(reading, &row, now)).ok_or_else(|| not_found(id))
    }

    async fn undelivered(&self, after: Option<i64>, limit: usize) -> Result<Vec<Undelivered>> {
        self.expect_up()?;
        self.read_outbox(after, limit).await.map_err(|error| self.down(error))
    }

    async fn reverse_check(&self, record: &RecordDetail) -> Finding {
        match self.checks(record) {
            Err(unavailable) => *unavailable,
            Ok(checks) => {
                let outcomes = self.ask(checks, &Subject::of(record)).await;
                combine(outcomes, self.read_from(checks))
            }
        }
    }

    async fn plan(&self, change: Change<'_>) -> Result<Plan> {
        let id = &change.record.row.id;
        let part = self.part_of(id)?;
        let layout = self.layout_of(part).await?;
        let reading = part.reading(&self.config, &layout);
        let writes = match change.action {
            Action::Replay => self.prepare_of(&change.record.row),
            mark => Some(mark),
        };
        let refused = |message: String| Error::Refused { code: "not_expressible".into(), message };
        if let Some(action) = writes {
            reading.can_write(action).map_err(|unable| refused(unable.to_string()))?;
        }
        let response = match change.action {
            Action::MarkSucceeded => self.response(&layout, &change).await?,
            Action::MarkTimedOut | Action::Replay => None,
        };
        let (seen, now) = self.seen(reading, id).await?;
        let marker = reading.marker(change.action, now, &seen, &change.record.marks).map_err(refused)?;
        // A removal leaves no state behind.
        let marks = writes.filter(|action| *action != Action::Replay);
        let state = marks.map_or(change.record.row.state, |action| self.config.marked(action));
        Ok(Plan { state, marker, response })
    }

    async fn apply(
        &self,
        record: &RecordDetail,
        expect: &Version,
        change: Action,
        plan: &Plan,
        until: DateTime<Utc>,
    ) -> Result<Applied> {
        self.compare_and_set(record, &Wanted { expect, action: change, plan, until }).await
    }

    fn prepare_of(&self, record: &RecordRow) -> Option<Action> {
        let replay = self.config.biz(record.biz_type.as_deref())?.replay.as_ref()?;
        match replay.prepare.action() {
            // Where a row is in the way, it is so in every state.
            Some(Action::Replay) => Some(Action::Replay),
            // TIMEOUT and FAILED let the key run again already.
            mark => mark.filter(|_| !matches!(record.state, State::Timeout | State::Failed)),
        }
    }

    async fn replay(&self, record: &RecordDetail) -> ReplayAnswer {
        match self.kind(record.row.biz_type.as_deref()).and_then(|kind| kind.sender.as_ref()) {
            Some(sender) => sender.send(&self.client, record, self.clock.now()).await,
            None => ReplayAnswer::NotSent { message: "no replay target is configured".into() },
        }
    }

    fn replay_timeout(&self, record: &RecordRow) -> Duration {
        let sender = self.kind(record.biz_type.as_deref()).and_then(|kind| kind.sender.as_ref());
        sender.map_or(Duration::ZERO, Sender::timeout)
    }

    fn cache(&self) -> Option<&dyn Cache> {
        self.cache.as_ref().map(|cache| cache as &dyn Cache)
    }
}

impl Attached {
    pub(crate) fn read_from(&self, checks: &[Check]) -> String {
        let mut servers: Vec<&str> = Vec::new();
        for check in checks {
            for server in check.servers(&self.db) {
                if !servers.contains(&server) {
                    servers.push(server);
                }
            }
        }
        servers.join(", ")
    }
}

pub(crate) fn not_found(id: &RecordId) -> Error {
    Error::not_found(format!("The record {:?}", id.locator.join(" ")))
}

pub(crate) fn open_db(config: &SourceConfig, url: &str) -> Result<Db, DbError> {
    let options = Options {
        max_connections: config.max_connections,
        statement_timeout: config.statement_timeout.get(),
        connect_timeout: config.connect_timeout.get(),
        ..Options::default()
    };
    Db::open(url, &options)
}

fn first_value(rows: &Rows, column: &str) -> Option<String> {
    (0..rows.rows.len()).find_map(|row| rows.value(row, column)).map(str::to_owned)
}
