//! Adjacency matrices as text, which are no lists of edges.

use super::index_column::is_index_name;
use super::names::name_ends;
use super::separator::detect;
use super::table::{Cell, Kind, Table};
use super::{ReadOptions, extension};
use crate::error::{GraphError, Result};
use std::path::Path;

/// Larger matrices are not looked at: they would be read whole.
const ROWS_MAX: usize = 20_000;

/// Refuses a table that is the adjacency matrix of a graph, with or without names.
///
/// # Errors
///
/// If it is one, or cannot be read.
pub fn refuse_matrix(table: &dyn Table, path: &Path, options: &ReadOptions) -> Result<()> {
    let is_asked = options.columns.source.is_some() || options.columns.target.is_some();
    let Some(names) = (if is_asked { None } else { names(table)? }) else { return Ok(()) };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let read = if extension(path) == "parquet" {
        let index =
            if names == Names::Rows { format!(".set_index(\"{}\")", table.columns()[0].name) } else { String::new() };
        format!("read_parquet(\"{name}\"){}", if is_index_name(&table.columns()[0].name) { "" } else { &index })
    } else {
        let sign = if path.is_file() { detect(path, &options.limits)?.separator.text() } else { ",".to_owned() };
        let sign = match sign.as_str() {
            "," => String::new(),
            " " => ", sep=\"\\\\s+\"".to_owned(),
            "\t" => ", sep=\"\\\\t\"".to_owned(),
            sign => format!(", sep=\"{sign}\""),
        };
        let index = match names {
            Names::None => ", header=None",
            Names::Columns => "",
            Names::Rows => ", index_col=0",
        };
        format!("read_csv(\"{name}\"{sign}{index})")
    };
    let lines = format!(
        "m = pandas.{read}; m.index = m.columns; m = m.stack(); m[m.fillna(0) != 0].reset_index().to_csv(\
         \"edges.csv\", header=[\"source\", \"target\", \"weight\"], index=False)"
    );
    let what = format!("this is an adjacency matrix and no list of edges; in Python, {lines} writes one");
    let else_ = "--source and --target (data.source, data.target) read it as a list all the same";
    Err(GraphError::format(path, "table", format!("{what}; {else_}")))
}

/// Where the names of the nodes of a matrix stand.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    /// Nowhere.
    None,
    /// Above the columns.
    Columns,
    /// Above the columns and before the rows.
    Rows,
}

/// Where names stand, if rows and columns are the same nodes.
fn names(table: &dyn Table) -> Result<Option<Names>> {
    let (rows, columns) = (table.rows(), table.columns());
    let are_numbers =
        |from: usize| columns[from..].iter().all(|column| matches!(column.kind, Kind::Integer | Kind::Float));
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    // As many edges as columns are a list still, where the names say so.
    if !(3..=ROWS_MAX).contains(&rows) || columns.len() + 1 < rows || table.has_header() && name_ends(&names) {
        return Ok(None);
    }
    let is_named = columns.len() == rows + 1 && table.has_header();
    if is_named && are_numbers(1) {
        // What stands before each row is what stands above each column.
        let mut are_same = true;
        table.scan(&[(0, Kind::Text)], &mut |row, _, cell| {
            are_same &= matches!(cell, Cell::Text(name) if name == columns[row + 1].name);
            Ok(())
        })?;
        return Ok(are_same.then_some(Names::Rows));
    }
    let has_numbers_above = columns.len() + 1 == rows && rows > LIST_MAX / 2 && !table.has_header();
    if columns.len() != rows && !has_numbers_above || !are_numbers(0) {
        return Ok(None);
    }
    let width = columns.len();
    let mut cells = vec![f64::NAN; rows * width];
    let wanted: Vec<_> = (0..width).map(|column| (column, Kind::Float)).collect();
    table.scan(&wanted, &mut |row, column, cell| {
        if let Cell::Float(value) = cell {
            cells[row * width + column] = value;
        }
        Ok(())
    })?;
    // Without the numbers of the nodes in the first row, which stand there as 0, 1, 2, … or from 1 on.
    let above: Vec<f64> = cells.drain(..if has_numbers_above { width } else { 0 }).collect();
    let counts = |first: usize| above.iter().enumerate().all(|(place, &number)| number == (first + place) as f64);
    if has_numbers_above && !counts(0) && !counts(1) {
        return Ok(None);
    }
    let at = |row: usize, column: usize| cells[row * width + column];
    let is_symmetric = (0..width).all(|row| (0..row).all(|column| at(row, column) == at(column, row)));
    let is_same = |value: f64| (0..width).all(|row| at(row, row) == value);
    // Numbers above its columns and before its rows, with nothing in the corner.
    let has_numbers = at(0, 0).is_nan() && (1..width).all(|row| at(0, row) == at(row, 0));
    let is_one = is_symmetric || is_same(0.0) || width > 3 && is_same(1.0) || has_numbers_above && width > LIST_MAX;
    Ok(match (has_numbers, is_one) {
        (true, _) => Some(Names::Rows),
        (_, true) if has_numbers_above || table.has_header() => Some(Names::Columns),
        (_, true) => Some(Names::None),
        _ => None,
    })
}

/// No list of edges has more columns whose names are 0, 1, 2, ….
const LIST_MAX: usize = 8;
