//! Rows that a product reads, owned, however they are stored.

use std::path::Path;

use super::{DenseRows, Matrix, Precision, Rows, SparseRows};

/// Rows that a product reads: dense or sparse, owned or lent.
#[derive(Debug, Clone)]
pub enum Operand {
    /// A dense matrix: features that are mostly not zero.
    Dense(Matrix),
    /// Rows of a dense matrix in another order, by their places in it: features that are lent stay where they are.
    Placed(Matrix, Vec<u32>),
    /// A sparse matrix: bag-of-words features and their aggregates.
    Sparse(SparseRows),
}

impl Operand {
    /// Its matrix, in the order of the rows; sparse rows are dropped for an empty one.
    pub fn dense_mut(&mut self) -> &mut Matrix {
        match self {
            Operand::Dense(_) => {}
            Operand::Placed(matrix, places) => *self = Operand::Dense(matrix.gather(places)),
            Operand::Sparse(_) => *self = Operand::Dense(Matrix::default()),
        }
        match self {
            Operand::Dense(matrix) => matrix,
            Operand::Placed(..) | Operand::Sparse(_) => unreachable!("it was made dense above"),
        }
    }

    /// The rows `places` in that order: those of a dense matrix stay where they are.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[must_use]
    pub fn placed(self, places: Vec<u32>) -> Operand {
        match self {
            Operand::Dense(matrix) => {
                assert!(places.iter().all(|&place| (place as usize) < matrix.rows()), "places of rows");
                Operand::Placed(matrix, places)
            }
            other => other.gather(&places),
        }
    }

    /// The values of a row, where the rows are dense.
    ///
    /// # Panics
    ///
    /// If they are sparse, or not stored as `f32`.
    pub fn dense_row(&self, row: usize) -> &[f32] {
        match self {
            Operand::Dense(matrix) => matrix.row(row),
            Operand::Placed(matrix, places) => matrix.row(places[row] as usize),
            Operand::Sparse(_) => panic!("sparse rows have no values side by side"),
        }
    }

    /// The same rows, borrowed.
    pub fn view(&self) -> Rows<'_> {
        match self {
            Operand::Dense(m) => Rows::Dense(m),
            Operand::Placed(m, places) => Rows::Made(DenseRows::placed(m.all(), places)),
            Operand::Sparse(s) => Rows::Sparse(s.all()),
        }
    }

    /// As [`Matrix::changed_file`]; sparse rows are in memory.
    pub fn changed_file(&self) -> Option<&Path> {
        match self {
            Operand::Dense(m) | Operand::Placed(m, _) => m.changed_file(),
            Operand::Sparse(_) => None,
        }
    }

    /// The rows named by `rows`, in that order.
    pub fn gather(&self, rows: &[u32]) -> Operand {
        match self {
            Operand::Dense(m) => Operand::Dense(m.gather(rows)),
            Operand::Placed(m, places) => {
                let rows: Vec<u32> = rows.iter().map(|&row| places[row as usize]).collect();
                Operand::Dense(m.gather(&rows))
            }
            Operand::Sparse(s) => Operand::Sparse(s.gather(rows)),
        }
    }

    /// The same rows, dense ones stored so.
    #[must_use]
    pub fn converted(self, precision: Precision) -> Operand {
        match self {
            Operand::Dense(rows) => Operand::Dense(rows.converted(precision)),
            Operand::Placed(ref rows, ref places) if rows.precision() != precision => {
                Operand::Dense(rows.gather(places).converted(precision))
            }
            Operand::Placed(..) | Operand::Sparse(_) => self,
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
