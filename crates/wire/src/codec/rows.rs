//! The rows of a matrix that a message carries, as both ends see them.

use std::ops::Range;

/// Which rows of a matrix a message carries, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSet<'a> {
    /// Consecutive rows of the matrix.
    Range(Range<usize>),
    /// These rows; repeats are allowed.
    Indices(&'a [u32]),
}

impl RowSet<'_> {
    /// How many rows the message carries.
    pub fn len(&self) -> usize {
        match self {
            RowSet::Range(range) => range.len(),
            RowSet::Indices(indices) => indices.len(),
        }
    }

    /// Whether the message carries no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of the matrix at a position of the message.
    pub fn at(&self, position: usize) -> usize {
        match self {
            RowSet::Range(range) => range.start + position,
            RowSet::Indices(indices) => indices[position] as usize,
        }
    }

    /// The rows at these positions.
    pub(super) fn part(&self, positions: Range<usize>) -> RowSet<'_> {
        match self {
            RowSet::Range(range) => RowSet::Range(range.start + positions.start..range.start + positions.end),
            RowSet::Indices(indices) => RowSet::Indices(&indices[positions]),
        }
    }
}

/// Rows to be sent: a row-major matrix and the rows of it that travel, so that gathering and encoding are one pass.
#[derive(Debug, Clone)]
pub struct RowsRef<'a, T = f32> {
    /// The matrix, `[any, columns]`.
    pub data: &'a [T],
    /// The width of a row.
    pub columns: usize,
    /// Which rows of it travel.
    pub rows: RowSet<'a>,
}

impl<'a, T> RowsRef<'a, T> {
    /// The row at a position of the message.
    #[inline]
    pub fn row(&self, position: usize) -> &'a [T] {
        &self.data[self.rows.at(position) * self.columns..][..self.columns]
    }
}

/// Rows to be received into: a row-major matrix and the rows of it that the message fills.
#[derive(Debug)]
pub struct RowsMut<'a, T = f32> {
    /// The matrix, `[any, columns]`.
    pub data: &'a mut [T],
    /// The width of a row.
    pub columns: usize,
    /// Where the message's rows land.
    pub rows: RowSet<'a>,
}

impl<T> RowsMut<'_, T> {
    /// The row that a position of the message lands in.
    #[inline]
    pub fn row(&mut self, position: usize) -> &mut [T] {
        &mut self.data[self.rows.at(position) * self.columns..][..self.columns]
    }
}

/// What decoding does with the values that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Replaces them: copies of halo rows.
    Set,
    /// Adds to them: gradients that return. A row named twice is added to twice, in order.
    Add,
}
