//! How a person reads the console: language, theme, zone. Kept in cookies, so that the first byte of the next page
//! already obeys them; open to strangers, because the sign-in page has a language too.

use super::{answer, redirect};
use crate::context::{Theme, Visit};
use crate::cookies;
use crate::i18n::Locale;
use chrono_tz::Tz;
use leptos::prelude::*;

/// Switches the language and returns; an unknown tag changes nothing.
#[server(prefix = "/api/fn", endpoint = "set_language")]
pub async fn set_language(language: String, #[server(default)] back: String) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    if let Some(locale) = Locale::from_tag(&language) {
        cookies::keep(&visit.settings().base_path, cookies::LANGUAGE, locale.tag());
    }
    redirect(&visit, &back);
    Ok(())
}

/// Switches the theme and returns; an unknown word changes nothing.
#[server(prefix = "/api/fn", endpoint = "set_theme")]
pub async fn set_theme(theme: String, #[server(default)] back: String) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    if let Some(theme) = Theme::from_word(&theme) {
        cookies::keep(&visit.settings().base_path, cookies::THEME, theme.as_str());
    }
    redirect(&visit, &back);
    Ok(())
}

/// Keeps all three at once (the form on Me); a zone that does not exist is refused beside its field.
#[server(prefix = "/api/fn", endpoint = "set_preferences")]
pub async fn set_preferences(
    language: String,
    zone: String,
    theme: String,
    #[server(default)] back: String,
) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let Ok(zone) = zone.trim().parse::<Tz>() else {
        redirect(&visit, "/me?error=zone");
        return Ok(());
    };
    let locale = Locale::from_tag(&language).unwrap_or(visit.locale());
    let theme = Theme::from_word(&theme).unwrap_or(visit.prefs().theme);
    let base_path = &visit.settings().base_path;
    cookies::keep(base_path, cookies::LANGUAGE, locale.tag());
    cookies::keep(base_path, cookies::ZONE, zone.name());
    cookies::keep(base_path, cookies::THEME, theme.as_str());
    answer(&visit, &back, Ok(locale.texts().me.saved.to_owned()));
    Ok(())
}
