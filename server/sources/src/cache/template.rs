//! The key of a record's entry, and the values written there.

use crate::config::{After, CacheConfig};
use crate::template::{Escape, Template};
use domain::record::{RecordDetail, RecordRow, State};

/// What a key may be made of.
pub(super) const KEY_NAMES: [&str; 3] = ["key", "biz_type", "biz_no"];
/// The record's stored response, in a value.
const RESPONSE: &str = "response";

/// `idem:{key}`.
pub(super) struct KeyTemplate(Template);

impl KeyTemplate {
    /// Errors: what to write. A key without `{key}` or `{biz_no}` would be everybody's.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let template = Template::parse_as(text, Escape::Nothing);
        if let Some(name) = template.names().find(|name| !KEY_NAMES.contains(name)) {
            return Err(format!(
                "{{{name}}} is nothing a key is made of; use {{key}}, {{biz_type}} and {{biz_no}}"
            ));
        }
        if !template.names().any(|name| matches!(name, "key" | "biz_no")) {
            return Err(
                "the same key would be every record's; write it with {key} or {biz_no}, like \"idem:{key}\""
                    .into(),
            );
        }
        Ok(Self(template))
    }

    /// The key of a record; `None` when the record lacks a part of it.
    pub(super) fn render(&self, record: &RecordRow) -> Option<String> {
        self.0.render(|name| part(record, name)).ok()
    }
}

fn part(record: &RecordRow, name: &str) -> Option<String> {
    match name {
        "key" => Some(record.key.clone()),
        "biz_type" => record.biz_type.clone(),
        "biz_no" => record.biz_no.clone().filter(|number| !number.is_empty()),
        _ => None,
    }
}

/// What entries become, by the state of their record; a state without a template has no entry.
pub(super) struct ValueTemplates {
    succeeded: Option<Template>,
    timed_out: Option<Template>,
}

impl ValueTemplates {
    /// Errors: what to write.
    pub(super) fn of(config: &CacheConfig) -> Result<Self, String> {
        let parse = |text: &Option<String>| text.as_deref().map(parse).transpose();
        match config.after {
            After::Delete => Ok(Self { succeeded: None, timed_out: None }),
            After::Write => Ok(Self {
                succeeded: parse(&config.mark_succeeded)?,
                timed_out: parse(&config.mark_timed_out)?,
            }),
        }
    }

    /// The value for a record in its state; `None` = no entry.
    pub(super) fn render(&self, record: &RecordDetail) -> Result<Option<String>, String> {
        let template = match record.row.state {
            State::Success => &self.succeeded,
            State::Timeout => &self.timed_out,
            _ => &None,
        };
        let response = || record.response.readable().and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
        let value = |name: &str| if name == RESPONSE { response() } else { part(&record.row, name) };
        template.as_ref().map(|template| template.render(value)).transpose()
    }
}

/// A value's template; an empty one writes an empty value.
pub(super) fn parse(text: &str) -> Result<Template, String> {
    let template = match text {
        "" => Template::parse_as("", Escape::Nothing),
        text => Template::parse(text)?,
    };
    let known = |name: &str| name == RESPONSE || KEY_NAMES.contains(&name);
    if let Some(name) = template.names().find(|name| !known(name)) {
        return Err(format!(
            "{{{name}}} has no value here; use {{response}}, {{key}}, {{biz_type}} and {{biz_no}}"
        ));
    }
    Ok(template)
}
