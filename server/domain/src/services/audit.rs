//! Reading and verifying the audit trail.

use crate::audit::{Anchor, AuditFilter, Break, Entry, Verifier};
use crate::error::Result;
use crate::page::{Limit, Page, decode_cursor};
use crate::ports::AuditStore;
use crate::roles::{Actor, Permission};
use std::sync::Arc;

/// Entries per read while verifying: flat memory, few round trips.
const VERIFY_CHUNK: usize = 500;

pub struct AuditService {
    pub store: Arc<dyn AuditStore>,
}

impl AuditService {
    /// Newest first.
    pub async fn list(
        &self,
        actor: &Actor,
        filter: &AuditFilter,
        cursor: Option<&str>,
        limit: Limit,
    ) -> Result<Page<Entry>> {
        actor.require(Permission::Read)?;
        let before: Option<i64> = cursor.map(decode_cursor).transpose()?;
        self.store.list(filter, before, limit).await
    }

    /// Sequence and hash of the newest entry.
    pub async fn head(&self, actor: &Actor) -> Result<Option<(i64, String)>> {
        actor.require(Permission::Read)?;
        self.store.head().await
    }

    /// The entry at this place in the chain, as it can be noted elsewhere.
    pub async fn anchor(&self, seq: i64) -> Result<Option<Anchor>> {
        let entry = self.store.read_on(seq - 1, 1).await?.pop().filter(|entry| entry.seq == seq);
        Ok(entry.map(|Entry { seq, hash, .. }| Anchor { seq, hash }))
    }

    /// Walks the whole chain; `Ok(Ok(n))` = n entries, unbroken.
    pub async fn verify(&self) -> Result<std::result::Result<i64, Break>> {
        // The head is read first: entries written meanwhile extend the chain and are not part of the question.
        let head = self.store.head().await?;
        let end = head.as_ref().map_or(0, |(seq, _)| *seq);
        let mut verifier = Verifier::default();
        let mut after = 0;
        loop {
            let entries = self.store.read_on(after, VERIFY_CHUNK).await?;
            let Some(last) = entries.last().map(|entry| entry.seq) else { break };
            for entry in entries.iter().filter(|entry| entry.seq <= end) {
                if let Err(broken) = verifier.check(entry) {
                    return Ok(Err(broken));
                }
            }
            if last >= end {
                break;
            }
            after = last;
        }
        match verifier.finish(head.as_ref().map(|(seq, hash)| (*seq, hash.as_str()))) {
            Ok(entries) => Ok(self.nothing_beyond(entries).await?.map(|()| entries)),
            Err(broken) => Ok(Err(broken)),
        }
    }

    /// An entry and the head that names it are written together: one further than the head was slipped in.
    async fn nothing_beyond(&self, end: i64) -> Result<std::result::Result<(), Break>> {
        let Some(further) = self.store.read_on(end, 1).await?.pop() else { return Ok(Ok(())) };
        let head = self.store.head().await?.map_or(0, |(seq, _)| seq);
        Ok(if further.seq <= head { Ok(()) } else { Err(Break::Beyond { seq: further.seq }) })
    }
}
