//! What the columns of a Parquet file are to a table.

use super::column::Kind;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

/// What the values of a leaf column say, whatever they are stored as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meaning {
    /// Whole numbers, or truth values as 0 and 1.
    Integer,
    /// Whole numbers without a sign.
    Unsigned,
    /// Whole numbers with so many of their digits behind the point.
    Decimal(u32),
    /// Floating-point numbers.
    Float,
    /// Floating-point numbers of two bytes.
    Half,
    /// Dates, times, times of day or durations, of which a day has so many.
    Days(f64),
    /// Months, days and milliseconds.
    Interval,
    /// Text that says so.
    Text,
    /// Bytes that may be text: older writers do not say.
    Bytes,
    /// Sixteen bytes that are written as text.
    Uuid,
    /// Numbers that are not read, and what they are.
    Refused(&'static str),
    /// Values that are not read, and what they are.
    Unread(&'static str),
}

/// Digits of a decimal that fit 128 bits.
const DIGITS_MAX: i32 = 38;

/// Digits that fit 64 bits whatever they are.
const DIGITS_SHORT: i32 = 18;

impl Meaning {
    /// What the type of a leaf says.
    pub fn of(descr: &ColumnDescPtr) -> Meaning {
        if let Some((precision, scale)) = decimal(descr) {
            let fits = (1..=DIGITS_MAX).contains(&precision) && (0..=precision).contains(&scale);
            return if fits { Meaning::Decimal(scale as u32) } else { Meaning::Refused("decimals of over 38 digits") };
        }
        if let Some(per_day) = per_day(descr) {
            return Meaning::Days(per_day);
        }
        match (descr.physical_type(), descr.logical_type_ref(), descr.converted_type()) {
            (Type::INT32 | Type::INT64, Some(LogicalType::Integer(int)), _) if !int.is_signed => Meaning::Unsigned,
            (Type::INT32 | Type::INT64, _, converted) if is_unsigned(converted) => Meaning::Unsigned,
            (Type::BOOLEAN | Type::INT32 | Type::INT64, ..) => Meaning::Integer,
            (Type::FLOAT | Type::DOUBLE, ..) => Meaning::Float,
            (Type::BYTE_ARRAY, Some(LogicalType::Bson), _) | (Type::BYTE_ARRAY, _, ConvertedType::BSON) => {
                Meaning::Unread("bytes that are no text")
            }
            (Type::BYTE_ARRAY, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _)
            | (Type::BYTE_ARRAY, _, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON) => Meaning::Text,
            (Type::BYTE_ARRAY, ..) => Meaning::Bytes,
            (Type::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid), _) if descr.type_length() == 16 => Meaning::Uuid,
            (Type::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16), _) if descr.type_length() == 2 => Meaning::Half,
            (Type::FIXED_LEN_BYTE_ARRAY, _, ConvertedType::INTERVAL) if descr.type_length() == 12 => Meaning::Interval,
            (Type::FIXED_LEN_BYTE_ARRAY, ..) => Meaning::Unread("bytes of fixed length"),
            (Type::INT96, ..) => Meaning::Days(1.0),
        }
    }

    /// Whether values are numbers that a list of features may have.
    fn is_number(self) -> bool {
        matches!(
            self,
            Meaning::Integer
                | Meaning::Unsigned
                | Meaning::Decimal(_)
                | Meaning::Float
                | Meaning::Half
                | Meaning::Refused(_)
        )
    }
}

/// What the values of a column of one leaf are, as far as its type says.
pub fn kind_of(descr: &ColumnDescPtr) -> Kind {
    let depth = descr.path().parts().len();
    let meaning = Meaning::of(descr);
    let is_nested = descr.max_rep_level() > 1 || depth > 3 || descr.max_rep_level() == 0 && depth > 1;
    match meaning {
        _ if is_nested && meaning.is_number() => Kind::Refused("numbers in nested values"),
        _ if is_nested => Kind::Unread("nested values"),
        Meaning::Refused(what) => Kind::Refused(what),
        _ if descr.max_rep_level() == 1 && meaning.is_number() => Kind::List,
        Meaning::Days(_) | Meaning::Interval if descr.max_rep_level() == 1 => Kind::Unread("lists of dates"),
        _ if descr.max_rep_level() == 1 => Kind::Unread("lists of something else than numbers"),
        Meaning::Integer | Meaning::Unsigned | Meaning::Decimal(0) => Kind::Integer,
        Meaning::Decimal(_) | Meaning::Float | Meaning::Half => Kind::Float,
        Meaning::Days(_) | Meaning::Interval => Kind::Date,
        Meaning::Text | Meaning::Bytes | Meaning::Uuid => Kind::Text,
        Meaning::Unread(what) => Kind::Unread(what),
    }
}

/// What a column of these leaves is, of which there are several.
pub fn kind_of_several(schema: &SchemaDescriptor, leaves: std::ops::Range<usize>) -> Kind {
    if is_vector(schema, leaves.clone()) {
        return Kind::List;
    }
    match leaves.into_iter().any(|leaf| Meaning::of(&schema.column(leaf)).is_number()) {
        true => Kind::Refused("numbers in nested values"),
        false => Kind::Unread("nested values"),
    }
}

/// The leaves of Spark's vectors.
pub const VECTOR: [&str; 4] = ["type", "size", "indices", "values"];

/// Whether these leaves are a vector of Spark's machine learning: dense, with values alone, or sparse.
pub fn is_vector(schema: &SchemaDescriptor, leaves: std::ops::Range<usize>) -> bool {
    let types = [(Type::INT32, 0), (Type::INT32, 0), (Type::INT32, 1), (Type::DOUBLE, 1)];
    leaves.len() == VECTOR.len()
        && leaves.zip(VECTOR).zip(types).all(|((leaf, name), (of, repeats))| {
            let descr = schema.column(leaf);
            let is_named = descr.path().parts().get(1).is_some_and(|part| part == name);
            is_named && descr.physical_type() == of && descr.max_rep_level() == repeats
        })
}

/// Whether a leaf holds integers of 64 bits and says no more.
pub fn is_plain(descr: &ColumnDescPtr) -> bool {
    let is_flat = descr.max_rep_level() == 0 && descr.path().parts().len() == 1;
    is_flat && descr.physical_type() == Type::INT64 && Meaning::of(descr) == Meaning::Integer
}

/// Whether only the values say if all of them fit 64 bits with a sign.
pub fn may_be_large(descr: &ColumnDescPtr) -> bool {
    match Meaning::of(descr) {
        Meaning::Unsigned => descr.physical_type() == Type::INT64,
        Meaning::Decimal(0) => decimal(descr).is_some_and(|(precision, _)| precision > DIGITS_SHORT),
        _ => false,
    }
}

/// All digits of a decimal, and how many of them stand behind the point.
fn decimal(descr: &ColumnDescPtr) -> Option<(i32, i32)> {
    match (descr.logical_type_ref(), descr.converted_type()) {
        (Some(LogicalType::Decimal(of)), _) => Some((of.precision, of.scale)),
        (_, ConvertedType::DECIMAL) => Some((descr.type_precision(), descr.type_scale())),
        _ => None,
    }
}

fn is_unsigned(converted: ConvertedType) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    matches!(converted, UINT_8 | UINT_16 | UINT_32 | UINT_64)
}

/// How many units of its values a day has, for dates and times since 1970-01-01, and for times of day.
fn per_day(descr: &ColumnDescPtr) -> Option<f64> {
    const SECONDS: f64 = 86_400.0;
    let unit = |unit: TimeUnit| match unit {
        TimeUnit::MILLIS => SECONDS * 1e3,
        TimeUnit::MICROS => SECONDS * 1e6,
        TimeUnit::NANOS => SECONDS * 1e9,
    };
    match (descr.physical_type(), descr.logical_type_ref(), descr.converted_type()) {
        (Type::INT32, Some(LogicalType::Date), _) | (Type::INT32, _, ConvertedType::DATE) => Some(1.0),
        (Type::INT64, Some(LogicalType::Timestamp(stamp)), _) => Some(unit(stamp.unit)),
        (Type::INT32 | Type::INT64, Some(LogicalType::Time(time)), _) => Some(unit(time.unit)),
        (Type::INT64, _, ConvertedType::TIMESTAMP_MILLIS) => Some(SECONDS * 1e3),
        (Type::INT64, _, ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIME_MICROS) => Some(SECONDS * 1e6),
        (Type::INT32, _, ConvertedType::TIME_MILLIS) => Some(SECONDS * 1e3),
        _ => None,
    }
}
