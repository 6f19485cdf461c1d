//! Ages in words, by the same patterns on the server and in the browser, where they keep moving.

/// The patterns of one language; `%d %h %m %s` are numbers, a bare `%` is the age itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns {
    pub days: String,
    pub days_hours: String,
    pub hours: String,
    pub hours_minutes: String,
    pub minutes: String,
    pub seconds: String,
    pub ago: String,
    pub ahead: String,
    pub now: String,
}

/// Between the patterns on their way to the browser; no language writes ages with it.
const BETWEEN: char = '|';

impl Patterns {
    /// All patterns as one attribute of the document, read back by [`Patterns::from_attribute`].
    pub fn to_attribute(&self) -> String {
        let all = [
            &self.days,
            &self.days_hours,
            &self.hours,
            &self.hours_minutes,
            &self.minutes,
            &self.seconds,
            &self.ago,
            &self.ahead,
            &self.now,
        ];
        all.map(String::as_str).join(&BETWEEN.to_string())
    }

    /// `None` when the text is not what [`Patterns::to_attribute`] wrote.
    pub fn from_attribute(text: &str) -> Option<Self> {
        let mut parts = text.split(BETWEEN).map(str::to_owned);
        let mut next = || parts.next();
        Some(Self {
            days: next()?,
            days_hours: next()?,
            hours: next()?,
            hours_minutes: next()?,
            minutes: next()?,
            seconds: next()?,
            ago: next()?,
            ahead: next()?,
            now: next()?,
        })
    }

    /// How long something has lasted, in two units at most: "3 h 12 min". Negative ages count as zero.
    pub fn age(&self, seconds: i64) -> String {
        let seconds = seconds.max(0);
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600, seconds / 60);
        let pattern = match (days, hours, minutes) {
            (1.., _, _) if hours % 24 == 0 => &self.days,
            (1.., _, _) => &self.days_hours,
            (0, 1.., _) if minutes % 60 == 0 => &self.hours,
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

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn the_browser_reads_the_patterns_that_the_page_wrote() {
        for locale in crate::i18n::Locale::ALL {
            let patterns = crate::format::patterns(locale);
            assert_eq!(Patterns::from_attribute(&patterns.to_attribute()), Some(patterns));
        }
        assert_eq!(Patterns::from_attribute("a|b"), None);
    }
}
