//! Whether `[source.cache]` makes sense: each problem with its key below `cache` and what to write.

use super::meaning::Meaning;
use super::template::{self, KeyTemplate};
use crate::config::{After, CacheConfig, CacheFormat};
use domain::record::State;

/// Everything to correct; empty = the cache can be opened.
pub(crate) fn problems(config: &CacheConfig) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Err(error) = kv::Address::parse(config.url.expose()) {
        found.push(("url", error.to_string()));
    }
    if let Err(message) = KeyTemplate::parse(&config.key) {
        found.push(("key", message));
    }
    place(config, &mut found);
    values(config, &mut found);
    writes(config, &mut found);
    found
}

/// The place of the state fits the format.
fn place(config: &CacheConfig, found: &mut Vec<(&'static str, String)>) {
    let state = &config.state;
    if state.pointer.is_some() && config.format != CacheFormat::Json {
        found.push((
            "state.pointer",
            "is for entries that are JSON; write format = \"json\" or leave it out".into(),
        ));
    }
    match (&state.field, config.format) {
        (None, CacheFormat::Hash) => {
            found.push((
                "state",
                "a hash needs the field that holds the state; write field = \"status\"".into(),
            ));
        }
        (Some(_), CacheFormat::Json | CacheFormat::Text) => {
            found.push(("state.field", "is for hashes; write format = \"hash\" or leave it out".into()));
        }
        _ => {}
    }
}

/// In progress and over are never the same value, and nothing means UNKNOWN.
fn values(config: &CacheConfig, found: &mut Vec<(&'static str, String)>) {
    let [(_, processing), others @ ..] = config.state.values.each();
    for value in processing {
        if others.iter().any(|(_, values)| values.contains(value)) {
            found.push((
                "state.values",
                format!("{value:?} means PROCESSING and something else; keep one of them"),
            ));
        }
    }
    if matches!(config.state.otherwise, Some(State::Ignored | State::Unknown)) {
        found.push((
            "state.otherwise",
            "is no state a cache repeats; write SUCCESS, FAILED, TIMEOUT or PROCESSING, or leave it out"
                .into(),
        ));
    }
}

fn writes(config: &CacheConfig, found: &mut Vec<(&'static str, String)>) {
    let templates = [
        ("mark_succeeded", &config.mark_succeeded, State::Success),
        ("mark_timed_out", &config.mark_timed_out, State::Timeout),
    ];
    if config.after == After::Delete {
        let unused = templates.iter().filter(|(_, template, _)| template.is_some());
        found.extend(
            unused.map(|(key, ..)| (*key, "is not used; write after = \"write\" or leave it out".into())),
        );
        return;
    }
    if config.format == CacheFormat::Hash {
        found.push(("after", "a hash cannot be written; write after = \"delete\"".into()));
    }
    if config.ttl.is_none() {
        found.push(("ttl", "is missing; write how long a written entry lives, like ttl = \"24h\"".into()));
    }
    if config.mark_succeeded.is_none() {
        let example = r#"is missing; write the entry of a succeeded record, like '{"status":"SUCCESS","response":{response}}'"#;
        found.push(("mark_succeeded", example.into()));
    }
    for (key, template, state) in templates {
        if let Some(Err(message)) = template.as_deref().map(|text| reads_back(config, text, state)) {
            found.push((key, message));
        }
    }
}

/// What would be written must be read as the state it is written for, or it would be written for ever.
fn reads_back(config: &CacheConfig, text: &str, state: State) -> Result<(), String> {
    // A number fits in and between the quotes of JSON.
    let sample = template::parse(text)?.render(|_| Some("0".into()))?;
    match Meaning::of(config).of_value(sample.as_bytes()) {
        Ok((_, means)) if means.contains(&state) => Ok(()),
        _ => Err(format!("would not be read as {state}; let it agree with [source.cache.state]")),
    }
}
