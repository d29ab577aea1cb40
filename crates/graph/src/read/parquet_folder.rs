//! Tables in folders of Parquet files, as Spark and others write them: `part-*.parquet`, in the order of their names.

use super::column::{ColumnInfo, Kind, Sink, Table};
use super::parquet_table::ParquetTable;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::path::{Path, PathBuf};

/// A table in several files.
pub struct ParquetFolder {
    path: PathBuf,
    parts: Vec<ParquetTable>,
    rows: usize,
}

/// More files than this are not open at once.
const PARTS_MAX: usize = 512;

/// Whether this is such a folder.
pub fn is_parquet_folder(path: &Path) -> bool {
    let entries = || path.is_dir().then(|| std::fs::read_dir(path).ok()).flatten();
    entries().into_iter().flatten().flatten().any(|entry| is_part(&entry.path()))
}

fn is_part(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with("part-") && name.ends_with(".parquet")
}

impl ParquetFolder {
    /// Opens all files and reads their footers.
    pub fn open(path: &Path, limits: &Limits) -> Result<ParquetFolder> {
        let entries = std::fs::read_dir(path).map_err(|e| GraphError::io(path, e))?;
        let mut files = Vec::new();
        for entry in entries {
            let file = entry.map_err(|e| GraphError::io(path, e))?.path();
            if is_part(&file) {
                files.push(file);
            }
            if files.len() > PARTS_MAX {
                return Err(GraphError::too_large(path, "files part-*.parquet", PARTS_MAX as u64));
            }
        }
        files.sort();
        let mut folder = ParquetFolder { path: path.to_owned(), parts: Vec::new(), rows: 0 };
        for file in files {
            let part = ParquetTable::open(&file, limits)?;
            if let Some(first) = folder.parts.first().filter(|first| first.columns() != part.columns()) {
                let expected = format!("expected the columns of {}", first.path().display());
                return Err(GraphError::format(&file, "footer", expected));
            }
            folder.rows = folder.rows.saturating_add(part.rows());
            folder.parts.push(part);
        }
        match folder.rows as u64 > limits.edges_max {
            true => Err(GraphError::too_large(path, "rows", limits.edges_max)),
            false if folder.parts.is_empty() => Err(GraphError::format(path, "folder", "expected part-*.parquet")),
            false => Ok(folder),
        }
    }
}

impl Table for ParquetFolder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn columns(&self) -> &[ColumnInfo] {
        self.parts.first().map_or(&[], |part| part.columns())
    }

    fn has_header(&self) -> bool {
        true
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn rows_at_once(&self) -> usize {
        self.parts.iter().map(|part| part.rows_at_once()).max().unwrap_or(0)
    }

    fn scan(&self, wanted: &[(usize, Kind)], sink: Sink) -> Result<()> {
        let mut start = 0;
        for part in &self.parts {
            part.scan(wanted, &mut |row, slot, cell| sink(start + row, slot, cell))?;
            start += part.rows();
        }
        Ok(())
    }
}
