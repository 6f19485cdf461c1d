//! Rates over time as SVG, drawn by plotters on the server. Colours are class names: plotters draws in stand-in colours
//! that are swapped for classes, so that the theme decides and no style attribute is needed. The table below the chart
//! holds the same values for screen readers, and for the cursor that reads them under the pointer: each row knows its
//! place as a share of the plot's width.
//!
//! ```ignore
//! Chart::new(t.overview.rates, from_ms, to_ms, Unit::Share)
//!     .series(Line::Accent, t.overview.hit, points.iter().map(|p| (p.at_ms, p.hit_rate)).collect())
//!     .threshold(Level::Critical, 0.30, t.overview.alert_at)
//!     .view(&visit)
//! ```

use crate::context::Visit;
use crate::format;
use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;
use domain::chart::{Frame, Scale, nice_ticks};
use leptos::prelude::*;
use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea;
use plotters::element::PathElement;
use plotters::style::{Color, RGBColor};

/// Two drawings of the same chart; the style sheet shows the one that fits, so that labels stay legible on a phone.
const WIDE: Frame = Frame { width: 1130.0, height: 240.0, left: 52.0, right: 20.0, top: 12.0, bottom: 26.0 };
const NARROW: Frame = Frame { width: 380.0, height: 210.0, left: 40.0, right: 12.0, top: 12.0, bottom: 24.0 };
const SPARK: Frame = Frame { width: 96.0, height: 24.0, left: 1.0, right: 1.0, top: 2.0, bottom: 2.0 };
/// plotters draws in whole units; ten to a user unit keep lines smooth.
const FINENESS: f64 = 10.0;
const Y_TICKS: usize = 4;
/// User units that a label of the time axis needs.
const X_LABEL: f64 = 85.0;
const HOUR_MS: i64 = 3_600_000;

/// What the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A share from 0 to 1, shown as per cent.
    Share,
    Count,
    Seconds,
}

/// Which of the series' colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Accent,
    Good,
    Bad,
    /// For comparison only.
    Faint,
}

impl Line {
    fn class(self) -> &'static str {
        match self {
            Self::Accent => "s1",
            Self::Good => "s2",
            Self::Bad => "s3",
            Self::Faint => "s4",
        }
    }
}

/// How grave it is to cross a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Warn,
    Critical,
}

impl Level {
    fn class(self) -> &'static str {
        match self {
            Self::Warn => "threshold warn",
            Self::Critical => "threshold",
        }
    }
}

struct Series {
    line: Line,
    label: String,
    points: Vec<(i64, Option<f64>)>,
}

struct Threshold {
    level: Level,
    value: f64,
    label: String,
}

/// A chart over a span of time. All series have the same moments; a moment without a value is a gap.
pub struct Chart {
    title: String,
    from_ms: i64,
    to_ms: i64,
    unit: Unit,
    series: Vec<Series>,
    thresholds: Vec<Threshold>,
    markers: Vec<(i64, String)>,
}

impl Chart {
    pub fn new(title: impl Into<String>, from_ms: i64, to_ms: i64, unit: Unit) -> Self {
        let title = title.into();
        Self { title, from_ms, to_ms, unit, series: Vec::new(), thresholds: Vec::new(), markers: Vec::new() }
    }

    /// Moments are epoch milliseconds, ascending.
    pub fn series(mut self, line: Line, label: impl Into<String>, points: Vec<(i64, Option<f64>)>) -> Self {
        self.series.push(Series { line, label: label.into(), points });
        self
    }

    pub fn threshold(mut self, level: Level, value: f64, label: impl Into<String>) -> Self {
        self.thresholds.push(Threshold { level, value, label: label.into() });
        self
    }

    /// A dot at the bottom, for something that happened then.
    pub fn marker(mut self, at_ms: i64, label: impl Into<String>) -> Self {
        self.markers.push((at_ms, label.into()));
        self
    }

    /// Which line is what, for the panel's heading; thresholds carry their names in the drawing.
    pub fn legend(&self) -> AnyView {
        let keys = self.series.iter().map(|series| (series.line.class(), series.label.clone()));
        let keys =
            keys.map(|(class, label)| view! { <span><i class=class></i>{label}</span> }).collect_view();
        view! { <span class="legend" aria-hidden="true">{keys}</span> }.into_any()
    }

    pub fn view(&self, visit: &Visit) -> AnyView {
        view! {
            <figure class="chart" data-chart="">
                <p class="values" data-values="" aria-live="polite"></p>
                {self.drawing(visit, "wide", WIDE)}
                {self.drawing(visit, "narrow", NARROW)}
                {self.table(visit)}
            </figure>
        }
        .into_any()
    }

    fn drawing(&self, visit: &Visit, class: &'static str, frame: Frame) -> impl IntoView + use<> {
        let values =
            self.series.iter().flat_map(|series| series.points.iter().filter_map(|(_, value)| *value));
        let highest = values.chain(self.thresholds.iter().map(|line| line.value)).fold(0.0, f64::max);
        let ticks = nice_ticks(highest, Y_TICKS);
        let top_value = ticks.last().copied().unwrap_or(1.0);
        let scale = Scale { frame, from_ms: self.from_ms, to_ms: self.to_ms, top_value };
        view! {
            <svg class=class viewBox=format!("0 0 {} {}", frame.width, frame.height) role="img" tabindex="0"
                aria-label=self.title.clone() data-left=frame.left data-span=frame.plot_width() data-width=frame.width>
                {self.y_axis(visit, &scale, &ticks)}
                {self.x_axis(visit.zone(), &scale)}
                <g inner_html=self.lines(&scale)></g>
                {self.threshold_labels(&scale)}
                {self.marker_dots(&scale)}
                <line class="cursor" data-cursor="" x1="0" x2="0" y1=frame.top y2=frame.height - frame.bottom></line>
            </svg>
        }
    }

    fn y_axis(&self, visit: &Visit, scale: &Scale, ticks: &[f64]) -> impl IntoView + use<> {
        let frame = scale.frame;
        let step = ticks.get(1).copied().unwrap_or(1.0);
        let lines = ticks.iter().map(|tick| {
            let y = tenth(scale.y(*tick));
            let label = axis_label(visit, self.unit, *tick, step);
            view! {
                <line class="grid" x1=frame.left x2=frame.width - frame.right y1=y y2=y></line>
                <text x=frame.left - 8.0 y=y + 4.0 text-anchor="end">{label}</text>
            }
        });
        lines.collect_view()
    }

    fn x_axis(&self, zone: Tz, scale: &Scale) -> impl IntoView + use<> {
        let frame = scale.frame;
        let step = x_step(self.to_ms - self.from_ms, (frame.plot_width() / X_LABEL) as i64);
        let pattern = if step < 24 * HOUR_MS { "%H:%M" } else { "%m-%d" };
        let labels = x_ticks(self.from_ms, self.to_ms, step, zone).into_iter().filter_map(|ms| {
            let text = zone.timestamp_millis_opt(ms).single()?.format(pattern).to_string();
            Some(view! { <text x=tenth(scale.x(ms)) y=frame.height - 8.0 text-anchor="middle">{text}</text> })
        });
        labels.collect_view()
    }

    /// The lines of series and thresholds, as plotters draws them.
    fn lines(&self, scale: &Scale) -> String {
        let frame = scale.frame;
        let thresholds = self.thresholds.iter().map(|threshold| {
            let y = scale.y(threshold.value);
            (threshold.level.class(), vec![(frame.left, y), (frame.width - frame.right, y)])
        });
        let series = self.series.iter().flat_map(|series| {
            runs(&series.points).into_iter().map(|run| {
                (series.line.class(), run.iter().map(|(ms, value)| (scale.x(*ms), scale.y(*value))).collect())
            })
        });
        draw(frame, thresholds.chain(series).collect())
    }

    fn threshold_labels(&self, scale: &Scale) -> impl IntoView + use<> {
        let right = scale.frame.width - scale.frame.right - 4.0;
        let labels = self.thresholds.iter().map(|threshold| {
            let y = tenth(scale.y(threshold.value)) - 5.0;
            view! { <text x=right y=y text-anchor="end">{threshold.label.clone()}</text> }
        });
        labels.collect_view()
    }

    fn marker_dots(&self, scale: &Scale) -> impl IntoView + use<> {
        let dots = self.markers.iter().map(|(ms, label)| {
            let (x, y) = (tenth(scale.x(*ms)), scale.frame.height - scale.frame.bottom);
            view! { <circle class="marker" cx=x cy=y r="4"><title>{label.clone()}</title></circle> }
        });
        dots.collect_view()
    }

    fn table(&self, visit: &Visit) -> impl IntoView + use<> {
        let t = &visit.texts().chart;
        let headings = self
            .series
            .iter()
            .map(|series| view! { <th scope="col" class="num">{series.label.clone()}</th> });
        let span = (self.to_ms - self.from_ms).max(1) as f64;
        let moments = self.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
        let rows = moments.iter().enumerate().map(|(index, (ms, _))| {
            let at = DateTime::from_timestamp_millis(*ms).unwrap_or_default();
            let cells = self.series.iter().map(|series| {
                let value = series.points.get(index).and_then(|(_, value)| *value);
                let text = value.map_or_else(|| "–".to_owned(), |value| exact(visit, self.unit, value));
                view! { <td class="num" data-label=series.label.clone()>{text}</td> }
            });
            let moment = visit.zone().from_utc_datetime(&at.naive_utc()).format("%m-%d %H:%M").to_string();
            view! { <tr data-x=format!("{:.4}", (ms - self.from_ms) as f64 / span)><th scope="row">{moment}</th>{cells.collect_view()}</tr> }
        });
        view! {
            <details>
                <summary>{t.table}</summary>
                <div class="scroll">
                    <table class="grid">
                        <caption class="hidden">{self.title.clone()}</caption>
                        <thead><tr><th scope="col">{t.time}</th>{headings.collect_view()}</tr></thead>
                        <tbody>{rows.collect_view()}</tbody>
                    </table>
                </div>
            </details>
        }
    }
}

/// A line of recent values for a table cell; evenly spaced, gaps stay gaps. `label` says it for screen readers.
pub fn spark(label: impl Into<String>, values: &[Option<f64>]) -> AnyView {
    let highest = values.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    let last = i64::try_from(values.len().saturating_sub(1)).unwrap_or(i64::MAX);
    let scale = Scale { frame: SPARK, from_ms: 0, to_ms: last, top_value: highest };
    let points: Vec<(i64, Option<f64>)> = (0..).zip(values.iter().copied()).collect();
    let lines = runs(&points)
        .into_iter()
        .map(|run| ("s1", run.iter().map(|(at, value)| (scale.x(*at), scale.y(*value))).collect()))
        .collect();
    view! {
        <svg class="spark" viewBox=format!("0 0 {} {}", SPARK.width, SPARK.height) role="img" aria-label=label.into()
            inner_html=draw(SPARK, lines)></svg>
    }
    .into_any()
}

/// The stretches between gaps.
fn runs(points: &[(i64, Option<f64>)]) -> Vec<Vec<(i64, f64)>> {
    points
        .split(|(_, value)| value.is_none())
        .map(|run| run.iter().filter_map(|(ms, value)| Some((*ms, (*value)?))).collect::<Vec<_>>())
        .filter(|run| !run.is_empty())
        .collect()
}

/// Polylines with classes for colours. A point alone becomes a short dash, so that it shows.
fn draw(frame: Frame, lines: Vec<(&'static str, Vec<(f64, f64)>)>) -> String {
    let size = ((frame.width * FINENESS) as u32, (frame.height * FINENESS) as u32);
    let mut svg = String::new();
    let classes: Vec<&'static str> = lines.iter().map(|(class, _)| *class).collect();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        for (index, (_, points)) in lines.into_iter().enumerate() {
            let mut points: Vec<(i32, i32)> = points
                .into_iter()
                .map(|(x, y)| ((x * FINENESS).round() as i32, (y * FINENESS).round() as i32))
                .collect();
            if let [(x, y)] = points[..] {
                points = vec![(x - 15, y), (x + 15, y)];
            }
            // Drawing into a string cannot fail; a line that did would be missing, not wrong.
            let _ = area.draw(&PathElement::new(points, stand_in(index).stroke_width(1)));
        }
        let _ = area.present();
    }
    for (index, class) in classes.iter().enumerate() {
        let RGBColor(red, green, blue) = stand_in(index);
        svg = svg
            .replace(&format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\""), &format!("class=\"{class}\""));
    }
    let (width, height) = (frame.width, frame.height);
    svg.replacen(
        &format!("width=\"{}\" height=\"{}\"", size.0, size.1),
        &format!("width=\"{width}\" height=\"{height}\""),
        1,
    )
    .replace(" stroke-width=\"1\"", "")
    .replace(" opacity=\"1\"", "")
}

/// A colour that stands for the line until its class takes over.
fn stand_in(index: usize) -> RGBColor {
    let [_, .., high, middle, low] = index.to_be_bytes();
    RGBColor(high, middle, low)
}

fn axis_label(visit: &Visit, unit: Unit, value: f64, step: f64) -> String {
    match unit {
        Unit::Share if step < 0.01 => format!("{:.1}%", value * 100.0),
        Unit::Share => format!("{:.0}%", value * 100.0),
        Unit::Count if step < 1.0 => format!("{value:.1}"),
        Unit::Count => format::compact(visit.locale(), value.max(0.0) as u64),
        Unit::Seconds => format::age(visit.locale(), value as i64),
    }
}

fn exact(visit: &Visit, unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format::percent(visit.locale(), value),
        Unit::Count => format::number(value.max(0.0).round() as u64),
        Unit::Seconds => format::age(visit.locale(), value as i64),
    }
}

/// The step of the time axis that leaves at most so many labels.
fn x_step(span_ms: i64, labels: i64) -> i64 {
    const MINUTES: [i64; 11] = [5, 10, 15, 30, 60, 120, 180, 240, 480, 720, 1_440];
    let fits = MINUTES.into_iter().map(|minutes| minutes * 60_000).find(|step| span_ms / step <= labels);
    fits.unwrap_or_else(|| (span_ms / labels / (24 * HOUR_MS) + 1) * 24 * HOUR_MS)
}

/// Moments at whole steps of the zone's own clock.
fn x_ticks(from_ms: i64, to_ms: i64, step: i64, zone: Tz) -> Vec<i64> {
    let from = DateTime::from_timestamp_millis(from_ms).unwrap_or_default();
    let offset_ms =
        i64::from(zone.offset_from_utc_datetime(&from.naive_utc()).fix().local_minus_utc()) * 1_000;
    let first = (from_ms + offset_ms).div_euclid(step) * step + step - offset_ms;
    (0..).map(|n| first + n * step).take_while(|ms| *ms <= to_ms).collect()
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_carry_classes_and_no_colour_of_their_own() {
        let svg = draw(
            WIDE,
            vec![
                ("s1", vec![(52.0, 100.0), (60.5, 90.0)]),
                ("threshold", vec![(52.0, 30.0), (1110.0, 30.0)]),
            ],
        );
        assert!(svg.contains(r#"class="s1""#) && svg.contains(r#"class="threshold""#), "{svg}");
        assert!(svg.contains("520,1000 605,900"), "{svg}");
        assert!(!svg.contains('#') && !svg.contains("style"), "{svg}");
    }

    #[test]
    fn a_gap_stays_a_gap() {
        assert_eq!(
            runs(&[(1, Some(0.1)), (2, None), (3, None), (4, Some(0.2)), (5, Some(0.3))]),
            [vec![(1, 0.1)], vec![(4, 0.2), (5, 0.3)]]
        );
    }

    #[test]
    fn the_time_axis_stands_on_the_zones_own_hours() {
        let day = 24 * HOUR_MS;
        assert_eq!(x_step(day, 8), 180 * 60_000);
        let ticks = x_ticks(0, day, x_step(day, 8), Tz::Asia__Shanghai);
        // 1970-01-01T00:00Z is 08:00 in Shanghai; the next whole three hours are 09:00 there.
        assert_eq!(ticks[0], HOUR_MS);
        assert_eq!(ticks.len(), 8);
        assert_eq!(x_step(7 * day, 8), day);
    }
}
