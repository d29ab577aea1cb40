//! What the columns of a Parquet file are to a table.

use super::column::Kind;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescPtr;

/// What the values of a column are.
pub fn kind_of(descr: &ColumnDescPtr) -> Kind {
    let depth = descr.path().parts().len();
    if descr.converted_type() == ConvertedType::DECIMAL {
        return Kind::Unread("decimals");
    }
    if descr.max_rep_level() == 1 && depth <= 3 {
        return match descr.physical_type() {
            _ if per_day(descr).is_some() => Kind::Unread("lists of dates"),
            Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE => Kind::List,
            _ => Kind::Unread("lists of something else than numbers"),
        };
    }
    if descr.max_rep_level() > 0 || descr.max_def_level() > 1 || depth > 1 {
        return Kind::Unread("nested values");
    }
    match descr.physical_type() {
        _ if per_day(descr).is_some() => Kind::Date,
        Type::BOOLEAN | Type::INT32 | Type::INT64 => Kind::Integer,
        Type::FLOAT | Type::DOUBLE => Kind::Float,
        Type::BYTE_ARRAY => Kind::Text,
        Type::INT96 => Kind::Date,
        Type::FIXED_LEN_BYTE_ARRAY => Kind::Unread("bytes of fixed length"),
    }
}

/// How many units of its values a day has, for dates and times since 1970-01-01.
pub fn per_day(descr: &ColumnDescPtr) -> Option<f64> {
    const SECONDS: f64 = 86_400.0;
    match (descr.physical_type(), descr.logical_type_ref(), descr.converted_type()) {
        (Type::INT32, Some(LogicalType::Date), _) | (Type::INT32, _, ConvertedType::DATE) => Some(1.0),
        (Type::INT64, Some(LogicalType::Timestamp(stamp)), _) => Some(match stamp.unit {
            TimeUnit::MILLIS => SECONDS * 1e3,
            TimeUnit::MICROS => SECONDS * 1e6,
            TimeUnit::NANOS => SECONDS * 1e9,
        }),
        (Type::INT64, _, ConvertedType::TIMESTAMP_MILLIS) => Some(SECONDS * 1e3),
        (Type::INT64, _, ConvertedType::TIMESTAMP_MICROS) => Some(SECONDS * 1e6),
        (Type::INT96, _, _) => Some(SECONDS),
        _ => None,
    }
}
