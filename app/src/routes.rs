//! The pages as data: where each lives, what it is called, and the right it needs. The rail, the page wrapper and the
//! authorisation test read this table; [`crate::pages::App`] routes the same paths.

use crate::components::icon::Icon;
use crate::i18n::Texts;
use domain::roles::Permission;

/// One page.
#[derive(Clone, Copy)]
pub struct Route {
    /// The path below the base path; a segment may be a parameter such as `:id`.
    pub path: &'static str,
    /// The right it needs; `None` is open to everybody, signed in or not.
    pub needs: Option<Permission>,
    pub title: fn(&Texts) -> &'static str,
    /// Its place in the rail, for pages that have one.
    pub rail: Option<RailPlace>,
}

/// How a page stands in the rail.
#[derive(Clone, Copy)]
pub struct RailPlace {
    pub icon: Icon,
    /// The letter after `g` that goes there.
    pub key: &'static str,
    /// The rail draws a line before each new group.
    pub group: u8,
    pub count: Option<Count>,
}

/// The number beside an entry of the rail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Stuck,
    Firing,
}

pub const LOGIN: Route = Route { path: "/login", needs: None, title: |t| t.login.title, rail: None };

pub const OVERVIEW: Route = Route::listed("/", |t| t.nav.overview, Icon::Overview, "o", 0, None);

pub const STUCK: Route = Route::listed("/stuck", |t| t.nav.stuck, Icon::Clock, "s", 0, Some(Count::Stuck));

pub const RECORDS: Route = Route::listed("/records", |t| t.nav.records, Icon::Rows, "r", 0, None);

pub const RECORD: Route =
    Route { path: "/records/:id", needs: Some(Permission::Read), title: |t| t.record.title, rail: None };

pub const ALERTS: Route = Route::listed("/alerts", |t| t.nav.alerts, Icon::Bell, "a", 0, Some(Count::Firing));

pub const AUDIT: Route = Route::listed("/audit", |t| t.nav.audit, Icon::Page, "u", 1, None);

pub const SOURCES: Route = Route::listed("/sources", |t| t.nav.sources, Icon::Database, "d", 2, None);

pub const ME: Route = Route { path: "/me", needs: Some(Permission::Read), title: |t| t.nav.me, rail: None };

/// Every address that is none of the others.
pub const NOT_FOUND: Route = Route { path: "", needs: None, title: |t| t.not_found.title, rail: None };

/// Every page, in the order of the rail.
pub const ROUTES: &[Route] = &[LOGIN, OVERVIEW, STUCK, RECORDS, RECORD, ALERTS, AUDIT, SOURCES, ME];

impl Route {
    /// A page in the rail that everybody who may read can open.
    pub const fn listed(
        path: &'static str,
        title: fn(&Texts) -> &'static str,
        icon: Icon,
        key: &'static str,
        group: u8,
        count: Option<Count>,
    ) -> Self {
        Self { path, needs: Some(Permission::Read), title, rail: Some(RailPlace { icon, key, group, count }) }
    }

    /// Whether a path lies on this page or below it, for marking the rail.
    pub fn covers(&self, path: &str) -> bool {
        path == self.path
            || self.path != "/" && path.strip_prefix(self.path).is_some_and(|rest| rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn paths_and_rail_keys_are_unique() {
        let paths: HashSet<_> = ROUTES.iter().map(|route| route.path).collect();
        assert_eq!(paths.len(), ROUTES.len());
        let keys: Vec<_> = ROUTES.iter().filter_map(|route| route.rail).map(|place| place.key).collect();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    }

    #[test]
    fn only_the_sign_in_page_is_open() {
        let open: Vec<_> =
            ROUTES.iter().filter(|route| route.needs.is_none()).map(|route| route.path).collect();
        assert_eq!(open, ["/login"]);
    }

    #[test]
    fn the_rail_marks_the_page_and_what_lies_below_it() {
        let records = Route { path: "/records", ..ME };
        assert!(records.covers("/records") && records.covers("/records/abc"));
        assert!(!records.covers("/recordset"));
        assert!(!Route { path: "/", ..ME }.covers("/records"));
    }

    #[test]
    fn the_router_serves_exactly_the_table() {
        let routes = leptos_axum::generate_route_list(crate::pages::App);
        let served: HashSet<String> = routes.iter().map(|route| route.path().to_owned()).collect();
        let table: HashSet<String> = ROUTES.iter().map(|route| route.path.replace(":id", "{id}")).collect();
        assert_eq!(served, table);
    }
}
