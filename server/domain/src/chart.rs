//! Chart scales, shared by the server that draws and the browser that hovers.

use serde::{Deserialize, Serialize};

/// The drawing area inside a chart, in SVG user units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    pub const fn plot_width(&self) -> f64 {
        self.width - self.left - self.right
    }

    pub const fn plot_height(&self) -> f64 {
        self.height - self.top - self.bottom
    }
}

/// Maps time (epoch milliseconds) to x and value to y within a frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    pub frame: Frame,
    pub from_ms: i64,
    pub to_ms: i64,
    /// The value at the top; the bottom is 0.
    pub top_value: f64,
}

impl Scale {
    pub fn x(&self, ms: i64) -> f64 {
        let span = (self.to_ms - self.from_ms).max(1) as f64;
        self.frame.left + (ms - self.from_ms) as f64 / span * self.frame.plot_width()
    }

    pub fn y(&self, value: f64) -> f64 {
        let share = (value / self.top_value).clamp(0.0, 1.0);
        self.frame.top + (1.0 - share) * self.frame.plot_height()
    }

    /// The instant under a horizontal position; positions outside the plot clamp to its edges.
    pub fn ms_at(&self, x: f64) -> i64 {
        let share = ((x - self.frame.left) / self.frame.plot_width()).clamp(0.0, 1.0);
        self.from_ms + (share * (self.to_ms - self.from_ms) as f64).round() as i64
    }

    /// Index of the time nearest to `ms`; times ascend.
    pub fn nearest(times: &[i64], ms: i64) -> Option<usize> {
        let after = times.partition_point(|time| *time < ms);
        let candidates = [after.checked_sub(1), (after < times.len()).then_some(after)];
        candidates.into_iter().flatten().min_by_key(|index| (times[*index] - ms).abs())
    }
}

/// A round top value just above `max`, and the ticks from 0 to it.
pub fn nice_ticks(max: f64, at_most: usize) -> Vec<f64> {
    let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
    let rough = max / at_most.max(1) as f64;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| step * at_most.max(1) as f64 >= max)
        .unwrap_or(10.0 * magnitude);
    let count = (max / step).ceil() as usize;
    (0..=count).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: Frame =
        Frame { width: 1130.0, height: 230.0, left: 40.0, right: 20.0, top: 10.0, bottom: 24.0 };

    proptest! {
        #[test]
        fn hover_finds_the_time_that_was_drawn(at in 0..86_400_000i64) {
            let scale = Scale { frame: FRAME, from_ms: 0, to_ms: 86_400_000, top_value: 1.0 };
            prop_assert!((scale.ms_at(scale.x(at)) - at).abs() <= 1);
        }

        #[test]
        fn ticks_cover_the_maximum_and_stay_few(max in 0.0001f64..1e9, at_most in 1..10usize) {
            let ticks = nice_ticks(max, at_most);
            prop_assert!(*ticks.last().unwrap() >= max * 0.999_999);
            prop_assert!(ticks.len() <= at_most + 1);
        }

        #[test]
        fn nearest_is_nearest(mut times in prop::collection::vec(0..10_000i64, 1..50), ms in 0..10_000i64) {
            times.sort_unstable();
            let index = Scale::nearest(&times, ms).unwrap();
            let best = times.iter().map(|time| (time - ms).abs()).min().unwrap();
            prop_assert_eq!((times[index] - ms).abs(), best);
        }
    }
}
