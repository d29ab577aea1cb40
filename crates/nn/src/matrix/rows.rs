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
    /// Dense rows with dropout or in an order of their own, which whoever reads them makes.
    Made(DenseRows<'a>),
}

/// Dense rows as they stand, or in another order, or with dropout, which are made whenever they are read: no copy of
/// them is kept, and a product makes a few of them at a time, in the cache.
#[derive(Debug, Clone, Copy)]
pub struct DenseRows<'a> {
    span: Span<'a>,
    /// For each row which one it is of those that stand in memory; `None` where they stand in this order.
    places: Option<&'a [u32]>,
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
        DenseRows { span, places: None, dropout: None }
    }
}

impl<'a> DenseRows<'a> {
    /// The rows `places` of these, in that order.
    pub(crate) fn placed(span: Span<'a>, places: &'a [u32]) -> DenseRows<'a> {
        DenseRows { span, places: Some(places), dropout: None }
    }

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
        match self.places {
            Some(places) => DenseRows { places: Some(&places[rows]), dropout, ..*self },
            None => DenseRows { span: self.span.span(rows), places: None, dropout },
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.places.map_or(self.span.rows(), <[u32]>::len)
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.span.columns()
    }

    /// How values are stored; those that stay after dropout are rounded likewise.
    pub fn precision(&self) -> Precision {
        self.span.precision()
    }

    /// Some of the rows without dropout, where they stand in this order.
    pub(crate) fn in_order(&self, rows: Range<usize>) -> Option<Span<'a>> {
        self.places.is_none().then(|| self.span.span(rows))
    }

    /// Some of the rows, where they are what is stored.
    pub(crate) fn as_stored(&self, rows: Range<usize>) -> Option<Span<'a>> {
        self.in_order(rows).filter(|_| self.dropout.is_none())
    }

    /// What is stored of them or of more rows, and which row of it each is.
    pub(crate) fn stored(&self) -> (Span<'a>, Option<&'a [u32]>) {
        (self.span, self.places)
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
            Stored::Dense(of) => match of.as_stored(rows.clone()) {
                Some(span) => Rows::Span(span),
                None => Rows::Made(of.span(rows)),
            },
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
                let DenseRows { span, places, dropout } = rows.span(row..row + 1);
                let place = places.map_or(0, |places| places[0] as usize);
                each_value!(span.span(place..place + 1).values(), |values| match dropout {
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
            Rows::Made(rows) => Stored::Dense(rows),
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
