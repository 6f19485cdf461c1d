//! Evidence: written once, never changed.

use async_trait::async_trait;
use db::DbError;
use domain::clock::millis;
use domain::evidence::Evidence;
use domain::ports::EvidenceStore;
use domain::record::RecordId;
use sea_query::{Alias, Condition, Expr, ExprTrait, Order, Query, SelectStatement};

use crate::codec::{from_json, record_ref, to_json};
use crate::{Store, retrying};

/// How many records one statement asks about.
pub(crate) const CHUNK: usize = 200;

#[async_trait]
impl EvidenceStore for Store {
    async fn put(&self, evidence: &Evidence) -> domain::Result<()> {
        retrying!(self, self.put_evidence(evidence).await)
    }

    async fn get(&self, id: &str) -> domain::Result<Option<Evidence>> {
        let select = documents().and_where(Expr::col("id").eq(id)).to_owned();
        Ok(retrying!(self, self.read_evidence(&select).await)?.pop())
    }

    async fn latest(&self, records: &[RecordId]) -> domain::Result<Vec<Evidence>> {
        let mut all = Vec::with_capacity(records.len());
        for chunk in records.chunks(CHUNK) {
            all.extend(retrying!(self, self.read_evidence(&newest_of(chunk)).await)?);
        }
        Ok(all)
    }

    async fn history(&self, record: &RecordId, limit: usize) -> domain::Result<Vec<Evidence>> {
        let select = documents()
            .and_where(Expr::col("record_ref").eq(record_ref(record)))
            .order_by("checked_at", Order::Desc)
            .order_by("id", Order::Desc)
            .limit(limit as u64)
            .to_owned();
        retrying!(self, self.read_evidence(&select).await)
    }
}

impl Store {
    async fn put_evidence(&self, evidence: &Evidence) -> Result<(), DbError> {
        let insert = Query::insert()
            .into_table("evidence")
            .columns(["id", "record_ref", "checked_at", "document"])
            .values_panic([
                evidence.id.as_str().into(),
                record_ref(&evidence.record).into(),
                millis(evidence.checked_at).into(),
                to_json(evidence)?.into(),
            ])
            .to_owned();
        self.db.insert_if_absent(&insert).await.map(drop)
    }

    async fn read_evidence(&self, select: &SelectStatement) -> Result<Vec<Evidence>, DbError> {
        let rows = self.db.fetch_all(&self.db.query(select)).await?;
        rows.iter().map(|row| from_json(&row.text("document")?)).collect()
    }
}

fn documents() -> SelectStatement {
    Query::select().column("document").from("evidence").to_owned()
}

/// The newest of each record: nothing of the same record is newer.
fn newest_of(records: &[RecordId]) -> SelectStatement {
    let column = |table: &'static str, name: &'static str| Expr::col((Alias::new(table), Alias::new(name)));
    let later = Condition::any().add(column("newer", "checked_at").gt(column("evidence", "checked_at"))).add(
        Condition::all()
            .add(column("newer", "checked_at").eq(column("evidence", "checked_at")))
            .add(column("newer", "id").gt(column("evidence", "id"))),
    );
    let newer = Query::select()
        .expr(Expr::val(1))
        .from_as("evidence", "newer")
        .and_where(column("newer", "record_ref").eq(column("evidence", "record_ref")))
        .cond_where(later)
        .to_owned();
    documents()
        .and_where(column("evidence", "record_ref").is_in(records.iter().map(record_ref)))
        .and_where(Expr::exists(newer).not())
        .to_owned()
}
