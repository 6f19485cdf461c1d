//! Form fields: a label, the control, a hint or an error tied to it.

use leptos::prelude::*;

/// A labelled control. The control's id must be `id`; with a hint it should carry `aria-describedby="<id>-hint"`.
pub fn field(
    id: &'static str,
    label: &'static str,
    hint: Option<&'static str>,
    control: impl IntoView + 'static,
) -> AnyView {
    view! {
        <div class="field">
            <label for=id>{label}</label>
            {control}
            {hint.map(|hint| view! { <small id=format!("{id}-hint")>{hint}</small> })}
        </div>
    }
    .into_any()
}

/// A labelled choice; `options` are (value, text).
pub fn select(
    name: &'static str,
    label: &'static str,
    options: &[(String, String)],
    selected: &str,
) -> AnyView {
    field(name, label, None, view! { <select id=name name=name>{choices(options, selected)}</select> })
}

/// The options of a choice, one of them selected.
pub fn choices(options: &[(String, String)], selected: &str) -> impl IntoView + use<> {
    options
        .iter()
        .map(|(value, text)| {
            let chosen = value == selected;
            view! { <option value=value.clone() selected=chosen>{text.clone()}</option> }
        })
        .collect_view()
}

/// Hidden inputs, for what a form carries along.
pub fn hidden(pairs: impl IntoIterator<Item = (String, String)>) -> impl IntoView {
    pairs
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value/> })
        .collect_view()
}
