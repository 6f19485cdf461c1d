//! What a brand-new store starts with.

use crate::runtime::{RandomIds, SystemClock};
use domain::alert::{Metric, Rule, RuleSpec, Side, first_rules};
use domain::audit::Draft;
use domain::clock::{Clock, Ids};
use domain::ports::AlertStore;

/// Who the audit trail names for what the console does by itself.
const CONSOLE: &str = "amends";

/// The first alert rules. The rate of payment callbacks answered as duplicates is the one that tells of a retry
/// storm: about 5 % is normal, 30 % means that somebody keeps asking.
pub(crate) async fn seed_alert_rules(alerts: &dyn AlertStore) -> domain::Result<()> {
    for spec in alert_rules() {
        let now = SystemClock.now();
        let draft = Draft {
            biz_type: spec.biz_type.clone(),
            // A specification always serialises.
            after: serde_json::to_string(&spec).ok(),
            ..Draft::new(now, CONSOLE, "alert_rule.created")
        };
        let rule =
            Rule { id: RandomIds.next(), version: 1, spec, updated_at: now, updated_by: CONSOLE.into() };
        alerts.insert_rule(&rule, &draft).await?;
    }
    Ok(())
}

fn alert_rules() -> [RuleSpec; 4] {
    [
        RuleSpec {
            biz_type: Some("PAYMENT_CALLBACK".into()),
            clear: Some(0.10),
            window_minutes: 5,
            for_minutes: 1,
            // Below what a quiet hour brings in the window: a rule without enough traffic would never resolve.
            min_requests: 30,
            ..above(first_rules::CALLBACKS, Metric::HitRate, 0.15, 0.30)
        },
        RuleSpec {
            window_minutes: 15,
            for_minutes: 5,
            min_requests: 100,
            ..above(first_rules::ANOMALY, Metric::AnomalyRate, 0.02, 0.05)
        },
        RuleSpec { for_minutes: 5, ..above(first_rules::STUCK, Metric::StuckCount, 20.0, 100.0) },
        RuleSpec { for_minutes: 5, ..above(first_rules::OLDEST, Metric::OldestStuckAge, 1_800.0, 7_200.0) },
    ]
}

fn above(name: &str, metric: Metric, warn: f64, critical: f64) -> RuleSpec {
    RuleSpec {
        name: name.into(),
        metric,
        source: None,
        biz_type: None,
        side: Side::Above,
        warn: Some(warn),
        critical: Some(critical),
        clear: None,
        window_minutes: 5,
        for_minutes: 1,
        min_requests: 1,
        enabled: true,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_first_rule_is_one_that_the_editor_would_accept() {
        for spec in super::alert_rules() {
            spec.validate().unwrap();
        }
    }
}
