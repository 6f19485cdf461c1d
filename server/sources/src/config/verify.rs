//! What no single value can tell: whether the parts of a source fit together.

use super::{Approval, Biz, MappedState, Param, Replay, SourceConfig, WriteValue};
use crate::reverse::Check;
use crate::template::Template;
use db::Dialect;
use std::collections::HashSet;
use std::fmt;

/// One thing to correct: the key, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Dotted path below `[[source]]`.
    pub key: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl SourceConfig {
    /// Everything wrong with the source as written; empty = it can be opened.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Found { source: &self.name, problems: Vec::new() };
        self.verify_ground(&mut found);
        self.verify_states(&mut found);
        self.verify_writes(&mut found);
        let mut names = HashSet::new();
        for biz in &self.biz {
            if !names.insert(&biz.name) {
                found
                    .add("biz.type", format!("{:?} is there twice; keep one [[source.biz]] of it", biz.name));
            }
            self.verify_biz(biz, &mut found);
        }
        found.problems
    }

    fn verify_ground(&self, found: &mut Found<'_>) {
        if self.name.trim().is_empty() {
            found.add("name", "is empty; write what people call this source");
        }
        if let Err(error) = Dialect::of_url(self.url.expose()) {
            found.add("url", error.to_string());
        }
        if self.max_connections == 0 {
            found.add("max_connections", "is 0; write at least 1");
        }
        for (part, column) in self.columns.mapped() {
            if column.is_empty() {
                found.add(&format!("columns.{part}"), "is empty; write a column name or \"not stored\"");
            }
        }
    }

    fn verify_states(&self, found: &mut Found<'_>) {
        let mut seen = HashSet::new();
        for value in self.state.iter().flat_map(|rule| &rule.values) {
            if !seen.insert(value.to_string()) {
                found.add(
                    "state.values",
                    format!("{value} is mapped twice; the first match wins, drop the other"),
                );
            }
        }
        if self.native_values(MappedState::Processing.state()).is_empty() {
            found.add(
                "state",
                "no value means PROCESSING; write [[source.state]] is = \"PROCESSING\" values = [\"…\"]",
            );
        }
    }

    fn verify_writes(&self, found: &mut Found<'_>) {
        let writes = [
            ("write.mark_succeeded", &self.write.mark_succeeded, MappedState::Success),
            ("write.mark_timed_out", &self.write.mark_timed_out, MappedState::Timeout),
        ];
        for (key, write, target) in writes {
            if let Some(WriteValue::Literal(value)) = write.get(&self.columns.status)
                && self.state_of(Some(&value.to_string())) != target.state()
            {
                let wanted = target.state();
                found.add(key, format!("writes status {value}, which is not mapped as {wanted}; map it under [[source.state]]"));
            }
            if let Some(updated) = &self.columns.updated_at
                && write.get(&updated.column).is_some_and(|value| *value != WriteValue::Now)
            {
                found.add(
                    key,
                    format!("{} must be {{ now = true }}: the change is recognised by it", updated.column),
                );
            }
        }
    }

    fn verify_biz(&self, biz: &Biz, found: &mut Found<'_>) {
        let at = |key: &str| format!("biz {:?}.{key}", biz.name);
        for (place, check) in biz.reverse_check.iter().enumerate() {
            if let Err(message) = Check::verify(check, self) {
                found.add(&at(&format!("reverse_check {}", check.label(place))), message);
            }
        }
        if let Some(response) = &biz.response
            && let Err(message) = Template::parse(&response.template)
        {
            found.add(&at("response.template"), message);
        }
        if let Some(replay) = &biz.replay {
            for (key, message) in verify_replay(replay) {
                found.add(&at(&format!("replay.{key}")), message);
            }
        }
    }
}

fn verify_replay(replay: &Replay) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let url = url::Url::parse(&replay.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    if url.is_none_or(|url| url.host().is_none()) {
        wrong.push((
            "url",
            "is no http address; write it whole, like \"http://orders.internal/api/orders\"".into(),
        ));
    }
    if reqwest::Method::from_bytes(replay.method.as_bytes()).is_err() {
        wrong.push(("method", "is no HTTP method; write POST, PUT or the like".into()));
    }
    if replay.content_type.parse::<reqwest::header::HeaderValue>().is_err() {
        wrong.push(("content_type", "is no header value; write \"application/json\" or the like".into()));
    }
    for (name, value) in &replay.headers {
        if name.parse::<reqwest::header::HeaderName>().is_err() {
            wrong.push(("headers", format!("{name:?} is no header name")));
        }
        match Template::parse(value.expose()) {
            Err(message) => wrong.push(("headers", format!("{name}: {message}"))),
            // A placeholder without a value would be noticed only after the record was prepared.
            Ok(template) => wrong.extend(
                template
                    .names()
                    .filter_map(|placeholder| Param::try_from(placeholder.to_owned()).err())
                    .map(|message| ("headers", format!("{name}: {message}"))),
            ),
        }
    }
    wrong
}

impl Biz {
    /// Whether one person may settle its records at all.
    pub fn needs_approval(&self) -> bool {
        self.approval == Approval::Required
    }
}

struct Found<'a> {
    source: &'a str,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn add(&mut self, key: &str, message: impl Into<String>) {
        let key = format!("source {:?}.{key}", self.source);
        self.problems.push(Problem { key, message: message.into() });
    }
}
