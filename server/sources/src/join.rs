//! Columns of tables beside the record's own, each read as a value of the record: no row is ever multiplied or lost.

use crate::catalogue::Catalogue;
use crate::config::{Join, Table};
use db::{Db, DbError};
use sea_query::{Alias, Expr, ExprTrait, IntoTableRef, Order, Query, TableRef};
use std::sync::Arc;

/// A joined table as a statement on the record's table reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joined {
    config: Join,
    /// The record's own table, which the condition refers to.
    outer: String,
}

impl Joined {
    /// One column of the row that belongs to the record; NULL when there is none.
    pub(crate) fn value_of(&self, column: &str) -> Expr {
        let join = &self.config;
        let theirs = |name: &str| Expr::col((Alias::new(join.name.clone()), Alias::new(name)));
        let mut select = Query::select();
        select.expr(theirs(column)).from(table_ref(&join.table).alias(Alias::new(join.name.clone())));
        for (their, our) in &join.on {
            select.and_where(
                theirs(their).eq(Expr::col((Alias::new(self.outer.clone()), Alias::new(our.clone())))),
            );
        }
        if let Some(predicate) = &join.predicate {
            select.and_where(Expr::cust(format!("({})", predicate.sql())));
        }
        if let Some(newest) = &join.newest {
            select.order_by_expr(theirs(newest), Order::Desc);
        }
        Expr::SubQuery(None, Box::new(select.limit(1).to_owned().into()))
    }
}

/// The joined tables of a source with what is in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Joins(Vec<(Arc<Joined>, Catalogue)>);

impl Joins {
    /// Reads the columns of every joined table.
    pub(crate) async fn read(db: &Db, joins: &[Join], outer: &Table) -> Result<Self, DbError> {
        let mut all = Vec::with_capacity(joins.len());
        for config in joins {
            let catalogue = Catalogue::read(db, &config.table).await?;
            let joined = Joined { config: config.clone(), outer: outer.name.clone() };
            all.push((Arc::new(joined), catalogue));
        }
        Ok(Self(all))
    }

    /// The joined table that `join.column` speaks of, what is in it, and the column.
    pub(crate) fn of<'s, 'n>(&'s self, name: &'n str) -> Option<(&'s Arc<Joined>, &'s Catalogue, &'n str)> {
        let (join, column) = name.split_once('.')?;
        let (joined, catalogue) = self.0.iter().find(|(joined, _)| joined.config.name == join)?;
        Some((joined, catalogue, column))
    }

    /// What the conditions of the joins name and the tables lack.
    pub(crate) fn problems(&self, own: &Catalogue, table: &Table) -> Vec<String> {
        let mut problems = Vec::new();
        for (joined, theirs) in &self.0 {
            let config = &joined.config;
            if theirs.columns.is_empty() {
                problems.push(format!("join {:?}: there is no table {}", config.name, config.table));
                continue;
            }
            for their in config.on.keys().chain(&config.newest).filter(|name| theirs.find(name).is_none()) {
                problems.push(format!("join {:?}: {} has no column {their}", config.name, config.table));
            }
            for our in config.on.values().filter(|name| own.find(name).is_none()) {
                problems.push(format!("join {:?}: {table} has no column {our}", config.name));
            }
        }
        problems
    }
}

pub(crate) fn table_ref(table: &Table) -> TableRef {
    match &table.schema {
        Some(schema) => (schema.clone(), table.name.clone()).into_table_ref(),
        None => table.name.clone().into_table_ref(),
    }
}
