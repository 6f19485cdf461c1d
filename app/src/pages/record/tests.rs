use super::*;
use crate::pages::testing::{person, view, visiting};
use domain::cache::{CacheChange, CacheEntry, Cached, Held};
use domain::compensation::Ending;
use domain::evidence::Verdict;
use domain::roles::Role;
use domain::services::records::{Event, Happened};

fn html_of(uri: &str, role: Role, view: &RecordView) -> String {
    html_with(uri, role, view, None)
}

fn html_with(uri: &str, role: Role, view: &RecordView, response: Option<Preview>) -> String {
    let actor = person(role);
    visiting(uri, "amends_lang=en", &actor, |visit| {
        let command_keys = ["key-1", "key-2", "key-3"].map(str::to_owned);
        let dialogs =
            Dialogs { visit, view, recent: vec!["checked with the shop".into()], command_keys, response };
        sheet(visit, &actor, view, dialogs, None).body.to_html()
    })
}

fn html(role: Role, verdict: Verdict) -> String {
    html_of("/records/x", role, &view(&person(role), verdict))
}

fn offers(html: &str) -> Vec<&str> {
    ["mark_succeeded", "mark_timed_out", "replay"]
        .into_iter()
        .filter(|action| html.contains(&format!("data-opens=\"confirm-{action}\"")))
        .collect()
}

#[test]
fn the_page_offers_what_the_verdict_allows_and_nothing_else() {
    assert_eq!(offers(&html(Role::Operator, Verdict::Found)), ["mark_succeeded"]);
    assert_eq!(offers(&html(Role::Operator, Verdict::Absent)), ["mark_timed_out", "replay"]);
    for verdict in [Verdict::Mismatch, Verdict::Partial, Verdict::Unavailable] {
        assert!(offers(&html(Role::Admin, verdict)).is_empty(), "{verdict}");
    }
}

#[test]
fn a_viewer_sees_all_three_actions_and_can_press_none() {
    let html = html(Role::Viewer, Verdict::Found);
    assert!(offers(&html).is_empty() && !html.contains("/api/fn/settle"), "{html}");
    assert_eq!(html.matches("aria-describedby=\"why-").count(), 3);
    assert!(html.contains("settling records needs operator or higher"), "{html}");
}

#[test]
fn a_dialog_carries_what_the_operator_saw_and_a_key_of_its_own() {
    let found = view(&person(Role::Operator), Verdict::Absent);
    let html = html_of("/records/x?confirm=replay", Role::Operator, &found);
    let version = found.detail.row.version.to_string();
    for carried in [version.as_str(), "evidence-1", "key-2", "key-3", "checked with the shop"] {
        assert!(html.contains(&format!("value=\"{carried}\"")), "{carried} is missing");
    }
    assert_eq!(html.matches("<dialog ").count(), 2);
    assert!(
        html.contains("id=\"confirm-replay\" open") && !html.contains("id=\"confirm-mark_timed_out\" open")
    );
}

#[test]
fn the_dialog_shows_the_response_that_duplicates_will_get_masked() {
    let found = view(&person(Role::Operator), Verdict::Found);
    let rebuilt = r#"{"orderNo":"20261201184412007731","card":"6222021234567894"}"#.to_owned();
    let html = html_with("/records/x", Role::Operator, &found, Some(Ok(Some(rebuilt))));
    let dialog = html.split("<dialog ").nth(1).unwrap();
    assert!(dialog.contains("Later duplicates get this") && !dialog.contains("6222021234567894"), "{dialog}");
    assert!(dialog.contains("response_body") && !dialog.contains(" required=\"\" spellcheck"), "{dialog}");
}

#[test]
fn a_response_that_cannot_be_rebuilt_must_be_given_and_one_that_is_not_kept_cannot() {
    let found = view(&person(Role::Operator), Verdict::Found);
    let refused = domain::Error::Refused { code: "response_needed".into(), message: "no template".into() };
    let given = html_with("/records/x", Role::Operator, &found, Some(Err(refused)));
    let area = given.split("<textarea ").nth(1).unwrap().split('>').next().unwrap();
    assert!(area.contains("required") && given.contains("as you give it below"), "{area}");
    assert!(!html_with("/records/x", Role::Operator, &found, Some(Ok(None))).contains("<textarea "));
}

#[test]
fn bodies_are_masked_and_only_approvers_can_ask_for_more() {
    let for_operator = html(Role::Operator, Verdict::Found);
    assert!(!for_operator.contains("6222021234567894") && for_operator.contains("9007199254740993"));
    assert!(!for_operator.contains("/api/fn/reveal"));
    assert!(html(Role::Approver, Verdict::Found).contains("/api/fn/reveal"));
}

#[test]
fn an_outcome_in_doubt_stands_above_everything_until_the_record_says_success() {
    let mut doubtful = view(&person(Role::Operator), Verdict::Absent);
    let at = doubtful.detail.read_at;
    let (action, by) = (domain::actions::Action::Replay, "amy".to_owned());
    let what = Event::CompensationEnded { action, by, ending: Ending::InDoubt, message: "no answer".into() };
    doubtful.history.push(Happened { at, what });
    let html = html_of("/records/x", Role::Operator, &doubtful);
    assert!(html.contains("In doubt") && html.contains("Run the reverse check"), "{html}");
    doubtful.detail.row.state = State::Success;
    assert!(!html_of("/records/x", Role::Operator, &doubtful).contains("class=\"note bad doubt\""));
}

#[test]
fn expired_evidence_says_so_and_asks_for_a_new_check() {
    let mut old = view(&person(Role::Operator), Verdict::Found);
    old.evidence_is_fresh = false;
    let html = html_of("/records/x", Role::Operator, &old);
    assert!(html.contains("too old to act on") && html.contains("Check again"), "{html}");
}

#[test]
fn every_digit_of_the_request_is_shown_and_markup_in_it_is_text() {
    let html = html(Role::Operator, Verdict::Found);
    assert!(html.contains("9007199254740993") && html.contains("128.00"));
    assert!(!html.contains("<b>B</b>"));
}

#[test]
fn a_cache_that_disagrees_is_named_with_both_words_and_its_value_masked() {
    let mut seen = view(&person(Role::Operator), Verdict::Found);
    let entry = CacheEntry {
        value: br#"{"status":"SUCCESS","card":"6222021234567894","x":"<b>bold</b>"}"#.to_vec(),
        ttl: Some(std::time::Duration::from_secs(240)),
        native: Some("SUCCESS".into()),
        means: vec![State::Success],
    };
    seen.cached = Some(Cached { key: "idem:<i>k</i>".into(), held: Held::Entry(entry) });
    let html = html_of("/records/x", Role::Operator, &seen);
    assert!(html.contains("The cache says something else than the table"), "{html}");
    assert!(html.contains("The cache entry says “succeeded”, the table says “processing”"), "{html}");
    assert!(html.contains("ends in 4") && html.contains("id=\"cache-value\""), "{html}");
    assert!(
        !html.contains("6222021234567894") && !html.contains("<b>bold") && !html.contains("<i>k"),
        "{html}"
    );
    seen.detail.row.state = State::Success;
    let html = html_of("/records/x", Role::Operator, &seen);
    assert!(html.contains("agrees with the table") && !html.contains("says something else"), "{html}");
}

#[test]
fn a_cache_that_is_down_or_behind_says_so_and_the_rest_stays() {
    let mut seen = view(&person(Role::Operator), Verdict::Found);
    seen.cached = Some(Cached { key: "idem:k".into(), held: Held::Unknown("Redis does not answer".into()) });
    seen.cache_pending = Some(CacheChange {
        compensation_id: "c-1".into(),
        record: seen.detail.row.id.clone(),
        since: seen.detail.read_at,
        attempts: 3,
        why: "Redis does not answer".into(),
        next_at: None,
        confirmed_at: None,
    });
    let html = html_of("/records/x", Role::Operator, &seen);
    assert!(
        html.contains("not read: Redis does not answer") && html.contains("Tried again 3 times"),
        "{html}"
    );
    assert_eq!(offers(&html), ["mark_succeeded"]);
}
