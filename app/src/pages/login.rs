//! Sign in. A plain form; a refusal comes back in the address and is shown beside the fields.

use crate::components::field;
use crate::components::flash::FlashNote;
use crate::components::icon::Icon;
use crate::context::Visit;
use crate::frame::Bare;
use crate::i18n::Texts;
use leptos::prelude::*;
use leptos_meta::Title;

#[component]
pub fn Login() -> impl IntoView {
    let visit = Visit::here();
    let t = visit.texts();
    let next = visit.param("next").unwrap_or("/").to_owned();
    if visit.actor().is_some() {
        leptos_axum::redirect(&visit.href(crate::context::local_path(&next)));
    }
    let name = visit.param("name").unwrap_or_default().to_owned();
    let refusal = visit.param("error").map(|code| refusal(t, code));
    let wrong = refusal.is_some();
    view! {
        <Title text=format!("{} · {}", t.login.title, t.frame.name)/>
        <Bare visit=visit.clone()>
            <form class="panel login" method="post" action=visit.href("/api/fn/sign_in")>
                <h1>{t.login.title}</h1>
                <p class="quiet">{t.login.lead}</p>
                <FlashNote/>
                {refusal.map(|text| view! { <p class="note bad" role="alert" id="refusal">{Icon::Warning.view()}{text}</p> })}
                <input type="hidden" name="next" value=next/>
                {field::field(
                    "username",
                    t.login.username,
                    None,
                    view! {
                        <input id="username" name="username" type="text" autocomplete="username" autocapitalize="none" spellcheck="false"
                            required maxlength="128" value=name.clone() autofocus=name.is_empty()/>
                    },
                )}
                {field::field(
                    "password",
                    t.login.password,
                    None,
                    view! {
                        <input id="password" name="password" type="password" autocomplete="current-password" required maxlength="1024"
                            aria-describedby=wrong.then_some("refusal") aria-invalid=wrong.then_some("true")
                            autofocus=!name.is_empty()/>
                    },
                )}
                <button class="btn primary" type="submit">{t.login.submit}</button>
            </form>
        </Bare>
    }
}

fn refusal(t: &Texts, code: &str) -> &'static str {
    match code {
        "too_many_attempts" => t.login.too_many,
        "unavailable" | "internal" => t.login.unavailable,
        _ => t.login.refused,
    }
}
