//! The demo's own strip: one switch for the fault that the alert rule is about.

use crate::components::icon::Icon;
use crate::context::Visit;
use domain::roles::{Actor, Permission};
use leptos::prelude::*;

pub fn strip(visit: &Visit, actor: &Actor, is_on: bool) -> AnyView {
    let t = &visit.texts().overview;
    let (words, label, next) =
        if is_on { (t.storm_on, t.storm_stop, "false") } else { (t.storm_off, t.storm_start, "true") };
    let denied = !actor.role.may(Permission::DriveDemo);
    view! {
        <form class="note demo" method="post" action=visit.href("/api/fn/storm")>
            {Icon::Refresh.view()}
            <span><b>{t.demo}</b>" "{words}</span>
            <input type="hidden" name="back" value=visit.address()/>
            <button class="btn sm" type="submit" name="on" value=next disabled=denied title=denied.then_some(t.storm_denied)>{label}</button>
        </form>
    }
    .into_any()
}
