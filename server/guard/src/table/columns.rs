//! What the table's columns can hold, measured when the guard opens.

use std::collections::HashMap;

use db::{Db, DbError, Dialect, Query, Row};

use super::TABLE;
use crate::error::GuardError;

/// Which characters a column takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repertoire {
    All,
    /// Three bytes of UTF-8 at most: no emoji, no rare ideographs.
    Basic,
    Ascii,
}

/// How much text a column takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextColumn {
    max_chars: Option<usize>,
    max_bytes: Option<usize>,
    repertoire: Repertoire,
    /// Two keys that differ only in case are one to the database.
    ignores_case: bool,
}

impl TextColumn {
    pub(crate) fn fits(&self, text: &str) -> bool {
        let repertoire = match self.repertoire {
            Repertoire::All => true,
            Repertoire::Basic => text.chars().all(|c| c <= '\u{ffff}'),
            Repertoire::Ascii => text.is_ascii(),
        };
        repertoire
            && self.holds_bytes(text.len())
            && self.max_chars.is_none_or(|max| text.len() <= max || text.chars().count() <= max)
    }

    pub(crate) fn holds_bytes(&self, bytes: usize) -> bool {
        self.max_bytes.is_none_or(|max| bytes <= max)
    }

    /// Most characters of plain ASCII.
    pub(crate) fn room(&self) -> usize {
        self.max_chars.unwrap_or(usize::MAX).min(self.max_bytes.unwrap_or(usize::MAX))
    }
}

/// The columns whose size matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    pub key: TextColumn,
    pub tenant: TextColumn,
    pub biz_type: TextColumn,
    pub biz_no: TextColumn,
    pub request: TextColumn,
    pub response: TextColumn,
    pub response_headers: TextColumn,
    pub owner: TextColumn,
}

const NEEDED: [&str; 17] = [
    "idempotent_id",
    "biz_type",
    "biz_no",
    "status",
    "request_body",
    "response_body",
    "create_time",
    "update_time",
    "tenant",
    "fingerprint",
    "response_status",
    "response_headers",
    "fence",
    "phase",
    "lease_until",
    "owner",
    "attempts",
];

/// Reads the catalogue; refuses a table on which claims would not exclude each other.
pub(super) async fn measure(db: &Db) -> Result<Columns, GuardError> {
    let mut found: HashMap<String, TextColumn> = HashMap::new();
    for row in db.fetch_all(&columns_query(db.dialect())).await? {
        found.insert(row.text("name")?.to_ascii_lowercase(), column(db.dialect(), &row)?);
    }
    if found.is_empty() {
        return Err(wrong(
            db,
            "does not exist; create it with guard::schema::create, or by hand with its statements",
        ));
    }
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !found.contains_key(*name)).collect();
    if !missing.is_empty() {
        let list = missing.join(", ");
        return Err(wrong(db, &format!("lacks {list}; add them as guard::schema::ddl declares them")));
    }
    if db.fetch_all(&unique_query(db.dialect())).await?.is_empty() {
        return Err(wrong(
            db,
            "has no unique index on idempotent_id alone, so two claims could both be granted; \
             run CREATE UNIQUE INDEX idempotent_record_key ON idempotent_record (idempotent_id)",
        ));
    }
    let mut take = |name: &str| found.remove(name).expect("every needed column was found");
    Ok(Columns {
        key: take("idempotent_id"),
        tenant: take("tenant"),
        biz_type: take("biz_type"),
        biz_no: take("biz_no"),
        request: take("request_body"),
        response: take("response_body"),
        response_headers: take("response_headers"),
        owner: take("owner"),
    })
}

impl Columns {
    #[cfg(test)]
    pub(crate) fn unlimited() -> Columns {
        let column = || TextColumn {
            max_chars: None,
            max_bytes: None,
            repertoire: Repertoire::All,
            ignores_case: false,
        };
        Columns {
            key: column(),
            tenant: column(),
            biz_type: column(),
            biz_no: column(),
            request: column(),
            response: column(),
            response_headers: column(),
            owner: column(),
        }
    }

    /// What works, but not as well as it could; each with what to do.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.key.ignores_case {
            warnings.push(format!(
                "{TABLE}.idempotent_id ignores case: keys that differ only in case are refused as conflicts; \
                 give the column a binary collation"
            ));
        }
        for (name, column) in [("request_body", &self.request), ("response_body", &self.response)] {
            if column.repertoire != Repertoire::All {
                warnings.push(format!(
                    "{TABLE}.{name} does not take every character: bodies beyond its set are kept in base64 or, for \
                     requests, not at all; convert the column to utf8mb4"
                ));
            }
            if column.room() < 1 << 20 {
                warnings.push(format!(
                    "{TABLE}.{name} holds {} bytes: longer bodies are not kept and duplicates get the status alone; \
                     widen the column",
                    column.room()
                ));
            }
        }
        if self.key.room() < 255 {
            warnings.push(format!(
                "{TABLE}.idempotent_id holds {} characters: longer keys are refused; widen the column to 255",
                self.key.room()
            ));
        }
        warnings
    }
}

fn wrong(db: &Db, what: &str) -> GuardError {
    GuardError::Table(format!("table {TABLE} in {} {what}", db.shown_url()))
}

fn columns_query(dialect: Dialect) -> Query {
    let sql = match dialect {
        Dialect::Sqlite => {
            "SELECT c.name AS name, EXISTS (SELECT 1 FROM pragma_index_list('idempotent_record') AS i, \
             pragma_index_xinfo(i.name) AS x WHERE i.\"unique\" = 1 AND x.name = c.name AND x.key = 1 \
             AND x.coll = 'NOCASE') AS ignores_case FROM pragma_table_info('idempotent_record') AS c"
        }
        Dialect::Postgres => {
            "SELECT CAST(a.attname AS TEXT) AS name, CAST(t.typname AS TEXT) AS kind, \
             CAST(a.atttypmod AS BIGINT) AS modifier, \
             CAST(pg_encoding_to_char(d.encoding) AS TEXT) AS charset, \
             COALESCE(NOT l.collisdeterministic, false) OR t.typname = 'citext' AS ignores_case \
             FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
             JOIN pg_database d ON d.datname = current_database() \
             LEFT JOIN pg_collation l ON l.oid = a.attcollation \
             WHERE a.attrelid = to_regclass('idempotent_record') AND a.attnum > 0 AND NOT a.attisdropped"
        }
        Dialect::Mysql => {
            "SELECT COLUMN_NAME AS name, DATA_TYPE AS kind, CHARACTER_MAXIMUM_LENGTH AS chars, \
             CHARACTER_OCTET_LENGTH AS octets, CHARACTER_SET_NAME AS charset, COLLATION_NAME AS collation_name \
             FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'idempotent_record'"
        }
    };
    Query::raw(sql, vec![])
}

/// A row for each unique index that has the key as its only column, whole and without a condition.
fn unique_query(dialect: Dialect) -> Query {
    let sql = match dialect {
        Dialect::Sqlite => {
            "SELECT i.name FROM pragma_index_list('idempotent_record') AS i \
             WHERE i.\"unique\" = 1 AND i.partial = 0 AND (SELECT GROUP_CONCAT(x.name) \
             FROM pragma_index_info(i.name) AS x) = 'idempotent_id'"
        }
        Dialect::Postgres => {
            "SELECT CAST(i.indexrelid AS BIGINT) FROM pg_index i JOIN pg_attribute a \
             ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] \
             WHERE i.indrelid = to_regclass('idempotent_record') AND i.indisunique AND i.indisvalid \
             AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL AND a.attname = 'idempotent_id'"
        }
        Dialect::Mysql => {
            "SELECT INDEX_NAME FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'idempotent_record' AND NON_UNIQUE = 0 \
             GROUP BY INDEX_NAME HAVING COUNT(*) = 1 AND MAX(COLUMN_NAME) = 'idempotent_id' \
             AND MAX(SUB_PART) IS NULL"
        }
    };
    Query::raw(sql, vec![])
}

fn column(dialect: Dialect, row: &Row) -> Result<TextColumn, DbError> {
    Ok(match dialect {
        Dialect::Sqlite => TextColumn {
            max_chars: None,
            max_bytes: None,
            repertoire: Repertoire::All,
            ignores_case: row.bool("ignores_case")?,
        },
        Dialect::Postgres => TextColumn {
            max_chars: declared(&row.text("kind")?, row.i64("modifier")?),
            max_bytes: None,
            repertoire: match row.text("charset")?.as_str() {
                "UTF8" | "SQL_ASCII" => Repertoire::All,
                _ => Repertoire::Ascii,
            },
            ignores_case: row.bool("ignores_case")?,
        },
        Dialect::Mysql => {
            let size =
                |name: &str| Ok::<_, DbError>(row.opt_i64(name)?.and_then(|n| usize::try_from(n).ok()));
            let collation = row.opt_text("collation_name")?.unwrap_or_default();
            let text = row.text("kind")?.to_ascii_lowercase();
            TextColumn {
                // For TEXT types the catalogue repeats the bytes.
                max_chars: size("chars")?.filter(|_| text.ends_with("char")),
                max_bytes: size("octets")?,
                repertoire: match row.opt_text("charset")?.as_deref() {
                    None | Some("utf8mb4" | "utf16" | "utf32" | "binary") => Repertoire::All,
                    Some("utf8" | "utf8mb3" | "ucs2") => Repertoire::Basic,
                    Some(_) => Repertoire::Ascii,
                },
                ignores_case: collation.ends_with("_ci") || collation.contains("_ci_"),
            }
        }
    })
}

/// The n of VARCHAR(n) and CHAR(n); PostgreSQL adds four.
fn declared(kind: &str, modifier: i64) -> Option<usize> {
    let sized = matches!(kind, "varchar" | "bpchar");
    (sized && modifier >= 4).then(|| usize::try_from(modifier - 4).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c17_c25_text_is_measured_in_characters_bytes_and_repertoire() {
        let column = |max_chars, max_bytes, repertoire| TextColumn {
            max_chars,
            max_bytes,
            repertoire,
            ignores_case: false,
        };
        assert!(column(Some(2), None, Repertoire::All).fits("😂😂"));
        assert!(!column(Some(2), None, Repertoire::All).fits("aaa"));
        assert!(!column(None, Some(7), Repertoire::All).fits("😂😂"));
        assert!(column(None, None, Repertoire::Basic).fits("订单"));
        assert!(!column(None, None, Repertoire::Basic).fits("𠮷"));
        assert!(!column(None, None, Repertoire::Ascii).fits("é"));
    }
}
