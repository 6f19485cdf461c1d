//! Ages in words, by the same patterns on the server and in the browser, where they keep moving.

use serde::{Deserialize, Serialize};

/// The patterns of one language; `%d %h %m %s` are numbers, a bare `%` is the age itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patterns {
    pub days_hours: String,
    pub hours_minutes: String,
    pub minutes: String,
    pub seconds: String,
    pub ago: String,
    pub ahead: String,
    pub now: String,
}

impl Patterns {
    /// How long something has lasted, in two units at most: "3 h 12 min". Negative ages count as zero.
    pub fn age(&self, seconds: i64) -> String {
        let seconds = seconds.max(0);
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600, seconds / 60);
        let pattern = match (days, hours, minutes) {
            (1.., _, _) => &self.days_hours,
            (0, 1.., _) => &self.hours_minutes,
            (0, 0, 1..) => &self.minutes,
            _ => &self.seconds,
        };
        fill(pattern, [('d', days), ('h', hours % 24), ('m', minutes % 60), ('s', seconds)])
    }

    /// How long ago something was: "20 s ago"; "in 20 s" when it is ahead.
    pub fn ago(&self, seconds: i64) -> String {
        match seconds {
            ..-1 => self.ahead.replace('%', &self.age(-seconds)),
            -1..=1 => self.now.clone(),
            _ => self.ago.replace('%', &self.age(seconds)),
        }
    }
}

fn fill(pattern: &str, values: [(char, i64); 4]) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let unit = rest.next();
        if let Some((_, value)) = values.iter().find(|(name, _)| Some(*name) == unit) {
            text.push_str(&value.to_string());
        }
    }
    text
}
