//! Alert rules and episodes. What people say about an episode has columns of its own, so that an evaluation that
//! read it before they spoke does not write it away.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use db::{DbError, Row, Tx};
use domain::alert::{Alert, AlertState, Rule, RuleSpec};
use domain::audit::Draft;
use domain::clock::millis;
use domain::page::{Limit, Page, encode_cursor};
use domain::ports::AlertStore;
use sea_query::{Expr, ExprTrait, Order, Query, SelectStatement, UpdateStatement};

use crate::codec::{from_json, instant, opt_instant, to_json};
use crate::{Store, audit, retrying};

#[async_trait]
impl AlertStore for Store {
    async fn rules(&self) -> domain::Result<Vec<Rule>> {
        let select = rules().order_by("id", Order::Asc).to_owned();
        retrying!(self, self.read_rules(&select).await)
    }

    async fn rule(&self, id: &str) -> domain::Result<Option<Rule>> {
        let select = rules().and_where(Expr::col("id").eq(id)).to_owned();
        Ok(retrying!(self, self.read_rules(&select).await)?.pop())
    }

    async fn insert_rule(&self, rule: &Rule, audit: &Draft) -> domain::Result<()> {
        retrying!(self, self.insert_rule_once(rule, audit).await)
    }

    async fn update_rule(
        &self,
        id: &str,
        expect: i64,
        spec: &RuleSpec,
        by: &str,
        at: DateTime<Utc>,
        audit: &Draft,
    ) -> domain::Result<bool> {
        let update = Query::update()
            .table("alert_rules")
            .value("version", expect + 1)
            .value("spec", to_json(spec).map_err(crate::told)?)
            .value("updated_by", by)
            .value("updated_at", millis(at))
            .and_where(Expr::col("id").eq(id))
            .and_where(Expr::col("version").eq(expect))
            .to_owned();
        retrying!(self, self.change_audited(&update, Some(audit)).await)
    }

    async fn delete_rule(&self, id: &str, at: DateTime<Utc>, audit: &Draft) -> domain::Result<bool> {
        retrying!(self, self.delete_rule_once(id, at, audit).await)
    }

    async fn open_alerts(&self) -> domain::Result<Vec<Alert>> {
        let select = newest_first(alerts()).and_where(Expr::col("open_rule").is_not_null()).to_owned();
        retrying!(self, self.read_alerts(&select).await)
    }

    async fn alert(&self, id: &str) -> domain::Result<Option<Alert>> {
        let select = alerts().and_where(Expr::col("id").eq(id)).to_owned();
        Ok(retrying!(self, self.read_alerts(&select).await)?.pop())
    }

    async fn put_alert(&self, alert: &Alert) -> domain::Result<()> {
        retrying!(self, self.put_alert_once(alert).await)
    }

    async fn drop_alert(&self, id: &str) -> domain::Result<()> {
        let delete = Query::delete()
            .from_table("alerts")
            .and_where(Expr::col("id").eq(id))
            .and_where(Expr::col("open_rule").is_not_null())
            .to_owned();
        retrying!(self, self.db.execute(&self.db.query(&delete)).await).map(drop)
    }

    async fn alerts(&self, before: Option<&(i64, String)>, limit: Limit) -> domain::Result<Page<Alert>> {
        let select = newest_first(alerts())
            .and_where_option(before.map(older))
            .limit(limit.get() as u64 + 1)
            .to_owned();
        let mut items = retrying!(self, self.read_alerts(&select).await)?;
        let more = items.len() > limit.get();
        items.truncate(limit.get());
        let next_cursor =
            items.last().filter(|_| more).map(|last| encode_cursor(&(millis(last.pending_since), &last.id)));
        Ok(Page { items, next_cursor })
    }

    async fn acknowledge(
        &self,
        id: &str,
        by: &str,
        at: DateTime<Utc>,
        audit: &Draft,
    ) -> domain::Result<bool> {
        let update = open(id)
            .value("acknowledged_by", by)
            .value("acknowledged_at", millis(at))
            .and_where(Expr::col("acknowledged_at").is_null())
            .to_owned();
        if retrying!(self, self.change_audited(&update, Some(audit)).await)? {
            return Ok(true);
        }
        // Somebody acknowledged it before: it stays theirs, and that is no failure.
        Ok(AlertStore::alert(self, id).await?.is_some_and(|alert| alert.state != AlertState::Resolved))
    }

    async fn silence(&self, id: &str, until: DateTime<Utc>, audit: &Draft) -> domain::Result<bool> {
        let update = open(id).value("silenced_until", millis(until)).to_owned();
        retrying!(self, self.change_audited(&update, Some(audit)).await)
    }
}

impl Store {
    async fn insert_rule_once(&self, rule: &Rule, draft: &Draft) -> Result<(), DbError> {
        let insert = Query::insert()
            .into_table("alert_rules")
            .columns(["id", "version", "spec", "updated_at", "updated_by"])
            .values_panic([
                rule.id.as_str().into(),
                rule.version.into(),
                to_json(&rule.spec)?.into(),
                millis(rule.updated_at).into(),
                rule.updated_by.as_str().into(),
            ])
            .to_owned();
        let mut tx = self.db.begin().await?;
        // The same rule again, after an answer that was lost, changes nothing.
        if tx.insert_if_absent(&insert).await? {
            audit::append(&mut tx, draft).await?;
        }
        tx.commit().await
    }

    async fn delete_rule_once(&self, id: &str, at: DateTime<Utc>, draft: &Draft) -> Result<bool, DbError> {
        let mut tx = self.db.begin().await?;
        let delete = Query::delete().from_table("alert_rules").and_where(Expr::col("id").eq(id)).to_owned();
        if tx.execute(&tx.query(&delete)).await? != 1 {
            return Ok(false);
        }
        let mut running = alerts().and_where(Expr::col("open_rule").eq(id)).to_owned();
        tx.dialect().lock_rows(&mut running);
        if let Some(row) = tx.fetch_optional(&tx.query(&running)).await? {
            let resolved = Alert { state: AlertState::Resolved, resolved_at: Some(at), ..alert(&row)? };
            replace(&mut tx, &resolved).await?;
        }
        audit::append(&mut tx, draft).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn put_alert_once(&self, alert: &Alert) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        if !replace(&mut tx, alert).await? {
            tx.insert_if_absent(&insert(alert)?).await?;
        }
        tx.commit().await
    }

    async fn read_rules(&self, select: &SelectStatement) -> Result<Vec<Rule>, DbError> {
        self.db.fetch_all(&self.db.query(select)).await?.iter().map(rule).collect()
    }

    async fn read_alerts(&self, select: &SelectStatement) -> Result<Vec<Alert>, DbError> {
        self.db.fetch_all(&self.db.query(select)).await?.iter().map(alert).collect()
    }
}

/// Writes an open episode anew; whether there was one. What people said stays.
async fn replace(tx: &mut Tx, alert: &Alert) -> Result<bool, DbError> {
    let update =
        open(&alert.id).value("document", to_json(alert)?).value("open_rule", open_rule(alert)).to_owned();
    Ok(tx.execute(&tx.query(&update)).await? == 1)
}

fn open_rule(alert: &Alert) -> Option<&str> {
    (alert.state != AlertState::Resolved).then_some(alert.rule_id.as_str())
}

fn insert(alert: &Alert) -> Result<sea_query::InsertStatement, DbError> {
    Ok(Query::insert()
        .into_table("alerts")
        .columns([
            "id",
            "open_rule",
            "pending_since",
            "document",
            "acknowledged_by",
            "acknowledged_at",
            "silenced_until",
        ])
        .values_panic([
            alert.id.as_str().into(),
            open_rule(alert).into(),
            millis(alert.pending_since).into(),
            to_json(alert)?.into(),
            alert.acknowledged_by.clone().into(),
            alert.acknowledged_at.map(millis).into(),
            alert.silenced_until.map(millis).into(),
        ])
        .to_owned())
}

/// A change to an episode that is not over.
fn open(id: &str) -> UpdateStatement {
    Query::update()
        .table("alerts")
        .and_where(Expr::col("id").eq(id))
        .and_where(Expr::col("open_rule").is_not_null())
        .to_owned()
}

fn older((since, id): &(i64, String)) -> Expr {
    let tie = Expr::col("pending_since").eq(*since).and(Expr::col("id").lt(id.as_str()));
    Expr::col("pending_since").lt(*since).or(tie)
}

fn newest_first(mut select: SelectStatement) -> SelectStatement {
    select.order_by("pending_since", Order::Desc).order_by("id", Order::Desc).to_owned()
}

fn rules() -> SelectStatement {
    Query::select()
        .columns(["id", "version", "spec", "updated_at", "updated_by"])
        .from("alert_rules")
        .to_owned()
}

fn alerts() -> SelectStatement {
    Query::select()
        .columns(["document", "acknowledged_by", "acknowledged_at", "silenced_until"])
        .from("alerts")
        .to_owned()
}

fn rule(row: &Row) -> Result<Rule, DbError> {
    Ok(Rule {
        id: row.text("id")?,
        version: row.i64("version")?,
        spec: from_json(&row.text("spec")?)?,
        updated_at: instant(row, "updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}

fn alert(row: &Row) -> Result<Alert, DbError> {
    Ok(Alert {
        acknowledged_by: row.opt_text("acknowledged_by")?,
        acknowledged_at: opt_instant(row, "acknowledged_at")?,
        silenced_until: opt_instant(row, "silenced_until")?,
        ..from_json(&row.text("document")?)?
    })
}
