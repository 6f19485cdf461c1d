//! What the kits promise to every page.

use super::confirm::{Confirm, opener, refused};
use super::filter_bar::{Filter, filter_bar};
use super::table::{Cell, Column, Row, table};
use super::{empty, pager, time};
use crate::context::Visit;
use crate::pages::testing::{person, visiting};
use domain::roles::Role;
use leptos::prelude::*;

fn html(uri: &str, view: impl FnOnce(&Visit) -> AnyView) -> String {
    visiting(uri, "amends_lang=en", &person(Role::Operator), |visit| view(visit).to_html())
}

fn dialog(visit: &Visit) -> AnyView {
    Confirm::new("mark_succeeded", "Mark succeeded", visit.href("/api/fn/settle"))
        .change("State", "PROCESSING", "<b>SUCCESS</b>")
        .carry("command_key", "k-1")
        .recent(vec!["worker died".into()])
        .view(visit)
}

#[test]
fn the_dialog_opens_by_the_address_alone_and_cancel_leads_back() {
    let closed = html("/records/1?lane=x", dialog);
    assert!(!closed.contains(" open"), "{closed}");
    let open = html("/records/1?lane=x&confirm=mark_succeeded", dialog);
    assert!(open.contains("<dialog") && open.contains(" open"), "{open}");
    assert!(open.contains(r#"href="/records/1?lane=x""#), "{open}");
    let link = html("/records/1?lane=x", |visit| opener(visit, "mark_succeeded", "Mark succeeded", "btn"));
    assert!(link.contains("/records/1?lane=x&amp;confirm=mark_succeeded#confirm-mark_succeeded"), "{link}");
}

#[test]
fn the_dialog_asks_for_a_reason_and_shows_hostile_values_as_text() {
    let html = html("/records/1", dialog);
    assert!(html.contains(r#"name="reason""#) && html.contains("required"), "{html}");
    assert!(html.contains(r#"name="command_key" value="k-1""#) || html.contains(r#"value="k-1""#), "{html}");
    assert!(!html.contains("<b>SUCCESS"), "{html}");
}

#[test]
fn a_refused_action_stays_visible_and_says_why() {
    let html = html("/", |_| refused("replay", "Replay", "The effect exists."));
    assert!(html.contains("disabled") && html.contains("Replay"), "{html}");
    assert!(
        html.contains(r#"aria-describedby="why-replay""#) && html.contains(r#"id="why-replay""#),
        "{html}"
    );
}

#[test]
fn each_cell_repeats_its_heading_for_the_cards_of_a_phone() {
    let html = html("/", |_| {
        let row = Row::new(vec![Cell::new("ORDER"), Cell::new("2")]).id("r1");
        table("Records", vec![Column::text("Business type"), Column::number("Attempts")], vec![row])
    });
    assert!(html.contains(r#"data-label="Business type""#) && html.contains(r#"data-row="r1""#), "{html}");
    assert_eq!(html.matches(r#"scope="col""#).count(), 2);
}

#[test]
fn filters_keep_what_they_are_told_and_start_from_the_first_page() {
    let html = html("/records?lane=no_effect&biz_no=%22%3E&cursor=abc", |visit| {
        filter_bar(visit, &[Filter::text("biz_no", "Business number", "")], &["lane"])
    });
    assert!(html.contains(r#"name="lane""#) && html.contains("no_effect"), "{html}");
    assert!(!html.contains("abc"), "the cursor belongs to the old filter: {html}");
    assert!(!html.contains(r#"value="">"#), "hostile values stay in their attribute: {html}");
}

#[test]
fn the_next_page_keeps_the_filters() {
    let html = html("/records?state=FAILED&cursor=a", |visit| pager::pager(visit, 50, Some("b")));
    assert!(html.contains("/records?state=FAILED&amp;cursor=b"), "{html}");
    assert!(html.contains(r#"href="/records?state=FAILED""#), "back to the first page: {html}");
}

#[test]
fn a_failed_read_says_what_failed_and_offers_the_same_address_again() {
    let error = domain::Error::unavailable("orders", "connection refused");
    let html = html("/stuck?lane=x", |visit| empty::failed(visit, &error));
    assert!(html.contains("orders cannot be reached: connection refused"), "{html}");
    assert!(html.contains(r#"href="/stuck?lane=x""#) && html.contains(r#"role="alert""#), "{html}");
}

#[test]
fn times_are_relative_with_the_absolute_time_and_its_zone_behind() {
    let html = html("/", |visit| time::age(visit, 11_520));
    assert!(html.contains("3\u{a0}h\u{a0}12\u{a0}min") && html.contains("Asia/Shanghai"), "{html}");
    assert!(html.contains(r#"data-live="age""#), "{html}");
}
