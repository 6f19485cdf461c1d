use domain::ports::RateStore;
use domain::rates::{Bucket, Count, Happening, RateScope, Report, Span, StuckSample, Totals};

use crate::{again, at, stores};

fn count(seconds: i64, biz_type: &str, outcome: Happening, count: u32) -> Count {
    Count { source: "orders".into(), biz_type: biz_type.into(), at: at(seconds), outcome, count }
}

fn report(sequence: i64, counts: Vec<Count>) -> Report {
    Report { producer: "guard-1".into(), sequence, counts }
}

fn all() -> RateScope {
    RateScope::default()
}

fn totals(executed: u64, hit: u64, anomaly: u64) -> Totals {
    Totals { executed, hit, anomaly }
}

#[tokio::test]
async fn a_repeated_sequence_changes_nothing_even_at_once() {
    for (store, test) in stores().await {
        let other = again(&test, 5).await;
        let same = report(1, vec![count(0, "ORDER", Happening::Executed, 3)]);
        let sends = (0..20).map(|n| if n % 2 == 0 { store.report(&same) } else { other.report(&same) });
        let applied = futures::future::try_join_all(sends).await.unwrap();
        assert_eq!(applied.iter().filter(|applied| **applied).count(), 1, "{}", test.db.dialect());
        let sums = store.by_biz_type(&all(), at(0), at(60)).await.unwrap();
        assert_eq!(sums, [("orders".into(), "ORDER".into(), totals(3, 0, 0))]);
    }
}

#[tokio::test]
async fn counts_of_many_producers_add_up() {
    for (store, test) in stores().await {
        let reports: Vec<_> = (0..20)
            .map(|n| Report {
                producer: format!("guard-{n}"),
                ..report(
                    1,
                    vec![
                        count(1, "B", Happening::Hit, 1),
                        count(0, "A", Happening::Executed, 2),
                        count(30, "A", Happening::Executed, 1),
                    ],
                )
            })
            .collect();
        futures::future::try_join_all(reports.iter().map(|one| store.report(one))).await.unwrap();
        let sums = store.by_biz_type(&all(), at(0), at(60)).await.unwrap();
        let expected = [
            ("orders".into(), "A".into(), totals(60, 0, 0)),
            ("orders".into(), "B".into(), totals(0, 20, 0)),
        ];
        assert_eq!(sums, expected, "{}", test.db.dialect());
        let pairs = store.biz_types().await.unwrap();
        assert_eq!(pairs, [("orders".to_owned(), "A".to_owned()), ("orders".to_owned(), "B".to_owned())]);
    }
}

#[tokio::test]
async fn series_steps_start_at_the_span_and_gaps_stay_gaps() {
    for (store, _test) in stores().await {
        let counts = vec![
            count(0, "ORDER", Happening::Executed, 1),
            count(119, "ORDER", Happening::Hit, 2),
            count(120, "ORDER", Happening::InDoubt, 4),
            count(125, "OTHER", Happening::LateCompletion, 8),
            count(600, "ORDER", Happening::Executed, 16),
            count(660, "ORDER", Happening::Executed, 32),
        ];
        store.report(&report(1, counts)).await.unwrap();
        let span = Span { from: at(0), to: at(660), step_minutes: 2 };
        let bucket = |seconds, totals| Bucket { at: at(seconds), totals };
        let series = store.series(&all(), span).await.unwrap();
        assert_eq!(
            series,
            [bucket(0, totals(1, 2, 0)), bucket(120, totals(0, 0, 12)), bucket(600, totals(16, 0, 0))]
        );
        let scope = RateScope { source: Some("orders".into()), biz_type: Some("OTHER".into()) };
        assert_eq!(store.series(&scope, span).await.unwrap(), [bucket(120, totals(0, 0, 8))]);
        let apart = store.series_by_biz_type(&all(), span).await.unwrap();
        let parts: Vec<_> =
            apart.iter().map(|part| (part.biz_type.as_str(), part.buckets.as_slice())).collect();
        let order = [bucket(0, totals(1, 2, 0)), bucket(120, totals(0, 0, 4)), bucket(600, totals(16, 0, 0))];
        assert_eq!(parts, [("ORDER", &order[..]), ("OTHER", &[bucket(120, totals(0, 0, 8))][..])]);
        let elsewhere = RateScope { source: Some("x".into()), biz_type: None };
        assert_eq!(store.series(&elsewhere, span).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_big_report_is_taken_whole() {
    for (store, _test) in stores().await {
        let counts: Vec<_> = (0..2_500).map(|n| count(n * 60, "ORDER", Happening::Executed, 1)).collect();
        store.report(&report(1, counts)).await.unwrap();
        let sums = store.by_biz_type(&all(), at(0), at(2_500 * 60)).await.unwrap();
        assert_eq!(sums[0].2, totals(2_500, 0, 0));
    }
}

#[tokio::test]
async fn stuck_samples_replace_those_of_their_minute() {
    let sample = |seconds, source: &str, biz_type: &str, stuck, oldest_seconds| StuckSample {
        source: source.into(),
        biz_type: biz_type.into(),
        at: at(seconds),
        stuck,
        oldest_seconds,
    };
    for (store, test) in stores().await {
        store
            .sample_stuck(&[
                sample(0, "a", "X", 2, 700),
                sample(0, "a", "Y", 3, 900),
                sample(0, "b", "X", 1, 10),
            ])
            .await
            .unwrap();
        store.sample_stuck(&[sample(30, "a", "X", 5, 800), sample(60, "a", "X", 1, 1)]).await.unwrap();
        store.sample_stuck(&[]).await.unwrap();
        let series = store.stuck_series(&all(), at(0), at(120)).await.unwrap();
        assert_eq!(series, [(at(0), 6, 800), (at(60), 1, 1)], "{}", test.db.dialect());
        let scope = RateScope { source: Some("b".into()), biz_type: None };
        assert_eq!(store.stuck_series(&scope, at(0), at(120)).await.unwrap(), [(at(0), 1, 10)]);
    }
}
