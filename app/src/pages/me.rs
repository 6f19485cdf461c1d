//! Me: what my role lets me do, and how I read the console.

use super::{Sheet, page};
use crate::components::field;
use crate::components::icon::Icon;
use crate::components::panel::Panel;
use crate::components::table::{Cell, Column, Row, table};
use crate::context::{Theme, Visit};
use crate::i18n::Locale;
use crate::routes;
use crate::words;
use domain::roles::{Permission, Role};
use leptos::prelude::*;

#[component]
pub fn Me() -> impl IntoView {
    page(&routes::ME, |signed| async move {
        let visit = signed.visit;
        let t = visit.texts();
        let permissions = permissions(&visit, signed.actor.role);
        let sign_out = view! {
            <form class="pad" method="post" action=visit.href("/api/fn/sign_out")>
                <button class="btn" type="submit">{t.frame.sign_out}</button>
            </form>
        };
        let body = view! {
            <div class="two">
                {Panel::new(t.me.permissions).hint(t.me.permissions_lead).view(permissions)}
                <div class="stack">
                    {Panel::new(t.me.preferences).view(preferences(&visit))}
                    {Panel::new(t.me.session).hint(t.me.session_lead).view(sign_out)}
                </div>
            </div>
        };
        let lead = t.me.lead(signed.actor.name, words::role(t, signed.actor.role));
        Ok(Sheet::new(t.me.title, body).lead(lead))
    })
}

fn permissions(visit: &Visit, role: Role) -> AnyView {
    let t = visit.texts();
    let rows = Permission::ALL.into_iter().map(|permission| {
        let granted = if role.may(permission) {
            view! { <span class="granted">{Icon::Check.view()}{t.me.granted}</span> }.into_any()
        } else {
            let needs = t.me.denied(words::role(t, permission.least_role()));
            view! { <span class="quiet">{Icon::Lock.view()}{needs}</span> }.into_any()
        };
        Row::new(vec![Cell::new(words::permission(t, permission)).wraps(), Cell::new(granted)])
    });
    table(
        t.me.permissions,
        vec![Column::text(t.me.permission), Column::text(t.me.granted_column)],
        rows.collect(),
    )
}

fn preferences(visit: &Visit) -> impl IntoView + use<> {
    let t = visit.texts();
    let prefs = visit.prefs();
    let languages = Locale::ALL.map(|locale| (locale.tag().to_owned(), locale.name().to_owned()));
    let themes = Theme::ALL.map(|theme| (theme.as_str().to_owned(), words::theme(t, theme).to_owned()));
    let zones = chrono_tz::TZ_VARIANTS.iter().map(|zone| view! { <option value=zone.name()></option> });
    let wrong_zone = visit.param("error").is_some_and(|code| code == "zone");
    view! {
        <form class="pad stack" method="post" action=visit.href("/api/fn/set_preferences")>
            <input type="hidden" name="back" value="/me"/>
            {field::select("language", t.me.language, &languages, prefs.locale.tag())}
            {field::field(
                "zone",
                t.me.zone,
                Some(if wrong_zone { t.me.zone_unknown } else { t.me.zone_hint }),
                view! {
                    <input id="zone" name="zone" type="text" list="zones" required maxlength="64" spellcheck="false"
                        value=prefs.zone.name() aria-describedby="zone-hint" aria-invalid=wrong_zone.then_some("true")/>
                    <datalist id="zones">{zones.collect_view()}</datalist>
                },
            )}
            {field::select("theme", t.me.theme, &themes, prefs.theme.as_str())}
            <button class="btn primary" type="submit">{t.common.save}</button>
        </form>
    }
}
