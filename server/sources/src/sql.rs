//! Small SQL pieces that sea-query does not spell.

use db::Dialect;
use sea_query::{Expr, ExprTrait};

/// A condition that nothing meets.
pub(crate) fn never() -> Expr {
    Expr::cust("1 = 0")
}

/// A condition that everything meets.
pub(crate) fn always() -> Expr {
    Expr::cust("1 = 1")
}

/// Fixed SQL around expressions: each `?` takes one, in order.
pub(crate) fn around(dialect: Dialect, sql: &str, exprs: impl IntoIterator<Item = Expr>) -> Expr {
    let sql = match dialect {
        Dialect::Postgres => {
            let pieces: Vec<&str> = sql.split('?').collect();
            let numbered = pieces.iter().enumerate().map(|(at, piece)| match at {
                0 => (*piece).to_owned(),
                at => format!("${at}{piece}"),
            });
            numbered.collect()
        }
        _ => sql.to_owned(),
    };
    Expr::cust_with_exprs(sql, exprs)
}

/// Any of the conditions; never, for none.
pub(crate) fn any(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    conditions.into_iter().reduce(ExprTrait::or).unwrap_or_else(never)
}

/// All of the conditions; always, for none.
pub(crate) fn all(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    conditions.into_iter().reduce(ExprTrait::and).unwrap_or_else(always)
}

/// Not true: false, or neither because of a NULL.
pub(crate) fn untrue(condition: Expr) -> Expr {
    let case = sea_query::CaseStatement::new().case(condition, 0).finally(1);
    Expr::Case(Box::new(case)).eq(1)
}
