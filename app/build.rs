//! Turns `locales/*.toml` into a typed table of texts.
//!
//! `[stuck] title = "…"` becomes the field `texts.stuck.title`; a text with `{placeholders}` becomes a function of them,
//! in alphabetical order, so that rewording never swaps arguments. `lead_one` and `lead_other` become one function
//! `lead(count, …)` that picks by the count. A key or placeholder that one language lacks stops the build.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// A language: its file and its variant of `Locale`.
const LANGUAGES: [(&str, &str); 2] = [("en", "En"), ("zh-CN", "ZhCn")];

type Sections = BTreeMap<String, BTreeMap<String, Text>>;

/// One key in one language: the plain text, or the forms by count.
#[derive(Default)]
struct Text {
    one: Option<String>,
    other: String,
    plural: bool,
}

fn main() {
    let languages: Vec<(&str, Sections)> =
        LANGUAGES.iter().map(|(file, variant)| (*variant, read(file))).collect();
    let problems = differences(&languages);
    assert!(problems.is_empty(), "the locales disagree:\n  {}", problems.join("\n  "));
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    std::fs::write(Path::new(&out).join("texts.rs"), generate(&languages)).expect("OUT_DIR is writable");
}

fn read(language: &str) -> Sections {
    let path = format!("locales/{language}.toml");
    println!("cargo::rerun-if-changed={path}");
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let table: BTreeMap<String, BTreeMap<String, String>> =
        toml::from_str(&source).unwrap_or_else(|error| panic!("{path}: {error}"));
    table.into_iter().map(|(section, keys)| (section, fold_plurals(keys))).collect()
}

/// Joins `key_one` and `key_other` into the plural text `key`.
fn fold_plurals(keys: BTreeMap<String, String>) -> BTreeMap<String, Text> {
    let mut texts: BTreeMap<String, Text> = BTreeMap::new();
    for (key, value) in keys {
        if let Some(base) = key.strip_suffix("_one") {
            let text = texts.entry(base.to_owned()).or_default();
            text.one = Some(value);
            text.plural = true;
        } else if let Some(base) = key.strip_suffix("_other") {
            let text = texts.entry(base.to_owned()).or_default();
            text.other = value;
            text.plural = true;
        } else {
            texts.insert(key, Text { one: None, other: value, plural: false });
        }
    }
    texts
}

fn differences(languages: &[(&str, Sections)]) -> Vec<String> {
    let (_, reference) = &languages[0];
    let mut problems = Vec::new();
    for (language, sections) in &languages[1..] {
        compare_keys(language, reference, sections, "is missing", &mut problems);
        compare_keys(language, sections, reference, "exists only there", &mut problems);
        for (section, keys) in reference {
            for (key, text) in keys {
                let Some(other) = sections.get(section).and_then(|keys| keys.get(key)) else { continue };
                if parameters(text) != parameters(other) || text.plural != other.plural {
                    problems
                        .push(format!("{language} [{section}] {key}: other placeholders or plural forms"));
                }
            }
        }
    }
    for (language, sections) in languages {
        for (section, keys) in sections {
            for (key, text) in keys {
                problems.extend(defect(text).map(|defect| format!("{language} [{section}] {key}: {defect}")));
            }
        }
    }
    problems
}

fn compare_keys(language: &str, has: &Sections, wants: &Sections, what: &str, problems: &mut Vec<String>) {
    for (section, keys) in has {
        for key in keys.keys() {
            if wants.get(section).is_none_or(|other| !other.contains_key(key)) {
                problems.push(format!("{language} [{section}] {key}: {what}"));
            }
        }
    }
}

fn defect(text: &Text) -> Option<&'static str> {
    if text.other.is_empty() {
        return Some("is empty, or has `_one` without `_other`");
    }
    if text.plural && !parameters(text).contains("count") {
        return Some("has plural forms without {count}");
    }
    None
}

/// The placeholder names of every form of a text.
fn parameters(text: &Text) -> BTreeSet<String> {
    let mut names = placeholders(&text.other);
    names.extend(text.one.iter().flat_map(|one| placeholders(one)));
    names
}

fn placeholders(pattern: &str) -> BTreeSet<String> {
    pattern
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn generate(languages: &[(&str, Sections)]) -> String {
    let (_, reference) = &languages[0];
    let mut code = String::new();
    for (section, keys) in reference {
        section_type(&mut code, section, keys, languages).expect("writing to a string cannot fail");
    }
    root_type(&mut code, reference).expect("writing to a string cannot fail");
    for (variant, sections) in languages {
        table(&mut code, variant, sections).expect("writing to a string cannot fail");
    }
    code
}

fn section_type(
    code: &mut String,
    section: &str,
    keys: &BTreeMap<String, Text>,
    languages: &[(&str, Sections)],
) -> std::fmt::Result {
    let name = pascal(section);
    writeln!(code, "/// The texts of `[{section}]`.\n#[derive(Clone, Copy)]\npub struct {name} {{")?;
    if has_functions(keys) {
        writeln!(code, "    locale: Locale,")?;
    }
    for (key, text) in keys.iter().filter(|(_, text)| parameters(text).is_empty()) {
        writeln!(code, "    /// {}\n    pub {key}: &'static str,", doc(&text.other))?;
    }
    writeln!(code, "}}\n\nimpl {name} {{")?;
    for (key, text) in keys.iter().filter(|(_, text)| !parameters(text).is_empty()) {
        function(code, section, key, text, languages)?;
    }
    writeln!(code, "}}\n")
}

/// Sections without placeholders need not know their language.
fn has_functions(keys: &BTreeMap<String, Text>) -> bool {
    keys.values().any(|text| !parameters(text).is_empty())
}

fn function(
    code: &mut String,
    section: &str,
    key: &str,
    text: &Text,
    languages: &[(&str, Sections)],
) -> std::fmt::Result {
    write!(code, "    /// {}\n    pub fn {key}(&self", doc(&text.other))?;
    for name in parameters(text) {
        let kind = if text.plural && name == "count" { "u64" } else { "impl std::fmt::Display" };
        write!(code, ", {name}: {kind}")?;
    }
    writeln!(code, ") -> String {{")?;
    if text.plural {
        writeln!(code, "        let one = count == 1;\n        let count = crate::format::number(count);")?;
    }
    writeln!(code, "        match self.locale {{")?;
    for (variant, sections) in languages {
        let text = &sections[section][key];
        if let Some(one) = &text.one {
            writeln!(code, "            Locale::{variant} if one => {},", format_call(one, text))?;
        }
        writeln!(code, "            Locale::{variant} => {},", format_call(&text.other, text))?;
    }
    writeln!(code, "        }}\n    }}\n")
}

/// `format!` with inline captures; a form that leaves a placeholder out consumes it, so nothing warns.
fn format_call(pattern: &str, text: &Text) -> String {
    let used = placeholders(pattern);
    let unused: Vec<String> = parameters(text).into_iter().filter(|name| !used.contains(name)).collect();
    let consume: String = unused.iter().map(|name| format!("let _ = &{name}; ")).collect();
    let call =
        if used.is_empty() { format!("{pattern:?}.to_owned()") } else { format!("format!({pattern:?})") };
    format!("{{ {consume}{call} }}")
}

fn root_type(code: &mut String, reference: &Sections) -> std::fmt::Result {
    writeln!(
        code,
        "/// Every text of the console in one language.\n#[derive(Clone, Copy)]\npub struct Texts {{"
    )?;
    for section in reference.keys() {
        writeln!(code, "    pub {section}: {},", pascal(section))?;
    }
    writeln!(code, "}}\n")
}

fn table(code: &mut String, variant: &str, sections: &Sections) -> std::fmt::Result {
    writeln!(code, "pub(super) static {}: Texts = Texts {{", variant.to_uppercase())?;
    for (section, keys) in sections {
        writeln!(code, "    {section}: {} {{", pascal(section))?;
        if has_functions(keys) {
            writeln!(code, "        locale: Locale::{variant},")?;
        }
        for (key, text) in keys.iter().filter(|(_, text)| parameters(text).is_empty()) {
            writeln!(code, "        {key}: {:?},", text.other)?;
        }
        writeln!(code, "    }},")?;
    }
    writeln!(code, "}};\n")
}

fn pascal(snake: &str) -> String {
    snake
        .split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        })
        .collect()
}

/// A text as a doc line: code ticks keep brackets from being read as links.
fn doc(text: &str) -> String {
    format!("`{}`", text.replace('\n', " ").replace('`', "'"))
}
