//! People and tokens.

use async_trait::async_trait;
use db::{DbError, Row};
use domain::audit::Draft;
use domain::ports::{User, UserStore};
use domain::roles::Role;
use sea_query::{Expr, ExprTrait, InsertStatement, OnConflict, Order, Query, SelectStatement};

use crate::{Store, audit, retrying};

#[async_trait]
impl UserStore for Store {
    async fn user(&self, name: &str) -> domain::Result<Option<User>> {
        let select = users().and_where(Expr::col("name").eq(name)).to_owned();
        Ok(retrying!(self, self.read_users(&select).await)?.pop())
    }

    async fn users(&self) -> domain::Result<Vec<User>> {
        let select = users().order_by("name", Order::Asc).to_owned();
        retrying!(self, self.read_users(&select).await)
    }

    async fn put_user(&self, user: &User, audit: &Draft) -> domain::Result<()> {
        let insert = Query::insert()
            .into_table("users")
            .columns(["name", "role", "password_hash"])
            .values_panic([
                user.name.as_str().into(),
                user.role.as_str().into(),
                user.password_hash.as_str().into(),
            ])
            .on_conflict(OnConflict::column("name").update_columns(["role", "password_hash"]).to_owned())
            .to_owned();
        retrying!(self, self.write_audited(&insert, audit).await)
    }

    async fn put_token(&self, sha256: &str, name: &str, role: Role, audit: &Draft) -> domain::Result<()> {
        let insert = Query::insert()
            .into_table("tokens")
            .columns(["sha256", "name", "role"])
            .values_panic([sha256.into(), name.into(), role.as_str().into()])
            .on_conflict(OnConflict::column("sha256").update_columns(["name", "role"]).to_owned())
            .to_owned();
        retrying!(self, self.write_audited(&insert, audit).await)
    }

    async fn token(&self, sha256: &str) -> domain::Result<Option<(String, Role)>> {
        let select = Query::select()
            .columns(["name", "role"])
            .from("tokens")
            .and_where(Expr::col("sha256").eq(sha256))
            .to_owned();
        let row = retrying!(self, self.db.fetch_optional(&self.db.query(&select)).await)?;
        row.map(|row| Ok((row.text("name")?, role(&row)?))).transpose().map_err(crate::told)
    }
}

impl Store {
    async fn read_users(&self, select: &SelectStatement) -> Result<Vec<User>, DbError> {
        let user = |row: &Row| {
            Ok(User { name: row.text("name")?, role: role(row)?, password_hash: row.text("password_hash")? })
        };
        self.db.fetch_all(&self.db.query(select)).await?.iter().map(user).collect()
    }

    async fn write_audited(&self, insert: &InsertStatement, draft: &Draft) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        tx.execute(&tx.query(insert)).await?;
        audit::append(&mut tx, draft).await?;
        tx.commit().await
    }
}

fn users() -> SelectStatement {
    Query::select().columns(["name", "role", "password_hash"]).from("users").to_owned()
}

fn role(row: &Row) -> Result<Role, DbError> {
    row.text("role")?.parse().map_err(|_| DbError::Decode("a stored role is none of ours".into()))
}
