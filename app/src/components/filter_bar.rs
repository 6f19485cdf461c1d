//! Filters as a GET form on the page's own address: they live in the URL, and work without scripts.
//! With scripts a changed choice applies at once.

use super::field::{choices, hidden};
use crate::context::Visit;
use leptos::prelude::*;

/// One filter.
pub struct Filter {
    name: &'static str,
    label: &'static str,
    control: Control,
    rare: bool,
}

enum Control {
    Text {
        placeholder: &'static str,
    },
    Choice(Vec<(String, String)>),
    /// A local date and time in the reader's zone.
    Moment,
}

impl Filter {
    pub fn text(name: &'static str, label: &'static str, placeholder: &'static str) -> Self {
        Self { name, label, control: Control::Text { placeholder }, rare: false }
    }

    /// A choice of (value, text); "any" is added in front.
    pub fn choice(name: &'static str, label: &'static str, options: Vec<(String, String)>) -> Self {
        Self { name, label, control: Control::Choice(options), rare: false }
    }

    pub fn moment(name: &'static str, label: &'static str) -> Self {
        Self { name, label, control: Control::Moment, rare: false }
    }

    /// Stands behind "More filters" while it is not set.
    pub fn rare(self) -> Self {
        Self { rare: true, ..self }
    }
}

/// The bar. Values come from the URL; parameters in `keep` travel along, all others (the cursor!) are dropped.
pub fn filter_bar(visit: &Visit, filters: &[Filter], keep: &[&'static str]) -> AnyView {
    let t = &visit.texts().filter;
    let kept = keep.iter().filter_map(|name| Some(((*name).to_owned(), visit.param(name)?.to_owned())));
    let active = filters.iter().any(|filter| visit.param(filter.name).is_some());
    let clear = active.then(|| {
        let cleared: Vec<_> =
            filters.iter().map(|filter| (filter.name, None)).chain([("cursor", None)]).collect();
        view! { <a class="link" href=visit.href_with(&cleared)>{t.clear}</a> }
    });
    let controls =
        filters.iter().filter(|filter| !filter.rare).map(|filter| control(visit, filter)).collect_view();
    let more = filters.iter().any(|filter| filter.rare).then(|| {
        let open = filters.iter().any(|filter| filter.rare && visit.param(filter.name).is_some());
        let controls = filters.iter().filter(|filter| filter.rare).map(|filter| control(visit, filter)).collect_view();
        view! { <details class="more" open=open><summary class="btn plain">{t.more}</summary><div>{controls}</div></details> }
    });
    view! {
        <form class="filters" method="get" action=visit.href(visit.path()) role="search" aria-label=t.title>
            {hidden(kept.collect::<Vec<_>>())}
            {controls}
            {more}
            <button class="btn" type="submit">{t.apply}</button>
            {clear}
        </form>
    }
    .into_any()
}

fn control(visit: &Visit, filter: &Filter) -> impl IntoView + use<> {
    let name = filter.name;
    let value = visit.param(name).unwrap_or_default().to_owned();
    let input = match &filter.control {
        Control::Text { placeholder } => view! {
            <input name=name type="search" value=value placeholder=*placeholder maxlength="255" spellcheck="false" autocomplete="off"/>
        }
        .into_any(),
        Control::Moment => view! { <input name=name type="datetime-local" value=value step="1"/> }.into_any(),
        Control::Choice(options) => {
            let any = (String::new(), visit.texts().filter.any.to_owned());
            let options: Vec<_> = [any].into_iter().chain(options.iter().cloned()).collect();
            view! { <select name=name data-autosubmit="">{choices(&options, &value)}</select> }.into_any()
        }
    };
    view! { <label><span>{filter.label}</span>{input}</label> }
}
