//! From the columns of a node table to features.

use super::numbers::shorten;
use super::table::{Cell, Kind, Table};
use super::words::{days, is_missing};
use crate::about::{Reading, TableColumn};
use crate::dataset::Features;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::afford;

/// Features and what was met on the way.
pub struct Matrix {
    /// A row a node.
    pub features: Features,
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

/// Reads these columns of the table, each as its recipe says.
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
    let mut missing = vec![0; columns.len()];
    let mut unknown = vec![(0, String::new()); columns.len()];
    let kinds = columns.iter().map(|(place, column)| (*place, kind(&column.reading, table.columns()[*place].kind)));
    table.scan(&kinds.collect::<Vec<_>>(), &mut |row, slot, cell| {
        let Slot { column, start } = slots[slot];
        let into = &mut values[row * width + start..][..column.width()];
        match put(column, cell, into)? {
            Put::Value => {}
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
    let features = if width == 0 { Features::None } else { Features::Dense { columns: width, values } };
    Ok(Matrix { features, missing, unknown })
}

/// As what cells are asked for.
fn kind(reading: &Reading, there: Kind) -> Kind {
    match reading {
        Reading::Number => Kind::Float,
        Reading::List { .. } => Kind::List,
        Reading::Category { .. } => Kind::Text,
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
fn put<'a>(column: &TableColumn, cell: Cell<'a>, into: &mut [f32]) -> std::result::Result<Put<'a>, String> {
    match (&column.reading, cell) {
        (Reading::Number | Reading::Date, Cell::Float(value)) if !value.is_nan() => into[0] = value as f32,
        (Reading::List { width }, Cell::List(list)) if list.iter().all(|value| !value.is_nan()) => {
            if list.len() != *width {
                return Err(format!("expected lists of {width} numbers, found one of {}", list.len()));
            }
            into[..*width].copy_from_slice(list);
        }
        (Reading::Category { values }, Cell::Text(text)) if !is_missing(text) => {
            match values.binary_search_by(|value| value.as_str().cmp(text)) {
                Ok(place) => into[place] = 1.0,
                Err(_) => return Ok(Put::Unknown(text)),
            }
        }
        (Reading::Date, Cell::Text(text)) if !is_missing(text) => {
            into[0] = days(text).ok_or_else(|| format!("expected a date, found '{}'", shorten(text)))? as f32;
        }
        (_, Cell::Integer(_)) => return Err("expected another kind of value".to_owned()),
        (reading, _) => {
            let values = into.len() - usize::from(column.indicator);
            match (&column.fill, reading) {
                (Some(fill), _) if fill.len() == values => into[..values].copy_from_slice(fill),
                (_, Reading::Category { .. }) => {}
                _ => return Err("a cell without a value, and there was none in training".to_owned()),
            }
            if column.indicator {
                into[values] = 1.0;
            }
            return Ok(Put::Missing);
        }
    }
    Ok(Put::Value)
}
