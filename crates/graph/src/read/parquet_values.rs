//! The values of columns in Parquet files: what is stored becomes what it means.

use super::column::{Cell, Kind};
use super::parquet_kinds::Meaning;
use half::f16;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::schema::types::ColumnDescPtr;

/// Takes the cells of a column one after the other.
pub type Emit<'a> = &'a mut dyn FnMut(Cell) -> Result<(), String>;

/// How many rows are decoded at a time.
const BATCH: usize = 8192;

/// How many rows of lists are decoded at a time.
const LISTS: usize = 512;

/// From which number on neighbouring whole numbers are one, of floating-point numbers.
pub fn whole_below(descr: &ColumnDescPtr) -> Option<f64> {
    match (Meaning::of(descr), descr.physical_type()) {
        (Meaning::Half, _) => Some(2048.0),
        (Meaning::Float, Type::FLOAT) => Some(16_777_216.0),
        (Meaning::Float, _) => Some(9_007_199_254_740_992.0),
        _ => None,
    }
}

/// A value as it is meant.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A whole number.
    Integer(i64),
    /// A whole number of more bits.
    Large(i128),
    /// A whole number, so many of whose digits stand behind the point.
    Decimal(i128, u32),
    /// A floating-point number.
    Float(f64),
    /// Days since 1970-01-01, or of a time of day or an interval.
    Days(f64),
    /// A text.
    Text(&'a str),
    /// An id of 16 bytes.
    Uuid(&'a [u8]),
}

/// The values of one column chunk, in the kind that is asked for.
pub fn read_column(
    reader: ColumnReader,
    (descr, meaning): (&ColumnDescPtr, Meaning),
    kind: Kind,
    emit: Emit,
) -> Result<(), String> {
    let whole = |value: i64, unsigned: i64| match meaning {
        Meaning::Unsigned => Value::Integer(unsigned),
        Meaning::Decimal(scale @ 1..) => Value::Decimal(value.into(), scale),
        Meaning::Days(per_day) => Value::Days(value as f64 / per_day),
        _ => Value::Integer(value),
    };
    let of = (descr, kind);
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            values(reader, of, emit, |&value| Ok(Value::Integer(i64::from(value))))
        }
        ColumnReader::Int32ColumnReader(reader) => {
            values(reader, of, emit, |&value| Ok(whole(value.into(), (value as u32).into())))
        }
        ColumnReader::Int64ColumnReader(reader) => values(reader, of, emit, |&value| {
            let is_large = meaning == Meaning::Unsigned && value < 0;
            Ok(if is_large { Value::Large((value as u64).into()) } else { whole(value, value) })
        }),
        ColumnReader::Int96ColumnReader(reader) => values(reader, of, emit, |value| Ok(Value::Days(days(value)))),
        ColumnReader::FloatColumnReader(reader) => values(reader, of, emit, |&value| Ok(Value::Float(value.into()))),
        ColumnReader::DoubleColumnReader(reader) => values(reader, of, emit, |&value| Ok(Value::Float(value))),
        ColumnReader::ByteArrayColumnReader(reader) => match meaning {
            Meaning::Decimal(scale) => values(reader, of, emit, |value: &ByteArray| decimal(value.data(), scale)),
            _ => values(reader, of, emit, |value: &ByteArray| match std::str::from_utf8(value.data()) {
                Ok(text) => Ok(Value::Text(text)),
                Err(_) => Err("expected text in UTF-8; data.ignore (--ignore) leaves the column out".to_owned()),
            }),
        },
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            values(reader, of, emit, |value: &FixedLenByteArray| fixed(value.data(), meaning))
        }
    }
}

fn values<T: DataType>(
    reader: ColumnReaderImpl<T>,
    (descr, kind): (&ColumnDescPtr, Kind),
    emit: Emit,
    value: impl Fn(&T::T) -> Result<Value<'_>, String>,
) -> Result<(), String> {
    if descr.max_rep_level() == 0 {
        return each(reader, descr, |found| match found {
            Some(found) => give(value(found)?, kind, emit),
            None => emit(Cell::Missing),
        });
    }
    let mut lists = Lists::new(reader, descr);
    while lists.read(&value)? > 0 {
        for list in lists.rows() {
            emit(if list.is_empty() { Cell::Missing } else { Cell::List(list) })?;
        }
    }
    Ok(())
}

/// A value in the kind that is asked for.
fn give(value: Value, kind: Kind, emit: Emit) -> Result<(), String> {
    match (value, kind) {
        (Value::Text(text), Kind::Text) => emit(Cell::Text(text)),
        (Value::Integer(value), Kind::Integer) => emit(Cell::Integer(value)),
        (Value::Integer(value), Kind::Text) => emit(Cell::Text(&value.to_string())),
        (Value::Large(value), Kind::Integer) => match i64::try_from(value) {
            Ok(value) => emit(Cell::Integer(value)),
            Err(_) => Err(format!("expected integers below 2^63, found {value}: write them as texts")),
        },
        (Value::Large(value), Kind::Text) => emit(Cell::Text(&value.to_string())),
        (Value::Decimal(value, scale), Kind::Text) => emit(Cell::Text(&decimal_text(value, scale))),
        (Value::Float(value), Kind::Text) => emit(Cell::Text(&value.to_string())),
        (Value::Uuid(bytes), Kind::Text) => emit(Cell::Text(&uuid(bytes))),
        (Value::Days(_), Kind::Text) => Err("found a date or a time, which is neither id nor name".to_owned()),
        (Value::Days(days), Kind::Float | Kind::Date) => emit(Cell::Float(days)),
        (Value::Text(_) | Value::Uuid(_), _) => {
            Err("expected a number, found text: write the column as numbers".to_owned())
        }
        (Value::Float(value), Kind::Integer) => Err(format!("expected an integer, found {value}")),
        (value, Kind::Float) => emit(Cell::Float(number(value))),
        _ => Err("expected another kind of value".to_owned()),
    }
}

/// The number that a value is; NaN where it is none.
fn number(value: Value) -> f64 {
    match value {
        Value::Integer(value) => value as f64,
        Value::Large(value) => value as f64,
        Value::Decimal(value, scale) => decimal_number(value, scale),
        Value::Float(value) | Value::Days(value) => value,
        Value::Text(_) | Value::Uuid(_) => f64::NAN,
    }
}

/// Decodes batch after batch and gives each value, or its absence, on.
pub fn each<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    descr: &ColumnDescPtr,
    mut value: impl FnMut(Option<&T::T>) -> Result<(), String>,
) -> Result<(), String> {
    let there = descr.max_def_level();
    let mut values: Vec<T::T> = Vec::new();
    let mut levels: Vec<i16> = Vec::new();
    loop {
        values.clear();
        levels.clear();
        let (records, found, _) = reader
            .read_records(BATCH, (there > 0).then_some(&mut levels), None, &mut values)
            .map_err(|e| e.to_string())?;
        if records == 0 {
            return Ok(());
        }
        let mut present = values[..found].iter();
        // Without definition levels every value is there.
        levels.resize(records, there);
        for &level in &levels {
            if level < there {
                value(None)?;
            } else {
                value(Some(present.next().ok_or_else(|| "fewer values than promised".to_owned())?))?;
            }
        }
    }
}

/// Lists of numbers, batch after batch. A leaf that does not repeat gives lists of one number or none.
pub struct Lists<T: DataType> {
    reader: ColumnReaderImpl<T>,
    there: i16,
    /// From this level on there is an element, be it a missing one.
    element: i16,
    repeats: bool,
    values: Vec<T::T>,
    levels: [Vec<i16>; 2],
    numbers: Vec<f64>,
    ends: Vec<usize>,
}

impl<T: DataType> Lists<T> {
    /// From the first row of a column chunk on.
    pub fn new(reader: ColumnReaderImpl<T>, descr: &ColumnDescPtr) -> Lists<T> {
        let there = descr.max_def_level();
        let repeats = descr.max_rep_level() > 0;
        let element = there - i16::from(repeats && descr.self_type().is_optional());
        let (values, levels) = (Vec::new(), [Vec::new(), Vec::new()]);
        Lists { reader, there, element, repeats, values, levels, numbers: Vec::new(), ends: Vec::new() }
    }

    /// Decodes the next rows, and says how many these are; 0 at the end.
    pub fn read(&mut self, value: &impl Fn(&T::T) -> Result<Value<'_>, String>) -> Result<usize, String> {
        let [definitions, repetitions] = &mut self.levels;
        self.values.clear();
        self.numbers.clear();
        self.ends.clear();
        definitions.clear();
        repetitions.clear();
        let (records, found, levels) = self
            .reader
            .read_records(
                LISTS,
                (self.there > 0).then_some(&mut *definitions),
                self.repeats.then_some(&mut *repetitions),
                &mut self.values,
            )
            .map_err(|e| e.to_string())?;
        if records == 0 {
            return Ok(0);
        }
        if self.there == 0 {
            definitions.resize(records, 0);
        }
        let levels = if self.repeats { levels } else { records };
        repetitions.resize(levels.max(repetitions.len()), 0);
        let mut present = self.values[..found].iter();
        for (place, (&definition, &repetition)) in definitions.iter().zip(&*repetitions).take(levels).enumerate() {
            if place > 0 && repetition == 0 {
                self.ends.push(self.numbers.len());
            }
            if definition == self.there {
                let found = present.next().ok_or_else(|| "fewer values than promised".to_owned())?;
                self.numbers.push(number(value(found)?));
            } else if self.repeats && definition >= self.element {
                self.numbers.push(f64::NAN);
            }
        }
        self.ends.push(self.numbers.len());
        Ok(self.ends.len())
    }

    /// The rows that were decoded last; what is missing in them is NaN, and an empty one may be a missing one.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.numbers[start..end])
    }
}

/// What bytes of a fixed length say.
fn fixed(bytes: &[u8], meaning: Meaning) -> Result<Value<'_>, String> {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
    match (meaning, bytes) {
        (Meaning::Decimal(scale), _) => decimal(bytes, scale),
        (Meaning::Uuid, _) => Ok(Value::Uuid(bytes)),
        (Meaning::Half, &[low, high]) => Ok(Value::Float(f16::from_le_bytes([low, high]).to_f64())),
        (Meaning::Interval, _) => match [word(0), word(4), word(8)] {
            // A month counts 30 days, as in SQL's comparisons.
            [Some(months), Some(days), Some(millis)] => {
                Ok(Value::Days(f64::from(months) * 30.0 + f64::from(days) + f64::from(millis) / 86_400_000.0))
            }
            _ => Err("expected an interval".to_owned()),
        },
        _ => Err("bytes of fixed length are not read".to_owned()),
    }
}

/// The whole number of a decimal, which is stored from its first byte to its last, with a sign.
fn decimal(bytes: &[u8], scale: u32) -> Result<Value<'_>, String> {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let mut number = [fill; 16];
    let (beyond, kept) = bytes.split_at(bytes.len().saturating_sub(16));
    number[16 - kept.len()..].copy_from_slice(kept);
    let repeats_sign = beyond.iter().all(|&byte| byte == fill) && (number[0] & 0x80 != 0) == negative;
    if !beyond.is_empty() && !repeats_sign {
        return Err("a decimal of more than 38 digits".to_owned());
    }
    let number = i128::from_be_bytes(number);
    Ok(if scale == 0 { Value::Large(number) } else { Value::Decimal(number, scale) })
}

/// The nearest number to a decimal.
fn decimal_number(value: i128, scale: u32) -> f64 {
    // Both are exact, so the quotient is the nearest; otherwise the digits are read as text.
    match value.unsigned_abs() <= 1 << 53 && scale <= 22 {
        true => value as f64 / 10f64.powi(scale as i32),
        false => format!("{value}e-{scale}").parse().unwrap_or(f64::NAN),
    }
}

/// A decimal without the zeros at its end.
fn decimal_text(value: i128, scale: u32) -> String {
    let digits = format!("{:0>1$}", value.unsigned_abs(), scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    let (sign, fraction) = (if value < 0 { "-" } else { "" }, fraction.trim_end_matches('0'));
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// Sixteen bytes as `550e8400-e29b-41d4-a716-446655440000`.
fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&place) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Days since 1970-01-01 of Spark's older timestamps: nanoseconds of a day, and the day of a count that began earlier.
fn days(value: &Int96) -> f64 {
    let &[low, high, day] = value.data() else { return f64::NAN };
    let nanoseconds = u64::from(high) << 32 | u64::from(low);
    f64::from(day) - 2_440_588.0 + nanoseconds as f64 / 86_400e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_size_are_the_number_and_the_text_that_they_say() {
        for (value, scale, text) in [
            (125, 2, "1.25"),
            (-5, 3, "-0.005"),
            (1200, 2, "12"),
            (0, 4, "0"),
            (9_007_199_254_740_993, 1, "900719925474099.3"),
            (123_456_789_012_345_678_901_234_567_890, 10, "12345678901234567890.123456789"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            assert_eq!(decimal_text(value, scale), text);
            assert_eq!(decimal_number(value, scale), text.parse::<f64>().unwrap());
        }
        let whole = |bytes: &[u8]| match decimal(bytes, 0) {
            Ok(Value::Large(value)) => Ok(value),
            other => Err(format!("{other:?}")),
        };
        assert_eq!((whole(&[]), whole(&[0xff, 0x7f]), whole(&[0x01, 0x00])), (Ok(0), Ok(-129), Ok(256)));
        // Nineteen bytes are no more than sixteen where the first ones only repeat the sign.
        let mut bytes = vec![0xff; 19];
        assert_eq!(whole(&bytes), Ok(-1));
        bytes[3] = 0x7f;
        assert!(whole(&bytes).is_err());
        bytes[0] = 0x01;
        assert!(whole(&bytes).is_err());
    }
}
