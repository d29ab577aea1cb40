//! From the columns of a node table to features.

use super::numbers::shorten;
use super::table::{Cell, Kind, Table};
use super::words::{days, is_missing, is_no_number};
use super::written::{amount, list};
use crate::about::{Reading, TableColumn};
use crate::dataset::Features;
use crate::error::{GraphError, Result};
use crate::exact::{Exact, ExactColumn, Spread, Wide};
use crate::limits::Limits;
use crate::memory::afford;

/// Features and what was met on the way.
pub struct Matrix {
    /// A row a node.
    pub features: Features,
    /// The columns of which `f32` loses too much, as they are.
    pub exact: Exact,
    /// Of each column the cells without a value.
    pub missing: Vec<usize>,
    /// Of each column the cells with a text that is none of its categories, and the first such text.
    pub unknown: Vec<(usize, String)>,
}

/// Where the feature columns of one column of the table are, and what becomes of its cells.
struct Slot<'a> {
    column: &'a TableColumn,
    start: usize,
}

/// Reads these columns of the table, each as its recipe says. Goes through those once more of whose numbers `f32` would
/// lose too much.
pub fn read_matrix(table: &dyn Table, columns: &[(usize, &TableColumn)], limits: &Limits) -> Result<Matrix> {
    let rows = table.rows();
    let mut width = 0;
    let mut slots = Vec::with_capacity(columns.len());
    for (_, column) in columns {
        slots.push(Slot { column, start: width });
        width = column.width().saturating_add(width);
    }
    let count = (rows as u64).saturating_mul(width as u64);
    if count > limits.features_values_max {
        return Err(GraphError::too_large(table.path(), "values", limits.features_values_max));
    }
    let refuse = |what: String| GraphError::format(table.path(), "columns of features", what);
    afford(count.saturating_mul(size_of::<f32>() as u64)).map_err(refuse)?;
    let mut values = vec![0.0; count as usize];
    let mut spreads = vec![Spread::default(); width];
    let mut missing = vec![0; columns.len()];
    let mut unknown = vec![(0, String::new()); columns.len()];
    let kinds = columns.iter().map(|(place, column)| (*place, kind(&column.reading, table.columns()[*place].kind)));
    let kinds: Vec<_> = kinds.collect();
    let mut numbers = Vec::new();
    table.scan(&kinds, &mut |row, slot, cell| {
        let Slot { column, start } = slots[slot];
        let put = put(column, cell, cleared(&mut numbers, column))?;
        let into = &mut values[row * width + start..][..numbers.len()];
        into.iter_mut().zip(&numbers).for_each(|(into, number)| *into = number.value as f32);
        match put {
            Put::Value if matches!(column.reading, Reading::Category { .. }) => {}
            Put::Value => spreads[start..].iter_mut().zip(&numbers).for_each(|(spread, &number)| spread.add(number)),
            Put::Missing => missing[slot] += 1,
            Put::Unknown(text) => {
                let seen = &mut unknown[slot];
                if seen.0 == 0 {
                    seen.1 = shorten(text);
                }
                seen.0 += 1;
            }
        }
        Ok(())
    })?;
    let mut exact = Exact::of(&spreads, rows);
    read_exact(table, (&slots, &kinds), &mut exact)?;
    let features = if width == 0 { Features::None } else { Features::Dense { columns: width, values: values.into() } };
    Ok(Matrix { features, exact, missing, unknown })
}

/// Reads the columns of which `f32` would lose too much as they are.
fn read_exact(table: &dyn Table, (slots, kinds): (&[Slot], &[(usize, Kind)]), exact: &mut Exact) -> Result<()> {
    let is_of = |slot: &Slot, of: &ExactColumn| (slot.start..slot.start + slot.column.width()).contains(&of.column);
    let lost: Vec<usize> =
        (0..slots.len()).filter(|&slot| exact.columns.iter().any(|of| is_of(&slots[slot], of))).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let wanted: Vec<_> = lost.iter().map(|&slot| kinds[slot]).collect();
    let mut numbers = Vec::new();
    table.scan(&wanted, &mut |row, at, cell| {
        let slot = &slots[lost[at]];
        put(slot.column, cell, cleared(&mut numbers, slot.column))?;
        for of in exact.columns.iter_mut().filter(|of| is_of(slot, of)) {
            of.values[row] = numbers[of.column - slot.start];
        }
        Ok(())
    })
}

/// Room for what becomes of one cell, all 0.
fn cleared<'a>(numbers: &'a mut Vec<Wide>, column: &TableColumn) -> &'a mut [Wide] {
    numbers.clear();
    numbers.resize(column.width(), Wide::default());
    numbers
}

/// As what cells are asked for.
fn kind(reading: &Reading, there: Kind) -> Kind {
    match reading {
        Reading::Number if there == Kind::Integer => Kind::Integer,
        Reading::Number => Kind::Float,
        Reading::List { .. } if there == Kind::Text => Kind::Text,
        Reading::List { .. } => Kind::List,
        // As they are written: `1.234` may be a thousand and more.
        Reading::Category { .. } | Reading::Amount { .. } => Kind::Text,
        Reading::Date if there == Kind::Text => Kind::Text,
        Reading::Date => Kind::Date,
    }
}

enum Put<'a> {
    Value,
    Missing,
    Unknown(&'a str),
}

/// Writes one cell into its feature columns, which are 0 before.
fn put<'a>(column: &TableColumn, cell: Cell<'a>, into: &mut [Wide]) -> std::result::Result<Put<'a>, String> {
    match (&column.reading, cell) {
        (Reading::Number | Reading::Date, Cell::Float(value)) if !value.is_nan() => into[0] = value.into(),
        (Reading::Number, Cell::Integer(value)) => into[0] = Wide::integer(value.into()),
        (Reading::List { width }, Cell::List(list)) if list.iter().all(|value| !value.is_nan()) => {
            if list.len() != *width {
                return Err(format!("expected lists of {width} numbers, found one of {}", list.len()));
            }
            into.iter_mut().zip(list).for_each(|(into, &value)| *into = value.into());
        }
        (Reading::Category { values }, Cell::Text(text)) if !is_missing(text) => {
            match values.binary_search_by(|value| value.as_str().cmp(text)) {
                Ok(place) => into[place] = Wide::from(1.0),
                Err(_) => return Ok(Put::Unknown(text)),
            }
        }
        (Reading::List { width }, Cell::Text(text)) if !is_missing(text) && !is_no_number(text) => {
            let numbers = list(text).ok_or_else(|| format!("expected a list of numbers, found '{}'", shorten(text)))?;
            if numbers.len() != *width {
                return Err(format!("expected lists of {width} numbers, found one of {}", numbers.len()));
            }
            into.iter_mut().zip(numbers).for_each(|(into, value)| *into = value.into());
        }
        (Reading::Amount { comma }, Cell::Text(text)) if !is_missing(text) && !is_no_number(text) => {
            into[0] =
                amount(text, *comma).ok_or_else(|| format!("expected a number, found '{}'", shorten(text)))?.into();
        }
        (Reading::Date, Cell::Text(text)) if !is_missing(text) && !is_no_number(text) => {
            into[0] = days(text).ok_or_else(|| format!("expected a date, found '{}'", shorten(text)))?.into();
        }
        (_, Cell::Integer(_)) => return Err("expected another kind of value".to_owned()),
        (reading, _) => {
            let values = into.len() - usize::from(column.indicator);
            match (&column.fill, reading) {
                (Some(fill), _) if fill.len() == values => {
                    into.iter_mut().zip(fill).for_each(|(into, &fill)| *into = fill.into());
                }
                (_, Reading::Category { .. }) => {}
                _ => return Err("a cell without a value, and there was none in training".to_owned()),
            }
            if column.indicator {
                into[values] = Wide::from(1.0);
            }
            return Ok(Put::Missing);
        }
    }
    Ok(Put::Value)
}
