use domain::alert::{Alert, AlertState, Metric, Rule, RuleSpec, Severity, Side};
use domain::page::{Limit, decode_cursor};
use domain::ports::{AlertStore, AuditStore};
use store::Store;

use crate::{at, draft, stores};

fn rule(id: &str) -> Rule {
    Rule {
        id: id.into(),
        version: 1,
        spec: RuleSpec {
            name: "callback storm".into(),
            metric: Metric::HitRate,
            source: None,
            biz_type: Some("PAYMENT_CALLBACK".into()),
            side: Side::Above,
            warn: Some(0.1),
            critical: Some(0.3),
            clear: None,
            window_minutes: 5,
            for_minutes: 0,
            min_requests: 50,
            enabled: true,
        },
        updated_at: at(0),
        updated_by: "admin".into(),
    }
}

fn alert(id: &str, rule_id: &str, seconds: i64) -> Alert {
    Alert {
        id: id.into(),
        rule_id: rule_id.into(),
        rule: rule(rule_id).spec,
        state: AlertState::Pending,
        severity: Severity::Critical,
        value: 0.31,
        requests: 120,
        pending_since: at(seconds),
        fired_at: None,
        resolved_at: None,
        acknowledged_by: None,
        acknowledged_at: None,
        silenced_until: None,
    }
}

async fn entries(store: &Store) -> i64 {
    store.head().await.unwrap().map_or(0, |(seq, _)| seq)
}

#[tokio::test]
async fn rules_change_only_from_the_version_that_was_seen() {
    for (store, test) in stores().await {
        let first = rule("r1");
        for _ in 0..2 {
            store.insert_rule(&first, &draft("alert_rule.created")).await.unwrap();
        }
        assert_eq!(entries(&store).await, 1, "created once");
        let spec = RuleSpec { critical: Some(0.25), ..first.spec.clone() };
        let change = draft("alert_rule.changed");
        let changes = (0..8).map(|_| store.update_rule("r1", 1, &spec, "admin", at(5), &change));
        let won = futures::future::try_join_all(changes).await.unwrap();
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{}", test.db.dialect());
        let stored = store.rule("r1").await.unwrap().unwrap();
        assert_eq!(stored, Rule { version: 2, spec, updated_at: at(5), ..first });
        assert_eq!(store.rules().await.unwrap(), [stored]);
        assert_eq!(entries(&store).await, 2);
        assert!(!store.update_rule("nope", 1, &rule("x").spec, "admin", at(5), &change).await.unwrap());
    }
}

#[tokio::test]
async fn a_rule_has_one_open_episode() {
    for (store, test) in stores().await {
        let all: Vec<_> = (0..8).map(|n| alert(&format!("a{n}"), "r1", n)).collect();
        futures::future::try_join_all(all.iter().map(|one| store.put_alert(one))).await.unwrap();
        let open = store.open_alerts().await.unwrap();
        assert_eq!(open.len(), 1, "{}", test.db.dialect());
        let resolved = Alert { state: AlertState::Resolved, resolved_at: Some(at(9)), ..open[0].clone() };
        store.put_alert(&resolved).await.unwrap();
        store.put_alert(&open[0]).await.unwrap();
        assert_eq!(store.alert(&resolved.id).await.unwrap(), Some(resolved), "what is over stays over");
        store.put_alert(&alert("later", "r1", 20)).await.unwrap();
        assert_eq!(store.open_alerts().await.unwrap()[0].id, "later");
        store.drop_alert("later").await.unwrap();
        assert_eq!(store.open_alerts().await.unwrap(), []);
        assert_eq!(AlertStore::alerts(&store, None, Limit::default()).await.unwrap().items.len(), 1);
    }
}

#[tokio::test]
async fn what_people_said_survives_an_evaluation_that_read_before() {
    for (store, _test) in stores().await {
        let stale = alert("a1", "r1", 0);
        store.put_alert(&stale).await.unwrap();
        assert!(store.acknowledge("a1", "ann", at(1), &draft("alert.acknowledged")).await.unwrap());
        assert!(store.acknowledge("a1", "bob", at(2), &draft("alert.acknowledged")).await.unwrap());
        assert!(store.silence("a1", at(3_600), &draft("alert.silenced")).await.unwrap());
        store.put_alert(&Alert { state: AlertState::Firing, fired_at: Some(at(3)), ..stale }).await.unwrap();
        let kept = store.alert("a1").await.unwrap().unwrap();
        assert_eq!(kept.state, AlertState::Firing);
        assert_eq!(kept.acknowledged_by.as_deref(), Some("ann"));
        assert_eq!((kept.acknowledged_at, kept.silenced_until), (Some(at(1)), Some(at(3_600))));
        assert_eq!(entries(&store).await, 2, "one acknowledgement, one silence");
        assert!(!store.acknowledge("nope", "ann", at(1), &draft("x")).await.unwrap());
        assert!(!store.silence("nope", at(1), &draft("x")).await.unwrap());
    }
}

#[tokio::test]
async fn deleting_a_rule_resolves_its_episode() {
    for (store, _test) in stores().await {
        store.insert_rule(&rule("r1"), &draft("alert_rule.created")).await.unwrap();
        store.put_alert(&alert("a1", "r1", 0)).await.unwrap();
        assert!(store.delete_rule("r1", at(9), &draft("alert_rule.deleted")).await.unwrap());
        assert!(!store.delete_rule("r1", at(9), &draft("alert_rule.deleted")).await.unwrap());
        let over = store.alert("a1").await.unwrap().unwrap();
        assert_eq!((over.state, over.resolved_at), (AlertState::Resolved, Some(at(9))));
        assert_eq!(entries(&store).await, 2);
    }
}

#[tokio::test]
async fn episodes_are_paged_newest_first() {
    for (store, _test) in stores().await {
        for n in 0..5 {
            store.put_alert(&alert(&format!("a{n}"), &format!("r{n}"), n / 2)).await.unwrap();
        }
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = AlertStore::alerts(&store, before.as_ref(), Limit::new(2).unwrap()).await.unwrap();
            seen.extend(page.items.into_iter().map(|alert| alert.id));
            let Some(cursor) = page.next_cursor else { break };
            before = Some(decode_cursor::<(i64, String)>(&cursor).unwrap());
        }
        assert_eq!(seen, ["a4", "a3", "a2", "a1", "a0"]);
    }
}
