//! Text files of comma-separated numbers without a header.

use super::arrays::{Array, Element};
use super::text::Lines;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::Growth;
use std::path::Path;

/// All numbers of `path` as [rows, columns]; every line must have as many as the first. At most `values_max` values.
pub fn read_numbers<T: Element + std::str::FromStr>(path: &Path, limits: &Limits, values_max: u64) -> Result<Array<T>> {
    let mut lines = Lines::open(path, limits)?;
    let mut values = Vec::new();
    let (mut rows, mut columns) = (0, 0);
    let mut growth = Growth::new();
    loop {
        let before = values.len();
        let outcome = match lines.next_line()? {
            None => break,
            Some("") => continue,
            Some(line) => parse_line(&mut values, line),
        };
        outcome.map_err(|what| lines.error(what))?;
        let found = values.len() - before;
        if rows == 0 {
            columns = found;
        } else if found != columns {
            return Err(lines.error(format!("expected {columns} numbers, found {found}")));
        }
        growth
            .to((values.len() * size_of::<T>()) as u64)
            .map_err(|what| lines.error(format!("what it unpacks to {what}")))?;
        if values.len() as u64 > values_max {
            return Err(GraphError::too_large(path, "values", values_max));
        }
        rows += 1;
    }
    Ok(Array { shape: vec![rows, columns], values })
}

fn parse_line<T: Element + std::str::FromStr>(values: &mut Vec<T>, line: &str) -> std::result::Result<(), String> {
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
