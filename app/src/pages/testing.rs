//! What the pages' own tests start from: a request, a person, records.

use crate::context::{Now, Settings, Visit};
use chrono::{DateTime, TimeDelta, Utc};
use domain::actions::{Action, Known, Situation, permit};
use domain::evidence::{CheckRows, Comparison, Evidence, Finding, Reason, Verdict};
use domain::record::{Abilities, Body, RecordDetail, RecordId, RecordRow, State, Version};
use domain::roles::{Actor, Role};
use domain::services::records::{Event, Happened, Offer, RecordView};
use domain::stuck::Board;
use leptos::prelude::*;

/// A request body with a long number, a card and a name that is markup.
pub const REQUEST: &str = r#"{"orderNo":"20261201184412007731","userId":9007199254740993,"amount":128.00,"card":"6222021234567894","items":[{"sku":"A-1","qty":1},{"sku":"<b>B</b>","qty":2}],"note":null}"#;

pub fn now() -> DateTime<Utc> {
    "2026-12-01T13:56:22Z".parse().unwrap()
}

pub fn person(role: Role) -> Actor {
    Actor::new(role.as_str(), role)
}

/// Runs with a visit of this person, at this address, with these cookies.
pub fn visiting<T>(uri: &str, cookies: &str, actor: &Actor, with: impl FnOnce(&Visit) -> T) -> T {
    let request = http::Request::builder().uri(uri).header("cookie", cookies);
    let parts = request.body(()).unwrap().into_parts().0;
    Owner::new().with(|| {
        provide_context(parts);
        provide_context(Settings { display_zone: chrono_tz::Asia::Shanghai, ..Settings::default() });
        provide_context(Now(now()));
        provide_context(actor.clone());
        with(&Visit::begin())
    })
}

/// A stuck record, this many seconds old.
pub fn row(number: i64, age_seconds: i64, verdict: Option<Verdict>) -> RecordRow {
    let created = now() - TimeDelta::seconds(age_seconds);
    let biz_no = format!("20261201{:012}", 184_412_007_731 + number);
    RecordRow {
        id: RecordId::new("orders", vec![format!("ord:{biz_no}")]),
        source: "orders".into(),
        key: format!("ord:{biz_no}"),
        biz_type: Some("ORDER".into()),
        biz_no: Some(biz_no),
        state: State::Processing,
        native_state: Some("PROCESSING".into()),
        created_at: Some(created),
        updated_at: Some(created),
        age_seconds: Some(age_seconds),
        stuck_after_seconds: 600,
        stuck: true,
        lease_until: Some(created + TimeDelta::seconds(30)),
        attempts: Some(2),
        version: Version::new(State::Processing, "7"),
        verdict,
        verdict_at: verdict.map(|_| now() - TimeDelta::seconds(20)),
    }
}

pub fn board(rows: Vec<RecordRow>) -> Board {
    Board { rows, more: false, down: Vec::new(), read_at: now() }
}

pub fn finding(verdict: Verdict) -> Finding {
    let (business, reason) = match verdict {
        Verdict::Found => ("128.00", Reason::RowAgrees { check: "t_order".into() }),
        Verdict::Absent => ("", Reason::NoRow { check: "t_order".into() }),
        Verdict::Unavailable => ("", Reason::TimedOut { check: "t_order".into() }),
        Verdict::Mismatch | Verdict::Partial => {
            let (request, business) = (Some("128.00".to_owned()), Some("100.00".to_owned()));
            let (check, field) = ("t_order".to_owned(), "amount".to_owned());
            ("100.00", Reason::FieldDiffers { check, field, request, business })
        }
    };
    let some = |text: &str| Some(text.to_owned());
    let seen = !business.is_empty();
    let rows = seen.then(|| vec![some("20261201184412007731"), some(business), some("PAID"), None]);
    Finding {
        verdict,
        rows: vec![CheckRows {
            check: "t_order".into(),
            columns: ["order_no", "amount", "status", "deleted_at"].map(str::to_owned).to_vec(),
            rows: rows.into_iter().collect(),
            places: vec![],
            truncated: false,
        }],
        comparisons: vec![Comparison {
            check: "t_order".into(),
            field: "amount".into(),
            request: some("128.00"),
            business: some(business),
            agrees: verdict == Verdict::Found,
        }],
        reasons: vec![reason],
        read_from: "orders-primary".into(),
    }
}

/// The page of a stuck record that was checked 20 s ago.
pub fn view(actor: &Actor, verdict: Verdict) -> RecordView {
    let row = row(0, 11_530, Some(verdict));
    let (created, checked_at) = (row.created_at.unwrap(), row.verdict_at.unwrap());
    let abilities = Abilities { mark_succeeded: Ok(()), mark_timed_out: Ok(()), replay: Ok(()) };
    let evidence = Evidence {
        id: "evidence-1".into(),
        record: row.id.clone(),
        version: row.version.clone(),
        finding: finding(verdict),
        checked_by: "operator".into(),
        checked_at,
        expires_at: checked_at + TimeDelta::seconds(60),
    };
    let situation = Situation {
        role: actor.role,
        state: row.state,
        stuck: row.stuck,
        abilities: &abilities,
        being_settled: false,
        known: Known::of(Some(&evidence), now()),
    };
    let offers = Action::ALL.map(|action| Offer { action, permit: permit(action, &situation) }).to_vec();
    let checked = |at, by: &str| {
        let reasons = evidence.finding.reasons.clone();
        Happened { at, what: Event::Checked { verdict, by: by.into(), reasons } }
    };
    let mut history = vec![Happened { at: created, what: Event::Created }];
    history.push(Happened { at: created + TimeDelta::seconds(30), what: Event::LeaseEnds });
    history.extend((1..6).map(|n| checked(created + TimeDelta::minutes(10 * n), "auto-check")));
    history.push(checked(checked_at, "operator"));
    RecordView {
        detail: RecordDetail {
            row,
            request: Body::Stored(REQUEST.into()),
            response: Body::Empty,
            located: vec![],
            marks: vec![],
            facts: vec![("owner".into(), "orders-7f9c/3".into()), ("fence".into(), "2".into())],
            abilities,
            read_at: now(),
        },
        evidence: Some(evidence),
        evidence_is_fresh: true,
        offers,
        running: None,
        cached: None,
        cache_pending: None,
        history,
    }
}
