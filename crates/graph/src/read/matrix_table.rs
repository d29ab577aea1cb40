//! Adjacency matrices as text, which are no lists of edges.

use super::ReadOptions;
use super::names::name_ends;
use super::table::{Cell, Kind, Table};
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
    if is_asked || !is_matrix(table)? {
        return Ok(());
    }
    let index = if table.columns().len() == table.rows() { ", header=None" } else { ", index_col=0" };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lines = format!(
        "m = pandas.read_csv(\"{name}\"{index}).stack(); m[m != 0].reset_index().to_csv(\"edges.csv\", \
         header=[\"source\", \"target\", \"weight\"], index=False)"
    );
    let what = format!("this is an adjacency matrix and no list of edges; in Python, {lines} writes one");
    let else_ = "--source and --target (data.source, data.target) read it as a list all the same";
    Err(GraphError::format(path, "table", format!("{what}; {else_}")))
}

/// Whether rows and columns are the same nodes.
fn is_matrix(table: &dyn Table) -> Result<bool> {
    let (rows, columns) = (table.rows(), table.columns());
    let are_numbers =
        |from: usize| columns[from..].iter().all(|column| matches!(column.kind, Kind::Integer | Kind::Float));
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    // As many edges as columns are a list still, where the names say so.
    if !(3..=ROWS_MAX).contains(&rows) || columns.len() < rows || table.has_header() && name_ends(&names) {
        return Ok(false);
    }
    let is_named = columns.len() == rows + 1 && table.has_header();
    if is_named && are_numbers(1) {
        // What stands before each row is what stands above each column.
        let mut are_same = true;
        table.scan(&[(0, Kind::Text)], &mut |row, _, cell| {
            are_same &= matches!(cell, Cell::Text(name) if name == columns[row + 1].name);
            Ok(())
        })?;
        return Ok(are_same);
    }
    if columns.len() != rows || !are_numbers(0) {
        return Ok(false);
    }
    let mut cells = vec![f64::NAN; rows * rows];
    let wanted: Vec<_> = (0..rows).map(|column| (column, Kind::Float)).collect();
    table.scan(&wanted, &mut |row, column, cell| {
        if let Cell::Float(value) = cell {
            cells[row * rows + column] = value;
        }
        Ok(())
    })?;
    let at = |row: usize, column: usize| cells[row * rows + column];
    let is_symmetric = (0..rows).all(|row| (0..row).all(|column| at(row, column) == at(column, row)));
    let is_same = |value: f64| (0..rows).all(|row| at(row, row) == value);
    // Numbers above its columns and before its rows, with nothing in the corner.
    let has_numbers = at(0, 0).is_nan() && (1..rows).all(|row| at(0, row) == at(row, 0));
    Ok(has_numbers || is_symmetric || is_same(0.0) || rows > 3 && is_same(1.0))
}
