//! What Prometheus reads: counters of this process, and gauges read off the console at the moment of asking.

use super::web::Web;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::alert::Alert;
use domain::audit::Draft;
use domain::cache::CacheStatus;
use domain::compensation::{Compensation, Outcome, Phase};
use domain::ports::{Begun, CompensationStore};
use domain::record::RecordId;
use domain::roles::{Actor, Role};
use domain::source::Health;
use domain::stuck::{Board, Group};
use domain::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The text exposition. What cannot be read is left out: a gap, never a zero.
pub async fn render(web: &Web) -> String {
    web.app.metrics.run_upkeep();
    let mut text = web.app.metrics.render();
    line(
        &mut text,
        "amends_build_info",
        "Which build answers.",
        &[(vec![("version", env!("CARGO_PKG_VERSION"))], 1)],
    );
    let reader = Actor::new("metrics", Role::Viewer);
    match web.app.console.stuck.board(&reader).await {
        Ok(board) => stuck(&mut text, &board),
        Err(error) => missing("the stuck board", &error),
    }
    match web.app.console.alerts.open_alerts(&reader).await {
        Ok(open) => alerts(&mut text, &open),
        Err(error) => missing("the open alerts", &error),
    }
    match web.app.console.caches.statuses(&reader).await {
        Ok(statuses) => caches(&mut text, &statuses),
        Err(error) => missing("the caches", &error),
    }
    text
}

fn stuck(text: &mut String, board: &Board) {
    let groups = board.groups();
    let samples = |value: fn(&Group) -> u64| -> Vec<_> {
        groups.iter().map(|group| (labels(group), value(group))).collect()
    };
    line(text, "amends_stuck_records", "Records stuck now.", &samples(|group| group.records));
    let oldest = samples(|group| group.oldest_seconds);
    line(text, "amends_stuck_oldest_seconds", "Age of the oldest stuck record.", &oldest);
    let down: Vec<_> = board.down.iter().map(|(source, _)| (vec![("source", source.as_str())], 1)).collect();
    line(text, "amends_source_down", "Sources that did not answer the last reading.", &down);
}

fn labels(group: &Group) -> Vec<(&str, &str)> {
    vec![
        ("source", group.source.as_str()),
        ("biz_type", group.biz_type.as_deref().unwrap_or_default()),
        ("verdict", group.verdict.map_or("not_checked", |verdict| verdict.as_str())),
    ]
}

fn alerts(text: &mut String, open: &[Alert]) {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for alert in open {
        *counts.entry((alert.state.as_str(), alert.severity.as_str())).or_default() += 1;
    }
    let samples: Vec<_> = counts
        .into_iter()
        .map(|((state, severity), count)| (vec![("state", state), ("severity", severity)], count))
        .collect();
    line(text, "amends_alerts", "Open alerts.", &samples);
}

fn caches(text: &mut String, statuses: &[CacheStatus]) {
    let samples = |value: fn(&CacheStatus) -> u64| -> Vec<_> {
        statuses.iter().map(|status| (vec![("source", status.source.as_str())], value(status))).collect()
    };
    let down = samples(|status| u64::from(status.status != Health::Up));
    line(text, "amends_cache_down", "Caches beside sources that do not answer.", &down);
    let pending = samples(|status| status.pending);
    line(text, "amends_cache_changes_pending", "Cache changes not confirmed yet.", &pending);
    let disagreeing = samples(|status| status.disagreements);
    line(text, "amends_cache_disagreements", "Records whose cache entry says something else.", &disagreeing);
}

fn missing(what: &str, error: &Error) {
    tracing::debug!(error.code = error.code(), "metrics go without {what}");
}

/// One gauge with its samples; without samples only its description.
fn line(text: &mut String, name: &str, help: &str, samples: &[(Vec<(&str, &str)>, u64)]) {
    // Writing to a String cannot fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    for (labels, value) in samples {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape(value))).collect();
        let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Counts compensations by action and ending as they are stored, whoever carried them out.
pub struct CountedCompensations(pub Arc<dyn CompensationStore>);

#[async_trait]
impl CompensationStore for CountedCompensations {
    async fn begin(&self, intent: &Compensation, audit: &Draft) -> Result<Begun> {
        let begun = self.0.begin(intent, audit).await?;
        if begun == Begun::New {
            metrics::counter!("amends_compensations_begun_total", "action" => intent.command.action.as_str())
                .increment(1);
        }
        Ok(begun)
    }

    async fn find(&self, actor: &str, command_key: &str) -> Result<Option<Compensation>> {
        self.0.find(actor, command_key).await
    }

    async fn advance(&self, id: &str, owner: &str, phase: Phase, now: DateTime<Utc>) -> Result<bool> {
        self.0.advance(id, owner, phase, now).await
    }

    async fn finish(
        &self,
        id: &str,
        owner: &str,
        outcome: &Outcome,
        audit: &Draft,
        now: DateTime<Utc>,
        late_check_at: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        let stored = self.0.finish(id, owner, outcome, audit, now, late_check_at).await?;
        if stored {
            metrics::counter!("amends_compensations_total", "ending" => outcome.ending.as_str()).increment(1);
        }
        Ok(stored)
    }

    async fn take_abandoned(
        &self,
        owner: &str,
        now: DateTime<Utc>,
        lease_until: DateTime<Utc>,
    ) -> Result<Vec<Compensation>> {
        self.0.take_abandoned(owner, now, lease_until).await
    }

    async fn running(&self, records: &[RecordId]) -> Result<Vec<Compensation>> {
        self.0.running(records).await
    }

    async fn history(&self, record: &RecordId, limit: usize) -> Result<Vec<Compensation>> {
        self.0.history(record, limit).await
    }

    async fn settled_since(&self, since: DateTime<Utc>) -> Result<u64> {
        self.0.settled_since(since).await
    }

    async fn recent_reasons(&self, actor: &str, limit: usize) -> Result<Vec<String>> {
        self.0.recent_reasons(actor, limit).await
    }

    async fn take_late_checks(
        &self,
        now: DateTime<Utc>,
        next: DateTime<Utc>,
    ) -> Result<Vec<(RecordId, String)>> {
        self.0.take_late_checks(now, next).await
    }

    async fn end_late_check(&self, compensation_id: &str, audit: Option<&Draft>) -> Result<()> {
        self.0.end_late_check(compensation_id, audit).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_label_values_stay_on_their_line() {
        let mut text = String::new();
        line(&mut text, "m", "h", &[(vec![("k", "a\"b\\c\nd")], 3)]);
        assert_eq!(text, "# HELP m h\n# TYPE m gauge\nm{k=\"a\\\"b\\\\c\\nd\"} 3\n");
    }
}
