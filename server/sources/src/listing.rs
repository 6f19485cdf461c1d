//! Keyset pages over an attached table, in the order the service merges by: creation time in milliseconds, then locator bytes.

use crate::layout::Layout;
use crate::reading::Reading;
use crate::time_form::{TimeForm, shifted};
use chrono::{DateTime, Utc};
use db::{Db, DbError, Row};
use domain::clock::from_millis;
use domain::record::{Place, RecordFilter, RecordRow, State};
use sea_query::{Condition, Expr, ExprTrait, Order, SelectStatement};
use std::cmp::Ordering;

/// One request for a page.
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
    Beyond(&'a str),
}

impl Listing<'_> {
    /// At most `limit` records in order.
    pub(crate) async fn run(&self, db: &Db) -> Result<Vec<RecordRow>, DbError> {
        let Some(matching) = self.matching() else { return Ok(Vec::new()) };
        let mut rows = match (&self.layout().created_at, self.after) {
            (Some(created), None | Some(Place { created_ms: Some(_), .. })) => {
                self.dated(db, created, &matching).await?
            }
            _ => Vec::new(),
        };
        if rows.len() < self.limit {
            rows.extend(self.undated(db, &matching, self.limit - rows.len()).await?);
        }
        Ok(rows)
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
        select.cond_where(matching.clone()).cond_where(created.dated());
        if let Some(ms) = self.after.and_then(|place| place.created_ms) {
            select.cond_where(self.beyond(created, ms));
        }
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
            .cond_where(matching.clone())
            .cond_where(created.dated())
            .and_where(created.from(from_millis(ms)))
            .and_where(created.before(from_millis(ms.saturating_add(1))));
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
        for part in &self.layout().locator {
            select.order_by_expr(self.layout().bytes(part), self.order());
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

    /// Among records of the same time as the last one shown: those of later sources, or beyond its locator.
    fn rest_of_tie(&self) -> Option<Expr> {
        let layout = self.layout();
        match self.rest() {
            Rest::All => None,
            Rest::None => Some(Expr::cust("1 = 0")),
            Rest::Beyond(locator) => {
                let (part, bound) = (layout.bytes(layout.locator.first()?), layout.bytes_of(locator));
                Some(if self.filter.oldest_first() { part.gt(bound) } else { part.lt(bound) })
            }
        }
    }

    fn rest(&self) -> Rest<'_> {
        let Some(place) = self.after else { return Rest::All };
        let along = self.reading.config.name.cmp(&place.source);
        match if self.filter.oldest_first() { along } else { along.reverse() } {
            Ordering::Greater => Rest::All,
            Ordering::Less => Rest::None,
            Ordering::Equal => Rest::Beyond(place.locator.first().map_or("", String::as_str)),
        }
    }

    /// The filter as a condition; `None` when nothing of this source can match.
    fn matching(&self) -> Option<Condition> {
        let (filter, layout) = (self.filter, self.layout());
        if filter.source.as_ref().is_some_and(|source| *source != self.reading.config.name) {
            return None;
        }
        let mut all = Condition::all();
        for (declared, value) in [
            (layout.biz_type.as_ref(), &filter.biz_type),
            (layout.biz_no.as_ref(), &filter.biz_no),
            (Some(&layout.key), &filter.key),
        ] {
            if let Some(value) = value {
                all = all.add(layout.is(declared?, value));
            }
        }
        if let Some(search) = &filter.search {
            let by_no = layout.biz_no.as_ref().map(|declared| layout.is(declared, search));
            all = all.add(Condition::any().add(layout.is(&layout.key, search)).add_option(by_no));
        }
        if let Some(state) = filter.state {
            all = all.add(self.in_state(state));
        }
        if let Some(from) = filter.created_from {
            all = all.add(layout.created_at.as_ref()?.from(from));
        }
        if let Some(to) = filter.created_to {
            all = all.add(layout.created_at.as_ref()?.before(to));
        }
        Some(match filter.stuck {
            None => all,
            Some(true) => all.add(self.stuck()),
            Some(false) => all.add(coalesced_not(self.stuck())),
        })
    }

    /// UNKNOWN is every value that no rule maps, and NULL.
    fn in_state(&self, state: State) -> Condition {
        let config = self.reading.config;
        if state != State::Unknown {
            return Condition::all().add(self.layout().status_in(&config.native_values(state)));
        }
        let mapped: Vec<String> =
            State::ALL.into_iter().flat_map(|state| config.native_values(state)).collect();
        let status = Expr::col(self.layout().status.name.clone());
        Condition::any().add(status.is_null()).add(self.layout().status_in(&mapped).not())
    }

    /// PROCESSING, past its deadline or older than its biz_type allows, and past its lease.
    fn stuck(&self) -> Condition {
        let layout = self.layout();
        let mut stuck = Condition::all().add(self.in_state(State::Processing));
        let overdue = match (&layout.deadline, &layout.age) {
            (Some(deadline), Some(age)) => Condition::any()
                .add(deadline.before(self.now))
                .add(Condition::all().add(deadline.undated()).add(self.too_old(age))),
            (Some(deadline), None) => Condition::any().add(deadline.before(self.now)),
            (None, Some(age)) => self.too_old(age),
            (None, None) => Condition::all().add(Expr::cust("1 = 0")),
        };
        stuck = stuck.add(overdue);
        match &layout.lease_until {
            Some(lease) => stuck.add(Condition::any().add(lease.undated()).add(lease.before(self.now))),
            None => stuck,
        }
    }

    /// Older than its biz_type allows: one common bound that an index serves, then each biz_type's own.
    fn too_old(&self, age: &TimeForm) -> Condition {
        let (config, layout) = (self.reading.config, self.layout());
        let cut = |after: std::time::Duration| {
            let ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
            age.before(shifted(self.now, ms.saturating_neg()))
        };
        let general = config.stuck_after.get();
        let Some(biz_type) = &layout.biz_type else { return age.dated().add(cut(general)) };
        let own: Vec<_> =
            config.biz.iter().filter_map(|biz| Some((&biz.name, biz.stuck_after?.get()))).collect();
        let mut each = Condition::any();
        let mut named = Condition::any();
        for (name, after) in &own {
            let is = layout.is(biz_type, name);
            each = each.add(Condition::all().add(is.clone()).add(cut(*after)));
            named = named.add(is);
        }
        if own.is_empty() {
            return age.dated().add(cut(general));
        }
        let others = Condition::any().add(Expr::col(biz_type.name.clone()).is_null()).add(named.not());
        each = each.add(Condition::all().add(others).add(cut(general)));
        let shortest = own.iter().map(|(_, after)| *after).chain([general]).min().unwrap_or(general);
        age.dated().add(cut(shortest)).add(each)
    }
}

/// Everything but `condition`, also where a NULL makes it neither true nor false.
fn coalesced_not(condition: Condition) -> Expr {
    let case = sea_query::CaseStatement::new().case(condition, 0).finally(1);
    Expr::Case(Box::new(case)).eq(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::config::SourceConfig;
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
            let layout = Layout::resolve(&config, catalogue, test.db.dialect()).unwrap();
            let reading = Reading { config: &config, layout: &layout };
            for (filter, index) in
                [(RecordFilter::stuck(), "by_status"), (RecordFilter::default(), "by_time")]
            {
                let now = test.db.now().await.unwrap();
                let listing = Listing { reading, filter: &filter, after: None, limit: 50, now };
                let matching = listing.matching().unwrap();
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
