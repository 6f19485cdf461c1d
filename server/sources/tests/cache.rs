//! Caches beside a table, in a real Redis: what their entries mean, and that nothing newer or strange is changed.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{MINIMAL, ORDER, Table, WrongClock, attach, parse, rec};
use domain::cache::{Cached, Held, Standing, Step};
use domain::ports::{Cache, Source};
use domain::record::{RecordDetail, State};
use kv::Redis;
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// A table with one record and a cache of this configuration.
struct Scene {
    table: Table,
    redis: Redis,
    prefix: String,
    config: String,
}

/// `None` when no Redis is at hand.
async fn scene(test: &str, config: &str) -> Option<Scene> {
    let Some(url) = std::env::var("AMENDS_TEST_REDIS").ok().filter(|url| !url.is_empty()) else {
        assert!(std::env::var("AMENDS_TEST_ALL").is_err(), "AMENDS_TEST_REDIS is not set");
        eprintln!("skipped: AMENDS_TEST_REDIS is not set");
        return None;
    };
    Some(scene_at(&url, test, config).await)
}

async fn scene_at(url: &str, test: &str, config: &str) -> Scene {
    let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let prefix = format!("amends-test:{test}:{nanos}");
    let db = db::testkit::sqlite().await;
    db.run(&[
        "CREATE TABLE idempotent_record (idempotent_id VARCHAR(255) UNIQUE, biz_type VARCHAR(64), biz_no VARCHAR(255), \
         status VARCHAR(16), request_body TEXT, response_body TEXT, create_time DATETIME, update_time DATETIME)",
    ])
    .await;
    let cache = format!("{MINIMAL}[cache]\nurl = \"{url}\"\nkey = \"{prefix}:{{key}}\"\n{config}");
    let table = attach(db, &cache, ORDER).await;
    let redis = Redis::open(url, kv::Options::default()).unwrap();
    Scene { table, redis, prefix, config: cache }
}

impl Scene {
    async fn record(&self, key: &str, state: State) -> RecordDetail {
        let status = Some(state.as_str());
        self.table.put(&common::Rec { status, ..rec(key, 3_600_000) }).await;
        self.table.get(key).await
    }

    fn key(&self, key: &str) -> String {
        format!("{}:{key}", self.prefix)
    }

    async fn set(&self, key: &str, value: &str) {
        self.redis.set(&self.key(key), value.as_bytes(), DAY).await.unwrap();
    }

    async fn value(&self, key: &str) -> Option<String> {
        let value = self.redis.get(&self.key(key)).await.unwrap();
        value.map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// Runs a command of Redis on a key of this test.
    async fn run(&self, command: &str, key: &str, args: &[&str]) {
        let args: Vec<String> = args.iter().map(|arg| format!(", '{arg}'")).collect();
        let code = format!("return redis.call('{command}', KEYS[1]{})", args.concat());
        let done: Result<(), _> = self.redis.call(&kv::Script::new(&code), &[&self.key(key)], &[]).await;
        done.unwrap();
    }

    fn cache(&self) -> &dyn Cache {
        self.table.source.cache().unwrap()
    }

    async fn read(&self, record: &RecordDetail) -> Cached {
        self.cache().read(&record.row).await
    }

    /// Steps until nothing changes any more.
    async fn settle(&self, record: &RecordDetail) -> Step {
        for _ in 0..4 {
            match self.cache().make_agree(record).await {
                Step::Changed => {}
                end => return end,
            }
        }
        Step::Changed
    }
}

#[tokio::test]
async fn an_entry_is_read_with_its_key_value_life_and_meaning() {
    let Some(scene) = scene("read", "").await else { return };
    let record = scene.record("k", State::Success).await;
    assert_eq!(scene.read(&record).await, Cached { key: scene.key("k"), held: Held::Nothing });
    scene.set("k", r#"{"status":"PROCESSING","owner":"w-1"}"#).await;
    let cached = scene.read(&record).await;
    assert_eq!(cached.standing(State::Success), Standing::Disagrees);
    let Held::Entry(entry) = cached.held else { panic!("{cached:?}") };
    assert_eq!(
        (entry.native.as_deref(), entry.means.as_slice()),
        (Some("PROCESSING"), &[State::Processing][..])
    );
    assert!(entry.ttl.is_some_and(|ttl| ttl <= DAY && ttl > DAY / 2));
    scene.run("PERSIST", "k", &[]).await;
    let Held::Entry(entry) = scene.read(&record).await.held else { panic!() };
    assert_eq!(entry.ttl, None, "an entry without end says so");
}

#[tokio::test]
async fn an_entry_that_disagrees_goes_and_one_that_agrees_stays() {
    let Some(scene) = scene("delete", "").await else { return };
    for state in [State::Success, State::Timeout, State::Failed] {
        let record = scene.record(state.as_str(), state).await;
        scene.set(state.as_str(), r#"{"status":"PROCESSING"}"#).await;
        assert_eq!(scene.settle(&record).await, Step::Agrees);
        assert_eq!(scene.value(state.as_str()).await, None, "{state}");
        let same = format!("{{\"status\":\"{state}\"}}");
        scene.set(state.as_str(), &same).await;
        assert_eq!(scene.settle(&record).await, Step::Agrees);
        assert_eq!(scene.value(state.as_str()).await, Some(same));
    }
}

#[tokio::test]
async fn a_newer_entry_is_never_lost_whenever_it_comes() {
    let Some(scene) = scene("newer", "").await else { return };
    let record = scene.record("k", State::Success).await;
    let newer = r#"{"status":"SUCCESS","response":{"code":0}}"#;
    for round in 0..200 {
        scene.set("k", r#"{"status":"PROCESSING"}"#).await;
        let (step, ()) = futures::join!(scene.settle(&record), scene.set("k", newer));
        assert_eq!(step, Step::Agrees);
        assert_eq!(scene.value("k").await.as_deref(), Some(newer), "lost in round {round}");
    }
}

#[tokio::test]
async fn what_the_configuration_does_not_describe_is_named_and_left_alone() {
    let Some(scene) = scene("strange", "").await else { return };
    let record = scene.record("k", State::Success).await;
    let why = async || match scene.settle(&record).await {
        Step::Kept(why) => why,
        other => panic!("{other:?}"),
    };
    scene.run("RPUSH", "k", &["x"]).await;
    assert!(matches!(scene.read(&record).await.held, Held::Unreadable(why) if why.contains("list")));
    assert!(why().await.contains("holds a list, not a string"));
    scene.run("DEL", "k", &[]).await;
    scene.run("HSET", "k", &["status", "PROCESSING"]).await;
    assert!(why().await.contains("hash"));
    scene.run("DEL", "k", &[]).await;
    for strange in ["", "PROCESSING", "<script>alert(1)</script>", "{\"status\":", "\0\u{1}", "键"] {
        scene.set("k", strange).await;
        assert!(why().await.contains("no JSON"), "{strange}");
        assert_eq!(scene.value("k").await.as_deref(), Some(strange));
    }
    for unmapped in [r#"{"status":"DONE"}"#, r#"{"status":{"a":1}}"#, "[]", "null", "7"] {
        scene.set("k", unmapped).await;
        assert!(why().await.contains("mapped to no state"), "{unmapped}");
        assert_eq!(scene.read(&record).await.standing(State::Success), Standing::Unclear);
        assert_eq!(scene.value("k").await.as_deref(), Some(unmapped));
    }
    let huge = format!("{{\"status\":\"PROCESSING\",\"x\":\"{}\"}}", "x".repeat(5 * 1024 * 1024));
    scene.set("k", &huge).await;
    assert!(why().await.contains("too many to read"));
    assert_eq!(scene.value("k").await.map(|value| value.len()), Some(huge.len()));
}

#[tokio::test]
async fn keys_are_data_whatever_they_hold() {
    let Some(scene) = scene("keys", "").await else { return };
    for key in ["a b", "x\r\nFLUSHALL\r\n", "{key}", "*", "键", "'; DROP TABLE t; --"] {
        let record = scene.record(key, State::Timeout).await;
        scene.set(key, r#"{"status":"PROCESSING"}"#).await;
        assert_eq!(scene.settle(&record).await, Step::Agrees, "{key:?}");
        assert_eq!(scene.value(key).await, None, "{key:?}");
    }
}

#[tokio::test]
async fn k2_a_service_that_asks_only_its_cache_gets_the_response_written() {
    let config = "format = \"text\"\nstate = { values = { PROCESSING = [\"\"] }, otherwise = \"SUCCESS\" }\n\
                  after = \"write\"\nttl = \"1h\"\nmark_succeeded = \"{response}\"\n";
    let Some(scene) = scene("k2", config).await else { return };
    let record = scene.record("k", State::Success).await;
    scene.table.run("UPDATE idempotent_record SET response_body = '{\"code\":0}'").await;
    let record = scene.table.get(&record.row.key).await;
    for before in [Some(""), None] {
        match before {
            Some(value) => scene.set("k", value).await,
            None => scene.run("DEL", "k", &[]).await,
        }
        assert_eq!(scene.settle(&record).await, Step::Agrees);
        assert_eq!(scene.value("k").await.as_deref(), Some("{\"code\":0}"), "from {before:?}");
        let Held::Entry(entry) = scene.read(&record).await.held else { panic!() };
        assert!(entry.ttl.is_some_and(|ttl| ttl <= Duration::from_secs(3_600)));
    }
    let timed_out = scene.record("t", State::Timeout).await;
    scene.set("t", "").await;
    assert_eq!(scene.settle(&timed_out).await, Step::Agrees);
    assert_eq!(scene.value("t").await, None, "a key that may run again has no entry");
}

#[tokio::test]
async fn k4_a_json_entry_carries_the_response_as_json() {
    let config = "after = \"write\"\nttl = \"1h\"\nmark_succeeded = '{\"status\":\"SUCCESS\",\"key\":\"{key}\",\"response\":{response}}'\n";
    let Some(scene) = scene("k4", config).await else { return };
    scene.record("a\"b", State::Success).await;
    scene.set("a\"b", r#"{"status":"PROCESSING"}"#).await;
    let kept = scene.settle(&scene.table.get("a\"b").await).await;
    assert!(
        matches!(kept, Step::Kept(ref why) if why.contains("{response}")),
        "no response is stored: {kept:?}"
    );
    scene.table.run("UPDATE idempotent_record SET response_body = '{\"n\":9007199254740993}'").await;
    assert_eq!(scene.settle(&scene.table.get("a\"b").await).await, Step::Agrees);
    let written = r#"{"status":"SUCCESS","key":"a\"b","response":{"n":9007199254740993}}"#;
    assert_eq!(scene.value("a\"b").await.as_deref(), Some(written));
}

#[tokio::test]
async fn k6_digits_and_hashes_are_read_and_deleted() {
    let digits = "format = \"text\"\nstate = { values = { PROCESSING = [0], SUCCESS = [1] } }\n";
    let Some(text) = scene("k6", digits).await else { return };
    let record = text.record("k", State::Success).await;
    text.set("k", "0").await;
    assert_eq!(text.settle(&record).await, Step::Agrees);
    assert_eq!(text.value("k").await, None);

    let Some(hash) = scene("hash", "format = \"hash\"\nstate = { field = \"status\" }\n").await else {
        return;
    };
    let record = hash.record("k", State::Success).await;
    hash.run("HSET", "k", &["owner", "w-1"]).await;
    assert!(matches!(hash.settle(&record).await, Step::Kept(why) if why.contains("status")));
    hash.run("HSET", "k", &["status", "PROCESSING"]).await;
    assert_eq!(hash.read(&record).await.standing(State::Success), Standing::Disagrees);
    assert_eq!(hash.settle(&record).await, Step::Agrees);
    assert_eq!(hash.redis.kind(&hash.key("k")).await.unwrap(), None);
}

#[tokio::test]
async fn a_cache_that_is_down_is_a_finding_and_the_table_is_read_all_the_same() {
    let scene = scene_at("redis://:s3cret@127.0.0.1:1/0", "down", "").await;
    let record = scene.record("k", State::Success).await;
    assert!(matches!(scene.read(&record).await.held, Held::Unknown(_)));
    let Step::Kept(why) = scene.settle(&record).await else { panic!() };
    let ping = scene.cache().ping().await.unwrap_err();
    assert!(!why.contains("s3cret") && !ping.contains("s3cret"));
    assert_eq!(scene.cache().about().address, "redis://:***@127.0.0.1:1/0");
}

#[tokio::test]
async fn a_cache_that_comes_back_is_changed_then() {
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = || {
        std::process::Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
    };
    let Ok(mut server) = start() else {
        eprintln!("skipped: redis-server is not installed");
        return;
    };
    let scene = scene_at(&format!("redis://127.0.0.1:{port}/0"), "back", "").await;
    let record = scene.record("k", State::Success).await;
    until(async || scene.redis.ping().await.is_ok()).await;
    scene.set("k", r#"{"status":"PROCESSING"}"#).await;
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(matches!(scene.settle(&record).await, Step::Kept(_)));
    let mut server = start().unwrap();
    until(async || scene.settle(&record).await == Step::Agrees).await;
    server.kill().unwrap();
    server.wait().unwrap();
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it never came true");
}

#[tokio::test]
async fn the_doctor_says_whether_entries_are_read_as_configured() {
    let Some(scene) = scene("doctor", "").await else { return };
    let config = parse(&scene.table.test.url, &scene.config, ORDER);
    let found = async || {
        let report = sources::check(&config, Arc::new(WrongClock)).await;
        let findings = report.findings.into_iter().filter(|finding| finding.code.starts_with("cache"));
        findings
            .map(|finding| format!("{:?} {}", finding.level, finding.message))
            .collect::<Vec<_>>()
            .join("\n")
    };
    scene.record("k", State::Success).await;
    assert!(found().await.contains("Warn of the newest 1 records 0 have an entry"), "{}", found().await);
    scene.set("k", r#"{"status":"DONE"}"#).await;
    assert!(found().await.contains("\"DONE\" is mapped to no state"), "{}", found().await);
    scene.set("k", r#"{"status":"SUCCESS"}"#).await;
    assert!(
        found().await.contains("Ok of the newest 1 records 1 have an entry that agrees"),
        "{}",
        found().await
    );
}

#[test]
fn a_configuration_that_makes_no_sense_says_what_to_write() {
    let problems = |cache: &str| {
        let text = format!("name = \"orders\"\nurl = \"sqlite::memory:\"\n[cache]\n{cache}");
        let config: sources::SourceConfig = toml::from_str(&text).unwrap();
        config.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let base = "url = \"redis://:s3cret@localhost/0\"\nkey = \"idem:{key}\"\n";
    assert_eq!(problems(base), "");
    for (more, says) in [
        ("format = \"hash\"", "write field = \"status\""),
        ("format = \"text\"\nstate = { pointer = \"/status\" }", "write format = \"json\""),
        ("state = { field = \"status\" }", "write format = \"hash\""),
        (
            "state = { values = { PROCESSING = [\"A\"], FAILED = [\"A\"] } }",
            "means PROCESSING and something else",
        ),
        ("state = { otherwise = \"UNKNOWN\" }", "leave it out"),
        ("mark_succeeded = \"x\"", "write after = \"write\""),
        ("after = \"write\"\nttl = \"1h\"", "cache.mark_succeeded"),
        ("after = \"write\"\nmark_succeeded = '{\"status\":\"SUCCESS\"}'", "ttl = \"24h\""),
        (
            "after = \"write\"\nttl = \"1h\"\nmark_succeeded = '{\"status\":\"DONE\"}'",
            "would not be read as SUCCESS",
        ),
        (
            "after = \"write\"\nttl = \"1h\"\nmark_succeeded = '{\"status\":\"SUCCESS\",\"x\":\"{amount}\"}'",
            "{amount}",
        ),
    ] {
        let found = problems(&format!("{base}{more}"));
        assert!(found.contains(says) && !found.contains("s3cret"), "{more}: {found}");
    }
    for (url, key, says) in [
        ("http://me:s3cret@x", "idem:{key}", "redis://host:6379/0"),
        ("redis://x", "idem", "{key}"),
        ("redis://x", "idem:{biz_type}", "every record's"),
        ("redis://x", "idem:{tenant}", "{tenant}"),
    ] {
        let found = problems(&format!("url = \"{url}\"\nkey = \"{key}\""));
        assert!(found.contains(says) && !found.contains("s3cret"), "{url} {key}: {found}");
    }
}
