//! Text files of comma-separated numbers without a header.

use super::arrays::{Array, Element};
use super::text::Lines;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::Growth;
use std::path::Path;
use std::str::FromStr;

/// All numbers of `path` as [rows, columns]; every line must have as many as the first. At most `values_max` values.
pub fn read_numbers<T: Element + FromStr>(path: &Path, limits: &Limits, values_max: u64) -> Result<Array<T>> {
    let mut values = Vec::new();
    let shape = each_row(path, (limits, values_max), &mut |row| values.extend_from_slice(row))?;
    Ok(Array { shape, values })
}

/// Calls `each` with the numbers of each line, of which there must be as many as in the first, for who keeps them in no
/// more room than they take themselves. Returns how many rows and columns there are.
pub fn each_row<T: Element + FromStr>(
    path: &Path,
    (limits, values_max): (&Limits, u64),
    each: &mut dyn FnMut(&[T]),
) -> Result<Vec<usize>> {
    let mut lines = Lines::open(path, limits)?;
    let (mut row, mut rows, mut columns) = (Vec::new(), 0, 0);
    let mut growth = Growth::new();
    loop {
        row.clear();
        let outcome = match lines.next_line()? {
            None => break,
            Some("") => continue,
            Some(line) => parse_line(&mut row, line),
        };
        outcome.map_err(|what| lines.error(what))?;
        let found = row.len();
        if rows == 0 {
            columns = found;
        } else if found != columns {
            return Err(lines.error(format!("expected {columns} numbers, found {found}")));
        }
        rows += 1;
        let values = (rows * columns) as u64;
        growth.to(values * size_of::<T>() as u64).map_err(|what| lines.error(format!("what it unpacks to {what}")))?;
        if values > values_max {
            return Err(GraphError::too_large(path, "values", values_max));
        }
        each(&row);
    }
    Ok(vec![rows, columns])
}

fn parse_line<T: Element + FromStr>(values: &mut Vec<T>, line: &str) -> std::result::Result<(), String> {
    for field in line.split(',') {
        let field = field.trim();
        // Some writers put whole numbers as `3.0`.
        let value = field.parse().ok().or_else(|| field.parse().ok().and_then(T::from_float));
        values.push(value.ok_or_else(|| format!("found '{}', expected {}", shorten(field), T::NAME))?);
    }
    Ok(())
}

/// So much of a piece of a file as belongs into a message.
pub fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain("…".chars()).collect() }
}
