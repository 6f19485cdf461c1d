//! The tables that hold one source's records: the live one or its shards, then archives.

use crate::attached::{Attached, open_db};
use crate::catalogue::Catalogue;
use crate::config::{SourceConfig, Table};
use crate::join::Joins;
use crate::layout::{Held, Layout, Number};
use crate::listing::Listing;
use crate::reading::Reading;
use crate::sql::never;
use db::{Db, DbError};
use domain::error::{Error, Result};
use domain::record::{Place, RecordFilter, RecordRow};
use sea_query::{Expr, Query};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::RwLock;

/// One table.
pub(crate) struct Part {
    /// The first part of its records' locators, where the source has several tables.
    pub(crate) label: Option<String>,
    pub(crate) db: Db,
    pub(crate) table: Table,
    held: Held,
    layout: RwLock<Option<Arc<Layout>>>,
}

/// Why a mapping could not be put on a table.
pub(crate) enum LayoutError {
    Db(DbError),
    /// Everything to correct.
    Mapping(Vec<String>),
}

/// Every table of a source; the live ones come first.
pub(crate) fn parts(config: &SourceConfig, db: &Db) -> Result<Vec<Part>, DbError> {
    let mut parts = Vec::new();
    if config.shard.is_empty() {
        parts.push(Part::new(db.clone(), config.table.clone(), Held::default()));
    }
    for shard in &config.shard {
        let db = match &shard.url {
            Some(url) => open_db(config, url.expose())?,
            None => db.clone(),
        };
        parts.extend(shard.tables().map(|table| Part::new(db.clone(), table, Held::default())));
    }
    for archive in &config.archive {
        let held = Held {
            read_only: Some(format!(
                "The record was moved to {}, where nothing is changed any more.",
                archive.table
            )),
            renamed: archive.columns.clone(),
        };
        parts.push(Part::new(db.clone(), archive.table.clone(), held));
    }
    if parts.len() > 1 {
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for part in &mut parts {
            // Two databases may have a table of the same name.
            let name = part.table.to_string();
            let count = taken.entry(name.clone()).or_default();
            *count += 1;
            part.label = Some(if *count == 1 { name } else { format!("{name}#{count}") });
        }
    }
    Ok(parts)
}

impl Part {
    fn new(db: Db, table: Table, held: Held) -> Self {
        Self { label: None, db, table, held, layout: RwLock::default() }
    }

    /// Whether its records can be changed at all.
    pub(crate) fn is_live(&self) -> bool {
        self.held.read_only.is_none()
    }

    pub(crate) async fn known_layout(&self) -> Option<Arc<Layout>> {
        self.layout.read().await.clone()
    }

    pub(crate) async fn read_layout(&self, config: &SourceConfig) -> Result<Arc<Layout>, LayoutError> {
        let catalogue = Catalogue::read(&self.db, &self.table).await.map_err(LayoutError::Db)?;
        let joins = Joins::read(&self.db, &config.join, &self.table).await.map_err(LayoutError::Db)?;
        let resolved = Layout::resolve(config, &self.table, &self.held, catalogue, &joins, self.db.dialect());
        let layout = Arc::new(resolved.map_err(LayoutError::Mapping)?);
        self.try_expressions(config, &layout).await?;
        *self.layout.write().await = Some(Arc::clone(&layout));
        Ok(layout)
    }

    /// Every configured SQL condition runs on the live table, in a transaction that cannot write and is bounded in time.
    async fn try_expressions(&self, config: &SourceConfig, layout: &Layout) -> Result<(), LayoutError> {
        let mut wrong = Vec::new();
        for (key, sql) in config.expressions() {
            let mut select = Query::select();
            // Planned and checked against the table, never carried out on a row.
            select.expr(Expr::cust("1")).from(layout.table_ref());
            select.and_where(never()).and_where(Expr::cust(format!("({sql})")));
            let mut tx = self.db.begin_read().await.map_err(LayoutError::Db)?;
            match tx.fetch_optional(&self.db.query(&select)).await {
                Ok(_) => {}
                Err(error @ DbError::Unavailable(_)) => return Err(LayoutError::Db(error)),
                Err(error) => {
                    wrong.push(format!("{key} = {sql:?} does not run on {}: {error}", layout.table))
                }
            }
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(LayoutError::Mapping(wrong)),
        }
    }

    pub(crate) fn reading<'a>(&'a self, config: &'a SourceConfig, layout: &'a Layout) -> Reading<'a> {
        Reading { config, layout, label: self.label.as_deref() }
    }
}

impl Attached {
    /// One page over all tables of the source; a table that cannot be read fails it, so that nothing is left out in silence.
    pub(crate) async fn list_all(
        &self,
        filter: &RecordFilter,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<RecordRow>> {
        // Archives hold what is over; nothing there is stuck.
        let asked = self.parts.iter().filter(|part| part.is_live() || filter.stuck != Some(true));
        let pages = asked.map(|part| self.list_part(part, filter, after, limit));
        let pages = futures::future::try_join_all(pages).await?;
        let one = pages.len() == 1;
        let mut rows: Vec<RecordRow> = pages.into_iter().flatten().collect();
        if !one {
            domain::record::sort(&mut rows, filter.oldest_first());
            rows.truncate(limit);
        }
        Ok(rows)
    }

    async fn list_part(
        &self,
        part: &Part,
        filter: &RecordFilter,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<RecordRow>> {
        let named = |error: Error| match (&part.label, error) {
            (Some(label), Error::Unavailable { what, message }) => {
                Error::unavailable(what, format!("{label}: {message}"))
            }
            (_, error) => error,
        };
        let layout = self.layout_of(part).await.map_err(named)?;
        if filter.biz_no.is_some() && matches!(layout.biz_no, Some(Number::Request)) {
            return Err(Error::invalid(format!(
                "The business number of {} is inside requests that only a record's own page opens; search by key instead.",
                self.config.name
            )));
        }
        let now = part.db.now().await.map_err(|error| named(self.down(error)))?;
        let reading = part.reading(&self.config, &layout);
        let listing = Listing { reading, filter, after, limit, now };
        listing.run(&part.db).await.map_err(|error| named(self.down(error)))
    }
}
