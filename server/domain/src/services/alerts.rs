//! Alert rules: editing with history drawn, evaluating with the clock as an argument.

use super::rates::{next_minute, sum};
use super::stuck::StuckService;
use crate::alert::{
    Alert, AlertState, Metric, PastReading, Preview, Reading, Rule, RuleSpec, Side, Step, advance, preview,
};
use crate::audit::Draft;
use crate::clock::{Clock, Ids};
use crate::error::{Error, Result};
use crate::invalid::Invalid;
use crate::page::{Limit, Page, decode_cursor};
use crate::ports::{AlertStore, Events, RateStore, Topic};
use crate::rates::{RateScope, Span, Totals};
use crate::record::RecordRow;
use crate::roles::{Actor, Permission};
use chrono::{DateTime, Duration, Utc};
use std::collections::VecDeque;
use std::sync::Arc;

/// How much history a preview runs over.
pub const PREVIEW_DAYS: i64 = 7;
/// A preview's chart has about this many points.
const PREVIEW_POINTS: usize = 336;
const MAX_SILENCE_HOURS: u32 = 24 * 7;

pub struct AlertService {
    pub store: Arc<dyn AlertStore>,
    pub rates: Arc<dyn RateStore>,
    pub stuck: Arc<StuckService>,
    pub events: Arc<dyn Events>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

impl AlertService {
    pub async fn rules(&self, actor: &Actor) -> Result<Vec<Rule>> {
        actor.require(Permission::Read)?;
        self.store.rules().await
    }

    pub async fn create_rule(&self, actor: &Actor, spec: RuleSpec) -> Result<Rule> {
        actor.require(Permission::EditAlertRules)?;
        spec.validate()?;
        let rule = Rule {
            id: self.ids.next(),
            version: 1,
            spec,
            updated_at: self.clock.now(),
            updated_by: actor.name.clone(),
        };
        let audit = self.draft(actor, "alert_rule.created", None, Some(&rule.spec));
        self.store.insert_rule(&rule, &audit).await?;
        self.announce();
        Ok(rule)
    }

    /// Changes a rule that is still at `if_version`.
    pub async fn update_rule(
        &self,
        actor: &Actor,
        id: &str,
        if_version: i64,
        spec: RuleSpec,
    ) -> Result<Rule> {
        actor.require(Permission::EditAlertRules)?;
        spec.validate()?;
        let before = self.rule(id).await?;
        let audit = self.draft(actor, "alert_rule.changed", Some(&before.spec), Some(&spec));
        if !self.store.update_rule(id, if_version, &spec, &actor.name, self.clock.now(), &audit).await? {
            return Err(Error::Busy {
                message: "Somebody changed this rule since you opened it; read it again.".into(),
                retry_after_seconds: 0,
            });
        }
        self.announce();
        self.rule(id).await
    }

    pub async fn delete_rule(&self, actor: &Actor, id: &str) -> Result<()> {
        actor.require(Permission::EditAlertRules)?;
        let before = self.rule(id).await?;
        let audit = self.draft(actor, "alert_rule.deleted", Some(&before.spec), None);
        self.store.delete_rule(id, self.clock.now(), &audit).await?;
        self.announce();
        Ok(())
    }

    /// What a rule would have done over the last seven days.
    pub async fn preview(&self, actor: &Actor, spec: RuleSpec) -> Result<Preview> {
        actor.require(Permission::Read)?;
        spec.validate()?;
        let now = self.clock.now();
        let past = self.past_readings(&spec, next_minute(now)).await?;
        let rule =
            Rule { id: "preview".into(), version: 0, spec, updated_at: now, updated_by: String::new() };
        let mut result = preview(&rule, &past);
        result.points = thin_out(&result.points, rule.spec.side);
        Ok(result)
    }

    /// Episodes, newest first.
    pub async fn alerts(&self, actor: &Actor, cursor: Option<&str>, limit: Limit) -> Result<Page<Alert>> {
        actor.require(Permission::Read)?;
        let before: Option<(i64, String)> = cursor.map(decode_cursor).transpose()?;
        self.store.alerts(before.as_ref(), limit).await
    }

    /// Pending and firing episodes, firing and critical first.
    pub async fn open_alerts(&self, actor: &Actor) -> Result<Vec<Alert>> {
        actor.require(Permission::Read)?;
        let mut open = self.store.open_alerts().await?;
        open.sort_by_key(|alert| {
            (alert.state != AlertState::Firing, std::cmp::Reverse(alert.severity), alert.pending_since)
        });
        Ok(open)
    }

    pub async fn acknowledge(&self, actor: &Actor, id: &str) -> Result<Alert> {
        actor.require(Permission::AcknowledgeAlert)?;
        let alert = self.open(id).await?;
        let audit = self.alert_draft(actor, "alert.acknowledged", &alert);
        self.store.acknowledge(id, &actor.name, self.clock.now(), &audit).await?;
        self.announce();
        self.open(id).await
    }

    /// Keeps an open alert quiet for some hours (1 to 168).
    pub async fn silence(&self, actor: &Actor, id: &str, hours: u32) -> Result<Alert> {
        actor.require(Permission::AcknowledgeAlert)?;
        if !(1..=MAX_SILENCE_HOURS).contains(&hours) {
            return Err(Error::invalid(Invalid::SilenceHours { max: MAX_SILENCE_HOURS }));
        }
        let alert = self.open(id).await?;
        let until = self.clock.now() + Duration::hours(hours.into());
        let audit = self.alert_draft(actor, "alert.silenced", &alert);
        self.store.silence(id, until, &audit).await?;
        self.announce();
        self.open(id).await
    }

    /// One evaluation of every enabled rule; the background task calls it. Returns how many episodes changed.
    pub async fn evaluate(&self) -> Result<usize> {
        let now = self.clock.now();
        let open = self.store.open_alerts().await?;
        let mut changed = 0;
        for rule in self.store.rules().await?.iter().filter(|rule| rule.spec.enabled) {
            let reading = self.reading(&rule.spec, now).await?;
            let episode = open.iter().find(|alert| alert.rule_id == rule.id);
            match advance(rule, episode, reading, now, &self.ids.next()) {
                Step::Keep => continue,
                Step::Put(alert) => self.store.put_alert(&alert).await?,
                Step::Drop { id } => self.store.drop_alert(&id).await?,
            }
            changed += 1;
        }
        if changed > 0 {
            self.events.changed(Topic::Alerts);
        }
        Ok(changed)
    }

    async fn reading(&self, spec: &RuleSpec, now: DateTime<Utc>) -> Result<Reading> {
        if !spec.metric.is_rate() {
            return self.stuck_reading(spec).await;
        }
        let to = next_minute(now);
        let from = to - Duration::minutes(spec.window_minutes.into());
        let parts = self.rates.by_biz_type(&scope(spec), from, to).await?;
        Ok(Reading::of_totals(spec, sum(parts.into_iter().map(|(_, _, totals)| totals))))
    }

    async fn stuck_reading(&self, spec: &RuleSpec) -> Result<Reading> {
        let board = self.stuck.latest().await?;
        let blind = match &spec.source {
            Some(source) => board.down.iter().any(|(down, _)| down == source),
            None => !board.down.is_empty(),
        };
        if blind {
            return Ok(Reading::Silent);
        }
        let inside = |row: &&RecordRow| {
            spec.source.as_ref().is_none_or(|source| *source == row.source)
                && spec.biz_type.as_ref().is_none_or(|wanted| row.biz_type.as_ref() == Some(wanted))
        };
        let ages = board.rows.iter().filter(inside).map(|row| row.age_seconds.unwrap_or(0).max(0));
        let value = match spec.metric {
            Metric::OldestStuckAge => ages.max().unwrap_or(0) as f64,
            _ => ages.count() as f64,
        };
        Ok(Reading::Value { value, requests: 0 })
    }

    /// The readings that a live evaluation would have taken at each minute of the last seven days.
    async fn past_readings(&self, spec: &RuleSpec, end: DateTime<Utc>) -> Result<Vec<PastReading>> {
        let from = end - Duration::days(PREVIEW_DAYS);
        if spec.metric.is_rate() {
            let start = from - Duration::minutes(spec.window_minutes.into());
            let minutes =
                self.rates.series(&scope(spec), Span { from: start, to: end, step_minutes: 1 }).await?;
            let minutes = minutes.into_iter().map(|bucket| (bucket.at, bucket.totals)).collect();
            return Ok(rolling(spec, minutes, from, end));
        }
        let samples = self.rates.stuck_series(&scope(spec), from, end).await?;
        let readings = samples.into_iter().map(|(at, stuck, oldest)| {
            let value = if spec.metric == Metric::StuckCount { stuck } else { oldest };
            PastReading { at, reading: Reading::Value { value: value as f64, requests: 0 } }
        });
        Ok(readings.collect())
    }

    async fn rule(&self, id: &str) -> Result<Rule> {
        self.store.rule(id).await?.ok_or_else(|| Error::not_found("That alert rule"))
    }

    async fn open(&self, id: &str) -> Result<Alert> {
        let alert = self.store.alert(id).await?.ok_or_else(|| Error::not_found("That alert"))?;
        if alert.state == AlertState::Resolved {
            return Err(Error::Refused {
                code: "resolved".into(),
                message: "The alert is already resolved.".into(),
            });
        }
        Ok(alert)
    }

    fn draft(&self, actor: &Actor, verb: &str, before: Option<&RuleSpec>, after: Option<&RuleSpec>) -> Draft {
        let text = |spec: Option<&RuleSpec>| spec.and_then(|spec| serde_json::to_string(spec).ok());
        let mut draft = Draft::new(self.clock.now(), &actor.name, verb);
        (draft.before, draft.after) = (text(before), text(after));
        draft.biz_type = after.or(before).and_then(|spec| spec.biz_type.clone());
        draft
    }

    fn alert_draft(&self, actor: &Actor, verb: &str, alert: &Alert) -> Draft {
        let mut draft = Draft::new(self.clock.now(), &actor.name, verb);
        draft.biz_type.clone_from(&alert.rule.biz_type);
        draft.result = Some(alert.rule.name.clone());
        draft
    }

    fn announce(&self) {
        self.events.changed(Topic::Alerts);
        self.events.changed(Topic::Audit);
    }
}

fn scope(spec: &RuleSpec) -> RateScope {
    RateScope { source: spec.source.clone(), biz_type: spec.biz_type.clone() }
}

/// One reading a minute over a sliding window: each minute enters once and leaves once.
fn rolling(
    spec: &RuleSpec,
    minutes: VecDeque<(DateTime<Utc>, Totals)>,
    from: DateTime<Utc>,
    end: DateTime<Utc>,
) -> Vec<PastReading> {
    let mut coming = minutes.into_iter().peekable();
    let mut window: VecDeque<(DateTime<Utc>, Totals)> = VecDeque::new();
    let mut readings = Vec::new();
    let mut at = from;
    while at < end {
        let upper = at + Duration::minutes(1);
        let lower = upper - Duration::minutes(spec.window_minutes.into());
        while let Some(minute) = coming.next_if(|(start, _)| *start < upper) {
            window.push_back(minute);
        }
        while window.front().is_some_and(|(start, _)| *start < lower) {
            window.pop_front();
        }
        let totals = sum(window.iter().map(|(_, totals)| *totals));
        readings.push(PastReading { at, reading: Reading::of_totals(spec, totals) });
        at = upper;
    }
    readings
}

/// Fewer points for the chart, each the worst of its group so that no breach disappears.
fn thin_out(points: &[(DateTime<Utc>, Option<f64>)], side: Side) -> Vec<(DateTime<Utc>, Option<f64>)> {
    let group = points.len().div_ceil(PREVIEW_POINTS).max(1);
    let worst = |values: &[(DateTime<Utc>, Option<f64>)]| {
        let known = values.iter().filter_map(|(_, value)| *value);
        match side {
            Side::Above => known.reduce(f64::max),
            Side::Below => known.reduce(f64::min),
        }
    };
    points.chunks(group).map(|chunk| (chunk[0].0, worst(chunk))).collect()
}
