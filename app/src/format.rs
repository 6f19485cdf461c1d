//! Numbers and times as each language writes them. Every zone is explicit; nothing reads a clock.

use crate::elapsed::Patterns;
use crate::i18n::Locale;
use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;

/// A whole number with its thousands grouped: `1,204`.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A large count in three figures: `1.21 M`, `121 万`. Below ten thousand it is exact.
pub fn compact(locale: Locale, value: u64) -> String {
    const EN: [(u64, &str); 3] = [(1_000_000_000, " B"), (1_000_000, " M"), (1_000, " K")];
    const ZH: [(u64, &str); 2] = [(100_000_000, " 亿"), (10_000, " 万")];
    let units: &[(u64, &str)] = match locale {
        Locale::En => &EN,
        Locale::ZhCn => &ZH,
    };
    match units.iter().find(|(unit, _)| value >= 10_000 && value >= *unit) {
        Some((unit, name)) => format!("{}{name}", three_figures(value as f64 / *unit as f64)),
        None => number(value),
    }
}

fn three_figures(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// A share from 0 to 1 as per cent with one decimal: `9.4 %`, `9.4%`.
pub fn percent(locale: Locale, share: f64) -> String {
    format!("{:.1}{}", share * 100.0, percent_sign(locale))
}

/// A share that somebody chose, as they would write it: `30 %`, `7.25 %`.
pub fn short_percent(locale: Locale, share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{}{}", text.trim_end_matches('0').trim_end_matches('.'), percent_sign(locale))
}

/// English sets it off; the line never breaks there.
fn percent_sign(locale: Locale) -> &'static str {
    match locale {
        Locale::En => "\u{a0}%",
        Locale::ZhCn => "%",
    }
}

/// A difference of two shares in percentage points, with its sign: `+4.3`, `−0.4`, `±0.0`.
pub fn points(difference: f64) -> String {
    let tenths = (difference * 1000.0).round();
    let sign = if tenths > 0.0 {
        "+"
    } else if tenths < 0.0 {
        "−"
    } else {
        "±"
    };
    format!("{sign}{:.1}", tenths.abs() / 10.0)
}

/// A size in bytes, in the unit that suits it.
pub fn bytes(locale: Locale, size: u64) -> String {
    let texts = &locale.texts().body;
    match size {
        0..1_024 => texts.bytes(number(size)),
        1_024..1_048_576 => texts.kilobytes(three_figures(size as f64 / 1_024.0)),
        _ => texts.megabytes(three_figures(size as f64 / 1_048_576.0)),
    }
}

/// The language's patterns for ages.
pub fn patterns(locale: Locale) -> Patterns {
    let texts = &locale.texts().elapsed;
    Patterns {
        days: texts.days.to_owned(),
        days_hours: texts.days_hours.to_owned(),
        hours: texts.hours.to_owned(),
        hours_minutes: texts.hours_minutes.to_owned(),
        minutes: texts.minutes.to_owned(),
        seconds: texts.seconds.to_owned(),
        ago: texts.ago.to_owned(),
        ahead: texts.ahead.to_owned(),
        now: texts.now.to_owned(),
    }
}

/// How long something has lasted: `3 h 12 min`, `3 小时 12 分`.
pub fn age(locale: Locale, seconds: i64) -> String {
    patterns(locale).age(seconds)
}

/// How long before `now` something was: `20 s ago`, `20 秒前`.
pub fn ago(locale: Locale, at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    patterns(locale).ago((now - at).num_seconds())
}

/// The full date and time with milliseconds in the given zone: `2026-12-01 18:44:12.007`.
pub fn absolute(zone: Tz, at: DateTime<Utc>) -> String {
    zone.from_utc_datetime(&at.naive_utc()).format("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// Date and time to the second.
pub fn date_time(zone: Tz, at: DateTime<Utc>) -> String {
    zone.from_utc_datetime(&at.naive_utc()).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// The time of day with milliseconds, for entries of one day.
pub fn time_of_day(zone: Tz, at: DateTime<Utc>) -> String {
    zone.from_utc_datetime(&at.naive_utc()).format("%H:%M:%S%.3f").to_string()
}

/// The machine form of an instant, for `<time datetime>`: RFC 3339 in UTC with milliseconds.
pub fn machine(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_204), "1,204");
        assert_eq!(number(12_345_678), "12,345,678");
    }

    #[test]
    fn large_counts_keep_three_figures() {
        assert_eq!(compact(Locale::En, 9_999), "9,999");
        assert_eq!(compact(Locale::En, 1_210_000), "1.21 M");
        assert_eq!(compact(Locale::En, 84_700), "84.7 K");
        assert_eq!(compact(Locale::ZhCn, 1_210_000), "121 万");
        assert_eq!(compact(Locale::ZhCn, 230_000_000), "2.30 亿");
    }

    #[test]
    fn shares_and_differences_follow_the_language() {
        assert_eq!(percent(Locale::En, 0.0938), "9.4\u{a0}%");
        assert_eq!(short_percent(Locale::En, 0.3), "30\u{a0}%");
        assert_eq!(short_percent(Locale::ZhCn, 0.0725), "7.25%");
        assert_eq!(percent(Locale::ZhCn, 0.0938), "9.4%");
        assert_eq!(points(0.043), "+4.3");
        assert_eq!(points(-0.004), "−0.4");
        assert_eq!(points(0.00001), "±0.0");
    }

    #[test]
    fn ages_use_two_units_at_most() {
        assert_eq!(age(Locale::En, 11_520), "3\u{a0}h\u{a0}12\u{a0}min");
        assert_eq!(age(Locale::ZhCn, 11_520), "3\u{a0}小时\u{a0}12\u{a0}分");
        assert_eq!(age(Locale::En, 90_000), "1\u{a0}d\u{a0}1\u{a0}h");
        assert_eq!(age(Locale::En, 7_200), "2\u{a0}h");
        assert_eq!(age(Locale::ZhCn, 172_900), "2\u{a0}天");
        assert_eq!(age(Locale::ZhCn, 1_900), "31\u{a0}分");
        assert_eq!(age(Locale::En, -5), "0\u{a0}s");
    }

    #[test]
    fn moments_are_before_now_or_ahead_of_it() {
        let now = at("2026-12-01T10:00:20Z");
        assert_eq!(ago(Locale::En, at("2026-12-01T10:00:00Z"), now), "20\u{a0}s ago");
        assert_eq!(ago(Locale::ZhCn, at("2026-12-01T10:00:00Z"), now), "20\u{a0}秒前");
        assert_eq!(ago(Locale::ZhCn, now, now), "刚刚");
        assert_eq!(ago(Locale::En, at("2026-12-01T10:01:20Z"), now), "in 1\u{a0}min");
    }

    #[test]
    fn absolute_times_are_in_the_zone_asked_for() {
        let moment = at("2026-12-01T10:44:12.007Z");
        assert_eq!(absolute(Tz::Asia__Shanghai, moment), "2026-12-01 18:44:12.007");
        assert_eq!(time_of_day(Tz::UTC, moment), "10:44:12.007");
        assert_eq!(machine(moment), "2026-12-01T10:44:12.007Z");
    }

    #[test]
    fn sizes_suit_their_unit() {
        assert_eq!(bytes(Locale::En, 214), "214 B");
        assert_eq!(bytes(Locale::En, 31_457_280), "30.0 MB");
    }
}
