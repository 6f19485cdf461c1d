//! A request or response: pretty when it is JSON, folded by the browser's own details, every digit kept, never markup.
//! Masking happens before it comes here; this kit only says so.

use super::copy::copy_from_button;
use super::panel::Panel;
use crate::context::Visit;
use crate::format;
use crate::i18n::Texts;
use domain::json;
use leptos::prelude::*;
use serde_json::Value;

/// Bytes shown at most; the rest is counted, and comes with the download.
const SHOWN_BYTES: usize = 64 * 1024;
/// Objects and arrays with more entries than this start folded, except the outermost.
const OPEN_ENTRIES: usize = 12;
/// Levels that start open.
const OPEN_DEPTH: usize = 3;

/// What to show.
pub struct BodyView {
    /// The element's id, unique in the page.
    pub id: &'static str,
    pub title: String,
    /// The text after masking; `None` when nothing was stored.
    pub text: Option<String>,
    /// Bytes as stored.
    pub size: u64,
    /// How the text came about and where it was cut off, when it is not as stored.
    pub notes: Vec<String>,
    pub masked: bool,
    /// Link or form that reveals the body, for those who may.
    pub reveal: Option<AnyView>,
    /// Where the whole body can be downloaded, and the file's name.
    pub download: Option<(String, String)>,
    /// What stands there when there is no text: not stored, unreadable.
    pub missing: Option<String>,
}

impl BodyView {
    pub fn view(self, visit: &Visit) -> AnyView {
        let t = visit.texts();
        let hint =
            self.text.as_ref().map(|_| hint(visit, self.size, self.masked, &self.notes)).unwrap_or_default();
        let copy = self.text.as_ref().map(|_| copy_from_button(visit, self.id));
        let download = self
            .download
            .map(|(href, name)| view! { <a class="btn sm" href=href download=name>{t.body.download}</a> });
        let buttons = (copy.is_some() || self.reveal.is_some() || download.is_some())
            .then(|| view! { {self.reveal}{copy}{download} }.into_any());
        let content = match self.text {
            Some(text) => content(visit, self.id, &text),
            None => {
                let missing = self.missing.unwrap_or_else(|| t.body.empty.to_owned());
                view! { <p class="quiet">{missing}</p> }.into_any()
            }
        };
        let content = view! { <div class="pad">{content}</div> };
        Panel::new(self.title).hint(hint).actions(buttons).view(content)
    }
}

fn hint(visit: &Visit, size: u64, masked: bool, notes: &[String]) -> String {
    let t = &visit.texts().body;
    let shown = if masked { t.masked } else { t.revealed };
    let hint = format!("{} · {shown}", format::bytes(visit.locale(), size));
    notes.iter().fold(hint, |hint, note| format!("{hint} · {note}"))
}

fn content(visit: &Visit, id: &'static str, text: &str) -> AnyView {
    let t = visit.texts();
    if text.len() > SHOWN_BYTES {
        let shown = preview(text);
        let cut = t.body.cut(
            format::bytes(visit.locale(), shown.len() as u64),
            format::bytes(visit.locale(), text.len() as u64),
        );
        return view! { <p class="quiet">{cut}</p><pre id=id>{shown.to_owned()}</pre> }.into_any();
    }
    match json::parse(text) {
        Some(value) => view! { <div class="json" id=id>{node(t, None, &value, "", 0)}</div> }.into_any(),
        None => view! { <p class="quiet">{t.body.not_json}</p><pre id=id>{text.to_owned()}</pre> }.into_any(),
    }
}

/// The longest beginning that fits, cut between characters.
fn preview(text: &str) -> &str {
    let mut end = SHOWN_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// One value with its key in front and what follows it behind, as lines.
fn node(t: &Texts, key: Option<&str>, value: &Value, comma: &'static str, depth: usize) -> AnyView {
    let label = key.map(|key| view! { <span class="key">{quoted(key)}</span>": " });
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let last = fields.len() - 1;
            let lines = fields.iter().enumerate().map(|(index, (key, value))| {
                node(t, Some(key), value, if index == last { "" } else { "," }, depth + 1)
            });
            fold(t, label, ("{", "}"), lines.collect(), comma, depth)
        }
        Value::Array(items) if !items.is_empty() => {
            let last = items.len() - 1;
            let lines = items
                .iter()
                .enumerate()
                .map(|(index, value)| node(t, None, value, if index == last { "" } else { "," }, depth + 1));
            fold(t, label, ("[", "]"), lines.collect(), comma, depth)
        }
        scalar => view! { <div class="line">{label}{scalar_view(scalar)}{comma}</div> }.into_any(),
    }
}

fn fold(
    t: &Texts,
    label: Option<impl IntoView + 'static>,
    (open, close): (&'static str, &'static str),
    lines: Vec<AnyView>,
    comma: &'static str,
    depth: usize,
) -> AnyView {
    let count = lines.len();
    let unfolded = depth == 0 || depth < OPEN_DEPTH && count <= OPEN_ENTRIES;
    let entries = t.body.entries(count as u64);
    view! {
        <details open=unfolded>
            <summary data-entries=entries>{label}{open}</summary>
            <div class="inner">{lines}</div>
            <div class="line">{close}{comma}</div>
        </details>
    }
    .into_any()
}

fn scalar_view(value: &Value) -> AnyView {
    let class = match value {
        Value::String(text) if text.starts_with("••••") => "masked",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        _ => "word",
    };
    view! { <span class=class>{value.to_string()}</span> }.into_any()
}

/// A key as JSON writes it, escapes included.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::i18n::Locale;

    fn html(text: &str) -> String {
        let value = json::parse(text).unwrap();
        Owner::new().with(|| node(Locale::En.texts(), None, &value, "", 0).to_html())
    }

    #[test]
    fn every_digit_of_a_number_is_shown() {
        let html = html(r#"{"orderId":4634343214213523454,"amount":128.00}"#);
        assert!(html.contains("4634343214213523454") && html.contains("128.00"), "{html}");
    }

    #[test]
    fn hostile_bodies_are_text() {
        let html = html(r#"{"<script>alert(1)</script>":"<img src=x onerror=alert(1)>"}"#);
        assert!(!html.contains("<script>") && !html.contains("<img"), "{html}");
    }

    #[test]
    fn a_long_body_is_cut_between_characters() {
        let text = "键".repeat(SHOWN_BYTES);
        assert!(preview(&text).len() <= SHOWN_BYTES);
        assert!(text.starts_with(preview(&text)));
    }
}
