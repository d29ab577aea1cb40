//! Rows that kernels read, however they are stored.

use std::ops::Range;

use super::{Matrix, Precision, Span, SparseSpan};

/// Borrowed rows that a product reads.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// The rows of a dense matrix.
    Dense(&'a Matrix),
    /// Some rows of one.
    Span(Span<'a>),
    /// Rows of a sparse matrix.
    Sparse(SparseSpan<'a>),
}

/// Rows by how they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored<'a> {
    Dense(Span<'a>),
    Sparse(SparseSpan<'a>),
}

impl<'a> Rows<'a> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self.stored() {
            Stored::Dense(span) => span.rows(),
            Stored::Sparse(s) => s.rows(),
        }
    }

    /// Some of the rows.
    ///
    /// # Panics
    ///
    /// If they lie beyond them.
    #[must_use]
    pub fn span(&self, rows: Range<usize>) -> Rows<'a> {
        match self.stored() {
            Stored::Dense(span) => Rows::Span(span.span(rows)),
            Stored::Sparse(span) => Rows::Sparse(span.span(rows)),
        }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        match self.stored() {
            Stored::Dense(span) => span.columns(),
            Stored::Sparse(s) => s.columns(),
        }
    }

    /// How values are stored; those of sparse rows are `f32`.
    pub fn precision(&self) -> Precision {
        match self.stored() {
            Stored::Dense(span) => span.precision(),
            Stored::Sparse(_) => Precision::F32,
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
