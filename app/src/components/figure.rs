//! A row of figures: what, how much, and against what.

use leptos::prelude::*;

/// One figure. A value that could not be read is a dash with the reason as its note, never a zero.
pub struct Figure {
    label: String,
    value: String,
    note: AnyView,
    href: Option<String>,
}

impl Figure {
    pub fn new(label: impl Into<String>, value: impl Into<String>, note: impl IntoView + 'static) -> Self {
        Self { label: label.into(), value: value.into(), note: note.into_any(), href: None }
    }

    /// Where the figure leads.
    pub fn href(self, href: String) -> Self {
        Self { href: Some(href), ..self }
    }
}

impl Figure {
    /// One more word behind the note.
    pub fn more(self, text: Option<String>) -> Self {
        match text {
            Some(text) => Self { note: view! { {self.note}" · "{text} }.into_any(), ..self },
            None => self,
        }
    }
}

/// How a difference is meant, for its colour; the sign in the text says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    Worse,
    Better,
    Same,
}

/// A difference such as `+4.3`.
pub fn trend(trend: Trend, text: impl Into<String>) -> impl IntoView {
    let class = match trend {
        Trend::Worse => "worse",
        Trend::Better => "better",
        Trend::Same => "same",
    };
    view! { <span class=class>{text.into()}</span> }
}

pub fn figures(label: impl Into<String>, figures: Vec<Figure>) -> AnyView {
    let items = figures.into_iter().map(|figure| {
        let value = match figure.href {
            Some(href) => view! { <a href=href>{figure.value}</a> }.into_any(),
            None => figure.value.into_any(),
        };
        view! {
            <div class="figure">
                <dt>{figure.label}</dt>
                <dd><b>{value}</b><small>{figure.note}</small></dd>
            </div>
        }
    });
    view! { <dl class="panel figures" aria-label=label.into()>{items.collect_view()}</dl> }.into_any()
}
