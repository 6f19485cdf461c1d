//! The frame around every page: rail, search, source switch, zone, language, theme, person.
//!
//! One markup for all widths: the rail is a popover that wide screens pin to the left, so the menu of a phone works
//! without scripts.

use crate::components::field::{choices, hidden};
use crate::components::flash::FlashNote;
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live};
use crate::context::Visit;
use crate::format;
use crate::i18n::Locale;
use crate::routes::{Count, ROUTES, Route};
use crate::words;
use domain::alert::AlertState;
use domain::console::Console;
use domain::ports::Topic;
use domain::roles::Actor;
use leptos::prelude::*;

/// What stands beside the rail's entries and in the source switch. A number that could not be read is not there.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub stuck: Option<u64>,
    pub firing: Option<u64>,
    pub sources: Vec<String>,
}

impl Surroundings {
    /// Reads them; what cannot be read is left out, the page itself says why.
    pub async fn read(console: &Console, actor: &Actor) -> Self {
        let stuck = console.stuck.board(actor).await.ok().map(|board| board.rows.len() as u64);
        let open = console.alerts.open_alerts(actor).await.ok();
        let firing =
            open.map(|alerts| alerts.iter().filter(|alert| alert.state == AlertState::Firing).count() as u64);
        let sources = console.records.sources.iter().map(|source| source.name().to_owned()).collect();
        Self { stuck, firing, sources }
    }

    fn count(&self, count: Count) -> Option<u64> {
        match count {
            Count::Stuck => self.stuck,
            Count::Firing => self.firing,
        }
    }
}

/// The frame of a signed-in person.
#[component]
pub fn Frame(visit: Visit, actor: Actor, around: Surroundings, children: Children) -> impl IntoView {
    let t = &visit.texts().frame;
    view! {
        <a class="skip" href="#main">{t.skip}</a>
        <div class="app">
            {rail(&visit, &around)}
            <div class="side">
                {top(&visit, &actor, &around)}
                <main id="main" tabindex="-1">
                    <FlashNote/>
                    {children()}
                </main>
            </div>
        </div>
        {hotkeys(&visit)}
    }
}

/// The frame of a stranger: language and theme, nothing else.
#[component]
pub fn Bare(visit: Visit, children: Children) -> impl IntoView {
    let t = &visit.texts().frame;
    view! {
        <a class="skip" href="#main">{t.skip}</a>
        <div class="bare">
            <header>{brand(&visit)}<span class="space"></span>{language(&visit)}{theme(&visit)}</header>
            <main id="main" tabindex="-1">{children()}</main>
        </div>
    }
}

fn brand(visit: &Visit) -> AnyView {
    view! { <a class="brand" href=visit.href("/")><i aria-hidden="true">"A"</i><span>{visit.texts().frame.name}</span></a> }
        .into_any()
}

fn rail(visit: &Visit, around: &Surroundings) -> AnyView {
    let mut group = None;
    let entries = ROUTES.iter().filter_map(|route| Some((route, route.rail?))).map(|(route, place)| {
        let line = group.replace(place.group).is_some_and(|last| last != place.group);
        let count = place.count.and_then(|count| Some((count, around.count(count)?)));
        view! { {line.then(|| view! { <hr/> })}{entry(visit, route, place.icon, place.key, count)} }
    });
    let entries = entries.collect_view();
    view! {
        <nav class="rail" id="rail" popover="auto" aria-label=visit.texts().frame.rail>
            {brand(visit)}
            {live("rail-entries", &[Topic::Records, Topic::Alerts], Refresh::Swap, entries)}
        </nav>
    }
    .into_any()
}

fn entry(
    visit: &Visit,
    route: &Route,
    icon: Icon,
    key: &'static str,
    count: Option<(Count, u64)>,
) -> AnyView {
    let title = (route.title)(visit.texts());
    let current = route.covers(visit.path()).then_some("page");
    let count = count.filter(|(kind, number)| *kind == Count::Stuck || *number > 0).map(|(kind, number)| {
        let class = if kind == Count::Firing { "count hot" } else { "count" };
        view! { <span class=class>{format::number(number)}</span> }
    });
    view! {
        <a href=visit.href(route.path) aria-current=current title=title data-hotkey=key>
            {icon.view()}<span>{title}</span>{count}
        </a>
    }
    .into_any()
}

fn top(visit: &Visit, actor: &Actor, around: &Surroundings) -> AnyView {
    let t = &visit.texts().frame;
    view! {
        <header class="top">
            <button class="btn plain menu" type="button" popovertarget="rail" aria-label=t.menu>{Icon::Menu.view()}</button>
            {search(visit)}
            <span class="space"></span>
            {sources(visit, &around.sources)}
            <small class="live-off" role="status">{t.live_off}</small>
            <small class="zone">{t.zone(visit.zone().name())}</small>
            {language(visit)}
            {theme(visit)}
            {person(visit, actor)}
        </header>
    }
    .into_any()
}

fn search(visit: &Visit) -> AnyView {
    let t = &visit.texts().frame;
    let typed = visit.param("q").unwrap_or_default().to_owned();
    view! {
        <form class="search" method="get" action=visit.href("/records") role="search">
            {Icon::Search.view()}
            <input id="search" name="q" type="search" value=typed placeholder=t.search_placeholder aria-label=t.search_label
                maxlength="255" autocomplete="off" autocapitalize="none" spellcheck="false"/>
            <kbd aria-hidden="true">"/"</kbd>
        </form>
    }
    .into_any()
}

/// The source lives in the URL like every other filter; with one source there is nothing to switch.
fn sources(visit: &Visit, sources: &[String]) -> Option<AnyView> {
    let t = &visit.texts().frame;
    if sources.len() < 2 {
        return None;
    }
    let kept = visit.query().iter().filter(|(name, _)| name != "source" && name != "cursor").cloned();
    let all = (String::new(), t.source_all.to_owned());
    let options: Vec<_> =
        [all].into_iter().chain(sources.iter().map(|name| (name.clone(), name.clone()))).collect();
    let chosen = visit.param("source").unwrap_or_default();
    let form = view! {
        <form class="source" method="get" action=visit.href(visit.path())>
            {hidden(kept.collect::<Vec<_>>())}
            <select name="source" aria-label=t.source_label data-autosubmit="">{choices(&options, chosen)}</select>
            <button class="btn sm" type="submit">{t.source_apply}</button>
        </form>
    };
    Some(form.into_any())
}

/// One press to the other language.
fn language(visit: &Visit) -> AnyView {
    let t = &visit.texts().frame;
    let other = if visit.locale() == Locale::En { Locale::ZhCn } else { Locale::En };
    view! {
        <form method="post" action=visit.href("/api/fn/set_language")>
            <input type="hidden" name="back" value=visit.address()/>
            <button class="btn plain" type="submit" name="language" value=other.tag() lang=other.tag()>{t.other_language}</button>
        </form>
    }
    .into_any()
}

/// One press to the other theme; the style sheet shows the button that fits what is on.
fn theme(visit: &Visit) -> AnyView {
    let t = &visit.texts().frame;
    view! {
        <form method="post" action=visit.href("/api/fn/set_theme")>
            <input type="hidden" name="back" value=visit.address()/>
            <button class="btn plain to-dark" type="submit" name="theme" value="dark" aria-label=t.theme_to_dark title=t.theme_to_dark>
                {Icon::Moon.view()}
            </button>
            <button class="btn plain to-light" type="submit" name="theme" value="light" aria-label=t.theme_to_light title=t.theme_to_light>
                {Icon::Sun.view()}
            </button>
        </form>
    }
    .into_any()
}

fn person(visit: &Visit, actor: &Actor) -> AnyView {
    let t = visit.texts();
    let role = words::role(t, actor.role);
    view! {
        <button class="btn person" type="button" popovertarget="person" aria-label=t.frame.account>
            {Icon::Person.view()}<span>{actor.name.clone()}</span>
        </button>
        <div class="menu-card" id="person" popover="auto">
            <p>{t.frame.signed_in_as(actor.name.clone(), role)}</p>
            <a href=visit.href("/me")>{Icon::Person.view()}{t.nav.me}</a>
            <button class="plain" type="button" popovertarget="hotkeys">{Icon::Keyboard.view()}{t.frame.help}</button>
            <form method="post" action=visit.href("/api/fn/sign_out")>
                <button class="plain" type="submit">{Icon::SignOut.view()}{t.frame.sign_out}</button>
            </form>
        </div>
    }
    .into_any()
}

fn hotkeys(visit: &Visit) -> AnyView {
    let texts = visit.texts();
    let t = &texts.hotkeys;
    let fixed = [
        ("/", t.search),
        ("j k", t.move_rows),
        ("Enter", t.open),
        ("x", t.select),
        ("c", t.check),
        ("?", t.help),
    ];
    let fixed = fixed.map(|(keys, what)| (keys.to_owned(), what.to_owned()));
    let pages = ROUTES
        .iter()
        .filter_map(|route| route.rail.map(|place| (format!("g {}", place.key), t.go((route.title)(texts)))));
    let rows = fixed
        .into_iter()
        .chain(pages)
        .map(|(keys, what)| view! { <dt><kbd>{keys}</kbd></dt><dd>{what}</dd> });
    let rows = rows.collect_view();
    view! {
        <div class="help-card" id="hotkeys" popover="auto" role="dialog" aria-labelledby="hotkeys-title">
            <h2 id="hotkeys-title">{t.title}</h2>
            <dl>{rows}</dl>
            <button class="btn" type="button" popovertarget="hotkeys" popovertargetaction="hide">{texts.common.close}</button>
        </div>
    }
    .into_any()
}
