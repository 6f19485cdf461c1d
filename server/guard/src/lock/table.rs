//! Locks as rows of a table. A row stays when its lock is given back, so that its fence keeps growing; a row that was
//! removed starts again from the clock, which is past every fence it had.

use std::time::Duration;

use db::{Db, DbError, Query, Tx};
use sea_query::{Expr, ExprTrait, Func, Query as Sql, SelectStatement, UpdateStatement};

use super::Grant;

const TABLE: &str = "idempotency_lock";

pub(super) struct TableLocks {
    pub db: Db,
}

impl TableLocks {
    pub fn is_in(&self, db: &Db) -> bool {
        self.db.shown_url() == db.shown_url()
    }

    /// The fence, unless somebody holds the lock.
    pub async fn grant(&self, name: &str, owner: &str, lease: Duration) -> Result<Option<i64>, DbError> {
        match self.take(name, owner, lease).await? || self.insert(name, owner, lease).await? {
            true => self.fence(name, owner).await,
            false => Ok(None),
        }
    }

    async fn take(&self, name: &str, owner: &str, lease: Duration) -> Result<bool, DbError> {
        let fence = Func::greatest([Expr::col("fence").add(1i64), self.now()]);
        let mut update = Sql::update();
        update
            .table(TABLE)
            .value("owner", owner)
            .value("fence", fence)
            .value("lease_until", self.after(lease))
            .and_where(Expr::col("name").eq(name))
            .and_where(Expr::col("owner").is_null().or(Expr::col("lease_until").lte(self.now())));
        Ok(self.db.execute(&self.db.query(&update)).await? == 1)
    }

    async fn insert(&self, name: &str, owner: &str, lease: Duration) -> Result<bool, DbError> {
        let mut insert = Sql::insert();
        insert.into_table(TABLE).columns(["name", "owner", "fence", "lease_until"]).values_panic([
            name.into(),
            owner.into(),
            self.now(),
            self.after(lease),
        ]);
        self.db.insert_if_absent(&insert).await
    }

    async fn fence(&self, name: &str, owner: &str) -> Result<Option<i64>, DbError> {
        let mut select = Sql::select();
        select
            .column("fence")
            .from(TABLE)
            .and_where(Expr::col("name").eq(name))
            .and_where(Expr::col("owner").eq(owner));
        let row = self.db.fetch_optional(&self.db.query(&select)).await?;
        row.map(|row| row.i64(0)).transpose()
    }

    pub async fn renew(&self, grant: &Grant, lease: Duration) -> Result<bool, DbError> {
        let mut update = Sql::update();
        update.table(TABLE).value("lease_until", self.after(lease));
        Ok(self.db.execute(&self.of(grant, &mut update)).await? == 1)
    }

    pub async fn release(&self, grant: &Grant) -> Result<(), DbError> {
        let mut update = Sql::update();
        update.table(TABLE).value("owner", Expr::cust("NULL")).value("lease_until", self.now());
        self.db.execute(&self.of(grant, &mut update)).await.map(drop)
    }

    fn of(&self, grant: &Grant, update: &mut UpdateStatement) -> Query {
        update
            .and_where(Expr::col("name").eq(grant.name.as_str()))
            .and_where(Expr::col("owner").eq(grant.owner.as_str()))
            .and_where(Expr::col("fence").eq(grant.fence));
        self.db.query(update)
    }

    fn now(&self) -> Expr {
        self.db.dialect().now_ms()
    }

    fn after(&self, lease: Duration) -> Expr {
        self.now().add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX / 4))
    }
}

/// Whether nobody has taken the lock; its row is locked until `tx` ends, so nobody takes it before.
pub(super) async fn confirm(tx: &mut Tx, grant: &Grant) -> Result<bool, DbError> {
    let mut select: SelectStatement = Sql::select();
    select
        .column("fence")
        .from(TABLE)
        .and_where(Expr::col("name").eq(grant.name.as_str()))
        .and_where(Expr::col("owner").eq(grant.owner.as_str()))
        .and_where(Expr::col("fence").eq(grant.fence));
    tx.dialect().lock_rows(&mut select);
    let select = tx.query(&select);
    Ok(tx.fetch_optional(&select).await?.is_some())
}
