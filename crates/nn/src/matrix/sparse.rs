//! Sparse rows of `f32`, in both orders.

use std::ops::Range;

use super::transpose::{transpose_pattern, transposed_positions};

/// Compressed sparse rows, with the transposed pattern that the weight gradient walks.
#[derive(Debug, Clone, Default)]
pub struct SparseRows {
    columns: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    by_column: ByColumn,
}

/// The same entries in column order: for each column its rows, and where in `values` each entry stands. Values are
/// looked up rather than copied, because dropout changes them every round and the pattern never changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByColumn {
    pub offsets: Vec<usize>,
    pub rows: Vec<u32>,
    pub positions: Vec<u32>,
}

impl SparseRows {
    /// Builds the matrix from its rows: row v has `values[offsets[v]..offsets[v + 1]]` in the columns that `indices`
    /// has in the same places.
    ///
    /// # Panics
    ///
    /// If the arrays do not fit together, or a column lies beyond the matrix.
    pub fn new(columns: usize, offsets: Vec<usize>, indices: Vec<u32>, values: Vec<f32>) -> Self {
        assert_eq!(*offsets.last().expect("offsets have one entry more than rows"), indices.len());
        assert_eq!(indices.len(), values.len());
        assert!(indices.iter().all(|&c| (c as usize) < columns), "a column lies beyond {columns}");
        let (by_offsets, rows) = transpose_pattern(columns, &offsets, &indices);
        let positions = transposed_positions(columns, &indices);
        SparseRows { columns, offsets, indices, values, by_column: ByColumn { offsets: by_offsets, rows, positions } }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row boundaries in [`SparseRows::indices`]; rows + 1 entries.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The column of each stored value.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The stored values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The stored values; the pattern stays.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Row boundaries, columns and, for changing, the values.
    pub(crate) fn parts_mut(&mut self) -> (&[usize], &[u32], &mut [f32]) {
        (&self.offsets, &self.indices, &mut self.values)
    }

    /// All rows, borrowed.
    pub fn all(&self) -> SparseSpan<'_> {
        SparseSpan { of: self, first: 0, rows: self.rows() }
    }

    pub(crate) fn by_column(&self) -> &ByColumn {
        &self.by_column
    }

    /// The rows named by `rows`, in that order.
    pub fn gather(&self, rows: &[u32]) -> SparseRows {
        let mut offsets = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for &row in rows {
            let entries = self.offsets[row as usize]..self.offsets[row as usize + 1];
            indices.extend_from_slice(&self.indices[entries.clone()]);
            values.extend_from_slice(&self.values[entries]);
            offsets.push(indices.len());
        }
        SparseRows::new(self.columns, offsets, indices, values)
    }
}

/// Rows of a sparse matrix that follow each other, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct SparseSpan<'a> {
    of: &'a SparseRows,
    first: usize,
    rows: usize,
}

impl<'a> SparseSpan<'a> {
    /// Some of its rows.
    ///
    /// # Panics
    ///
    /// If they lie beyond it.
    #[must_use]
    pub fn span(&self, rows: Range<usize>) -> SparseSpan<'a> {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        SparseSpan { of: self.of, first: self.first + rows.start, rows: rows.len() }
    }

    /// The matrix, where these are all of its rows.
    pub fn whole(&self) -> Option<&'a SparseRows> {
        (self.rows == self.of.rows()).then_some(self.of)
    }

    /// The same rows as a matrix of their own.
    pub fn copied(&self) -> SparseRows {
        let rows: Vec<u32> = (self.first as u32..(self.first + self.rows) as u32).collect();
        self.of.gather(&rows)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.of.columns
    }

    /// Row boundaries in [`SparseSpan::indices`]; rows + 1 entries.
    pub fn offsets(&self) -> &'a [usize] {
        &self.of.offsets[self.first..=self.first + self.rows]
    }

    /// The column of each stored value of the matrix.
    pub fn indices(&self) -> &'a [u32] {
        &self.of.indices
    }

    /// The stored values of the matrix, row after row.
    pub fn values(&self) -> &'a [f32] {
        &self.of.values
    }
}
