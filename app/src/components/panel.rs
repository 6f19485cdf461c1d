//! A framed section: heading, hint, its own buttons, content.
//!
//! ```ignore
//! Panel::new(t.stuck.needs_you)
//!     .hint(t.stuck.needs_you_hint)
//!     .actions(view! { <a class="btn sm" href=visit.href("/stuck")>{t.stuck.review}</a> })
//!     .view(table(…))
//! ```

use leptos::prelude::*;

/// The parts around the content; only the heading is needed.
pub struct Panel {
    title: String,
    id: Option<String>,
    hint: Option<AnyView>,
    aside: Option<AnyView>,
    actions: Option<AnyView>,
}

impl Panel {
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), id: None, hint: None, aside: None, actions: None }
    }

    /// The element's id, for links to it.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// The quiet words beside the heading.
    pub fn hint(self, hint: impl IntoView + 'static) -> Self {
        Self { hint: Some(hint.into_any()), ..self }
    }

    /// A tag or a legend beside the heading.
    pub fn aside(self, aside: impl IntoView + 'static) -> Self {
        Self { aside: Some(aside.into_any()), ..self }
    }

    /// The section's own buttons, at the right.
    pub fn actions(self, actions: impl IntoView + 'static) -> Self {
        Self { actions: Some(actions.into_any()), ..self }
    }

    /// The section with its content. Content that is no table and no list of figures wants `<div class="pad">`.
    pub fn view(self, content: impl IntoView + 'static) -> AnyView {
        view! {
            <section class="panel" id=self.id>
                <header>
                    <h2>{self.title}</h2>
                    {self.hint.map(|hint| view! { <small>{hint}</small> })}
                    {self.aside}
                    {self.actions.map(|actions| view! { <span class="acts">{actions}</span> })}
                </header>
                {content}
            </section>
        }
        .into_any()
    }
}
