//! Reads a chart under the pointer, or with the arrow keys: a line at the nearest moment and all values there.
//! The values are the cells of the chart's own table, already in the reader's language; each row carries its `data-x`.

use super::dom;
use leptos::ev;
use leptos::prelude::window_event_listener;
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent, PointerEvent};

pub fn start() {
    window_event_listener(ev::pointermove, |event| pointed(&event));
    window_event_listener(ev::keydown, |event| stepped(&event));
}

fn pointed(event: &PointerEvent) {
    let Some(chart) = dom::about(event, "[data-chart]") else { return };
    let Ok(Some(drawing)) = chart.query_selector("svg") else { return };
    let (area, width) = (drawing.get_bounding_client_rect(), number(&chart, "data-width"));
    if area.width() > 0.0
        && let Some(width) = width
    {
        let x = (f64::from(event.client_x()) - area.left()) / area.width() * width;
        let rows = rows(&chart);
        let nearest = rows.iter().min_by(|(a, _), (b, _)| (a - x).abs().total_cmp(&(b - x).abs()));
        if let Some((x, row)) = nearest {
            show(&chart, *x, row);
        }
    }
}

fn stepped(event: &KeyboardEvent) {
    let by = match event.key().as_str() {
        "ArrowLeft" => -1,
        "ArrowRight" => 1,
        _ => return,
    };
    let Some(chart) = dom::about(event, "[data-chart]") else { return };
    let rows = rows(&chart);
    let Some(last) = rows.len().checked_sub(1) else { return };
    let current =
        number(&chart, "data-at").and_then(|at| rows.iter().position(|(x, _)| (x - at).abs() < 0.01));
    let next = current.map_or(last, |current| current.saturating_add_signed(by).min(last));
    event.prevent_default();
    show(&chart, rows[next].0, &rows[next].1);
}

fn rows(chart: &Element) -> Vec<(f64, Element)> {
    dom::within(chart, "tr[data-x]")
        .into_iter()
        .filter_map(|row| Some((number(&row, "data-x")?, row)))
        .collect()
}

fn number(element: &Element, attribute: &str) -> Option<f64> {
    element.get_attribute(attribute)?.parse().ok()
}

fn show(chart: &Element, x: f64, row: &Element) {
    let x = x.to_string();
    dom::set(chart, "data-at", Some(&x));
    if let Ok(Some(line)) = chart.query_selector("[data-cursor]") {
        dom::set(&line, "x1", Some(&x));
        dom::set(&line, "x2", Some(&x));
    }
    let Ok(Some(values)) = chart.query_selector("[data-values]") else { return };
    let cells = dom::within(row.unchecked_ref(), "th, td").into_iter().map(|cell| {
        let text = cell.text_content().unwrap_or_default();
        cell.get_attribute("data-label")
            .map_or_else(|| text.clone(), |label| [label.as_str(), " ", &text].concat())
    });
    values.set_text_content(Some(&cells.collect::<Vec<_>>().join(" · ")));
}
