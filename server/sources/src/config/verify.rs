//! What no single value can tell: whether the parts of a source fit together.

use super::{Approval, Biz, Param, Replay, SourceConfig, Table, WriteValue};
use crate::reverse::Check;
use crate::template::Template;
use db::Dialect;
use domain::actions::Action;
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
        self.verify_beside(&mut found);
        for (key, message) in self.cache.iter().flat_map(|cache| cache.problems()) {
            found.add(&format!("cache.{key}"), message);
        }
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
        for (place, rule) in self.state.iter().enumerate() {
            let at = format!("state {} ({})", place + 1, rule.is.state());
            if rule.is_empty() {
                found.add(
                    &at,
                    "says nothing; write values = [\"…\"], null, not_null, equals, when or always = true",
                );
            }
            if !rule.values.is_empty() && self.columns.status.is_none() {
                found.add(
                    &at,
                    "has values, and columns.status is \"not stored\"; write equals = { column = value }",
                );
            }
            if rule.always && place + 1 < self.state.len() {
                found.add(&at, "matches every row, so no later rule ever does; put it last");
            }
            for value in rule.values.iter().filter(|_| rule.is_values_only()) {
                if !seen.insert(value.to_string()) {
                    found.add(&at, format!("{value} is mapped twice; the first match wins, drop the other"));
                }
            }
        }
        if !self.sees_processing() && !self.state.iter().any(|rule| rule.always) {
            found.add(
                "state",
                "no rule means PROCESSING; write [[source.state]] is = \"PROCESSING\" values = [\"…\"], or always = true where rows are written only when the work is done",
            );
        }
    }

    fn verify_beside(&self, found: &mut Found<'_>) {
        let mut names = HashSet::new();
        for join in &self.join {
            let at = format!("join {:?}", join.name);
            if join.name.is_empty()
                || join.name.contains('.')
                || join.name == self.table.name
                || !names.insert(&join.name)
            {
                found.add(&at, "needs a name of its own, without dots and other than the table's");
            }
            if join.on.is_empty() {
                found.add(&at, "has no on; write on = { their_column = \"our_column\" }");
            }
        }
        if !self.shard.is_empty() && self.table != Table::default() {
            found.add("table", "is there beside [[source.shard]]; keep one of them");
        }
        for shard in &self.shard {
            if !shard.is_numbered() && shard.range.first != shard.range.last {
                found.add(
                    "shard.table",
                    format!("{} has no place for the number; write \"{}_{{n}}\"", shard.table, shard.table),
                );
            }
            if let Some(Err(error)) = shard.url.as_ref().map(|url| Dialect::of_url(url.expose())) {
                found.add("shard.url", error.to_string());
            }
        }
        for archive in &self.archive {
            if archive.table == self.table && self.shard.is_empty() {
                found.add("archive.table", "is the live table; write the table that rows are moved to");
            }
        }
    }

    fn verify_writes(&self, found: &mut Found<'_>) {
        let writes = [
            ("write.mark_succeeded", &self.write.mark_succeeded, self.marked(Action::MarkSucceeded)),
            ("write.mark_timed_out", &self.write.mark_timed_out, self.marked(Action::MarkTimedOut)),
        ];
        for (key, write, target) in writes {
            if let Some(status) = &self.columns.status
                && let Some(WriteValue::Literal(value)) = write.get(status)
                && self.states_are_values()
                && !self.native_values(target).contains(&value)
            {
                found.add(key, format!("writes status {value}, which is not mapped as {target}; map it under [[source.state]]"));
            }
            if let Some(updated) = &self.columns.updated_at
                && write.get(&updated.column).is_some_and(|value| *value != WriteValue::Now)
            {
                found.add(
                    key,
                    format!("{} must be {{ now = true }}: the change is recognised by it", updated.column),
                );
            }
            if key.ends_with("timed_out") && write.values().any(|value| *value == WriteValue::Response) {
                found.add(key, "sets a response, which only mark_succeeded has");
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
