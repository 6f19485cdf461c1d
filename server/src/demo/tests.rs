//! The demo's promises: repeatable, and every staged verdict is what the console finds.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::{DateTime, TimeDelta};
use db::Query;
use domain::actions::Action;
use domain::evidence::Verdict;
use domain::ports::{Applied, Change, Source};
use domain::rates::Happening;
use domain::record::{RecordDetail, RecordFilter, RecordRow, State};

use super::*;
use crate::compose::open_sources;
use crate::config::Config;
use crate::runtime::{SystemClock, TokioRuntime, World};

#[derive(Default)]
struct Taken {
    seeded: Mutex<Vec<(Vec<Count>, Vec<StuckSample>)>>,
    reports: Mutex<Vec<Report>>,
}

#[async_trait]
impl Ingest for Taken {
    async fn report(&self, report: Report) -> domain::Result<()> {
        self.reports.lock().unwrap().push(report);
        Ok(())
    }

    async fn seed(&self, counts: Vec<Count>, samples: Vec<StuckSample>) -> domain::Result<()> {
        self.seeded.lock().unwrap().push((counts, samples));
        Ok(())
    }
}

fn options(folder: &Path, stuck: Option<u32>) -> DemoOptions {
    DemoOptions {
        data: folder.join("data"),
        listen: SocketAddr::from(([127, 0, 0, 1], 3000)),
        traffic: false,
        stuck,
        seed: Some(7),
    }
}

async fn prepared(options: &DemoOptions) -> Prepared {
    prepare(options, Arc::new(SystemClock)).await.unwrap()
}

fn sources_of(prepared: &Prepared) -> Vec<Arc<dyn Source>> {
    let config = Config::load(prepared.config_path()).unwrap();
    let world = World::real(&TokioRuntime::default());
    open_sources(&config, &world).unwrap().iter().cloned().collect()
}

async fn stuck_rows(source: &Arc<dyn Source>) -> Vec<RecordRow> {
    source.list(&RecordFilter::stuck(), None, 500).await.unwrap()
}

/// Every stuck record with its verdict.
async fn verdicts(prepared: &Prepared) -> Vec<(Arc<dyn Source>, RecordDetail, Verdict)> {
    let mut all = Vec::new();
    for source in sources_of(prepared) {
        for row in stuck_rows(&source).await {
            let detail = source.get(&row.id).await.unwrap();
            let verdict = source.reverse_check(&detail).await.verdict;
            all.push((source.clone(), detail, verdict));
        }
    }
    all
}

async fn tally_of_verdicts(prepared: &Prepared) -> BTreeMap<Verdict, u32> {
    let mut tally = BTreeMap::new();
    for (_, _, verdict) in verdicts(prepared).await {
        *tally.entry(verdict).or_default() += 1;
    }
    tally
}

#[tokio::test]
async fn exactly_so_many_stuck_records_of_every_verdict_are_staged() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = prepared(&options(folder.path(), Some(3))).await;
    let expected: BTreeMap<_, _> = Verdict::ALL.into_iter().map(|verdict| (verdict, 3)).collect();
    assert_eq!(tally_of_verdicts(&prepared).await, expected);
}

#[tokio::test]
async fn without_a_number_all_verdicts_occur_in_a_believable_mix() {
    let folder = tempfile::tempdir().unwrap();
    let tally = tally_of_verdicts(&prepared(&options(folder.path(), None)).await).await;
    assert_eq!(tally.len(), Verdict::ALL.len());
    assert!((25..40).contains(&tally.values().sum::<u32>()));
}

/// Keys and bodies of both sources' records.
async fn keys(prepared: &Prepared, which: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for db in [&prepared.databases.shop, &prepared.databases.promo] {
        let sql = format!("SELECT idempotent_id, request_body FROM idempotent_record {which} ORDER BY 1");
        let rows = db.fetch_all(&Query::raw(sql, vec![])).await.unwrap();
        keys.extend(rows.iter().map(|row| format!("{} {}", row.text(0).unwrap(), row.text(1).unwrap())));
    }
    keys
}

#[tokio::test]
async fn a_second_start_uses_the_data_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let first = prepared(&options(folder.path(), Some(1))).await;
    let at_first = keys(&first, "").await;
    drop(first);
    let second = prepared(&options(folder.path(), Some(5))).await;
    assert_eq!(keys(&second, "").await, at_first);
}

/// A clock that is wrong by so much.
struct Shifted(TimeDelta);

impl Clock for Shifted {
    fn now(&self) -> DateTime<chrono::Utc> {
        SystemClock.now() + self.0
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_stuck_records_at_any_time() {
    let mut seen = Vec::new();
    for (seed, ago) in [(7, 0), (7, 31), (8, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let options = DemoOptions { seed: Some(seed), ..options(folder.path(), None) };
        let prepared = prepare(&options, Arc::new(Shifted(TimeDelta::hours(-ago)))).await.unwrap();
        seen.push(keys(&prepared, "WHERE status = 'PROCESSING'").await);
    }
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].iter().all(|key| !seen[2].contains(key)));
}

#[tokio::test]
async fn the_history_is_handed_over_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), Some(1));
    let taken = Arc::new(Taken::default());
    for _ in 0..2 {
        prepared(&options).await.start(taken.clone()).await.unwrap().shutdown().await;
    }
    let seeded = taken.seeded.lock().unwrap();
    let [(counts, samples)] = seeded.as_slice() else { panic!("seeded {} times", seeded.len()) };
    assert!(!samples.is_empty());
    let sum = |what: fn(Happening) -> bool| -> f64 {
        counts.iter().filter(|count| what(count.outcome)).map(|count| f64::from(count.count)).sum()
    };
    let all = sum(|_| true);
    let minutes = 7.0 * 24.0 * 60.0;
    assert!((40.0..150.0).contains(&(all / minutes)), "{} a minute", all / minutes);
    assert!((0.03..0.07).contains(&(sum(|what| what == Happening::Hit) / all)));
    assert!(sum(Happening::is_anomaly) / all < 0.01);
}

async fn settle(source: &Arc<dyn Source>, record: &RecordDetail, action: Action) {
    let finding = source.reverse_check(record).await;
    let change = Change { action, record, finding: Some(&finding), response_body: None };
    let plan = source.plan(change).await.unwrap();
    let applied = source
        .apply(record, &record.row.version, action, &plan, chrono::DateTime::<chrono::Utc>::MAX_UTC)
        .await
        .unwrap();
    assert_eq!(applied, Applied::Changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absent_record_replays_and_is_found_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = prepared(&options(folder.path(), Some(4))).await;
    let absent = verdicts(&prepared).await.into_iter().filter(|(.., verdict)| *verdict == Verdict::Absent);
    for (source, record, _) in absent {
        assert_eq!(source.prepare_of(&record.row), Some(Action::MarkTimedOut));
        settle(&source, &record, Action::MarkTimedOut).await;
        source.replay(&record).await;
        let after = source.get(&record.row.id).await.unwrap();
        assert_eq!(after.row.state, State::Success, "{:?}", record.row.biz_type);
        assert!(after.response.bytes().is_some());
        assert_eq!(source.reverse_check(&after).await.verdict, Verdict::Found);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marked_record_has_the_answer_that_the_shop_would_have_given() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = prepared(&options(folder.path(), Some(4))).await;
    let found = verdicts(&prepared).await.into_iter().filter(|(.., verdict)| *verdict == Verdict::Found);
    for (source, record, _) in found {
        settle(&source, &record, Action::MarkSucceeded).await;
        let after = source.get(&record.row.id).await.unwrap();
        let biz_type = record.row.biz_type.as_deref().unwrap();
        let kind = kind::Kind::ALL.into_iter().find(|kind| kind.biz_type() == biz_type).unwrap();
        let request: serde_json::Value = serde_json::from_slice(record.request.bytes().unwrap()).unwrap();
        let given = std::str::from_utf8(after.response.bytes().unwrap()).unwrap();
        assert_eq!(given, kind.response(&request));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_leaves_the_verdict_it_stands_for() {
    use shop::Fault;
    let folder = tempfile::tempdir().unwrap();
    let prepared = prepared(&options(folder.path(), Some(0))).await;
    let mut rng = StdRng::seed_from_u64(1);
    let faults = [
        (kind::Kind::Order, Fault::CrashAfter, Verdict::Found),
        (kind::Kind::Callback, Fault::CrashAfter, Verdict::Found),
        (kind::Kind::Order, Fault::CrashBefore, Verdict::Absent),
        (kind::Kind::Order, Fault::OtherAmount, Verdict::Mismatch),
        (kind::Kind::Refund, Fault::Half, Verdict::Partial),
        (kind::Kind::Coupon, Fault::CrashAfter, Verdict::Unavailable),
    ];
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (kind, fault, _) in faults {
        let ask = sale::Sale::new(&mut rng).ask(kind);
        let request = client.post(format!("http://{}{}", prepared.address, kind.path()));
        let request = request.header("Idempotency-Key", &ask.key).header(shop::FAULT_HEADER, fault.as_str());
        assert_eq!(request.body(ask.body).send().await.unwrap().status(), 502);
    }
    let mut found = BTreeMap::new();
    for source in sources_of(&prepared) {
        let open = RecordFilter { state: Some(State::Processing), ..RecordFilter::default() };
        for row in source.list(&open, None, 50).await.unwrap() {
            let verdict = source.reverse_check(&source.get(&row.id).await.unwrap()).await.verdict;
            *found.entry((row.biz_type.unwrap(), verdict)).or_insert(0) += 1;
        }
    }
    let expected = faults.map(|(kind, _, verdict)| ((kind.biz_type().to_owned(), verdict), 1));
    assert_eq!(found, BTreeMap::from(expected));
}
