//! The filters of the address, and what is wrong with them.

use crate::context::Visit;
use chrono::{DateTime, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use domain::record::{RecordFilter, State};

/// Every parameter that narrows the list.
pub const NAMES: [&str; 9] =
    ["q", "state", "stuck", "source", "biz_type", "biz_no", "key", "created_from", "created_to"];

/// What the address asks for.
#[derive(Debug, Default)]
pub struct Asked {
    pub filter: RecordFilter,
    /// A sentence for each value that makes no sense; nothing is read then.
    pub problems: Vec<String>,
    /// Nothing but a search: one match is opened at once.
    pub only_search: bool,
}

pub fn read(visit: &Visit) -> Asked {
    let mut problems = Vec::new();
    let text = |name: &str| visit.param(name).map(|value| value.trim().to_owned());
    let text = |name: &str| text(name).filter(|value| !value.is_empty());
    let filter = RecordFilter {
        source: text("source"),
        state: state(visit, &mut problems),
        stuck: stuck(visit, &mut problems),
        biz_type: text("biz_type"),
        biz_no: text("biz_no"),
        key: text("key"),
        search: text("q"),
        created_from: moment(visit, "created_from", &mut problems),
        created_to: moment(visit, "created_to", &mut problems),
    };
    if filter.created_from.zip(filter.created_to).is_some_and(|(from, to)| to < from) {
        problems.push(visit.texts().records.bad_range.to_owned());
    }
    let only = RecordFilter { search: filter.search.clone(), ..RecordFilter::default() };
    let only_search = filter.search.is_some() && filter == only && visit.param("cursor").is_none();
    Asked { filter, problems, only_search }
}

fn state(visit: &Visit, problems: &mut Vec<String>) -> Option<State> {
    let value = visit.param("state")?;
    let state = value.parse().ok();
    if state.is_none() {
        problems.push(visit.texts().records.bad_state(value));
    }
    state
}

fn stuck(visit: &Visit, problems: &mut Vec<String>) -> Option<bool> {
    let value = visit.param("stuck")?;
    let stuck = value.parse().ok();
    if stuck.is_none() {
        problems.push(visit.texts().records.bad_stuck(value));
    }
    stuck
}

fn moment(visit: &Visit, name: &str, problems: &mut Vec<String>) -> Option<DateTime<Utc>> {
    let value = visit.param(name)?;
    let at = parse_moment(value, visit.zone());
    if at.is_none() {
        problems.push(visit.texts().records.bad_time(value, visit.zone().name()));
    }
    at
}

/// A wall-clock time of the reader's zone, or an instant with its own offset. Of an hour that the clocks repeat, the
/// first; none for an hour that they skip.
fn parse_moment(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Some(instant.to_utc());
    }
    let local = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
        .iter()
        .find_map(|pattern| NaiveDateTime::parse_from_str(text, pattern).ok())?;
    zone.from_local_datetime(&local).earliest().map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> Option<DateTime<Utc>> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn c51_times_are_wall_clock_of_the_readers_zone() {
        let shanghai = Tz::Asia__Shanghai;
        assert_eq!(parse_moment("2026-12-01T18:44", shanghai), utc("2026-12-01T10:44:00Z"));
        assert_eq!(parse_moment("2026-12-01T18:44:12", shanghai), utc("2026-12-01T10:44:12Z"));
        assert_eq!(parse_moment("2026-12-01T18:44:12Z", shanghai), utc("2026-12-01T18:44:12Z"));
    }

    #[test]
    fn an_hour_that_the_clocks_skip_is_no_time_and_a_repeated_one_is_the_first() {
        let berlin = Tz::Europe__Berlin;
        assert_eq!(parse_moment("2026-03-29T02:30", berlin), None);
        assert_eq!(parse_moment("2026-10-25T02:30", berlin), utc("2026-10-25T00:30:00Z"));
    }

    #[test]
    fn nonsense_is_no_time() {
        for text in ["", "yesterday", "2026-13-01T00:00", "2026-12-01", "99999999999-01-01T00:00"] {
            assert_eq!(parse_moment(text, Tz::UTC), None, "{text}");
        }
    }
}
