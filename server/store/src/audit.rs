//! The audit chain. Its head is one row that every writer holds until it commits: entries get one order.

use async_trait::async_trait;
use db::{DbError, Row, Tx};
use domain::audit::{AuditFilter, Draft, Entry};
use domain::clock::millis;
use domain::evidence::Verdict;
use domain::page::{Limit, Page, encode_cursor};
use domain::ports::AuditStore;
use domain::record::RecordId;
use sea_query::{Condition, Expr, ExprTrait, LikeExpr, Order, Query, SelectStatement};

use crate::codec::{instant, record_ref};
use crate::{Store, retrying};

const COLUMNS: [&str; 18] = [
    "seq",
    "happened_at",
    "actor",
    "action",
    "record_ref",
    "record",
    "record_key",
    "biz_type",
    "biz_no",
    "reason",
    "verdict",
    "evidence_id",
    "compensation_id",
    "before_value",
    "after_value",
    "result",
    "prev_hash",
    "hash",
];

#[async_trait]
impl AuditStore for Store {
    async fn append(&self, draft: &Draft) -> domain::Result<Entry> {
        retrying!(self, self.append_alone(draft).await)
    }

    async fn list(
        &self,
        filter: &AuditFilter,
        before_seq: Option<i64>,
        limit: Limit,
    ) -> domain::Result<Page<Entry>> {
        let select = entries()
            .cond_where(condition(filter))
            .and_where_option(before_seq.map(|seq| Expr::col("seq").lt(seq)))
            .order_by("seq", Order::Desc)
            .limit(limit.get() as u64 + 1)
            .to_owned();
        let mut items = retrying!(self, self.read_entries(&select).await)?;
        let more = items.len() > limit.get();
        items.truncate(limit.get());
        let next_cursor = items.last().filter(|_| more).map(|last| encode_cursor(&last.seq));
        Ok(Page { items, next_cursor })
    }

    async fn read_on(&self, after_seq: i64, limit: usize) -> domain::Result<Vec<Entry>> {
        let select = entries()
            .and_where(Expr::col("seq").gt(after_seq))
            .order_by("seq", Order::Asc)
            .limit(limit as u64)
            .to_owned();
        retrying!(self, self.read_entries(&select).await)
    }

    async fn head(&self) -> domain::Result<Option<(i64, String)>> {
        retrying!(self, self.read_head().await)
    }
}

impl Store {
    async fn append_alone(&self, draft: &Draft) -> Result<Entry, DbError> {
        let mut tx = self.db.begin().await?;
        let entry = append(&mut tx, draft).await?;
        tx.commit().await?;
        Ok(entry)
    }

    async fn read_entries(&self, select: &SelectStatement) -> Result<Vec<Entry>, DbError> {
        Ok(self.db.fetch_all(&self.db.query(select)).await?.iter().map(entry).collect())
    }

    async fn read_head(&self) -> Result<Option<(i64, String)>, DbError> {
        match self.db.fetch_optional(&self.db.query(&head())).await? {
            Some(row) => head_of(&row),
            // Every store has a head from the beginning: one that was taken away is not the start of a chain.
            None => Ok(Some((0, String::new()))),
        }
    }
}

/// Appends behind the newest entry, inside the transaction of what it tells about. The head is the last lock a
/// transaction takes: call this after everything else.
pub(crate) async fn append(tx: &mut Tx, draft: &Draft) -> Result<Entry, DbError> {
    let mut locked = head();
    tx.dialect().lock_rows(&mut locked);
    let row = tx.fetch_optional(&tx.query(&locked)).await?;
    let row =
        row.ok_or_else(|| DbError::Invalid("the audit chain has lost its head; restore a backup".into()))?;
    let previous = head_of(&row)?;
    let entry = Entry::seal(previous.as_ref().map(|(seq, hash)| (*seq, hash.as_str())), plain(draft));
    tx.execute(&tx.query(&insert(&entry))).await?;
    let moved = Query::update()
        .table("audit_head")
        .value("seq", entry.seq)
        .value("hash", entry.hash.as_str())
        .to_owned();
    tx.execute(&tx.query(&moved)).await?;
    Ok(entry)
}

/// What every database keeps as it is: PostgreSQL's text has no room for the NUL character.
fn plain(draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    let texts = [
        &mut draft.record_key,
        &mut draft.biz_type,
        &mut draft.biz_no,
        &mut draft.reason,
        &mut draft.before,
        &mut draft.after,
        &mut draft.result,
    ];
    for text in texts.into_iter().flatten() {
        *text = text.replace('\0', "\u{fffd}");
    }
    draft
}

fn head() -> SelectStatement {
    Query::select().columns(["seq", "hash"]).from("audit_head").and_where(Expr::col("id").eq(1)).to_owned()
}

/// `None` before the first entry.
fn head_of(row: &Row) -> Result<Option<(i64, String)>, DbError> {
    let seq = row.i64("seq")?;
    Ok(if seq == 0 { None } else { Some((seq, row.text("hash")?)) })
}

fn entries() -> SelectStatement {
    Query::select().columns(COLUMNS).from("audit_entries").to_owned()
}

fn insert(entry: &Entry) -> sea_query::InsertStatement {
    let Entry { seq, draft, prev_hash, hash } = entry;
    Query::insert()
        .into_table("audit_entries")
        .columns(COLUMNS)
        .values_panic([
            (*seq).into(),
            millis(draft.at).into(),
            draft.actor.as_str().into(),
            draft.action.as_str().into(),
            draft.record.as_ref().map(record_ref).into(),
            draft.record.as_ref().map(RecordId::to_string).into(),
            draft.record_key.clone().into(),
            draft.biz_type.clone().into(),
            draft.biz_no.clone().into(),
            draft.reason.clone().into(),
            draft.verdict.map(Verdict::as_str).into(),
            draft.evidence_id.clone().into(),
            draft.compensation_id.clone().into(),
            draft.before.clone().into(),
            draft.after.clone().into(),
            draft.result.clone().into(),
            prev_hash.as_str().into(),
            hash.as_str().into(),
        ])
        .to_owned()
}

/// An entry as it stands in its columns. What was edited into something no entry holds reads as absent, and the entry
/// has no hash then, so that it is told as edited.
fn entry(row: &Row) -> Entry {
    let mut cells = Cells { row, sound: true };
    let record: Option<RecordId> = cells.parsed("record", |text| text.parse().ok());
    // The reference finds entries and is not hashed itself: one that does not belong to the record breaks the seal.
    let reference = cells.text("record_ref");
    cells.sound &= reference == record.as_ref().map(record_ref);
    let draft = Draft {
        at: cells.kept(instant(row, "happened_at")).unwrap_or_default(),
        actor: cells.text("actor").unwrap_or_default(),
        action: cells.text("action").unwrap_or_default(),
        record,
        record_key: cells.text("record_key"),
        biz_type: cells.text("biz_type"),
        biz_no: cells.text("biz_no"),
        reason: cells.text("reason"),
        verdict: cells.parsed("verdict", Verdict::parse),
        evidence_id: cells.text("evidence_id"),
        compensation_id: cells.text("compensation_id"),
        before: cells.text("before_value"),
        after: cells.text("after_value"),
        result: cells.text("result"),
    };
    // A place that is no number comes after all others.
    let seq = cells.kept(row.i64("seq")).unwrap_or(i64::MAX);
    let prev_hash = cells.text("prev_hash").unwrap_or_default();
    let hash = cells.text("hash").filter(|_| cells.sound).unwrap_or_default();
    Entry { seq, draft, prev_hash, hash }
}

/// The cells of an entry, and whether each holds what was once written there.
struct Cells<'a> {
    row: &'a Row,
    sound: bool,
}

impl Cells<'_> {
    fn kept<T>(&mut self, cell: Result<T, DbError>) -> Option<T> {
        self.sound &= cell.is_ok();
        cell.ok()
    }

    fn text(&mut self, column: &str) -> Option<String> {
        self.kept(self.row.opt_text(column)).flatten()
    }

    fn parsed<T>(&mut self, column: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(column)?;
        let parsed = parse(&text);
        self.sound &= parsed.is_some();
        parsed
    }
}

fn condition(filter: &AuditFilter) -> Condition {
    Condition::all()
        .add_option(filter.actor.as_ref().map(|actor| Expr::col("actor").eq(actor.as_str())))
        .add_option(filter.action.as_ref().map(|action| of_action(action)))
        .add_option(filter.record.as_ref().map(|record| Expr::col("record_ref").eq(record_ref(record))))
        .add_option(filter.from.map(|from| Expr::col("happened_at").gte(millis(from))))
        .add_option(filter.to.map(|to| Expr::col("happened_at").lt(millis(to))))
}

/// The action itself, or every stage of it: `replay` finds `replay.intended` and `replay.succeeded`.
fn of_action(action: &str) -> Condition {
    let escaped = action.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    Condition::any()
        .add(Expr::col("action").eq(action))
        .add(Expr::col("action").like(LikeExpr::new(format!("{escaped}.%")).escape('!')))
}
