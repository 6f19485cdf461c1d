//! The one dialog. The server renders it closed; `?confirm=<id>` renders it open, which is how it works without scripts.
//! With scripts the opener shows it as a modal: Cancel focused, Esc closes, locked while pending, focus returns.
//!
//! ```ignore
//! let dialog = Confirm::new("mark_succeeded", t.mark_one, visit.href("/api/fn/compensate"))
//!     .verb(t.mark_one)
//!     .change(t.state, "PROCESSING", "SUCCESS")
//!     .consequence(t.mark_one_consequence)
//!     .carry("id", record.id).carry("if_version", version).carry("command_key", key)
//!     .recent(reasons);
//! view! { {opener(&visit, "mark_succeeded", t.mark_one, "btn primary")} {dialog.view(&visit)} }
//! ```

use super::field::hidden;
use crate::context::Visit;
use crate::format;
use leptos::prelude::*;

/// The parameter that opens a dialog without scripts.
const PARAM: &str = "confirm";
/// The longest reason that the audit keeps, in characters.
const REASON_LENGTH: &str = "500";

/// What the dialog says and where its form goes. The reason travels as `reason`, a typed count as `typed_count`.
pub struct Confirm {
    id: &'static str,
    title: String,
    verb: String,
    action: String,
    changes: Vec<(String, String, String)>,
    consequence: String,
    carried: Vec<(String, String)>,
    recent: Vec<String>,
    count: Option<u64>,
    danger: bool,
    extra: Option<AnyView>,
}

impl Confirm {
    /// `action` is the address of the server function, base path included.
    pub fn new(id: &'static str, title: impl Into<String>, action: String) -> Self {
        let title = title.into();
        Self {
            id,
            verb: title.clone(),
            title,
            action,
            changes: Vec::new(),
            consequence: String::new(),
            carried: Vec::new(),
            recent: Vec::new(),
            count: None,
            danger: false,
            extra: None,
        }
    }

    /// The submit button's words: verb and count. Without it, the title.
    pub fn verb(self, verb: impl Into<String>) -> Self {
        Self { verb: verb.into(), ..self }
    }

    /// One thing that changes: what, before, after.
    pub fn change(
        mut self,
        what: impl Into<String>,
        before: impl Into<String>,
        after: impl Into<String>,
    ) -> Self {
        self.changes.push((what.into(), before.into(), after.into()));
        self
    }

    /// What follows for the business, in its words.
    pub fn consequence(self, consequence: impl Into<String>) -> Self {
        Self { consequence: consequence.into(), ..self }
    }

    /// A hidden field of the form.
    pub fn carry(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.carried.push((name.into(), value.to_string()));
        self
    }

    /// Reasons this person gave lately, offered while typing.
    pub fn recent(self, reasons: Vec<String>) -> Self {
        Self { recent: reasons, ..self }
    }

    /// Asks to type the number of records (for more than 100).
    pub fn type_count(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }

    /// The action cannot be taken back.
    pub fn danger(self) -> Self {
        Self { danger: true, ..self }
    }

    /// More fields above the reason.
    pub fn extra(self, extra: impl IntoView + 'static) -> Self {
        Self { extra: Some(extra.into_any()), ..self }
    }

    pub fn view(self, visit: &Visit) -> AnyView {
        let t = visit.texts();
        let id = self.id;
        let open = visit.param(PARAM) == Some(id);
        let heading = format!("{id}-title");
        let submit = if self.danger { "btn danger" } else { "btn primary" };
        let cancel = visit.href_with(&[(PARAM, None)]);
        view! {
            <dialog id=format!("confirm-{id}") class="confirm" open=open aria-labelledby=heading.clone() data-confirm="">
                <form method="post" action=self.action>
                    <h2 id=heading.clone()>{self.title}</h2>
                    {changes(visit, self.changes)}
                    <p class="consequence">{self.consequence}</p>
                    {hidden(self.carried)}
                    {self.extra}
                    {reason(visit, id, self.recent)}
                    {self.count.map(|count| typed_count(visit, id, count))}
                    <div class="buttons">
                        <a class="btn" href=cancel data-cancel="" autofocus=open>{t.common.cancel}</a>
                        <button class=submit type="submit" data-working=t.confirm.working>{self.verb}</button>
                    </div>
                </form>
            </dialog>
        }
        .into_any()
    }
}

/// The link that opens a dialog: a plain link to `?confirm=<id>` that scripts turn into a modal.
pub fn opener(visit: &Visit, id: &'static str, label: impl Into<String>, class: &'static str) -> AnyView {
    let href = visit.href_with(&[(PARAM, Some(id))]);
    let target = format!("confirm-{id}");
    view! { <a class=class href=format!("{href}#{target}") data-opens=target role="button">{label.into()}</a> }.into_any()
}

/// An action that is not offered: it stays visible, cannot be pressed, and says why.
pub fn refused(id: &'static str, label: impl Into<String>, why: impl Into<String>) -> AnyView {
    let described = format!("why-{id}");
    view! {
        <button class="btn" type="button" disabled aria-describedby=described.clone()>{label.into()}</button>
        <p id=described>{why.into()}</p>
    }
    .into_any()
}

fn changes(visit: &Visit, changes: Vec<(String, String, String)>) -> Option<AnyView> {
    if changes.is_empty() {
        return None;
    }
    let t = &visit.texts().confirm;
    let rows = changes.into_iter().map(|(what, before, after)| {
        view! { <tr><th scope="row">{what}</th><td>{before}</td><td>{after}</td></tr> }
    });
    let table = view! {
        <table class="changes">
            <thead><tr><td></td><th scope="col">{t.before}</th><th scope="col">{t.after}</th></tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    };
    Some(table.into_any())
}

fn reason(visit: &Visit, id: &'static str, recent: Vec<String>) -> AnyView {
    let t = &visit.texts().confirm;
    let (input, list) = (format!("{id}-reason"), format!("{id}-reasons"));
    let hint = format!("{input}-hint");
    let offered = recent.into_iter().map(|reason| view! { <option value=reason></option> }).collect_view();
    view! {
        <div class="field">
            <label for=input.clone()>{t.reason}</label>
            <input id=input name="reason" type="text" required minlength="3" maxlength=REASON_LENGTH autocomplete="off"
                list=list.clone() aria-describedby=hint.clone() data-reason=""/>
            <datalist id=list>{offered}</datalist>
            <small id=hint>{t.reason_hint}</small>
        </div>
    }
    .into_any()
}

fn typed_count(visit: &Visit, id: &'static str, count: u64) -> AnyView {
    let label = visit.texts().confirm.count_hint(format::number(count));
    let input = format!("{id}-count");
    view! {
        <div class="field">
            <label for=input.clone()>{label}</label>
            <input id=input name="typed_count" type="text" inputmode="numeric" required pattern=count.to_string() autocomplete="off"/>
        </div>
    }
    .into_any()
}
