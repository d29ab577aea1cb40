//! Rows that kernels read, however they are stored.

use std::ops::Range;

use super::{Matrix, Precision, Span, SparseSpan, Value, each_value};
use crate::dropout::Dropout;

/// Borrowed rows that a product reads.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// The rows of a dense matrix.
    Dense(&'a Matrix),
    /// Some rows of one.
    Span(Span<'a>),
    /// Rows of a sparse matrix.
    Sparse(SparseSpan<'a>),
    /// Dense rows with dropout, which whoever reads them makes.
    Dropped(DenseRows<'a>),
}

/// Dense rows as they stand, or with dropout that is made whenever they are read: no copy of them is kept, and a
/// product makes a few of them at a time, in the cache.
#[derive(Debug, Clone, Copy)]
pub struct DenseRows<'a> {
    span: Span<'a>,
    /// The mask, and for each row the global id of its node.
    dropout: Option<(Dropout, &'a [u64])>,
}

/// Rows by how they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored<'a> {
    Dense(DenseRows<'a>),
    Sparse(SparseSpan<'a>),
}

impl<'a> From<Span<'a>> for DenseRows<'a> {
    fn from(span: Span<'a>) -> DenseRows<'a> {
        DenseRows { span, dropout: None }
    }
}

impl<'a> DenseRows<'a> {
    /// The rows with dropout, in the place of any that they have; `nodes` are the global ids of their nodes.
    ///
    /// # Panics
    ///
    /// If there is not a node for each row.
    #[must_use]
    pub fn with_dropout(self, dropout: Dropout, nodes: &'a [u64]) -> DenseRows<'a> {
        assert_eq!(self.rows(), nodes.len(), "one node a row");
        DenseRows { dropout: Some((dropout, nodes)), ..self }
    }

    /// Some of the rows.
    ///
    /// # Panics
    ///
    /// If they lie beyond them.
    #[must_use]
    pub fn span(&self, rows: Range<usize>) -> DenseRows<'a> {
        let dropout = self.dropout.map(|(dropout, nodes)| (dropout, &nodes[rows.clone()]));
        DenseRows { span: self.span.span(rows), dropout }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.span.rows()
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.span.columns()
    }

    /// How values are stored; those that stay after dropout are rounded likewise.
    pub fn precision(&self) -> Precision {
        self.span.precision()
    }

    /// What is stored, without dropout.
    pub(crate) fn before_dropout(&self) -> Span<'a> {
        self.span
    }

    /// The mask, and the nodes of the rows.
    pub(crate) fn dropout(&self) -> Option<(Dropout, &'a [u64])> {
        self.dropout
    }
}

impl<'a> Rows<'a> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self.stored() {
            Stored::Dense(rows) => rows.rows(),
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
            Stored::Dense(of @ DenseRows { dropout: Some(_), .. }) => Rows::Dropped(of.span(rows)),
            Stored::Dense(of) => Rows::Span(of.span.span(rows)),
            Stored::Sparse(span) => Rows::Sparse(span.span(rows)),
        }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        match self.stored() {
            Stored::Dense(rows) => rows.columns(),
            Stored::Sparse(s) => s.columns(),
        }
    }

    /// How values are stored; those of sparse rows are `f32`.
    pub fn precision(&self) -> Precision {
        match self.stored() {
            Stored::Dense(rows) => rows.precision(),
            Stored::Sparse(_) => Precision::F32,
        }
    }

    /// The rows, where they are dense.
    pub fn dense(&self) -> Option<DenseRows<'a>> {
        match self.stored() {
            Stored::Dense(rows) => Some(rows),
            Stored::Sparse(_) => None,
        }
    }

    /// Sets `out` to a row, however it is stored. Kernels read many at a time; a layer that reads rows by itself has
    /// them so.
    ///
    /// # Panics
    ///
    /// If the row lies beyond them, or is not as wide as `out`.
    pub fn copy_row(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.columns(), "a row of {} columns", self.columns());
        match self.stored() {
            Stored::Dense(rows) => {
                let DenseRows { span, dropout } = rows.span(row..row + 1);
                each_value!(span.values(), |values| match dropout {
                    Some((dropout, nodes)) => drop_row(out, values, &dropout, nodes[0]),
                    None => out.iter_mut().zip(values).for_each(|(out, value)| *out = value.get()),
                });
            }
            Stored::Sparse(rows) => {
                out.fill(0.0);
                for entry in rows.offsets()[row]..rows.offsets()[row + 1] {
                    out[rows.indices()[entry] as usize] += rows.values()[entry];
                }
            }
        }
    }

    pub(crate) fn stored(&self) -> Stored<'a> {
        match *self {
            Rows::Dense(m) => Stored::Dense(m.all().into()),
            Rows::Span(span) => Stored::Dense(span.into()),
            Rows::Sparse(s) => Stored::Sparse(s),
            Rows::Dropped(rows) => Stored::Dense(rows),
        }
    }
}

/// `out` = the row with dropout, in the precision that it is stored in. What is stored shorter is widened in a loop of
/// its own, since compilers make vectors of neither where values of two lengths meet a choice.
#[inline(always)]
pub(crate) fn drop_row<T: Value>(out: &mut [f32], x: &[T], dropout: &Dropout, node: u64) {
    let kept = dropout.of_row(node);
    if let Some(x) = T::plain(x) {
        return out.iter_mut().zip(x).enumerate().for_each(|(column, (out, x))| *out = kept(column, *x));
    }
    out.iter_mut().zip(x).for_each(|(out, x)| *out = x.get());
    out.iter_mut().enumerate().for_each(|(column, out)| *out = kept(column, *out));
    out.iter_mut().for_each(|out| *out = T::of(*out).get());
}
