//! Languages and their texts. The tables are generated from `locales/` by the build script; see there for the rules.

/// A language of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locale {
    #[default]
    En,
    ZhCn,
}

impl Locale {
    pub const ALL: [Locale; 2] = [Locale::En, Locale::ZhCn];

    /// The BCP 47 tag, for `<html lang>` and the cookie.
    pub fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::ZhCn => "zh-CN",
        }
    }

    /// The language's own name.
    pub fn name(self) -> &'static str {
        match self {
            Self::En => "English",
            Self::ZhCn => "中文",
        }
    }

    /// The locale of a language tag, if we speak it: `zh`, `zh-Hans`, `en-GB` and so on.
    pub fn from_tag(tag: &str) -> Option<Self> {
        match tag.split(['-', '_']).next()?.to_ascii_lowercase().as_str() {
            "en" => Some(Self::En),
            "zh" => Some(Self::ZhCn),
            _ => None,
        }
    }

    /// The best of an Accept-Language header: highest quality first, then order; English when none fits.
    pub fn negotiate(accept_language: &str) -> Self {
        let mut best = (0.0, Self::default());
        for range in accept_language.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let Some(locale) = parts.next().and_then(Self::from_tag) else { continue };
            let quality = parts
                .find_map(|part| part.strip_prefix("q="))
                .map_or(1.0, |quality| quality.parse::<f32>().unwrap_or(0.0));
            if quality > best.0 {
                best = (quality, locale);
            }
        }
        best.1
    }

    pub fn texts(self) -> &'static Texts {
        match self {
            Self::En => &table::EN,
            Self::ZhCn => &table::ZHCN,
        }
    }
}

mod table {
    use super::Locale;

    include!(concat!(env!("OUT_DIR"), "/texts.rs"));
}

pub use table::*;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browsers_language_is_chosen_by_quality_then_order() {
        assert_eq!(Locale::negotiate("zh-CN,zh;q=0.9,en;q=0.8"), Locale::ZhCn);
        assert_eq!(Locale::negotiate("fr, en-GB;q=0.5, zh;q=0.7"), Locale::ZhCn);
        assert_eq!(Locale::negotiate("en,zh"), Locale::En);
        assert_eq!(Locale::negotiate("fr;q=1, *;q=0.1"), Locale::En);
        assert_eq!(Locale::negotiate(";;;q=zz,,"), Locale::En);
    }

    #[test]
    fn counts_choose_their_form() {
        assert_eq!(Locale::En.texts().frame.firing(1), "1 alert firing");
        assert_eq!(Locale::En.texts().frame.firing(1200), "1,200 alerts firing");
        assert_eq!(Locale::ZhCn.texts().frame.firing(1), "1 条告警正在触发");
    }
}
