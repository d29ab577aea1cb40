//! `.npy` files that are read in pieces.

use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::npy::{Header, Kind};
use crate::read::arrays::{Element, open_limited};
use crate::read::decoded::decode_chunk;

/// A vector or a matrix in C order whose values are all there.
pub(super) struct ArrayFile {
    path: PathBuf,
    header: Header,
    start: u64,
    /// The length of the vector, or the rows of the matrix.
    pub(super) rows: u64,
    /// 1 for a vector.
    pub(super) columns: usize,
}

/// Bytes that are read at a time, or one row if that is more.
const CHUNK: usize = 1 << 18;

impl ArrayFile {
    /// Looks at the header. A matrix has at most `columns_max` columns.
    pub(super) fn open(path: &Path, limits: &Limits, columns_max: u64) -> Result<ArrayFile> {
        let bad = |what: String| GraphError::format(path, "array", what);
        let file = open_limited(path, limits)?;
        let there = file.metadata().map_err(|source| GraphError::io(path, source))?.len();
        let mut file = BufReader::new(file);
        let header = Header::read(&mut file).map_err(|error| bad(error.to_string()))?;
        let start = file.stream_position().map_err(|source| GraphError::io(path, source))?;
        if ![Kind::Bool, Kind::Int, Kind::Uint, Kind::Float].contains(&header.kind) {
            return Err(bad(format!("expected numbers, found items of type '{}'", header.descr)));
        }
        let (rows, columns) = match header.shape[..] {
            [rows] => (rows, 1),
            [rows, columns] if !header.fortran && columns <= columns_max => (rows, columns),
            [_, _] if !header.fortran => {
                return Err(bad(format!("expected at most {columns_max} columns, found shape {:?}", header.shape)));
            }
            [_, _] => return Err(bad("expected C order, found Fortran order".to_owned())),
            _ => return Err(bad(format!("expected a vector or a matrix, found shape {:?}", header.shape))),
        };
        let bytes = header.values().and_then(|values| values.checked_mul(header.item_bytes as u64));
        if bytes.and_then(|bytes| bytes.checked_add(start)) != Some(there) {
            let what =
                format!("its shape {:?} of '{}' is not that of a file of {there} bytes", header.shape, header.descr);
            return Err(bad(what));
        }
        Ok(ArrayFile { path: path.to_owned(), header, start, rows, columns: columns as usize })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `each` with the values of some rows after the other.
    pub(super) fn pass<T: Element>(&self, each: &mut dyn FnMut(&[T]) -> Result<()>) -> Result<()> {
        let io = |source| GraphError::io(&self.path, source);
        let mut file = std::fs::File::open(&self.path).map_err(io)?;
        file.seek(std::io::SeekFrom::Start(self.start)).map_err(io)?;
        let row_bytes = (self.columns * self.header.item_bytes).max(1);
        let rows_at_once = (CHUNK / row_bytes).max(1) as u64;
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        let mut row = 0;
        while row < self.rows {
            let rows = rows_at_once.min(self.rows - row);
            bytes.resize(rows as usize * row_bytes, 0);
            file.read_exact(&mut bytes).map_err(io)?;
            values.clear();
            decode_chunk(&mut values, &bytes, &self.header).map_err(|error| {
                GraphError::format(&self.path, format!("rows {row} to {}", row + rows - 1), error.to_string())
            })?;
            each(&values)?;
            row += rows;
        }
        Ok(())
    }
}
