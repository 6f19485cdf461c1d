//! One-time tokens: issued to one user for one kind of request, taken once.
//!
//! A token carries a digest of whom and what it was issued for, so that nobody else can present it; whether it was
//! issued, and whether it is still unused, the store knows. The taken token becomes the key of the record, so the
//! second submit gets the first answer.

mod gate;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::request::Parts;
use db::{Db, DbError};
use kv::{KvError, Redis, Script};
use sea_query::{Expr, ExprTrait, Query as Sql};
use sha2::{Digest, Sha256};

pub use gate::TokenGate;

/// Where a client puts its token; `Idempotency-Key` is understood too.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("idempotency-token");

const TABLE: &str = "idempotency_token";

/// Half a token is chance, half says for whom it is.
const HALF: usize = 16;

/// Who sends a request, put into its extensions by whatever authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject(pub String);

/// Where the sender of a request is found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SubjectFrom {
    /// The [`Subject`] in the request's extensions.
    #[default]
    Extension,
    /// A header set by a gateway that authenticates, and that clients cannot set themselves.
    Header(HeaderName),
    /// Nobody is told apart: for forms without a sign-in.
    Anyone,
}

impl SubjectFrom {
    pub(crate) fn read(&self, parts: &Parts) -> Option<String> {
        match self {
            SubjectFrom::Extension => parts.extensions.get::<Subject>().map(|subject| subject.0.clone()),
            SubjectFrom::Header(name) => Some(parts.headers.get(name)?.to_str().ok()?.to_owned()),
            SubjectFrom::Anyone => Some(String::new()),
        }
    }
}

/// Issues and takes tokens; cheap to clone.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    store: Store,
    entropy: fn() -> [u8; HALF],
    rules: TokenRules,
}

enum Store {
    Table(Db),
    Redis { redis: Redis, prefix: String },
}

/// How long tokens live, and whose they are.
#[derive(Debug, Clone)]
pub struct TokenRules {
    /// How long a token may be submitted for the first time.
    pub life: Duration,
    /// How long a used token is remembered; as long as the records are kept is best.
    pub memory: Duration,
    pub subject: SubjectFrom,
}

impl Default for TokenRules {
    /// Half an hour to fill a form, a day to submit it again.
    fn default() -> Self {
        TokenRules {
            life: Duration::from_secs(30 * 60),
            memory: Duration::from_secs(24 * 60 * 60),
            subject: SubjectFrom::default(),
        }
    }
}

/// Why a token could not be issued or looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error(transparent)]
    Table(#[from] DbError),
    #[error(transparent)]
    Redis(#[from] KvError),
}

/// What taking a token found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Valid; from now on it is used.
    First,
    /// Used before, within its life: whoever took it may have died before the record was made.
    Again,
    /// Used before, too long ago to begin anything with it.
    Spent,
    /// Never submitted in time.
    Expired,
    /// Never issued, or forgotten.
    Unknown,
}

impl Tokens {
    /// Tokens in the table `idempotency_token`; see [`crate::schema::mechanisms`]. `entropy` must be unpredictable.
    pub fn in_table(db: Db, entropy: fn() -> [u8; HALF], rules: TokenRules) -> Tokens {
        Tokens(Arc::new(Inner { store: Store::Table(db), entropy, rules }))
    }

    /// Tokens in Redis, under keys that begin with `prefix`. While Redis is down, nothing new is issued or taken.
    pub fn in_redis(
        redis: Redis,
        prefix: impl Into<String>,
        entropy: fn() -> [u8; HALF],
        rules: TokenRules,
    ) -> Tokens {
        Tokens(Arc::new(Inner { store: Store::Redis { redis, prefix: prefix.into() }, entropy, rules }))
    }

    /// A new token for `subject` to submit one request of `biz_type`.
    pub async fn issue(&self, biz_type: &str, subject: &str) -> Result<String, TokenError> {
        let chance = (self.0.entropy)();
        let token = hex::encode([chance, binding(&chance, biz_type, subject)].concat());
        match &self.0.store {
            Store::Table(db) => self.insert(db, &token, biz_type).await?,
            Store::Redis { redis, prefix } => {
                let life = millis(self.0.rules.life);
                redis.call::<()>(&ISSUE, &[&format!("{prefix}{token}")], &[&life]).await?;
            }
        }
        Ok(token)
    }

    /// Removes tokens that can matter no more, at most `limit` of them; how many.
    pub async fn purge(&self, limit: u64) -> Result<u64, TokenError> {
        let Store::Table(db) = &self.0.store else { return Ok(0) };
        let mut old = Sql::select();
        old.column("token")
            .from(TABLE)
            .and_where(Expr::col("expires_at").add(millis(self.0.rules.memory)).lt(db.dialect().now_ms()))
            .limit(limit);
        let mut tokens = Vec::new();
        for row in db.fetch_all(&db.query(&old)).await? {
            tokens.push(row.text(0)?);
        }
        if tokens.is_empty() {
            return Ok(0);
        }
        let mut delete = Sql::delete();
        delete.from_table(TABLE).and_where(Expr::col("token").is_in(tokens));
        Ok(db.execute(&db.query(&delete)).await?)
    }

    pub(crate) fn subject(&self, parts: &Parts) -> Option<String> {
        self.0.rules.subject.read(parts)
    }

    /// Uses the token up if it is still unused: one step, whoever else does the same.
    pub(crate) async fn take(&self, token: &str) -> Result<Taken, TokenError> {
        match &self.0.store {
            Store::Table(db) => Ok(take_row(db, token).await?),
            Store::Redis { redis, prefix } => {
                let memory = millis(self.0.rules.memory);
                let word: String = redis.call(&TAKE, &[&format!("{prefix}{token}")], &[&memory]).await?;
                Ok(match word.as_str() {
                    "first" => Taken::First,
                    "again" => Taken::Again,
                    "spent" => Taken::Spent,
                    _ => Taken::Unknown,
                })
            }
        }
    }

    async fn insert(&self, db: &Db, token: &str, biz_type: &str) -> Result<(), DbError> {
        let mut insert = Sql::insert();
        insert.into_table(TABLE).columns(["token", "biz_type", "expires_at"]).values_panic([
            token.into(),
            biz_type.into(),
            db.dialect().now_ms().add(millis(self.0.rules.life)),
        ]);
        db.execute(&db.query(&insert)).await.map(drop)
    }
}

async fn take_row(db: &Db, token: &str) -> Result<Taken, DbError> {
    let now = || db.dialect().now_ms();
    let mut update = Sql::update();
    update
        .table(TABLE)
        .value("used_at", now())
        .and_where(Expr::col("token").eq(token))
        .and_where(Expr::col("used_at").is_null())
        .and_where(Expr::col("expires_at").gt(now()));
    if db.execute(&db.query(&update)).await? == 1 {
        return Ok(Taken::First);
    }
    let mut select = Sql::select();
    select
        .columns(["used_at", "expires_at"])
        .expr_as(now(), "now_ms")
        .from(TABLE)
        .and_where(Expr::col("token").eq(token));
    let Some(row) = db.fetch_optional(&db.query(&select)).await? else { return Ok(Taken::Unknown) };
    let alive = row.i64("expires_at")? > row.i64("now_ms")?;
    Ok(match row.opt_i64("used_at")? {
        Some(_) if alive => Taken::Again,
        Some(_) => Taken::Spent,
        None => Taken::Expired,
    })
}

/// The value is `N:` (new) or `U:` (used) and the end of the token's life by Redis' clock.
static ISSUE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local t = redis.call('TIME') \
         local ends = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1]) \
         redis.call('SET', KEYS[1], 'N:' .. ends, 'PX', ARGV[1])",
    )
});

static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local v = redis.call('GET', KEYS[1]) \
         if not v then return 'unknown' end \
         local ends = string.sub(v, 3) \
         if string.sub(v, 1, 1) == 'N' then \
           redis.call('SET', KEYS[1], 'U:' .. ends, 'PX', ARGV[1]) return 'first' end \
         local t = redis.call('TIME') \
         if t[1] * 1000 + math.floor(t[2] / 1000) < tonumber(ends) then return 'again' end \
         return 'spent'",
    )
});

/// Whether `token` was made for `subject` and `biz_type`; says nothing about whether it was issued.
pub(crate) fn belongs(token: &str, biz_type: &str, subject: &str) -> bool {
    let mut bytes = [0u8; 2 * HALF];
    // One spelling only: the same token in capitals would be another key.
    let lower = !token.bytes().any(|byte| byte.is_ascii_uppercase());
    if !lower || hex::decode_to_slice(token, &mut bytes).is_err() {
        return false;
    }
    let (chance, bound) = bytes.split_at(HALF);
    binding(chance, biz_type, subject) == bound
}

fn binding(chance: &[u8], biz_type: &str, subject: &str) -> [u8; HALF] {
    let mut hash = Sha256::new();
    for part in [chance, biz_type.as_bytes(), subject.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut half = [0u8; HALF];
    half.copy_from_slice(&hash.finalize()[..HALF]);
    half
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c32_a_token_belongs_to_one_subject_and_one_kind_of_request() {
        let chance = [7u8; HALF];
        let token = hex::encode([chance, binding(&chance, "ORDER", "ann")].concat());
        assert!(belongs(&token, "ORDER", "ann"));
        for (biz_type, subject) in [("ORDER", "bob"), ("ORDER", ""), ("ORDERa", "nn"), ("REFUND", "ann")] {
            assert!(!belongs(&token, biz_type, subject), "{biz_type} {subject}");
        }
        for odd in ["", "abc", &token.to_uppercase(), &format!("{token}00"), &token[2..]] {
            assert!(!belongs(odd, "ORDER", "ann"), "{odd}");
        }
    }
}
