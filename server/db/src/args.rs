//! From sea-query values to each driver's parameters.

use sea_query::{OptionEnum, Value};
use sqlx::Arguments;
use sqlx::mysql::MySqlArguments;
use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteArguments;

use crate::DbError;

/// Integers travel as 64 bits: every database narrows them where it stores them, and checks the range.
macro_rules! binder {
    ($name:ident, $arguments:ty, $unsigned:expr) => {
        pub(crate) fn $name(values: &[Value]) -> Result<$arguments, DbError> {
            let mut arguments = <$arguments>::default();
            for value in values {
                match value {
                    Value::Bool(v) => arguments.add(*v),
                    Value::TinyInt(v) => arguments.add(v.map(i64::from)),
                    Value::SmallInt(v) => arguments.add(v.map(i64::from)),
                    Value::Int(v) => arguments.add(v.map(i64::from)),
                    Value::BigInt(v) => arguments.add(*v),
                    Value::TinyUnsigned(v) => arguments.add(v.map(i64::from)),
                    Value::SmallUnsigned(v) => arguments.add(v.map(i64::from)),
                    Value::Unsigned(v) => arguments.add(v.map(i64::from)),
                    Value::BigUnsigned(v) => arguments.add($unsigned(*v)?),
                    Value::Float(v) => arguments.add(v.map(f64::from)),
                    Value::Double(v) => arguments.add(*v),
                    Value::String(v) => arguments.add(v.clone()),
                    Value::Char(v) => arguments.add(v.map(String::from)),
                    Value::Bytes(v) => arguments.add(v.clone()),
                    Value::Enum(OptionEnum::Some(v)) => arguments.add(v.value.to_string()),
                    Value::Enum(OptionEnum::None(_)) => arguments.add(None::<String>),
                    #[allow(unreachable_patterns, reason = "other crates may switch on more kinds of value")]
                    _ => return Err(DbError::Invalid("a parameter of this type cannot be bound".into())),
                }
                .map_err(sqlx::Error::Encode)?;
            }
            Ok(arguments)
        }
    };
}

binder!(sqlite, SqliteArguments, signed);
binder!(postgres, PgArguments, signed);
binder!(mysql, MySqlArguments, Ok::<Option<u64>, DbError>);

fn signed(value: Option<u64>) -> Result<Option<i64>, DbError> {
    value
        .map(i64::try_from)
        .transpose()
        .map_err(|_| DbError::Invalid("a number above 9223372036854775807 does not fit this database".into()))
}
