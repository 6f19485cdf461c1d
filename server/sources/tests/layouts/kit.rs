//! Tables as other projects have them, attached by configuration only.

use chrono::{DateTime, Utc};
use db::testkit::{TestDb, each_database};
use db::{Dialect, Query};
use domain::actions::Action;
use domain::clock::Clock;
use domain::error::Error;
use domain::ports::{Applied, Change, Source};
use domain::record::{Place, RecordDetail, RecordFilter, RecordRow, State};
use sources::{Attached, HttpSettings, SourceConfig};
use std::sync::Arc;

pub use Dialect::{Mysql, Postgres, Sqlite};
pub use State::{Failed, Ignored, Processing, Success, Timeout, Unknown};

pub const ALL: [Dialect; 3] = [Sqlite, Postgres, Mysql];

/// A clock that stands years off, so that nothing can lean on it.
struct WrongClock;

impl Clock for WrongClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
}

/// A layout on one database: the effect is found by `found`, and proved absent by `absent`.
pub struct Attach {
    pub test: TestDb,
    pub found: Attached,
    absent: Attached,
}

/// On each of these databases: runs the statements, attaches the table.
///
/// In the statements `{ts}`, `{json}`, `{blob}`, `{bool}`, `{serial}` and `{text}` are the database's own types, `{old}` is a time years ago,
/// `{now}` the present one, `{soon}` one in a minute and a half, and `{now_ms}`, `{old_ms}`, `{soon_ms}` the same as milliseconds.
pub async fn layouts(dialects: &[Dialect], statements: &[&str], config: &str) -> Vec<Attach> {
    let mut all = Vec::new();
    for test in each_database().await {
        if !dialects.contains(&test.db.dialect()) {
            continue;
        }
        let now = test.db.now().await.unwrap();
        for statement in statements {
            test.run(&[&spelled(statement, test.db.dialect(), now)]).await;
        }
        let open = |condition: &str| {
            let biz = format!(
                "\n[[biz]]\ntype = \"X\"\n[biz.reverse_check]\nsql = \"SELECT 1 AS one FROM (SELECT 1 AS one) x WHERE {condition}\"\n"
            );
            let source = parse(&test.url, config, &biz);
            Attached::open(source, &HttpSettings::default(), Arc::new(WrongClock)).unwrap()
        };
        let (found, absent) = (open("1 = 1"), open("1 = 0"));
        all.push(Attach { test, found, absent });
    }
    all
}

pub fn parse(url: &str, config: &str, biz: &str) -> SourceConfig {
    let text = format!("name = \"records\"\nurl = \"{url}\"\n{config}{biz}");
    let source: SourceConfig = toml::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(source.problems(), []);
    source
}

fn spelled(sql: &str, dialect: Dialect, now: DateTime<Utc>) -> String {
    let types: [(&str, [&str; 3]); 6] = [
        ("{ts}", ["TEXT", "TIMESTAMPTZ", "DATETIME(6)"]),
        ("{json}", ["TEXT", "JSONB", "JSON"]),
        ("{blob}", ["BLOB", "BYTEA", "LONGBLOB"]),
        ("{bool}", ["BOOLEAN", "BOOLEAN", "BIT(1)"]),
        (
            "{serial}",
            [
                "INTEGER PRIMARY KEY AUTOINCREMENT",
                "BIGSERIAL PRIMARY KEY",
                "BIGINT AUTO_INCREMENT PRIMARY KEY",
            ],
        ),
        ("{text}", ["TEXT", "TEXT", "LONGTEXT"]),
    ];
    let place = match dialect {
        Sqlite => 0,
        Postgres => 1,
        Mysql => 2,
    };
    let sql = types.iter().fold(sql.to_owned(), |sql, (name, all)| sql.replace(name, all[place]));
    let soon = now + chrono::TimeDelta::seconds(90);
    let shown = |at: DateTime<Utc>| format!("'{}'", at.format("%Y-%m-%d %H:%M:%S"));
    let mut sql = sql
        .replace("{old}", "'2020-01-02 03:04:05'")
        .replace("{old_ms}", "1577934245000")
        .replace("{now}", &shown(now))
        .replace("{soon}", &shown(soon))
        .replace("{now_ms}", &now.timestamp_millis().to_string())
        .replace("{soon_ms}", &soon.timestamp_millis().to_string());
    // `{x:00ff}` is bytes.
    while let Some(start) = sql.find("{x:") {
        let end = start + sql[start..].find('}').unwrap();
        let digits = sql[start + 3..end].to_owned();
        let bytes = match dialect {
            Postgres => format!("'\\x{digits}'::bytea"),
            _ => format!("x'{digits}'"),
        };
        sql.replace_range(start..=end, &bytes);
    }
    sql
}

impl Attach {
    pub fn dialect(&self) -> Dialect {
        self.test.db.dialect()
    }

    pub async fn list(&self, filter: &RecordFilter) -> Vec<RecordRow> {
        self.found.list(filter, None, 200).await.unwrap_or_else(|e| panic!("{}: {e}", self.dialect()))
    }

    pub async fn keys(&self, filter: &RecordFilter) -> Vec<String> {
        let mut keys: Vec<String> = self.list(filter).await.into_iter().map(|row| row.key).collect();
        keys.sort();
        keys
    }

    /// The one row that a search for this key finds.
    pub async fn row(&self, key: &str) -> RecordRow {
        let filter = RecordFilter { key: Some(key.to_owned()), ..RecordFilter::default() };
        let mut rows = self.list(&filter).await;
        assert_eq!(rows.len(), 1, "{} {key}: {rows:?}", self.dialect());
        rows.remove(0)
    }

    pub async fn get(&self, key: &str) -> RecordDetail {
        let id = self.row(key).await.id;
        self.found.get(&id).await.unwrap_or_else(|e| panic!("{} {key}: {e}", self.dialect()))
    }

    /// Exactly these records, with these states, stuck or not: in the list, under every filter, by search, opened, and page by page.
    pub async fn holds(&self, expected: &[(&str, State, bool)]) {
        let at = self.dialect();
        let mut wanted: Vec<(String, State, bool)> =
            expected.iter().map(|(key, state, stuck)| ((*key).to_owned(), *state, *stuck)).collect();
        wanted.sort_by(|left, right| left.0.cmp(&right.0));
        let rows = self.list(&RecordFilter::default()).await;
        let mut found: Vec<(String, State, bool)> =
            rows.iter().map(|row| (row.key.clone(), row.state, row.stuck)).collect();
        found.sort_by(|left, right| left.0.cmp(&right.0));
        assert_eq!(found, wanted, "{at}");
        let with = |test: &dyn Fn(&(String, State, bool)) -> bool| -> Vec<String> {
            wanted.iter().filter(|row| test(row)).map(|row| row.0.clone()).collect()
        };
        for state in State::ALL {
            let filter = RecordFilter { state: Some(state), ..RecordFilter::default() };
            assert_eq!(self.keys(&filter).await, with(&|row| row.1 == state), "{at} {state}");
        }
        for stuck in [true, false] {
            let filter = RecordFilter { stuck: Some(stuck), ..RecordFilter::default() };
            assert_eq!(self.keys(&filter).await, with(&|row| row.2 == stuck), "{at} stuck {stuck}");
        }
        for row in &rows {
            let detail = self.found.get(&row.id).await.unwrap_or_else(|e| panic!("{at} {}: {e}", row.key));
            assert_eq!((&detail.row.key, detail.row.state), (&row.key, row.state), "{at}");
            if row.key.is_empty() {
                continue;
            }
            let searched = RecordFilter { search: Some(row.key.clone()), ..RecordFilter::default() };
            assert!(self.keys(&searched).await.contains(&row.key), "{at} search {}", row.key);
        }
        for filter in [RecordFilter::default(), RecordFilter::stuck()] {
            let whole = self.list(&filter).await;
            let (mut paged, mut after) = (Vec::new(), None::<Place>);
            while let Some(row) = self.found.list(&filter, after.as_ref(), 1).await.unwrap().pop() {
                after = Some(Place::of(&row));
                paged.push(row.id);
                assert!(paged.len() <= whole.len(), "{at}: pages go in circles");
            }
            let ids: Vec<_> = whole.into_iter().map(|row| row.id).collect();
            assert_eq!(paged, ids, "{at}");
        }
    }

    fn source(&self, action: Action) -> &Attached {
        match action {
            Action::MarkSucceeded => &self.found,
            Action::MarkTimedOut | Action::Replay => &self.absent,
        }
    }

    /// Marks a record, sees that a second mark of what was seen first changes nothing, and gives the record as it is then.
    pub async fn mark(&self, key: &str, action: Action, response: Option<&str>) -> RecordDetail {
        let (at, source) = (self.dialect(), self.source(action));
        let record = source.get(&self.row(key).await.id).await.unwrap();
        let change = Change { action, record: &record, finding: None, response_body: response };
        let plan = source.plan(change).await.unwrap_or_else(|e| panic!("{at} {key}: {e}"));
        let applied = source
            .apply(&record, &record.row.version, action, &plan, chrono::DateTime::<chrono::Utc>::MAX_UTC)
            .await;
        assert_eq!(applied.unwrap_or_else(|e| panic!("{at} {key}: {e}")), Applied::Changed, "{at} {key}");
        let after = source.get(&record.row.id).await.unwrap();
        assert_eq!(after.row.state, plan.state, "{at} {key}");
        assert!(
            after.marks.contains(&plan.marker)
                || (plan.marker == 0
                    && after.response.bytes() == plan.response.as_deref().map(str::as_bytes)),
            "{at} {key}: the change is recognised by {} in {:?}",
            plan.marker,
            after.marks
        );
        let again = source
            .apply(&record, &record.row.version, action, &plan, chrono::DateTime::<chrono::Utc>::MAX_UTC)
            .await
            .unwrap();
        assert!(matches!(again, Applied::Moved(_)), "{at} {key}: {again:?}");
        after
    }

    /// Why an action is not possible: said with the record, and by the attempt.
    pub async fn refused(&self, key: &str, action: Action) -> String {
        let record = self.source(action).get(&self.row(key).await.id).await.unwrap();
        let ability = match action {
            Action::MarkSucceeded => &record.abilities.mark_succeeded,
            Action::MarkTimedOut => &record.abilities.mark_timed_out,
            Action::Replay => &record.abilities.replay,
        };
        let reason = ability.clone().unwrap_err().to_string();
        let change = Change { action, record: &record, finding: None, response_body: None };
        match (action, self.source(action).plan(change).await) {
            (Action::Replay, _) => {}
            (_, Err(Error::Refused { message, .. })) => assert_eq!(message, reason),
            (_, other) => panic!("{}: {other:?}", self.dialect()),
        }
        reason
    }

    /// One text cell of the table itself.
    pub async fn cell(&self, sql: &str) -> Option<String> {
        let row = self.test.db.fetch_optional(&Query::raw(sql, vec![])).await.unwrap().unwrap();
        row.opt_text(0).unwrap()
    }
}

/// Only these parts are mapped; everything else is not stored.
pub fn columns(mapped: &str) -> String {
    let names = ["biz_type", "biz_no", "request", "response", "created_at", "updated_at"];
    let named = |name: &str| mapped.lines().any(|line| line.starts_with(&format!("{name} =")));
    let is_said = |name: &str| named(name) || (name == "biz_type" && named("biz_type_value"));
    let rest = names.into_iter().filter(|name| !is_said(name));
    let rest: String = rest.map(|name| format!("{name} = \"not stored\"\n")).collect();
    format!("[columns]\n{mapped}\n{rest}")
}
