//! Long keys: cut in the middle, whole on hover, copied with one press. The button shows once scripts run.

use super::icon::Icon;
use crate::context::Visit;
use leptos::prelude::*;

/// Characters kept at each end of a cut key.
const HEAD: usize = 14;
const TAIL: usize = 8;

/// A key in the fixed-width face with its copy button.
pub fn copyable(visit: &Visit, text: &str) -> AnyView {
    let whole = text.to_owned();
    view! {
        <span class="copyable"><code title=whole.clone()>{cut(text)}</code>{copy_button(visit, whole)}</span>
    }
    .into_any()
}

/// A button that copies a text which stands nowhere on the page.
pub fn copy_button(visit: &Visit, text: String) -> AnyView {
    let t = &visit.texts().common;
    view! {
        <button class="btn plain sm copy" type="button" data-copy=text data-copied-text=t.copied aria-label=t.copy title=t.copy>
            {Icon::Copy.view()}
        </button>
    }
    .into_any()
}

/// A button that copies the text of the element with this id.
pub fn copy_from_button(visit: &Visit, id: &str) -> AnyView {
    let t = &visit.texts().common;
    view! {
        <button class="btn sm copy" type="button" data-copy-from=id.to_owned() data-copied-text=t.copied>
            {Icon::Copy.view()}<span>{t.copy}</span>
        </button>
    }
    .into_any()
}

/// Cuts a long text in the middle; short ones stay whole.
pub fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= HEAD + TAIL + 1 {
        return text.to_owned();
    }
    let head: String = text.chars().take(HEAD).collect();
    let tail: String = text.chars().skip(count - TAIL).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_keep_both_ends() {
        assert_eq!(cut("ord:20261201184412007731"), "ord:2026120118…12007731");
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"键".repeat(40)).chars().count(), HEAD + TAIL + 1);
    }
}
