//! Keyset pages over an attached table, in the order the service merges by: creation time in milliseconds, then locator bytes.

use crate::layout::{Breadth, Layout, Number};
use crate::reading::Reading;
use crate::sql::{any, never, untrue};
use crate::time_form::{TimeForm, shifted};
use chrono::{DateTime, Utc};
use db::{Db, DbError, Row};
use domain::clock::from_millis;
use domain::record::{Place, RecordFilter, RecordRow, State};
use sea_query::{Condition, Expr, ExprTrait, Order, SelectStatement};
use std::cmp::Ordering;

/// One request for a page.
#[derive(Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) reading: Reading<'a>,
    pub(crate) filter: &'a RecordFilter,
    pub(crate) after: Option<&'a Place>,
    pub(crate) limit: usize,
    /// The source's clock.
    pub(crate) now: DateTime<Utc>,
}

/// Which records of the millisecond (or of the undated ones) where the last page ended are still to come.
enum Rest<'a> {
    All,
    None,
    Beyond(&'a [String]),
}

impl Listing<'_> {
    /// At most `limit` records in order.
    pub(crate) async fn run(&self, db: &Db) -> Result<Vec<RecordRow>, DbError> {
        let found = self.found(db, Breadth::Whole).await?;
        let by_key = self.filter.key.is_some() || self.filter.search.is_some();
        match found.is_empty() && by_key && self.layout().key.len() > 1 {
            true => self.found(db, Breadth::Part).await,
            false => Ok(found),
        }
    }

    async fn found(&self, db: &Db, breadth: Breadth) -> Result<Vec<RecordRow>, DbError> {
        let Some(matching) = self.matching(breadth) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut after = self.after.cloned();
        loop {
            let page = Listing { after: after.as_ref(), ..*self };
            let rows = page.page(db, &matching).await?;
            after = rows.last().map(Place::of);
            let full = rows.len() == self.limit;
            found.extend(rows.into_iter().filter(|row| self.is_wanted(row)));
            if !full || found.len() >= self.limit {
                found.truncate(self.limit);
                return Ok(found);
            }
        }
    }

    async fn page(&self, db: &Db, matching: &Condition) -> Result<Vec<RecordRow>, DbError> {
        let mut rows = match (&self.layout().created_at, self.after) {
            (Some(created), None | Some(Place { created_ms: Some(_), .. })) => {
                self.dated(db, created, matching).await?
            }
            _ => Vec::new(),
        };
        if rows.len() < self.limit {
            rows.extend(self.undated(db, matching, self.limit - rows.len()).await?);
        }
        Ok(rows)
    }

    /// What the database could only ask roughly: a business number that is part of the key.
    fn is_wanted(&self, row: &RecordRow) -> bool {
        let Some(Number::Key(_)) = &self.layout().biz_no else { return true };
        let is_number = |wanted: &String| row.biz_no.as_ref() == Some(wanted);
        let searched = |wanted: &String| is_number(wanted) || self.layout().key_is(&row.key, wanted);
        self.filter.biz_no.as_ref().is_none_or(is_number) && self.filter.search.as_ref().is_none_or(searched)
    }

    fn layout(&self) -> &Layout {
        self.reading.layout
    }

    /// Sorted by time alone, which an index serves; the last millisecond, where the limit may have cut, is read again whole.
    async fn dated(
        &self,
        db: &Db,
        created: &TimeForm,
        matching: &Condition,
    ) -> Result<Vec<RecordRow>, DbError> {
        let select = self.by_time(created, matching);
        let mut rows = self.fetch(db, select, self.limit).await?;
        if rows.len() == self.limit
            && let Some(last) = rows.last().and_then(|row| row.created_at)
        {
            let ms = last.timestamp_millis();
            rows.retain(|row| row.created_at.is_some_and(|at| at.timestamp_millis() != ms));
            rows.extend(self.millisecond(db, created, matching, ms).await?);
        }
        self.sort(&mut rows);
        rows.truncate(self.limit);
        Ok(rows)
    }

    fn by_time(&self, created: &TimeForm, matching: &Condition) -> SelectStatement {
        let mut select = self.reading.select();
        select.cond_where(matching.clone());
        if let Some(ms) = self.after.and_then(|place| place.created_ms) {
            select.cond_where(self.beyond(created, ms));
        }
        select.cond_where(created.dated());
        select.order_by_expr(created.sorted(), self.order());
        select
    }

    /// Every record of one millisecond that is still to come, in locator order.
    async fn millisecond(
        &self,
        db: &Db,
        created: &TimeForm,
        matching: &Condition,
        ms: i64,
    ) -> Result<Vec<RecordRow>, DbError> {
        let mut select = self.reading.select();
        select
            // First the millisecond, then the filter, last all of time: SQLite lets its index serve the first bounds only.
            .and_where(created.from(from_millis(ms)))
            .and_where(created.before(from_millis(ms.saturating_add(1))))
            .cond_where(matching.clone())
            .cond_where(created.dated());
        if self.after.is_some_and(|place| place.created_ms == Some(ms)) {
            select.and_where_option(self.rest_of_tie());
        }
        self.by_locator(db, select, self.limit).await
    }

    async fn undated(&self, db: &Db, matching: &Condition, limit: usize) -> Result<Vec<RecordRow>, DbError> {
        let mut select = self.reading.select();
        select.cond_where(matching.clone());
        if let Some(created) = &self.layout().created_at {
            select.cond_where(created.undated());
        }
        if self.after.is_some_and(|place| place.created_ms.is_none()) {
            select.and_where_option(self.rest_of_tie());
        }
        self.by_locator(db, select, limit).await
    }

    async fn by_locator(
        &self,
        db: &Db,
        mut select: SelectStatement,
        limit: usize,
    ) -> Result<Vec<RecordRow>, DbError> {
        for part in &self.layout().locator.columns {
            select.order_by_expr(self.layout().place_of(part), self.order());
        }
        self.fetch(db, select, limit).await
    }

    async fn fetch(
        &self,
        db: &Db,
        mut select: SelectStatement,
        limit: usize,
    ) -> Result<Vec<RecordRow>, DbError> {
        select.limit(limit as u64);
        let rows: Vec<Row> = db.fetch_at_most(&db.query(&select), limit).await?;
        Ok(rows.iter().map(|row| self.reading.seen(row, self.now).row).collect())
    }

    fn order(&self) -> Order {
        if self.filter.oldest_first() { Order::Asc } else { Order::Desc }
    }

    fn sort(&self, rows: &mut [RecordRow]) {
        rows.sort_by(|left, right| {
            let along = Place::of(left).cmp(&Place::of(right));
            if self.filter.oldest_first() { along } else { along.reverse() }
        });
    }

    /// Records after the millisecond `ms`, and those in it that are still to come.
    fn beyond(&self, created: &TimeForm, ms: i64) -> Condition {
        let (start, end) = (from_millis(ms), from_millis(ms.saturating_add(1)));
        let (within, past) = if self.filter.oldest_first() {
            (created.from(start), created.from(end))
        } else {
            (created.before(end), created.before(start))
        };
        match self.rest_of_tie() {
            // The tie itself is inside `within`, which an index serves; `past OR …` then leaves out what was shown.
            Some(rest) => Condition::all().add(within).add(Condition::any().add(past).add(rest)),
            None => Condition::all().add(within),
        }
    }

    /// Among records of the same time as the last one shown: those of later sources and tables, or beyond its locator.
    fn rest_of_tie(&self) -> Option<Expr> {
        match self.rest() {
            Rest::All => None,
            Rest::None => Some(never()),
            Rest::Beyond(locator) => Some(self.beyond_locator(locator)),
        }
    }

    /// Rows after a locator, part by part.
    fn beyond_locator(&self, locator: &[String]) -> Expr {
        let layout = self.layout();
        let parts: Vec<(Expr, Expr)> = (layout.locator.columns.iter().zip(locator))
            .map(|(column, part)| (layout.place_of(column), layout.bytes_of(part)))
            .collect();
        let steps = parts.iter().enumerate().map(|(at, (part, bound))| {
            let past = match self.filter.oldest_first() {
                true => part.clone().gt(bound.clone()),
                false => part.clone().lt(bound.clone()),
            };
            parts[..at].iter().fold(past, |past, (part, bound)| past.and(part.clone().eq(bound.clone())))
        });
        any(steps.collect::<Vec<_>>())
    }

    fn rest(&self) -> Rest<'_> {
        let Some(place) = self.after else { return Rest::All };
        let (label, own) = match (self.reading.label, place.locator.split_first()) {
            (Some(label), Some((theirs, own))) => (label.cmp(theirs.as_str()), own),
            _ => (Ordering::Equal, place.locator.as_slice()),
        };
        let along = self.reading.config.name.cmp(&place.source).then(label);
        match if self.filter.oldest_first() { along } else { along.reverse() } {
            Ordering::Greater => Rest::All,
            Ordering::Less => Rest::None,
            Ordering::Equal => Rest::Beyond(own),
        }
    }

    /// The filter as a condition; `None` when nothing of this source can match.
    fn matching(&self, breadth: Breadth) -> Option<Condition> {
        let (filter, layout) = (self.filter, self.layout());
        if filter.source.as_ref().is_some_and(|source| *source != self.reading.config.name) {
            return None;
        }
        let mut all = Condition::all();
        if let Some(biz_type) = &filter.biz_type {
            all = match (&self.reading.config.columns.biz_type_value, &layout.biz_type) {
                (Some(value), _) if value == biz_type => all,
                (Some(_), _) | (None, None) => return None,
                (None, Some(declared)) => all.add(layout.is(declared, biz_type)),
            };
        }
        if let Some(number) = &filter.biz_no {
            all = all.add(self.has_number(number)?);
        }
        if let Some(key) = &filter.key {
            all = all.add(layout.has_key(key, breadth));
        }
        if let Some(search) = &filter.search {
            all = all.add(
                Condition::any().add(layout.has_key(search, breadth)).add_option(self.has_number(search)),
            );
        }
        if let Some(state) = filter.state {
            all = all.add(layout.states.are(state, layout));
        }
        if let Some(from) = filter.created_from {
            let created = layout.created_at.as_ref()?;
            all = all.add(created.from(from)).add(created.dated());
        }
        if let Some(to) = filter.created_to {
            let created = layout.created_at.as_ref()?;
            all = all.add(created.before(to)).add(created.dated());
        }
        Some(match filter.stuck {
            None => all,
            Some(true) => all.add(self.stuck()),
            Some(false) => all.add(untrue(self.stuck().into())),
        })
    }

    /// The condition that a record has this business number, as far as the database can tell; `None` when it cannot at all.
    fn has_number(&self, number: &str) -> Option<Expr> {
        let layout = self.layout();
        match layout.biz_no.as_ref()? {
            Number::Column(declared) => Some(layout.is(declared, number)),
            Number::Json(path) => Some(path.is(number)),
            Number::Key(_) => Some(layout.key_holds(number)),
            Number::Request => None,
        }
    }

    /// PROCESSING, past its deadline or older than its biz_type allows, and past its lease.
    fn stuck(&self) -> Condition {
        let layout = self.layout();
        let mut each = Condition::any();
        for rule in layout.states.rules.iter().filter(|rule| rule.is == State::Processing) {
            let Some(age) = &rule.age else { continue };
            let this = layout.states.matching(layout, |other| std::ptr::eq(other, rule));
            each = each.add_option(this.map(|this| Condition::all().add(this).add(self.overdue(age))));
        }
        let usual = layout.states.matching(layout, |rule| rule.is == State::Processing && rule.age.is_none());
        each = each.add_option(usual.map(|usual| Condition::all().add(usual).add(self.overdue(&layout.age))));
        if each.is_empty() {
            return Condition::all().add(never());
        }
        let stuck = Condition::all().add(each);
        match &layout.lease_until {
            Some(lease) => stuck.add(Condition::any().add(lease.undated()).add(lease.before(self.now))),
            None => stuck,
        }
    }

    /// Past its own deadline, or older than its biz_type allows.
    fn overdue(&self, age: &[TimeForm]) -> Condition {
        let Some(deadline) = &self.layout().deadline else { return self.too_old(age) };
        let past = deadline.dated().add(deadline.before(self.now));
        Condition::any().add(past).add(Condition::all().add(deadline.undated()).add(self.too_old(age)))
    }

    /// Older than its biz_type allows: one common bound that an index serves, then each biz_type's own.
    fn too_old(&self, age: &[TimeForm]) -> Condition {
        if age.is_empty() {
            return Condition::all().add(never());
        }
        let (config, layout) = (self.reading.config, self.layout());
        let cut = |after: std::time::Duration| {
            let ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
            all_before(age, shifted(self.now, ms.saturating_neg()))
        };
        let Some(biz_type) = &layout.biz_type else {
            let constant = config.columns.biz_type_value.as_deref();
            return dated(age).add(cut(config.stuck_after(constant)));
        };
        let general = config.stuck_after.get();
        let own: Vec<_> =
            config.biz.iter().filter_map(|biz| Some((&biz.name, biz.stuck_after?.get()))).collect();
        if own.is_empty() {
            return dated(age).add(cut(general));
        }
        let mut each = Condition::any();
        let mut named = Condition::any();
        for (name, after) in &own {
            let is = layout.is(biz_type, name);
            each = each.add(Condition::all().add(is.clone()).add(cut(*after)));
            named = named.add(is);
        }
        let others = Condition::any().add(biz_type.expr().is_null()).add(named.not());
        each = each.add(Condition::all().add(others).add(cut(general)));
        let shortest = own.iter().map(|(_, after)| *after).chain([general]).min().unwrap_or(general);
        dated(age).add(cut(shortest)).add(each)
    }
}

/// Rows of which one of these times can be read.
fn dated(times: &[TimeForm]) -> Condition {
    match times {
        [only] => only.dated(),
        several => {
            Condition::all().add(several.iter().fold(Condition::any(), |any, time| any.add(time.dated())))
        }
    }
}

/// Rows of which every one of these times is before `at`, where it can be read.
fn all_before(times: &[TimeForm], at: DateTime<Utc>) -> Condition {
    match times {
        [only] => Condition::all().add(only.before(at)),
        several => several.iter().fold(Condition::all(), |all, time| {
            all.add(Condition::any().add(time.undated()).add(time.before(at)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::config::SourceConfig;
    use crate::join::Joins;
    use crate::layout::Held;
    use db::testkit::each_database;

    const BIZ: &str =
        "[[biz]]\ntype = \"FAST\"\nstuck_after = \"1m\"\n[columns]\nlease_until = \"lease_until\"\n";

    async fn plan(db: &Db, sql: String) -> String {
        let explain = if db.dialect() == db::Dialect::Sqlite { "EXPLAIN QUERY PLAN" } else { "EXPLAIN" };
        let rows = db.fetch_all(&db::Query::raw(format!("{explain} {sql}"), vec![])).await.unwrap();
        let cells = rows.iter().flat_map(|row| row.cells()).filter_map(db::Cell::as_text);
        cells.collect::<Vec<_>>().join(" ")
    }

    #[tokio::test]
    async fn lists_are_served_by_the_indexes_on_status_and_creation_time() {
        for test in each_database().await {
            let time = if test.db.dialect() == db::Dialect::Postgres { "TIMESTAMP" } else { "DATETIME" };
            test.run(&[
                &format!(
                    "CREATE TABLE idempotent_record (idempotent_id VARCHAR(64) PRIMARY KEY, biz_type VARCHAR(64), biz_no VARCHAR(64), \
                     status VARCHAR(16), request_body TEXT, response_body TEXT, create_time {time}, update_time {time}, lease_until {time})"
                ),
                "CREATE INDEX by_status ON idempotent_record (status, create_time)",
                "CREATE INDEX by_time ON idempotent_record (create_time)",
                "INSERT INTO idempotent_record (idempotent_id, status, create_time) VALUES ('a', 'SUCCESS', '2026-01-01 00:00:00')",
            ])
            .await;
            // Every other row settled, so that the planner has a reason to choose.
            for _ in 0..11 {
                test.run(&["INSERT INTO idempotent_record (idempotent_id, status, create_time) SELECT CONCAT(idempotent_id, '-', (SELECT COUNT(*) FROM idempotent_record)), status, create_time FROM idempotent_record"]).await;
            }
            let analyze = if test.db.dialect() == db::Dialect::Mysql { "ANALYZE TABLE" } else { "ANALYZE" };
            test.db.fetch_all(&db::Query::raw(format!("{analyze} idempotent_record"), vec![])).await.ok();
            let config: SourceConfig =
                toml::from_str(&format!("name = \"a\"\nurl = \"{}\"\n{BIZ}", test.url)).unwrap();
            let catalogue = Catalogue::read(&test.db, &config.table).await.unwrap();
            let layout = Layout::resolve(
                &config,
                &config.table,
                &Held::default(),
                catalogue,
                &Joins::default(),
                test.db.dialect(),
            )
            .unwrap();
            let reading = Reading { config: &config, layout: &layout, label: None };
            for (filter, index) in
                [(RecordFilter::stuck(), "by_status"), (RecordFilter::default(), "by_time")]
            {
                let now = test.db.now().await.unwrap();
                let listing = Listing { reading, filter: &filter, after: None, limit: 50, now };
                let matching = listing.matching(Breadth::Whole).unwrap();
                let mut select = listing.by_time(layout.created_at.as_ref().unwrap(), &matching);
                select.limit(50);
                let sql = match test.db.dialect() {
                    db::Dialect::Sqlite => select.to_string(sea_query::SqliteQueryBuilder),
                    db::Dialect::Postgres => select.to_string(sea_query::PostgresQueryBuilder),
                    db::Dialect::Mysql => select.to_string(sea_query::MysqlQueryBuilder),
                };
                let plan = plan(&test.db, sql).await;
                assert!(plan.contains(index), "{} {plan}", test.db.dialect());
            }
        }
    }
}
