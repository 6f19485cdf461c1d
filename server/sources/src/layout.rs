//! The mapping against the live table: what statements are built from.

use crate::body::BodyForm;
use crate::catalogue::{Catalogue, Class, Declared};
use crate::config::{
    BizNo, Columns, KeyColumns, KeyTransform, Pattern, Scalar, SourceConfig, Table, TimeColumn,
};
use crate::join::Joins;
use crate::json_path::JsonPath;
use crate::locator::{Locator, Marking, NULL_ALONE, NULL_PART, VALUE_MARK};
use crate::sql::{around, never};
use crate::states::States;
use crate::time_form::{TimeForm, spelled_time};
use db::Dialect;
use domain::record::State;
use sea_query::{Expr, ExprTrait, TableRef};
use std::collections::BTreeMap;

/// Every mapped part with the column that plays it.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) dialect: Dialect,
    pub(crate) table: Table,
    /// Why nothing here may be changed, where that is so.
    pub(crate) read_only: Option<String>,
    pub(crate) locator: Locator,
    pub(crate) key: Vec<Declared>,
    pub(crate) key_transform: Option<KeyTransform>,
    pub(crate) biz_type: Option<Declared>,
    pub(crate) biz_no: Option<Number>,
    pub(crate) status: Option<Declared>,
    pub(crate) states: States,
    pub(crate) request: Option<BodyForm>,
    pub(crate) response: Option<BodyForm>,
    pub(crate) created_at: Option<TimeForm>,
    pub(crate) updated_at: Option<TimeForm>,
    pub(crate) lease_until: Option<TimeForm>,
    /// Where age is counted from: the latest of these.
    pub(crate) age: Vec<TimeForm>,
    pub(crate) deadline: Option<TimeForm>,
    pub(crate) version: Option<Declared>,
    pub(crate) attempts: Option<Declared>,
    pub(crate) facts: Vec<Declared>,
    pub(crate) catalogue: Catalogue,
}

/// Where a record's business number is read from.
#[derive(Debug, Clone)]
pub(crate) enum Number {
    Column(Declared),
    Key(Pattern),
    /// In a JSON request that the database itself can look into.
    Json(JsonPath),
    /// In a request that only this program can read: known for one record, not in lists.
    Request,
}

/// How much of a key of several parts a search names. A part alone has no index, so it is asked for second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breadth {
    Whole,
    Part,
}

/// One table that holds records, and what is special about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    pub(crate) read_only: Option<String>,
    /// Live column name → this table's.
    pub(crate) renamed: BTreeMap<String, String>,
}

impl Layout {
    /// Puts the mapping on the live table; every error names a key and what to write.
    pub(crate) fn resolve(
        config: &SourceConfig,
        table: &Table,
        held: &Held,
        catalogue: Catalogue,
        joins: &Joins,
        dialect: Dialect,
    ) -> Result<Self, Vec<String>> {
        if catalogue.columns.is_empty() {
            return Err(vec![format!("there is no table {table}")]);
        }
        let errors = joins.problems(&catalogue, table);
        let mut look = Look { config, table, catalogue: &catalogue, joins, held, dialect, errors };
        let columns = &config.columns;
        let key = look.all("key", columns.key.parts());
        let status = look.optional("status", columns.status.as_deref());
        let created_at = look.time("created_at", &columns.created_at);
        let age = match &columns.age_from {
            Some(age) => look.times("age_from", &age.0),
            None => created_at.iter().cloned().collect(),
        };
        let biz_type = look.optional("biz_type", columns.effective_biz_type());
        let request = columns.request.as_ref().and_then(|body| BodyForm::resolve("request", body, &mut look));
        let response =
            columns.response.as_ref().and_then(|body| BodyForm::resolve("response", body, &mut look));
        let biz_no = look.number(columns, request.as_ref());
        let states = States::resolve(&mut look);
        let locator = look.locator(&columns.locator, &key, &status, &states);
        let version = look.optional("version", columns.version.as_deref());
        let attempts = look.optional("attempts", columns.attempts.as_deref());
        let updated_at = look.time("updated_at", &columns.updated_at);
        let lease_until = look.time("lease_until", &columns.lease_until);
        let deadline = look.time("deadline", &columns.deadline);
        let facts =
            columns.facts().into_iter().filter_map(|name| look.optional("facts", Some(name))).collect();
        if !look.errors.is_empty() {
            return Err(look.errors);
        }
        Ok(Self {
            dialect,
            table: table.clone(),
            read_only: held.read_only.clone(),
            locator,
            key,
            key_transform: columns.key_transform,
            biz_type,
            biz_no,
            status,
            states,
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
        })
    }

    pub(crate) fn table_ref(&self) -> TableRef {
        crate::join::table_ref(&self.table)
    }

    /// The condition that `declared` is exactly `value`, in a way that its index serves where one can.
    pub(crate) fn is(&self, declared: &Declared, value: &str) -> Expr {
        let col = || declared.expr();
        match (self.dialect, &declared.class) {
            // PostgreSQL text cannot hold NUL, so nothing equals it.
            (Dialect::Postgres, _) if value.contains('\0') => never(),
            (_, Class::Binary) => self.is_bytes(declared, value),
            (_, Class::Time { .. }) => self.is_time(declared, value),
            (Dialect::Sqlite, _) | (Dialect::Postgres, Class::Text) => col().eq(value),
            (_, Class::Integer | Class::Bit) => match value.parse::<i64>() {
                Ok(number) if number.to_string() == value => col().eq(number),
                Err(_) if self.dialect == Dialect::Mysql => match value.parse::<u64>() {
                    Ok(number) if number.to_string() == value => col().eq(number),
                    _ => never(),
                },
                _ => never(),
            },
            (Dialect::Postgres, Class::Uuid) => match is_uuid(value) {
                true => col().eq(Expr::val(value).cast_as("uuid")),
                false => never(),
            },
            (Dialect::Postgres, _) => self.dialect.as_text(col()).eq(value),
            // The first half finds by index whatever the collation ignores; the second half ignores nothing.
            (Dialect::Mysql, Class::Text) => {
                col().eq(declared.in_charset(value)).and(self.bytes(declared).eq(binary(value)))
            }
            (Dialect::Mysql, _) => self.bytes(declared).eq(binary(value)),
        }
    }

    /// The condition that a locator's column holds a part of it: bytes are spelled in hex there and nothing else.
    pub(crate) fn is_located(&self, declared: &Declared, part: &str) -> Expr {
        match (&declared.class, self.dialect, hex::decode(part)) {
            (Class::Binary, Dialect::Sqlite, Ok(_)) => self.bytes(declared).eq(part),
            (Class::Binary, _, Ok(bytes)) => declared.expr().eq(bytes),
            (Class::Binary, _, Err(_)) => never(),
            (Class::Time { .. }, _, _) => self.dialect.as_text(declared.expr()).eq(part),
            _ => self.is(declared, part),
        }
    }

    /// The condition that a record has this key: as typed, or as the service stores it; whole, or one part of several.
    pub(crate) fn has_key(&self, typed: &str, breadth: Breadth) -> Expr {
        let stored = self.key_transform.map(|transform| transform.apply(typed));
        let texts = [Some(typed), stored.as_deref()].into_iter().flatten();
        crate::sql::any(texts.filter_map(|text| match breadth {
            Breadth::Whole => self.has_whole_key(text),
            Breadth::Part => Some(crate::sql::any(self.key.iter().map(|column| self.is(column, text)))),
        }))
    }

    fn has_whole_key(&self, text: &str) -> Option<Expr> {
        let parts = crate::locator::parsed(text, self.key.len())?;
        let each = self.key.iter().zip(parts).map(|(column, part)| match part {
            Some(value) => self.is(column, &value),
            None => column.expr().is_null(),
        });
        Some(crate::sql::all(each))
    }

    /// The same of a key as shown.
    pub(crate) fn key_is(&self, key: &str, typed: &str) -> bool {
        let stored = self.key_transform.map(|transform| transform.apply(typed));
        let parts = crate::locator::parsed(key, self.key.len()).unwrap_or_default();
        [Some(typed.to_owned()), stored]
            .into_iter()
            .flatten()
            .any(|text| key == text || parts.contains(&Some(text)))
    }

    /// The condition that some part of the key holds this text anywhere.
    pub(crate) fn key_holds(&self, text: &str) -> Expr {
        let sql = match self.dialect {
            Dialect::Postgres => "STRPOS(?, ?) > 0",
            Dialect::Sqlite | Dialect::Mysql => "INSTR(?, ?) > 0",
        };
        let each = self
            .key
            .iter()
            .map(|column| around(self.dialect, sql, [self.bytes(column), self.bytes_of(text)]));
        crate::sql::any(each)
    }

    /// Bytes are asked for as text, as hex or as a uuid.
    fn is_bytes(&self, declared: &Declared, value: &str) -> Expr {
        let plain = declared.expr().eq(value.as_bytes());
        let digits = if is_uuid(value) { value.replace('-', "") } else { value.to_owned() };
        let decoded = hex::decode(digits).ok().filter(|bytes| !bytes.is_empty());
        // SQLite keeps text in such a column as text.
        let as_text = (self.dialect == Dialect::Sqlite).then(|| declared.expr().eq(value));
        let as_hex = decoded.map(|bytes| declared.expr().eq(bytes));
        [as_text, as_hex].into_iter().flatten().fold(plain, ExprTrait::or)
    }

    /// A time as the column spells it, whatever fraction it keeps.
    fn is_time(&self, declared: &Declared, value: &str) -> Expr {
        match (self.dialect, &declared.class, spelled_time(value)) {
            (Dialect::Mysql, _, Some(spelled)) => {
                declared.expr().eq(Expr::val(spelled).cast_as("DATETIME(6)"))
            }
            (Dialect::Postgres, Class::Time { zoned: true, .. }, Some(spelled)) => {
                declared.expr().eq(Expr::val(spelled).cast_as("timestamptz"))
            }
            (Dialect::Postgres, _, Some(spelled)) => {
                declared.expr().eq(Expr::val(spelled).cast_as("timestamp"))
            }
            _ => self.dialect.as_text(declared.expr()).eq(value),
        }
    }

    /// Whether a column holds a configured value; yes and no may be kept as numbers or words.
    pub(crate) fn says(&self, declared: &Declared, value: &Scalar) -> Expr {
        let spellings: &[&str] = match value {
            Scalar::Bool(true) => &["true", "1", "t"],
            Scalar::Bool(false) => &["false", "0", "f"],
            Scalar::Integer(_) | Scalar::Text(_) => return self.is(declared, &value.to_string()),
        };
        crate::sql::any(spellings.iter().map(|spelling| self.is(declared, spelling)))
    }

    /// Whether a column holds nothing: NULL, or a time that is declared to mean none.
    pub(crate) fn is_empty(&self, declared: &Declared) -> Expr {
        let time = self.times().find(|time| time.declared == *declared);
        match time.filter(|time| time.has_none()) {
            Some(time) => time.undated().into(),
            None => declared.expr().is_null(),
        }
    }

    /// Every mapped time.
    pub(crate) fn times(&self) -> impl Iterator<Item = &TimeForm> {
        let single = [&self.created_at, &self.updated_at, &self.lease_until, &self.deadline];
        let own = self.states.rules.iter().flat_map(|rule| rule.age.iter().flatten());
        single.into_iter().flatten().chain(&self.age).chain(own)
    }

    /// The column's bytes, for comparing and sorting as this program does; binary columns as lower-case hex.
    pub(crate) fn bytes(&self, declared: &Declared) -> Expr {
        let sql = match (self.dialect, &declared.class) {
            (Dialect::Sqlite, Class::Binary) => "LOWER(HEX(CAST(? AS BLOB)))",
            (Dialect::Sqlite, _) => "? COLLATE BINARY",
            (Dialect::Postgres, Class::Binary) => "ENCODE(?, 'hex') COLLATE \"C\"",
            (Dialect::Postgres, _) => "CAST(? AS TEXT) COLLATE \"C\"",
            (Dialect::Mysql, Class::Binary) => "CAST(LOWER(HEX(?)) AS BINARY)",
            (Dialect::Mysql, Class::Bit) => "CAST(? + 0 AS BINARY)",
            (Dialect::Mysql, _) => "CAST(CONVERT(? USING utf8mb4) AS BINARY)",
        };
        around(self.dialect, sql, [declared.expr()])
    }

    /// A part of the locator as it is sorted: its bytes, and NULL as `Locator::part` spells it.
    pub(crate) fn place_of(&self, declared: &Declared) -> Expr {
        let bytes = self.bytes(declared);
        let text = |value: &str| Expr::val(value);
        match (self.locator.marking(declared), self.dialect) {
            (Marking::None, _) => bytes,
            (Marking::Alone, Dialect::Postgres) => {
                around(self.dialect, "COALESCE(?, ?) COLLATE \"C\"", [bytes, text(NULL_ALONE)])
            }
            (Marking::Alone, _) => around(self.dialect, "COALESCE(?, ?)", [bytes, self.bytes_of(NULL_ALONE)]),
            (Marking::Prefixed, Dialect::Postgres) => around(
                self.dialect,
                "COALESCE(CAST(? AS TEXT) || ?, CAST(? AS TEXT)) COLLATE \"C\"",
                [text(VALUE_MARK), bytes, text(NULL_PART)],
            ),
            (Marking::Prefixed, Dialect::Sqlite) => {
                around(self.dialect, "COALESCE(? || ?, ?)", [text(VALUE_MARK), bytes, text(NULL_PART)])
            }
            (Marking::Prefixed, Dialect::Mysql) => around(
                self.dialect,
                "COALESCE(CONCAT(?, ?), ?)",
                [self.bytes_of(VALUE_MARK), bytes, self.bytes_of(NULL_PART)],
            ),
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

    /// A configured value for writing into `declared`.
    pub(crate) fn typed_scalar(&self, declared: &Declared, value: &Scalar) -> Expr {
        match (value, &declared.class) {
            (Scalar::Bool(value), Class::Integer | Class::Bit) => Expr::val(i64::from(*value)),
            (Scalar::Bool(value), _) if self.dialect == Dialect::Sqlite => Expr::val(i64::from(*value)),
            _ => self.typed(declared, &value.to_string()),
        }
    }

    /// A text value for writing into `declared`.
    pub(crate) fn typed(&self, declared: &Declared, value: &str) -> Expr {
        match (self.dialect, &declared.class) {
            (_, Class::Integer | Class::Bit) => {
                value.parse::<i64>().map_or_else(|_| Expr::val(value), Expr::val)
            }
            (_, Class::Binary) => Expr::val(value.as_bytes()),
            (Dialect::Postgres, Class::Uuid | Class::Json | Class::Other(_) | Class::Time { .. }) => {
                Expr::val(value).cast_as(declared.declared.clone())
            }
            _ => Expr::val(value),
        }
    }
}

impl SourceConfig {
    /// The native value that an action writes for `state`.
    pub(crate) fn native_of(&self, state: State) -> Option<&Scalar> {
        self.native_values(state).into_iter().next()
    }
}

impl Declared {
    /// MySQL refuses to compare a column of an older character set with a text that does not fit into it.
    fn in_charset(&self, value: &str) -> Expr {
        let charset = self.collation.as_deref().and_then(|name| name.split('_').next());
        match charset.filter(|name| !name.starts_with("utf8mb4") && !name.starts_with("uca1400")) {
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

/// Looks configured names up and keeps what is wrong with them.
pub(crate) struct Look<'a> {
    pub(crate) config: &'a SourceConfig,
    table: &'a Table,
    catalogue: &'a Catalogue,
    joins: &'a Joins,
    held: &'a Held,
    pub(crate) dialect: Dialect,
    errors: Vec<String>,
}

impl Look<'_> {
    /// A column of the record's table, or `join.column` of a joined one.
    pub(crate) fn required(&mut self, part: &str, name: &str) -> Option<Declared> {
        if let Some((joined, theirs, column)) = self.joins.of(name) {
            let found = theirs.find(column).cloned();
            if found.is_none() {
                self.errors.push(format!("{part}: the joined table has no column {column} (written {name})"));
            }
            return found.map(|column| Declared { joined: Some(joined.clone()), nullable: true, ..column });
        }
        let name = self.held.renamed.get(name).map_or(name, String::as_str);
        let found = self.catalogue.find(name).cloned();
        if found.is_none() {
            let hint = match self.catalogue.near(name) {
                Some(near) => format!("; did you mean {part} = \"{near}\"?"),
                None => format!(
                    "; write {part} = \"…\" under [source.columns], or \"not stored\" if there is none"
                ),
            };
            self.errors.push(format!("{} has no column {name}{hint}", self.table));
        }
        found
    }

    pub(crate) fn optional(&mut self, part: &str, name: Option<&str>) -> Option<Declared> {
        name.and_then(|name| self.required(part, name))
    }

    fn all(&mut self, part: &str, names: &[String]) -> Vec<Declared> {
        names.iter().filter_map(|name| self.required(part, name)).collect()
    }

    fn time(&mut self, part: &str, time: &Option<TimeColumn>) -> Option<TimeForm> {
        self.times(part, time.as_slice()).pop()
    }

    pub(crate) fn times(&mut self, part: &str, times: &[TimeColumn]) -> Vec<TimeForm> {
        let mut forms = Vec::with_capacity(times.len());
        for time in times {
            let declared = self.required(part, &time.column);
            let plus = self.optional(part, time.plus_ms.as_deref());
            let Some(declared) = declared else { continue };
            match TimeForm::of(time, &declared, plus, self.config.zone, self.dialect) {
                Ok(form) => forms.push(form),
                Err(message) => self.errors.push(format!("{part}: {message}")),
            }
        }
        forms
    }

    fn number(&mut self, columns: &Columns, request: Option<&BodyForm>) -> Option<Number> {
        match columns.biz_no.as_ref()? {
            BizNo::Column(name) => self.required("biz_no", name).map(Number::Column),
            BizNo::Key { pattern } => Some(Number::Key(pattern.clone())),
            BizNo::Request { pointer } => {
                let path = request.and_then(|body| body.looked_into(pointer, self.dialect));
                Some(path.map_or(Number::Request, Number::Json))
            }
        }
    }

    /// As configured, else the primary key when nothing that changes is part of it, else the key.
    fn locator(
        &mut self,
        configured: &Option<KeyColumns>,
        key: &[Declared],
        status: &Option<Declared>,
        states: &States,
    ) -> Locator {
        if let Some(configured) = configured {
            return Locator { columns: self.all("locator", configured.parts()) };
        }
        let primary = self.catalogue.primary_key();
        let lasting = |column: &&Declared| {
            let plain = matches!(
                column.class,
                Class::Text | Class::Padded | Class::Integer | Class::Binary | Class::Uuid
            );
            plain && status.as_ref() != Some(column) && !states.look_at(column)
        };
        let columns = match primary.len() {
            1..=4 if primary.iter().all(lasting) => primary.into_iter().cloned().collect(),
            _ => key.to_vec(),
        };
        Locator { columns }
    }
}
