//! The audit chain: each entry's hash covers its content and the hash before it, so any edit shows.

use crate::evidence::Verdict;
use crate::record::RecordId;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The hash before the first entry.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is to be recorded; the chain adds its place and hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub at: DateTime<Utc>,
    pub actor: String,
    /// Dotted verb: `mark_succeeded.intended`, `replay.in_doubt`, `bodies.revealed`, `alert_rule.changed` …
    pub action: String,
    pub record: Option<RecordId>,
    pub record_key: Option<String>,
    pub biz_type: Option<String>,
    pub biz_no: Option<String>,
    pub reason: Option<String>,
    pub verdict: Option<Verdict>,
    pub evidence_id: Option<String>,
    pub compensation_id: Option<String>,
    /// State or value before → after, for the eye.
    pub before: Option<String>,
    pub after: Option<String>,
    /// How it ended, in one sentence.
    pub result: Option<String>,
}

impl Draft {
    pub fn new(at: DateTime<Utc>, actor: impl Into<String>, action: impl Into<String>) -> Self {
        Self {
            at,
            actor: actor.into(),
            action: action.into(),
            record: None,
            record_key: None,
            biz_type: None,
            biz_no: None,
            reason: None,
            verdict: None,
            evidence_id: None,
            compensation_id: None,
            before: None,
            after: None,
            result: None,
        }
    }
}

/// One sealed entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// 1, 2, 3 … without gaps.
    pub seq: i64,
    #[serde(flatten)]
    pub draft: Draft,
    pub prev_hash: String,
    pub hash: String,
}

impl Entry {
    /// Seals a draft behind the entry `(seq, hash)`, or as the first. Times are cut to milliseconds, as stored.
    pub fn seal(previous: Option<(i64, &str)>, mut draft: Draft) -> Self {
        draft.at = crate::clock::from_millis(crate::clock::millis(draft.at));
        let (seq, prev_hash) = match previous {
            Some((seq, hash)) => (seq + 1, hash.to_owned()),
            None => (1, GENESIS.to_owned()),
        };
        let hash = content_hash(seq, &prev_hash, &draft);
        Self { seq, draft, prev_hash, hash }
    }
}

/// SHA-256 over an unambiguous serialisation (JSON array of sequence, previous hash and every field).
fn content_hash(seq: i64, prev_hash: &str, draft: &Draft) -> String {
    let Draft {
        at,
        actor,
        action,
        record,
        record_key,
        biz_type,
        biz_no,
        reason,
        verdict,
        evidence_id,
        compensation_id,
        before,
        after,
        result,
    } = draft;
    let head = (seq, prev_hash, crate::clock::millis(*at), actor, action, record, record_key);
    let tail = (biz_type, biz_no, reason, verdict, evidence_id, compensation_id, before, after, result);
    // Numbers, strings and options always serialise.
    hex::encode(Sha256::digest(serde_json::to_vec(&(head, tail)).unwrap_or_default()))
}

/// Where a chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    #[error("entry {expected} is missing; entry {found} comes in its place")]
    Gap { expected: i64, found: i64 },
    #[error("entry {seq} does not continue the entry before it")]
    Unlinked { seq: i64 },
    #[error("entry {seq} was changed after it was written")]
    Edited { seq: i64 },
    #[error("the chain ends at entry {found}, but {head} entries were written")]
    Cut { head: i64, found: i64 },
    #[error("entry {seq} lies behind the end that was written down")]
    Beyond { seq: i64 },
    #[error("the end of the chain is written down nowhere")]
    Headless,
    #[error("entry {seq} is not the one that was noted")]
    NotAsNoted { seq: i64 },
}

/// The newest entry as somebody noted it somewhere else: against it even a chain that was written anew is found.
/// Written `SEQ:HASH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    pub seq: i64,
    pub hash: String,
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Anchor {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        let parts = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
        let hex =
            |hash: &str| hash.len() == GENESIS.len() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        match parts {
            Some((seq, hash)) if seq > 0 && hex(hash) => Ok(Self { seq, hash: hash.to_ascii_lowercase() }),
            _ => Err(crate::Error::invalid(format!(
                "{text:?} names no entry; write SEQ:HASH as `amends audit verify` printed it"
            ))),
        }
    }
}

/// Checks a chain entry by entry, holding one hash.
#[derive(Debug, Clone)]
pub struct Verifier {
    seq: i64,
    hash: String,
}

impl Default for Verifier {
    fn default() -> Self {
        Self { seq: 0, hash: GENESIS.to_owned() }
    }
}

impl Verifier {
    /// Starts behind an entry that is taken as it is, to check a part of a chain.
    pub fn behind(entry: &Entry) -> Self {
        Self { seq: entry.seq, hash: entry.hash.clone() }
    }

    pub fn check(&mut self, entry: &Entry) -> Result<(), Break> {
        if entry.seq != self.seq + 1 {
            return Err(Break::Gap { expected: self.seq + 1, found: entry.seq });
        }
        if entry.prev_hash != self.hash {
            return Err(Break::Unlinked { seq: entry.seq });
        }
        if content_hash(entry.seq, &entry.prev_hash, &entry.draft) != entry.hash {
            return Err(Break::Edited { seq: entry.seq });
        }
        self.seq = entry.seq;
        self.hash.clone_from(&entry.hash);
        Ok(())
    }

    /// After the last entry: `head` is the chain head the store keeps beside the entries, without a hash if it is lost.
    pub fn finish(self, head: Option<(i64, &str)>) -> Result<i64, Break> {
        let (head_seq, head_hash) = head.unwrap_or((0, GENESIS));
        if head_hash.is_empty() {
            return Err(Break::Headless);
        }
        if head_seq != self.seq {
            return Err(Break::Cut { head: head_seq, found: self.seq });
        }
        if head_hash != self.hash {
            return Err(Break::Unlinked { seq: self.seq });
        }
        Ok(self.seq)
    }
}

/// Which entries a list is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub action: Option<String>,
    pub record: Option<RecordId>,
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain(texts: &[(String, String, Option<String>)]) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for (actor, action, reason) in texts {
            let mut draft = Draft::new(DateTime::UNIX_EPOCH, actor, action);
            draft.reason.clone_from(reason);
            let previous = entries.last().map(|entry| (entry.seq, entry.hash.as_str()));
            let sealed = Entry::seal(previous, draft);
            entries.push(sealed);
        }
        entries
    }

    fn verify(entries: &[Entry], head: Option<(i64, &str)>) -> Result<i64, Break> {
        let mut verifier = Verifier::default();
        for entry in entries {
            verifier.check(entry)?;
        }
        verifier.finish(head)
    }

    fn drafts() -> impl Strategy<Value = Vec<(String, String, Option<String>)>> {
        prop::collection::vec((".{0,8}", ".{0,8}", prop::option::of(".{0,8}")), 1..8)
    }

    proptest! {
        #[test]
        fn an_untouched_chain_verifies(texts in drafts()) {
            let entries = chain(&texts);
            let last = entries.last().unwrap();
            prop_assert_eq!(verify(&entries, Some((last.seq, &last.hash))), Ok(entries.len() as i64));
        }

        #[test]
        fn any_edit_of_any_field_is_found(texts in drafts(), at: prop::sample::Index, field in 0..15usize) {
            let mut entries = chain(&texts);
            let (head_seq, head_hash) = { let last = entries.last().unwrap(); (last.seq, last.hash.clone()) };
            let index = at.index(entries.len());
            let entry = &mut entries[index];
            let draft = &mut entry.draft;
            let more = |text: &Option<String>| Some(format!("{}!", text.clone().unwrap_or_default()));
            match field {
                0 => draft.actor.push('!'),
                1 => draft.action.push('!'),
                2 => draft.reason = more(&draft.reason),
                3 => draft.at += chrono::Duration::milliseconds(1),
                4 => draft.record = Some(RecordId::new("x", vec![])),
                5 => draft.record_key = more(&draft.record_key),
                6 => draft.biz_type = more(&draft.biz_type),
                7 => draft.biz_no = more(&draft.biz_no),
                8 => draft.verdict = Some(Verdict::Found),
                9 => draft.evidence_id = more(&draft.evidence_id),
                10 => draft.compensation_id = more(&draft.compensation_id),
                11 => draft.before = more(&draft.before),
                12 => draft.after = more(&draft.after),
                13 => draft.result = more(&draft.result),
                _ => entry.seq += 1,
            }
            prop_assert!(verify(&entries, Some((head_seq, &head_hash))).is_err());
        }

        #[test]
        fn a_removed_swapped_or_cut_entry_is_found(texts in drafts(), at: prop::sample::Index) {
            let whole = chain(&texts);
            let last = whole.last().unwrap();
            let head = Some((last.seq, last.hash.as_str()));
            let mut removed = whole.clone();
            removed.remove(at.index(whole.len()));
            prop_assert!(verify(&removed, head).is_err());
        }

        #[test]
        fn a_chain_forged_anew_does_not_meet_the_stored_head(texts in drafts()) {
            let whole = chain(&texts);
            let mut forged_texts = texts.clone();
            forged_texts[0].0.push('!');
            let forged = chain(&forged_texts);
            let last = whole.last().unwrap();
            prop_assert!(verify(&forged, Some((last.seq, &last.hash))).is_err());
        }
    }
}
