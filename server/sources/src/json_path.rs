//! Looking into a JSON column with the database's own means, so that what is found can be filtered by.

use crate::catalogue::{Class, Declared};
use crate::config::Pointer;
use crate::sql::around;
use db::Dialect;
use sea_query::Expr;

/// A place in a JSON document that the database can find.
#[derive(Debug, Clone)]
pub(crate) struct JsonPath {
    declared: Declared,
    dialect: Dialect,
    /// The steps in the dialect's own spelling.
    path: String,
}

impl JsonPath {
    /// `None` where the database cannot look, or might fail on a document that is none: PostgreSQL text.
    pub(crate) fn of(declared: &Declared, pointers: &[&Pointer], dialect: Dialect) -> Option<Self> {
        let steps: Vec<String> = pointers.iter().flat_map(|pointer| steps(pointer.as_str())).collect();
        let path = match dialect {
            Dialect::Postgres if declared.class == Class::Json => {
                let quoted = steps
                    .iter()
                    .map(|step| format!("\"{}\"", step.replace('\\', "\\\\").replace('"', "\\\"")));
                format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
            }
            Dialect::Postgres => return None,
            Dialect::Sqlite | Dialect::Mysql if steps.iter().any(|step| step.contains(['"', '\\'])) => {
                return None;
            }
            Dialect::Sqlite | Dialect::Mysql => {
                let each = steps.iter().map(|step| match step.parse::<u32>() {
                    Ok(place) => format!("[{place}]"),
                    Err(_) => format!(".\"{step}\""),
                });
                format!("${}", each.collect::<String>())
            }
        };
        Some(Self { declared: declared.clone(), dialect, path })
    }

    /// The scalar at the place as text; NULL when there is none.
    pub(crate) fn expr(&self) -> Expr {
        let (col, path) = (|| self.declared.expr(), || Expr::val(self.path.as_str()));
        match self.dialect {
            Dialect::Postgres => around(self.dialect, "? #>> CAST(? AS TEXT[])", [col(), path()]),
            Dialect::Sqlite => around(
                self.dialect,
                "CASE WHEN json_valid(?) THEN CAST(json_extract(?, ?) AS TEXT) END",
                [col(), col(), path()],
            ),
            Dialect::Mysql => around(
                self.dialect,
                "CASE WHEN JSON_VALID(?) THEN JSON_UNQUOTE(JSON_EXTRACT(?, ?)) END",
                [col(), col(), path()],
            ),
        }
    }

    /// Whether the scalar is exactly `value`.
    pub(crate) fn is(&self, value: &str) -> Expr {
        match self.dialect {
            Dialect::Mysql => {
                around(self.dialect, "CAST(? AS BINARY) = CAST(? AS BINARY)", [self.expr(), Expr::val(value)])
            }
            Dialect::Postgres | Dialect::Sqlite => {
                around(self.dialect, "? = ?", [self.expr(), Expr::val(value.replace('\0', ""))])
            }
        }
    }
}

fn steps(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
}
