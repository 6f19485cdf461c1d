use chrono::TimeDelta;
use domain::evidence::{CheckRows, Evidence, Finding, Reason, Verdict};
use domain::ports::EvidenceStore;
use domain::record::{State, Version};

use crate::{at, record, stores};

fn evidence(id: &str, key: &str, seconds: i64) -> Evidence {
    Evidence {
        id: id.into(),
        record: record(key),
        version: Version::new(State::Processing, "3"),
        finding: Finding {
            verdict: Verdict::Mismatch,
            rows: vec![CheckRows {
                check: "t_order".into(),
                columns: vec!["order_no".into(), "amount".into()],
                rows: vec![vec![Some("O-1".into()), None]],
                places: vec![],
                truncated: false,
            }],
            comparisons: vec![],
            reasons: vec![Reason::SeveralRows { check: "t_order".into(), rows: 2 }],
            read_from: "primary".into(),
        },
        checked_by: "op".into(),
        checked_at: at(seconds),
        expires_at: at(seconds) + TimeDelta::seconds(60),
    }
}

#[tokio::test]
async fn evidence_comes_back_whole_and_the_newest_first() {
    for (store, test) in stores().await {
        let all =
            [evidence("a", "k1", 1), evidence("b", "k1", 3), evidence("c", "k1", 3), evidence("d", "k2", 2)];
        for one in &all {
            store.put(one).await.unwrap();
            store.put(one).await.unwrap();
        }
        assert_eq!(store.get("b").await.unwrap().as_ref(), Some(&all[1]));
        assert_eq!(store.get("x").await.unwrap(), None);
        let mut latest = store.latest(&[record("k1"), record("k2"), record("k3")]).await.unwrap();
        latest.sort_by(|a, b| a.id.cmp(&b.id));
        assert_eq!(latest, [all[2].clone(), all[3].clone()], "{}", test.db.dialect());
        assert_eq!(store.latest(&[]).await.unwrap(), []);
        let history = store.history(&record("k1"), 2).await.unwrap();
        assert_eq!(history, [all[2].clone(), all[1].clone()]);
    }
}

#[tokio::test]
async fn asking_about_many_records_at_once_works() {
    for (store, _test) in stores().await {
        store.put(&evidence("a", "k777", 1)).await.unwrap();
        let records: Vec<_> = (0..1_000).map(|n| record(&format!("k{n}"))).collect();
        assert_eq!(store.latest(&records).await.unwrap().len(), 1);
    }
}
