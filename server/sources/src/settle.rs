//! The compare-and-set: one transaction in which record and evidence are looked at again before the one UPDATE.

use crate::attached::{Attached, not_found};
use crate::judge::combine;
use crate::layout::Layout;
use crate::parts::Part;
use crate::reading::{Reading, Seen};
use crate::reverse::{Check, Subject};
use chrono::{DateTime, Utc};
use db::{Attempts, DbError, Transient, Tx};
use domain::actions::{Action, by_verdict};
use domain::compensation::Plan;
use domain::error::{Error, Result};
use domain::evidence::Finding;
use domain::ports::Applied;
use domain::record::{RecordDetail, RecordId, Version};
use futures::future::join_all;

/// How often a transaction that met another is tried.
const TRIES: u32 = 5;

/// The change that is wanted, of a record as it was seen.
pub(crate) struct Wanted<'a> {
    pub(crate) expect: &'a Version,
    pub(crate) action: Action,
    pub(crate) plan: &'a Plan,
    /// Past it nothing is changed any more.
    pub(crate) until: DateTime<Utc>,
}

/// Why one attempt ended without an answer.
enum Trouble {
    Db(DbError),
    Refused(Error),
}

impl From<DbError> for Trouble {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

impl Transient for Trouble {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Db(error) if error.is_transient())
    }
}

impl Attached {
    /// Carries out the change if record and evidence still permit it; tried again only when nothing was done and there is
    /// time left.
    pub(crate) async fn compare_and_set(
        &self,
        record: &RecordDetail,
        wanted: &Wanted<'_>,
    ) -> Result<Applied> {
        let part = self.part_of(&record.row.id)?;
        let layout = self.layout_of(part).await?;
        let seed = self.clock.now().timestamp_subsec_nanos();
        let mut attempts = Attempts::new(TRIES, u64::from(seed));
        loop {
            match self.attempt(part, &layout, record, wanted).await {
                Err(trouble) if self.clock.now() < wanted.until && attempts.again(&trouble).await => {}
                Ok(applied) => return Ok(applied),
                Err(Trouble::Db(error)) => return Err(self.down(error)),
                Err(Trouble::Refused(error)) => return Err(error),
            }
        }
    }

    async fn attempt(
        &self,
        part: &Part,
        layout: &Layout,
        record: &RecordDetail,
        wanted: &Wanted<'_>,
    ) -> Result<Applied, Trouble> {
        let &Wanted { expect, action, plan, until } = wanted;
        let reading = part.reading(&self.config, layout);
        let checks = match self.checks(record) {
            Ok(checks) => checks,
            Err(unavailable) => return Ok(Applied::EvidenceChanged(*unavailable)),
        };
        let subject = Subject::of(record);
        // Other databases are asked before the row is locked: they may be slow.
        let elsewhere = self.ask_elsewhere(part, checks, &subject).await;
        let mut tx = part.db.begin().await?;
        let seen = self.locked(&mut tx, reading, &record.row.id).await?;
        if seen.row.version != *expect {
            return Ok(Applied::Moved(Box::new(seen.row)));
        }
        let finding = self.ask_here(&mut tx, checks, elsewhere, &subject).await;
        if !by_verdict(action, finding.verdict).is_allowed() {
            return Ok(Applied::EvidenceChanged(finding));
        }
        // Whoever waited here too long is no longer alone with the record.
        if self.clock.now() >= until {
            return Err(Trouble::Db(DbError::Timeout("it took too long to come to the change".into())));
        }
        let changed = match action {
            Action::Replay => tx.execute(&tx.query(&reading.removal(&seen).map_err(refused)?)).await?,
            mark => {
                let update = reading.update(mark, plan, &seen).map_err(refused)?;
                tx.execute(&tx.query(&update)).await?
            }
        };
        match changed {
            1 if action == Action::Replay => {
                tx.commit().await?;
                Ok(Applied::Changed)
            }
            1 => {
                let after = self.locked(&mut tx, reading, &record.row.id).await?.row;
                if after.state != plan.state {
                    // Dropping the transaction undoes the change.
                    return Err(refused(format!(
                        "What [source.write.{action}] sets makes this record {}, not {}; correct it.",
                        after.state, plan.state
                    )));
                }
                tx.commit().await?;
                Ok(Applied::Changed)
            }
            0 => {
                let row = self.locked(&mut tx, reading, &record.row.id).await?.row;
                Ok(Applied::Moved(Box::new(row)))
            }
            _ => Err(refused(format!(
                "Several records have this key in {}; settle them by hand.",
                layout.table
            ))),
        }
    }

    /// Reads the record and locks it where the database can; SQLite's transaction holds the whole file.
    async fn locked(&self, tx: &mut Tx, reading: Reading<'_>, id: &RecordId) -> Result<Seen, Trouble> {
        let now = tx.now().await?;
        let located = reading.located(id).ok_or_else(|| Trouble::Refused(not_found(id)))?;
        let mut select = reading.select();
        select.and_where(located);
        reading.layout.dialect.lock_rows(&mut select);
        let row = tx.fetch_optional(&tx.query(&select)).await?;
        row.map(|row| reading.seen(&row, now)).ok_or_else(|| Trouble::Refused(not_found(id)))
    }

    /// Asks what the transaction on the record's table does not cover.
    async fn ask_elsewhere(
        &self,
        part: &Part,
        checks: &[Check],
        subject: &Subject<'_>,
    ) -> Vec<Option<crate::judge::Outcome>> {
        let is_own = part.db.is_same(&self.db);
        let each = checks.iter().map(|check| async move {
            match check.is_elsewhere() || !is_own {
                true => Some(check.ask(&self.db, subject).await),
                false => None,
            }
        });
        join_all(each).await
    }

    async fn ask_here(
        &self,
        tx: &mut Tx,
        checks: &[Check],
        elsewhere: Vec<Option<crate::judge::Outcome>>,
        subject: &Subject<'_>,
    ) -> Finding {
        let mut outcomes = Vec::with_capacity(checks.len());
        for (check, known) in checks.iter().zip(elsewhere) {
            outcomes.push(match known {
                Some(outcome) => outcome,
                None => check.ask_within(tx, &self.db, subject).await,
            });
        }
        combine(outcomes, self.read_from(checks))
    }
}

fn refused(message: String) -> Trouble {
    Trouble::Refused(Error::Refused { code: "not_expressible".into(), message })
}
