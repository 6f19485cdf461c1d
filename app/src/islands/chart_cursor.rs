//! Reads a chart under the pointer, or with the arrow keys: a line at the nearest moment and all values there.
//! The values are the cells of the chart's own table, already in the reader's language; each row
//! carries its place in `data-x`.

use super::dom;
use leptos::ev;
use leptos::prelude::window_event_listener;
use web_sys::{Element, KeyboardEvent, PointerEvent};

pub fn start() {
    window_event_listener(ev::pointermove, |event| pointed(&event));
    window_event_listener(ev::keydown, |event| stepped(&event));
}

fn pointed(event: &PointerEvent) {
    let Some(drawing) = dom::about(event, "[data-chart] svg[data-width]") else { return };
    let Some(chart) = chart_of(&drawing) else { return };
    let area = drawing.get_bounding_client_rect();
    let (Some(left), Some(span), Some(width)) =
        (number(&drawing, "data-left"), number(&drawing, "data-span"), number(&drawing, "data-width"))
    else {
        return;
    };
    if area.width() > 0.0 {
        let share = ((f64::from(event.client_x()) - area.left()) / area.width() * width - left) / span;
        let rows = rows(&chart);
        let nearest = rows.iter().min_by(|(a, _), (b, _)| (a - share).abs().total_cmp(&(b - share).abs()));
        if let Some((share, row)) = nearest {
            show(&chart, *share, row);
        }
    }
}

fn stepped(event: &KeyboardEvent) {
    let by = match event.key().as_str() {
        "ArrowLeft" => -1,
        "ArrowRight" => 1,
        _ => return,
    };
    let Some(chart) = dom::about(event, "[data-chart] svg").and_then(|drawing| chart_of(&drawing)) else {
        return;
    };
    let rows = rows(&chart);
    let Some(last) = rows.len().checked_sub(1) else { return };
    let current = number(&chart, "data-at").and_then(|at| rows.iter().position(|(share, _)| *share == at));
    let next = current.map_or(last, |current| current.saturating_add_signed(by).min(last));
    event.prevent_default();
    show(&chart, rows[next].0, &rows[next].1);
}

fn chart_of(drawing: &Element) -> Option<Element> {
    drawing.closest("[data-chart]").ok().flatten()
}

/// The chart's moments: their place as a share of the plot's width, and their row of values.
fn rows(chart: &Element) -> Vec<(f64, Element)> {
    dom::within(chart, "tr[data-x]")
        .into_iter()
        .filter_map(|row| Some((number(&row, "data-x")?, row)))
        .collect()
}

fn number(element: &Element, attribute: &str) -> Option<f64> {
    let number = js_sys::parse_float(&element.get_attribute(attribute)?);
    (!number.is_nan()).then_some(number)
}

/// The browser writes numbers itself, so that ours need not ship.
fn written(number: f64) -> String {
    js_sys::Number::from(number).to_string_with_radix(10).map(String::from).unwrap_or_default()
}

fn show(chart: &Element, share: f64, row: &Element) {
    dom::set(chart, "data-at", Some(&written(share)));
    for drawing in dom::within(chart, "svg[data-width]") {
        place_cursor(&drawing, share);
    }
    let Ok(Some(values)) = chart.query_selector("[data-values]") else { return };
    let cells = dom::within(row, "th, td").into_iter().map(|cell| {
        let text = cell.text_content().unwrap_or_default();
        cell.get_attribute("data-label")
            .map_or_else(|| text.clone(), |label| [label.as_str(), " ", &text].concat())
    });
    values.set_text_content(Some(&cells.collect::<Vec<_>>().join(" · ")));
}

fn place_cursor(drawing: &Element, share: f64) {
    let (Some(left), Some(span)) = (number(drawing, "data-left"), number(drawing, "data-span")) else {
        return;
    };
    let x = written(left + share * span);
    if let Ok(Some(line)) = drawing.query_selector("[data-cursor]") {
        dom::set(&line, "x1", Some(&x));
        dom::set(&line, "x2", Some(&x));
    }
}
