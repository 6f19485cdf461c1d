//! The mapping against the live table: what statements are built from.

use crate::catalogue::{Catalogue, Class, Declared};
use crate::config::{SourceConfig, TimeColumn};
use crate::time_form::TimeForm;
use db::Dialect;
use domain::record::State;
use sea_query::{Expr, ExprTrait, IntoTableRef, TableRef};

/// Every mapped part with the column that plays it.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) dialect: Dialect,
    pub(crate) locator: Vec<Declared>,
    pub(crate) key: Declared,
    pub(crate) biz_type: Option<Declared>,
    pub(crate) biz_no: Option<Declared>,
    pub(crate) status: Declared,
    pub(crate) request: Option<Declared>,
    pub(crate) response: Option<Declared>,
    pub(crate) created_at: Option<TimeForm>,
    pub(crate) updated_at: Option<TimeForm>,
    pub(crate) lease_until: Option<TimeForm>,
    /// Where age is counted from.
    pub(crate) age: Option<TimeForm>,
    pub(crate) deadline: Option<TimeForm>,
    pub(crate) version: Option<Declared>,
    pub(crate) attempts: Option<Declared>,
    pub(crate) facts: Vec<Declared>,
    pub(crate) catalogue: Catalogue,
}

impl Layout {
    /// Puts the mapping on the live table; every error names a key and what to write.
    pub(crate) fn resolve(
        config: &SourceConfig,
        catalogue: Catalogue,
        dialect: Dialect,
    ) -> Result<Self, Vec<String>> {
        let mut look = Look { config, catalogue: &catalogue, dialect, errors: Vec::new() };
        if catalogue.columns.is_empty() {
            return Err(vec![format!("there is no table {}", config.table)]);
        }
        let columns = &config.columns;
        let key = look.required("key", &columns.key);
        let status = look.required("status", &columns.status);
        let created_at = look.time("created_at", &columns.created_at);
        let age = look.time("age_from", &columns.age_from).or_else(|| created_at.clone());
        let optional = [
            &columns.biz_type,
            &columns.biz_no,
            &columns.request,
            &columns.response,
            &columns.version,
            &columns.attempts,
        ];
        let names = ["biz_type", "biz_no", "request", "response", "version", "attempts"];
        let [biz_type, biz_no, request, response, version, attempts] =
            std::array::from_fn(|at| look.optional(names[at], optional[at].as_deref()));
        let updated_at = look.time("updated_at", &columns.updated_at);
        let lease_until = look.time("lease_until", &columns.lease_until);
        let deadline = look.time("deadline", &columns.deadline);
        let facts =
            columns.facts().into_iter().filter_map(|name| look.optional("columns", Some(name))).collect();
        let errors = look.errors;
        match (key, status) {
            (Some(key), Some(status)) if errors.is_empty() => Ok(Self {
                dialect,
                locator: vec![key.clone()],
                key,
                biz_type,
                biz_no,
                status,
                request,
                response,
                created_at,
                updated_at,
                lease_until,
                age,
                deadline,
                version,
                attempts,
                facts,
                catalogue,
            }),
            _ => Err(errors),
        }
    }

    /// The value that says `declared` is exactly `value`, in a way that its index serves where one can.
    pub(crate) fn is(&self, declared: &Declared, value: &str) -> Expr {
        let col = || Expr::col(declared.name.clone());
        let never = || Expr::cust("1 = 0");
        match (self.dialect, &declared.class) {
            // PostgreSQL text cannot hold NUL, so nothing equals it.
            (Dialect::Postgres, _) if value.contains('\0') => never(),
            (Dialect::Sqlite, _) | (Dialect::Postgres, Class::Text) => col().eq(value),
            (_, Class::Integer) => match value.parse::<i64>() {
                Ok(number) if number.to_string() == value => col().eq(number),
                _ => never(),
            },
            (Dialect::Postgres, Class::Uuid) if is_uuid(value) => col().eq(Expr::val(value).cast_as("uuid")),
            (Dialect::Postgres, _) => self.dialect.as_text(col()).eq(value),
            // The first half finds by index whatever the collation ignores; the second half ignores nothing.
            (Dialect::Mysql, Class::Text) => {
                col().eq(declared.in_charset(value)).and(self.bytes(declared).eq(binary(value)))
            }
            (Dialect::Mysql, _) => self.bytes(declared).eq(binary(value)),
        }
    }

    /// The column's bytes, for comparing and sorting as this program does.
    pub(crate) fn bytes(&self, declared: &Declared) -> Expr {
        let col = Expr::col(declared.name.clone());
        match self.dialect {
            Dialect::Sqlite => Expr::cust_with_exprs("? COLLATE BINARY", [col]),
            Dialect::Postgres => Expr::cust_with_exprs("CAST($1 AS TEXT) COLLATE \"C\"", [col]),
            Dialect::Mysql => Expr::cust_with_exprs("CAST(CONVERT(? USING utf8mb4) AS BINARY)", [col]),
        }
    }

    /// A bound text as something to compare `bytes` with.
    pub(crate) fn bytes_of(&self, value: &str) -> Expr {
        match self.dialect {
            Dialect::Mysql => binary(value),
            Dialect::Postgres => Expr::val(value.replace('\0', "")),
            Dialect::Sqlite => Expr::val(value),
        }
    }

    /// Whether the status is one of the native values; never, for an empty list.
    pub(crate) fn status_in(&self, natives: &[String]) -> Expr {
        let tests = natives.iter().map(|native| self.is(&self.status, native));
        tests.reduce(ExprTrait::or).unwrap_or_else(|| Expr::cust("1 = 0"))
    }

    /// A text value for writing into `declared`.
    pub(crate) fn typed(&self, declared: &Declared, value: &str) -> Expr {
        match (self.dialect, &declared.class) {
            (_, Class::Integer) => value.parse::<i64>().map_or_else(|_| Expr::val(value), Expr::val),
            (_, Class::Binary) => Expr::val(value.as_bytes()),
            (Dialect::Postgres, Class::Uuid | Class::Json | Class::Other(_)) => {
                Expr::val(value).cast_as(declared.declared.clone())
            }
            _ => Expr::val(value),
        }
    }
}

impl SourceConfig {
    pub(crate) fn table_ref(&self) -> TableRef {
        match &self.table.schema {
            Some(schema) => (schema.clone(), self.table.name.clone()).into_table_ref(),
            None => self.table.name.clone().into_table_ref(),
        }
    }

    /// The native value that an action writes for `state`.
    pub(crate) fn native_of(&self, state: State) -> Option<String> {
        self.native_values(state).into_iter().next()
    }
}

impl Declared {
    /// MySQL refuses to compare a column of an older character set with a text that does not fit into it.
    fn in_charset(&self, value: &str) -> Expr {
        let charset = self.collation.as_deref().and_then(|name| name.split('_').next());
        match charset.filter(|name| !name.starts_with("utf8") && !name.starts_with("uca1400")) {
            Some(charset) => Expr::cust_with_exprs(format!("CONVERT(? USING {charset})"), [Expr::val(value)]),
            None => Expr::val(value),
        }
    }
}

fn binary(value: &str) -> Expr {
    Expr::val(value).cast_as("BINARY")
}

fn is_uuid(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_hexdigit).count();
    let dashes = value.char_indices().filter(|(_, c)| *c == '-').map(|(at, _)| at);
    digits == 32 && value.len() == 36 && dashes.eq([8, 13, 18, 23])
}

struct Look<'a> {
    config: &'a SourceConfig,
    catalogue: &'a Catalogue,
    dialect: Dialect,
    errors: Vec<String>,
}

impl Look<'_> {
    fn required(&mut self, part: &str, name: &str) -> Option<Declared> {
        let found = self.catalogue.find(name).cloned();
        if found.is_none() {
            let hint = match self.catalogue.near(name) {
                Some(near) => format!("; did you mean {part} = \"{near}\"?"),
                None => format!(
                    "; write {part} = \"…\" under [source.columns], or \"not stored\" if there is none"
                ),
            };
            self.errors.push(format!("{} has no column {name}{hint}", self.config.table));
        }
        found
    }

    fn optional(&mut self, part: &str, name: Option<&str>) -> Option<Declared> {
        name.and_then(|name| self.required(part, name))
    }

    fn time(&mut self, part: &str, time: &Option<TimeColumn>) -> Option<TimeForm> {
        let time = time.as_ref()?;
        let declared = self.required(part, &time.column)?;
        match TimeForm::of(time, &declared, self.config.zone, self.dialect) {
            Ok(form) => Some(form),
            Err(message) => {
                self.errors.push(format!("{part}: {message}"));
                None
            }
        }
    }
}
