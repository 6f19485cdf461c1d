//! What the sources' outboxes have not delivered.

use super::records::RecordService;
use crate::error::{Error, Result};
use crate::outbox::Undelivered;
use crate::page::{Limit, decode_cursor, encode_cursor};
use crate::ports::Source;
use crate::roles::{Actor, Permission};
use std::sync::Arc;

/// One page of messages, and the sources that could not be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct UndeliveredPage {
    pub items: Vec<Undelivered>,
    pub next_cursor: Option<String>,
    /// Source and why.
    pub down: Vec<(String, String)>,
}

impl RecordService {
    /// Messages that have not arrived, source by source, oldest first. `Unavailable` only when the one source asked
    /// for is down.
    pub async fn undelivered(
        &self,
        actor: &Actor,
        source: Option<&str>,
        cursor: Option<&str>,
        limit: Limit,
    ) -> Result<UndeliveredPage> {
        actor.require(Permission::Read)?;
        let after: Option<(String, i64)> = cursor.map(decode_cursor).transpose()?;
        let asked: Vec<&Arc<dyn Source>> = match source {
            Some(name) => vec![self.sources.get(name)?],
            None => self.sources.iter().collect(),
        };
        let mut page = UndeliveredPage { items: Vec::new(), next_cursor: None, down: Vec::new() };
        let begun = |name: &str| after.as_ref().is_none_or(|(last, _)| last == name);
        let first = asked.iter().position(|source| begun(source.name())).unwrap_or(asked.len());
        for source in &asked[first..] {
            let number = after.as_ref().filter(|(last, _)| last == source.name()).map(|(_, number)| *number);
            match source.undelivered(number, limit.get() + 1 - page.items.len()).await {
                Ok(found) => page.items.extend(found),
                Err(Error::Unavailable { message, .. }) if asked.len() > 1 => {
                    page.down.push((source.name().to_owned(), message));
                }
                Err(error) => return Err(error),
            }
            if page.items.len() > limit.get() {
                break;
            }
        }
        if page.items.len() > limit.get() {
            page.items.truncate(limit.get());
            page.next_cursor = page.items.last().map(|last| encode_cursor(&(&last.source, last.number)));
        }
        Ok(page)
    }
}
