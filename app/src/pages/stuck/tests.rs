use super::*;
use crate::pages::testing::{board, now, person, row, visiting};
use domain::evidence::Verdict;
use domain::roles::Role;

fn html(uri: &str, role: Role, board: &Board, run: Option<CheckRun>) -> String {
    let actor = person(role);
    visiting(uri, "amends_lang=en", &actor, |visit| sheet(visit, &actor, board, run).unwrap().body.to_html())
}

fn mixed() -> Board {
    let verdicts =
        [Some(Verdict::Found), Some(Verdict::Found), Some(Verdict::Absent), Some(Verdict::Mismatch), None];
    board(verdicts.iter().zip(0..).map(|(verdict, n)| row(n, 11_520 - 600 * n, *verdict)).collect())
}

#[test]
fn a_lane_in_the_address_shows_exactly_its_records() {
    let all = html("/stuck", Role::Operator, &mixed(), None);
    let one = html("/stuck?lane=effect_exists", Role::Operator, &mixed(), None);
    let rows = |html: &str| html.matches("data-row=").count();
    assert_eq!((rows(&all), rows(&one)), (5, 2));
}

#[test]
fn the_lane_of_unchecked_records_is_there_only_when_it_holds_some() {
    let lane = "data-lane=\"not_checked\"";
    assert!(html("/stuck", Role::Operator, &mixed(), None).contains(lane));
    let checked = board(vec![row(0, 700, Some(Verdict::Found))]);
    assert!(!html("/stuck", Role::Operator, &checked, None).contains(lane));
}

#[test]
fn a_viewer_sees_the_checks_and_cannot_make_them() {
    let html = html("/stuck", Role::Viewer, &mixed(), None);
    assert!(!html.contains("/api/fn/check_all") && !html.contains("/api/fn/reverse_check"), "{html}");
    assert!(html.contains("disabled") && html.contains("needs operator or higher"), "{html}");
}

#[test]
fn a_source_that_is_down_is_named_and_never_a_zero() {
    let mut down = board(Vec::new());
    down.down = vec![("promo".into(), "connection refused".into())];
    let html = html("/stuck", Role::Operator, &down, None);
    assert!(html.contains("promo") && html.contains("connection refused"), "{html}");
    assert!(!html.contains("Nothing is stuck"), "{html}");
}

#[test]
fn an_empty_board_is_good_news_and_filters_without_match_are_not() {
    let none = board(Vec::new());
    assert!(html("/stuck", Role::Operator, &none, None).contains("Nothing is stuck"));
    let narrow = html("/stuck?biz_type=COUPON", Role::Operator, &mixed(), None);
    assert!(narrow.contains("Nothing matches") && !narrow.contains("Nothing is stuck"), "{narrow}");
}

#[test]
fn a_running_check_shows_how_far_it_is() {
    let run = CheckRun {
        id: "1".into(),
        by: "amy".into(),
        total: 52,
        done: 11,
        failed: 1,
        started_at: now(),
        finished_at: None,
    };
    let html = html("/stuck", Role::Operator, &mixed(), Some(run));
    assert!(html.contains("12 of 52") && html.contains("amy"), "{html}");
}

#[test]
fn hostile_keys_are_text() {
    let mut hostile = row(0, 700, Some(Verdict::Found));
    hostile.key = "<script>alert(1)</script>".into();
    hostile.biz_no = Some("\"><img src=x onerror=alert(1)>".into());
    let html = html("/stuck", Role::Operator, &board(vec![hostile]), None);
    assert!(!html.contains("<script>") && !html.contains("<img"), "{html}");
}
