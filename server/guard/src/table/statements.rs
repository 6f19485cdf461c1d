//! The statements' text, written once for a dialect.

use std::time::Duration;

use db::{Dialect, Statement, Value};

use super::TABLE;
use crate::policy::Effects;

/// What a claim writes: these from values, the times from the database's clock, fence and attempts as one.
pub(super) const CLAIM_COLUMNS: &str = "idempotent_id, tenant, biz_type, biz_no, status, request_body, \
     fingerprint, phase, owner, lease_until, create_time, update_time, fence, attempts";

const RECORD_COLUMNS: &str = "idempotent_id, tenant, biz_type, status, fingerprint, phase, owner, fence, \
     lease_until, update_time, response_status, response_headers, response_body";

const HELD: &str = "idempotent_id = ? AND owner = ? AND fence = ?";

const LASTING: &str = "";

/// For this transaction only. The log is written in order, so every commit that waits for the disk takes this one along.
const SOON_LASTING: &str = " AND set_config('synchronous_commit', 'off', true) IS NOT NULL";

#[derive(Debug, Clone)]
pub(super) struct Statements {
    dialect: Dialect,
    /// Claims or reads in one statement, where the database can; once lasting, once not waiting for the disk.
    claim_or_look: Option<[Statement; 2]>,
    pub claim: Statement,
    pub look: Statement,
    pub request: Statement,
    pub take_over_settled: Statement,
    pub take_over_expired: Statement,
    pub finish: Statement,
    pub finish_late: Statement,
    pub release: Statement,
    pub withdraw: Statement,
    pub note: Statement,
    pub note_last: Statement,
    pub renew: Statement,
}

impl Statements {
    pub(super) fn new(dialect: Dialect) -> Statements {
        let statement = |sql: String| Statement::new(dialect, &sql);
        let now = now(dialect);
        let lease = lease_end(dialect);
        let look = look(dialect);
        let outcome = format!(
            "UPDATE {TABLE} SET status = ?, phase = ?, response_status = ?, response_headers = ?, \
             response_body = ?, lease_until = NULL, update_time = {now} WHERE {HELD}"
        );
        let take_over = format!(
            "UPDATE {TABLE} SET status = 'PROCESSING', phase = 'claimed', owner = ?, fence = fence + 1, \
             attempts = attempts + 1, response_status = NULL, response_headers = NULL, response_body = NULL, \
             update_time = {now}, lease_until = {lease} WHERE idempotent_id = ? AND status = ? AND fence = ?"
        );
        let note = format!("UPDATE {TABLE} SET phase = ?, update_time = {now}");
        let processing = format!("WHERE {HELD} AND status = 'PROCESSING'");
        Statements {
            dialect,
            claim_or_look: (dialect == Dialect::Postgres).then(|| {
                [LASTING, SOON_LASTING].map(|when| statement(claim_or_look(&look, now, lease, when)))
            }),
            claim: statement(claim(dialect, now, lease)),
            request: statement(format!("SELECT request_body FROM {TABLE} WHERE idempotent_id = ?")),
            take_over_expired: statement(format!(
                "{take_over} AND (lease_until IS NULL OR lease_until <= {now})"
            )),
            take_over_settled: statement(take_over),
            finish: statement(format!("{outcome} AND status = 'PROCESSING'")),
            finish_late: statement(format!("{outcome} AND status = 'TIMEOUT'")),
            release: statement(format!(
                "UPDATE {TABLE} SET status = 'FAILED', phase = 'rolled_back', lease_until = NULL, \
                 update_time = {now} {processing}"
            )),
            withdraw: statement(format!("DELETE FROM {TABLE} {processing}")),
            note_last: statement(format!("{note}, lease_until = {now} {processing}")),
            note: statement(format!("{note} {processing}")),
            renew: statement(format!("UPDATE {TABLE} SET lease_until = {lease} {processing}")),
            look: statement(look),
        }
    }

    pub(super) fn claim_or_look(&self, effects: Effects) -> Option<&Statement> {
        let [lasting, soon_lasting] = self.claim_or_look.as_ref()?;
        Some(match effects {
            Effects::Anywhere => lasting,
            Effects::ThisDatabase => soon_lasting,
        })
    }

    /// A lease as the statements take it.
    pub(super) fn lease(&self, lease: Duration) -> Value {
        let ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX / 1000);
        match self.dialect {
            Dialect::Sqlite => format!("+{}.{:03} seconds", ms / 1000, ms % 1000).into(),
            Dialect::Postgres => ms.into(),
            Dialect::Mysql => (ms * 1000).into(),
        }
    }
}

fn look(dialect: Dialect) -> String {
    let now_ms = match dialect {
        Dialect::Sqlite => "CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER)",
        Dialect::Postgres => "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)",
        Dialect::Mysql => "CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(3)) * 1000) AS SIGNED)",
    };
    format!("SELECT {RECORD_COLUMNS}, {now_ms} AS now_ms FROM {TABLE} WHERE idempotent_id IN (?, ?)")
}

/// A record under the scoped id is this key's record, so the plain id is not taken beside it.
fn claim(dialect: Dialect, now: &str, lease: &str) -> String {
    let from = if dialect == Dialect::Mysql { " FROM DUAL" } else { "" };
    // MySQL's INSERT IGNORE would hide other faults: there the key in the way is an error, and no transaction ends with it.
    let conflict = if dialect == Dialect::Mysql { "" } else { " ON CONFLICT DO NOTHING" };
    format!(
        "INSERT INTO {TABLE} ({CLAIM_COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, {lease}, {now}, {now}, 1, 1{from} \
         WHERE NOT EXISTS (SELECT 1 FROM {TABLE} WHERE idempotent_id = ?){conflict}"
    )
}

/// Both parts see the same snapshot; a claim granted after it makes the answer an empty row.
fn claim_or_look(look: &str, now: &str, lease: &str, when: &str) -> String {
    format!(
        "WITH found AS ({look}), granted AS (INSERT INTO {TABLE} ({CLAIM_COLUMNS}) \
         SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, {lease}, {now}, {now}, 1, 1 \
         WHERE NOT EXISTS (SELECT 1 FROM found){when} ON CONFLICT DO NOTHING RETURNING 1) \
         SELECT (SELECT COUNT(*) FROM granted) AS claimed, {RECORD_COLUMNS}, now_ms \
         FROM (SELECT 1) AS one LEFT JOIN found ON true"
    )
}

fn now(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "strftime('%Y-%m-%d %H:%M:%f', 'now')",
        Dialect::Postgres => "clock_timestamp()",
        Dialect::Mysql => "UTC_TIMESTAMP(3)",
    }
}

fn lease_end(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "strftime('%Y-%m-%d %H:%M:%f', 'now', ?)",
        Dialect::Postgres => "clock_timestamp() + ? * INTERVAL '1 millisecond'",
        Dialect::Mysql => "DATE_ADD(UTC_TIMESTAMP(3), INTERVAL ? MICROSECOND)",
    }
}
