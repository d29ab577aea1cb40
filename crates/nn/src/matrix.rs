//! Dense and sparse matrices, rows are nodes. Values are `f32`; dense rows may be stored as [`Bf16`].

mod operand;
mod precision;
mod rows;
mod sparse;
mod transpose;

use std::ops::Range;
use std::path::Path;

use laconic_array::Array;

pub use operand::Operand;
pub(crate) use precision::each_value;
pub use precision::{Bf16, Precision, Value, Values};
pub use rows::{DenseRows, Rows};
pub(crate) use rows::{Stored, drop_row};
pub use sparse::{SparseRows, SparseSpan};
pub(crate) use transpose::{transpose_pattern, transposed_positions};

/// A dense row-major matrix. It keeps the [`Precision`] that it was made with, whatever shape it is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Values<Array<f32>, Array<Bf16>>,
}

impl Default for Matrix {
    fn default() -> Self {
        Matrix::stored(Precision::F32)
    }
}

impl Matrix {
    /// An empty matrix whose values are stored so.
    pub fn stored(precision: Precision) -> Self {
        let values = match precision {
            Precision::F32 => Values::F32(Array::new()),
            Precision::Bf16 => Values::Bf16(Array::new()),
        };
        Matrix { rows: 0, columns: 0, values }
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Matrix::from_values(rows, columns, Values::F32(Array::zeros(rows * columns)))
    }

    /// A matrix of one value.
    pub fn filled(rows: usize, columns: usize, value: f32) -> Self {
        Matrix::from_values(rows, columns, Values::F32(std::iter::repeat_n(value, rows * columns).collect()))
    }

    /// Takes over `data`, row after row.
    ///
    /// # Panics
    ///
    /// If its length is not rows × columns.
    pub fn from_vec(rows: usize, columns: usize, data: Vec<f32>) -> Self {
        Matrix::from_values(rows, columns, Values::F32(data.into()))
    }

    /// Takes over values as they are stored, row after row.
    ///
    /// # Panics
    ///
    /// If there are not rows × columns of them.
    pub fn from_values(rows: usize, columns: usize, values: Values<Array<f32>, Array<Bf16>>) -> Self {
        assert_eq!(each_value!(&values, |values| values.len()), rows * columns, "{rows} x {columns} matrix");
        Matrix { rows, columns, values }
    }

    /// Gives the matrix this shape, keeping its memory. What it holds afterwards is unspecified: every user overwrites
    /// it.
    pub fn reshape(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        each_value!(&mut self.values, |values| reshape_to(values, rows * columns));
    }

    /// How values are stored.
    pub fn precision(&self) -> Precision {
        match self.values {
            Values::F32(_) => Precision::F32,
            Values::Bf16(_) => Precision::Bf16,
        }
    }

    /// Stores values so from now on. What the matrix holds is lost where that is a change.
    pub fn store_as(&mut self, precision: Precision) {
        if self.precision() != precision {
            *self = Matrix::stored(precision);
        }
    }

    /// A matrix of the rows named by `rows`, in that order.
    pub(crate) fn gather(&self, rows: &[u32]) -> Matrix {
        fn of<T: Value>(values: &[T], columns: usize, rows: &[u32]) -> Array<T> {
            let mut gathered = Array::with_capacity(rows.len() * columns);
            rows.iter().for_each(|&row| gathered.extend_from_slice(&values[row as usize * columns..][..columns]));
            gathered
        }
        let columns = self.columns();
        let values = match self.values() {
            Values::F32(values) => Values::F32(of(values, columns, rows)),
            Values::Bf16(values) => Values::Bf16(of(values, columns, rows)),
        };
        Matrix::from_values(rows.len(), columns, values)
    }

    /// The same values stored so, rounded where that takes rounding.
    #[must_use]
    pub fn converted(self, precision: Precision) -> Matrix {
        if self.precision() == precision {
            return self;
        }
        let values = match self.values {
            Values::F32(values) => Values::Bf16(values.iter().copied().map(Bf16::round).collect()),
            Values::Bf16(values) => Values::F32(values.iter().copied().map(Bf16::widen).collect()),
        };
        Matrix { values, ..self }
    }

    /// Sets every value to 0.
    pub fn clear(&mut self) {
        each_value!(&mut self.values, |values| values.fill(Value::of(0.0)));
    }

    /// Adds a row behind the others, which stay.
    ///
    /// # Panics
    /// If it is not as wide as they are, or values are not stored as `f32`.
    pub fn push(&mut self, row: &[f32]) {
        if self.rows == 0 {
            self.columns = row.len();
        }
        assert_eq!(row.len(), self.columns, "a row of a matrix of {} columns", self.columns);
        match &mut self.values {
            Values::F32(values) => values.extend_from_slice(row),
            Values::Bf16(_) => not_f32(),
        }
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
    ///
    /// # Panics
    ///
    /// If they are not stored as `f32`; so do all methods that give slices of `f32`.
    pub fn data(&self) -> &[f32] {
        match &self.values {
            Values::F32(values) => values,
            Values::Bf16(_) => not_f32(),
        }
    }

    /// All values, row after row, for changing.
    pub fn data_mut(&mut self) -> &mut [f32] {
        match &mut self.values {
            Values::F32(values) => values,
            Values::Bf16(_) => not_f32(),
        }
    }

    /// All values as they are stored, row after row.
    pub fn values(&self) -> Values<&[f32], &[Bf16]> {
        match &self.values {
            Values::F32(values) => Values::F32(values),
            Values::Bf16(values) => Values::Bf16(values),
        }
    }

    /// The same, for changing.
    pub fn values_mut(&mut self) -> Values<&mut [f32], &mut [Bf16]> {
        match &mut self.values {
            Values::F32(values) => Values::F32(values),
            Values::Bf16(values) => Values::Bf16(values),
        }
    }

    /// The same, no longer a matrix.
    pub fn into_values(self) -> Values<Array<f32>, Array<Bf16>> {
        self.values
    }

    /// All values and the width of a row, as [`crate::Compute::rows`] takes them.
    pub fn rows_mut(&mut self) -> (&mut [f32], usize) {
        let columns = self.columns;
        (self.data_mut(), columns)
    }

    /// The values of one row.
    ///
    /// # Panics
    ///
    /// If the row lies beyond the matrix.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data()[row * self.columns..(row + 1) * self.columns]
    }

    /// The values of one row, for changing.
    ///
    /// # Panics
    ///
    /// If the row lies beyond the matrix.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let columns = self.columns;
        &mut self.data_mut()[row * columns..(row + 1) * columns]
    }

    /// Sets `out` to a row, however it is stored.
    ///
    /// # Panics
    ///
    /// If the row lies beyond the matrix; so do [`Matrix::set_row`] and [`Matrix::add_row`].
    pub fn copy_row(&self, row: usize, out: &mut [f32]) {
        let at = row * self.columns..(row + 1) * self.columns;
        each_value!(self.values(), |values| {
            out.iter_mut().zip(&values[at]).for_each(|(out, value)| *out = value.get());
        });
    }

    /// Sets a row, however it is stored.
    pub fn set_row(&mut self, row: usize, values: &[f32]) {
        let at = row * self.columns..(row + 1) * self.columns;
        each_value!(self.values_mut(), |stored| {
            stored[at].iter_mut().zip(values).for_each(|(stored, value)| *stored = Value::of(*value));
        });
    }

    /// Adds to a row, however it is stored.
    pub fn add_row(&mut self, row: usize, values: &[f32]) {
        let at = row * self.columns..(row + 1) * self.columns;
        each_value!(self.values_mut(), |stored| {
            stored[at].iter_mut().zip(values).for_each(|(stored, value)| *stored = Value::of(stored.get() + value));
        });
    }

    /// Some rows that follow each other.
    ///
    /// # Panics
    ///
    /// If they lie beyond the matrix.
    pub fn span(&self, rows: Range<usize>) -> Span<'_> {
        Span { rows: self.rows, columns: self.columns, values: self.values() }.span(rows)
    }

    /// All its rows, borrowed.
    pub fn all(&self) -> Span<'_> {
        self.span(0..self.rows)
    }

    /// The file that the values are read from, if it has been written to or cut since: they may be others by now. Costs
    /// a call of the system where values stay in a file.
    pub fn changed_file(&self) -> Option<&Path> {
        each_value!(&self.values, |values| values.changed_file())
    }

    /// The values, row after row, as a vector.
    pub fn into_vec(self) -> Vec<f32> {
        match self.values {
            Values::F32(values) => values.into_vec(),
            Values::Bf16(_) => not_f32(),
        }
    }
}

/// Who asks for slices of `f32` has made the matrix to store these, or was told of its precision.
#[cold]
fn not_f32() -> ! {
    panic!("values that are stored as bf16 were asked for as f32")
}

fn reshape_to<T: Value>(values: &mut Array<T>, count: usize) {
    if values.capacity() < count {
        // What it held is nobody's, so it goes first and nothing is copied. Rows of batches vary a little.
        *values = Array::new();
        *values = Array::zeros(count + count / 16);
    }
    values.resize(count);
}

/// Rows of a dense matrix that follow each other, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    rows: usize,
    columns: usize,
    values: Values<&'a [f32], &'a [Bf16]>,
}

impl<'a> Span<'a> {
    /// Rows of so many columns, as they stand somewhere.
    pub(crate) fn of<T: Value>(values: &'a [T], columns: usize) -> Span<'a> {
        Span::from_values(T::values(values), columns)
    }

    /// The same of values that are stored either way.
    pub(crate) fn from_values(values: Values<&'a [f32], &'a [Bf16]>, columns: usize) -> Span<'a> {
        let stored = match values {
            Values::F32(values) => values.len(),
            Values::Bf16(values) => values.len(),
        };
        Span { rows: stored / columns.max(1), columns, values }
    }

    /// Some of its rows.
    ///
    /// # Panics
    ///
    /// If they lie beyond it.
    #[must_use]
    pub fn span(&self, rows: Range<usize>) -> Span<'a> {
        let at = rows.start * self.columns..rows.end * self.columns;
        let values = match self.values {
            Values::F32(values) => Values::F32(&values[at]),
            Values::Bf16(values) => Values::Bf16(&values[at]),
        };
        Span { rows: rows.len(), columns: self.columns, values }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values as they are stored, row after row.
    pub fn values(&self) -> Values<&'a [f32], &'a [Bf16]> {
        self.values
    }

    /// How values are stored.
    pub fn precision(&self) -> Precision {
        match self.values {
            Values::F32(_) => Precision::F32,
            Values::Bf16(_) => Precision::Bf16,
        }
    }

    /// All values, row after row.
    ///
    /// # Panics
    ///
    /// If they are not stored as `f32`; and so does [`Span::row`].
    pub fn data(&self) -> &'a [f32] {
        match self.values {
            Values::F32(values) => values,
            Values::Bf16(_) => not_f32(),
        }
    }

    /// The values of one row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.data()[row * self.columns..(row + 1) * self.columns]
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
