//! A table in memory, made of what is no table in its file.

use super::column::{Cell, ColumnInfo, Kind, Sink, Table};
use crate::error::{GraphError, Result};
use std::path::{Path, PathBuf};

/// The values of a column.
pub enum Cells {
    /// Whole numbers, one a row.
    Integers(Vec<i64>),
    /// Numbers; NaN where there is none.
    Floats(Vec<f64>),
    /// Texts, and nothing where there is none.
    Texts(Vec<Option<String>>),
}

/// A table whose columns have names.
pub struct MadeTable {
    path: PathBuf,
    columns: Vec<ColumnInfo>,
    cells: Vec<Cells>,
    rows: usize,
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::Integers(values) => values.len(),
            Cells::Floats(values) => values.len(),
            Cells::Texts(values) => values.len(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Cells::Integers(_) => Kind::Integer,
            Cells::Floats(_) => Kind::Float,
            Cells::Texts(_) => Kind::Text,
        }
    }

    /// Gives the cell of a row as `kind` to `sink`.
    fn give(&self, row: usize, kind: Kind, sink: &mut dyn FnMut(Cell) -> Given) -> Given {
        match self {
            Cells::Integers(values) if kind == Kind::Integer => sink(Cell::Integer(values[row])),
            Cells::Integers(values) if kind == Kind::Float => sink(Cell::Float(values[row] as f64)),
            Cells::Integers(values) => sink(Cell::Text(&values[row].to_string())),
            Cells::Floats(values) if values[row].is_nan() => sink(Cell::Missing),
            Cells::Floats(values) if kind == Kind::Float => sink(Cell::Float(values[row])),
            Cells::Floats(values) => sink(Cell::Text(&values[row].to_string())),
            Cells::Texts(values) => sink(values[row].as_deref().map_or(Cell::Missing, Cell::Text)),
        }
    }
}

type Given = std::result::Result<(), String>;

impl MadeTable {
    /// The table of these columns, which are of one length.
    pub fn new(path: &Path, columns: Vec<(String, Cells)>) -> MadeTable {
        let rows = columns.first().map_or(0, |(_, cells)| cells.len());
        let info = |(name, cells): &(String, Cells)| ColumnInfo { name: name.clone(), kind: cells.kind() };
        let infos = columns.iter().map(info).collect();
        let cells = columns.into_iter().map(|(_, cells)| cells).collect();
        MadeTable { path: path.to_owned(), columns: infos, cells, rows }
    }
}

impl Table for MadeTable {
    fn path(&self) -> &Path {
        &self.path
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn has_header(&self) -> bool {
        true
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn scan(&self, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        for row in 0..self.rows {
            for (slot, &(column, kind)) in wanted.iter().enumerate() {
                let given = self.cells[column].give(row, kind, &mut |cell| sink(row, slot, cell));
                given.map_err(|what| {
                    let what = format!("column '{}': {what}", self.columns[column].name);
                    GraphError::format(&self.path, format!("row {row}"), what)
                })?;
            }
        }
        Ok(())
    }
}
