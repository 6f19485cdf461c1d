//! What the last action did: one message that crossed the redirect. Announced to screen readers, dismissable.

use super::icon::Icon;
use crate::context::{FlashKind, Visit};
use leptos::prelude::*;

/// The message that waits for this page, if any.
#[component]
pub fn FlashNote() -> impl IntoView {
    let visit = Visit::here();
    let dismiss = visit.texts().common.dismiss;
    visit.flash().cloned().map(|flash| {
        let (class, role, icon) = match flash.kind {
            FlashKind::Done => ("toast good", "status", Icon::Check),
            FlashKind::Failed => ("toast bad", "alert", Icon::Warning),
        };
        view! {
            <div class=class role=role data-toast=flash.kind.as_str()>
                {icon.view()}
                <p>{flash.text}</p>
                <button class="btn plain sm" type="button" data-dismiss="" aria-label=dismiss>{Icon::Cross.view()}</button>
            </div>
        }
    })
}
