//! Dense and sparse matrices of `f32`, rows are nodes.

use std::ops::Range;

/// A dense row-major matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    data: Vec<f32>,
}

impl Matrix {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Matrix { rows, columns, data: vec![0.0; rows * columns] }
    }

    /// Takes over `data`, row after row.
    ///
    /// # Panics
    ///
    /// If its length is not rows × columns.
    pub fn from_vec(rows: usize, columns: usize, data: Vec<f32>) -> Self {
        assert_eq!(data.len(), rows * columns, "{rows} x {columns} matrix");
        Matrix { rows, columns, data }
    }

    /// Gives the matrix this shape, keeping its memory. What it holds afterwards is unspecified: every user overwrites
    /// it.
    pub fn reshape(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.columns = columns;
        if self.data.capacity() < rows * columns {
            // What it held is nobody's, so it goes first and nothing is copied. Rows of batches vary a little.
            self.data = Vec::new();
            self.data.reserve_exact(rows * columns + rows * columns / 16);
        }
        self.data.resize(rows * columns, 0.0);
    }

    /// Adds a row behind the others, which stay.
    ///
    /// # Panics
    /// If it is not as wide as they are.
    pub fn push(&mut self, row: &[f32]) {
        if self.rows == 0 {
            self.columns = row.len();
        }
        assert_eq!(row.len(), self.columns, "a row of a matrix of {} columns", self.columns);
        self.data.extend_from_slice(row);
        self.rows += 1;
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row after row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All values, row after row, for changing.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// All values and the width of a row, as [`crate::Compute::rows`] takes them.
    pub fn rows_mut(&mut self) -> (&mut [f32], usize) {
        (&mut self.data, self.columns)
    }

    /// The values of one row.
    ///
    /// # Panics
    ///
    /// If the row lies beyond the matrix.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// The values of one row, for changing.
    ///
    /// # Panics
    ///
    /// If the row lies beyond the matrix.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// Some rows that follow each other.
    ///
    /// # Panics
    ///
    /// If they lie beyond the matrix.
    pub fn span(&self, rows: Range<usize>) -> Span<'_> {
        Span { rows: self.rows, columns: self.columns, data: &self.data }.span(rows)
    }

    /// The values, row after row, as a vector.
    pub fn into_vec(self) -> Vec<f32> {
        self.data
    }
}

/// Rows of a dense matrix that follow each other, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    rows: usize,
    columns: usize,
    data: &'a [f32],
}

impl<'a> Span<'a> {
    /// Some of its rows.
    ///
    /// # Panics
    ///
    /// If they lie beyond it.
    #[must_use]
    pub fn span(&self, rows: Range<usize>) -> Span<'a> {
        let data = &self.data[rows.start * self.columns..rows.end * self.columns];
        Span { rows: rows.len(), columns: self.columns, data }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row after row.
    pub fn data(&self) -> &'a [f32] {
        self.data
    }

    /// The values of one row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.columns..(row + 1) * self.columns]
    }
}

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
        let (by_offsets, rows, positions) = transpose_pattern(columns, &offsets, &indices);
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

/// For each column, the rows that have an entry in it (ascending) and the entry's position.
pub(crate) fn transpose_pattern(
    columns: usize,
    offsets: &[usize],
    indices: &[u32],
) -> (Vec<usize>, Vec<u32>, Vec<u32>) {
    assert!(u32::try_from(indices.len()).is_ok(), "{} entries exceed 2^32 in one block", indices.len());
    let mut by_offsets = vec![0usize; columns + 1];
    for &column in indices {
        by_offsets[column as usize + 1] += 1;
    }
    for column in 0..columns {
        by_offsets[column + 1] += by_offsets[column];
    }
    let mut next = by_offsets.clone();
    let (mut rows, mut positions) = (vec![0u32; indices.len()], vec![0u32; indices.len()]);
    for row in 0..offsets.len() - 1 {
        for position in offsets[row]..offsets[row + 1] {
            let slot = &mut next[indices[position] as usize];
            rows[*slot] = row as u32;
            positions[*slot] = position as u32;
            *slot += 1;
        }
    }
    (by_offsets, rows, positions)
}

/// Rows that a product reads: dense or sparse, owned.
#[derive(Debug, Clone)]
pub enum Operand {
    /// A dense matrix: features that are mostly not zero.
    Dense(Matrix),
    /// A sparse matrix: bag-of-words features and their aggregates.
    Sparse(SparseRows),
}

/// Borrowed rows that a product reads.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// The rows of a dense matrix.
    Dense(&'a Matrix),
    /// Some rows of one.
    Span(Span<'a>),
    /// The rows of a sparse matrix.
    Sparse(&'a SparseRows),
}

/// Rows by how they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored<'a> {
    Dense(Span<'a>),
    Sparse(&'a SparseRows),
}

impl<'a> Rows<'a> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self.stored() {
            Stored::Dense(span) => span.rows(),
            Stored::Sparse(s) => s.rows(),
        }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        match self.stored() {
            Stored::Dense(span) => span.columns(),
            Stored::Sparse(s) => s.columns(),
        }
    }

    pub(crate) fn stored(&self) -> Stored<'a> {
        match *self {
            Rows::Dense(m) => Stored::Dense(m.span(0..m.rows())),
            Rows::Span(span) => Stored::Dense(span),
            Rows::Sparse(s) => Stored::Sparse(s),
        }
    }
}

impl Operand {
    /// Its matrix; sparse rows are dropped for an empty one.
    pub fn dense_mut(&mut self) -> &mut Matrix {
        if let Operand::Sparse(_) = self {
            *self = Operand::Dense(Matrix::default());
        }
        match self {
            Operand::Dense(matrix) => matrix,
            Operand::Sparse(_) => unreachable!("it was made dense above"),
        }
    }

    /// The same rows, borrowed.
    pub fn view(&self) -> Rows<'_> {
        match self {
            Operand::Dense(m) => Rows::Dense(m),
            Operand::Sparse(s) => Rows::Sparse(s),
        }
    }

    /// The rows named by `rows`, in that order.
    pub fn gather(&self, rows: &[u32]) -> Operand {
        match self {
            Operand::Dense(m) => {
                let mut out = Matrix::zeros(rows.len(), m.columns());
                for (to, &from) in rows.iter().enumerate() {
                    out.row_mut(to).copy_from_slice(m.row(from as usize));
                }
                Operand::Dense(out)
            }
            Operand::Sparse(s) => Operand::Sparse(s.gather(rows)),
        }
    }

    /// The dense matrix `m`, stored sparsely if fewer than one value in eight is not zero: below that a sparse product
    /// is the faster one, and the memory is a quarter or less.
    pub fn compact(m: Matrix) -> Operand {
        let stored = m.data().iter().filter(|&&v| v != 0.0).count();
        if stored * 8 >= m.data().len() || u32::try_from(stored).is_err() {
            return Operand::Dense(m);
        }
        let mut offsets = Vec::with_capacity(m.rows() + 1);
        offsets.push(0);
        let (mut indices, mut values) = (Vec::with_capacity(stored), Vec::with_capacity(stored));
        for row in 0..m.rows() {
            for (column, &value) in m.row(row).iter().enumerate() {
                if value != 0.0 {
                    indices.push(column as u32);
                    values.push(value);
                }
            }
            offsets.push(indices.len());
        }
        Operand::Sparse(SparseRows::new(m.columns(), offsets, indices, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_added_leave_the_others_and_a_new_shape_takes_no_more_than_it_needs() {
        let mut m = Matrix::default();
        (0..50).for_each(|row| m.push(&[row as f32, -1.0]));
        assert_eq!((m.rows(), m.columns()), (50, 2));
        assert!((0..50).all(|row| m.row(row) == [row as f32, -1.0]));
        let place = m.data().as_ptr();
        m.reshape(5, 10);
        assert_eq!((m.data().len(), m.data().as_ptr()), (50, place));
        m.reshape(300, 4);
        let values = m.into_vec();
        assert!(values.len() == 1200 && values.capacity() < 1300, "{}", values.capacity());
    }

    #[test]
    fn compacting_and_gathering_keep_every_value() {
        let mut m = Matrix::zeros(5, 40);
        m.row_mut(1)[3] = 2.0;
        m.row_mut(4)[39] = -1.0;
        m.row_mut(4)[0] = 7.0;
        let Operand::Sparse(s) = Operand::compact(m.clone()) else { panic!("three of 200 values should be sparse") };
        for row in 0..5 {
            let mut dense = vec![0.0; 40];
            for e in s.offsets()[row]..s.offsets()[row + 1] {
                dense[s.indices()[e] as usize] = s.values()[e];
            }
            assert_eq!(dense, m.row(row));
        }
        let picked = s.gather(&[4, 0]);
        assert_eq!((picked.rows(), picked.values()), (2, &[7.0, -1.0][..]));
        assert_eq!(picked.by_column().rows, [0, 0]);
    }
}
