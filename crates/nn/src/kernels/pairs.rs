//! Rows of pairs: gathered from the rows of nodes, multiplied with each other, and their gradients added back.

use super::Store;
use super::elementwise::dot;
use super::fold::{Pattern, Weights, sum_rows};
use super::long::sum_of;
use crate::matrix::Matrix;
use crate::threads::{Compute, row_pieces};

/// `out[i] = row indices[i]` of the two matrices stacked on each other.
///
/// # Panics
///
/// If the two are not of one width, or a row lies beyond both.
pub fn gather(compute: &Compute, out: &mut Matrix, [own, others]: [&Matrix; 2], indices: &[u32]) {
    let width = own.columns();
    assert!(others.rows() == 0 || others.columns() == width, "rows of {width} and {} columns", others.columns());
    out.reshape(indices.len(), width);
    compute.rows(out.rows_mut(), |pair, out| {
        let row = indices[pair] as usize;
        out.copy_from_slice(match row.checked_sub(own.rows()) {
            None => own.row(row),
            Some(row) => others.row(row),
        });
    });
}

/// The pairs of each row, ascending: what the adjoint of [`gather`] adds up, in an order that is always the same.
#[derive(Debug, Default)]
pub struct Scatter {
    offsets: Vec<usize>,
    pairs: Vec<u32>,
}

impl Scatter {
    /// Sorts `indices` by row.
    ///
    /// # Panics
    ///
    /// If an index is not below `rows`, or there are 2³² of them.
    pub fn sort(&mut self, indices: &[u32], rows: usize) {
        assert!(u32::try_from(indices.len()).is_ok(), "{} pairs at once", indices.len());
        self.offsets.clear();
        self.offsets.resize(rows + 1, 0);
        for &row in indices {
            self.offsets[row as usize] += 1;
        }
        let mut end = 0;
        for offset in &mut self.offsets {
            end += *offset;
            *offset = end;
        }
        self.pairs.resize(indices.len(), 0);
        for (pair, &row) in indices.iter().enumerate().rev() {
            let slot = &mut self.offsets[row as usize];
            *slot -= 1;
            self.pairs[*slot] = pair as u32;
        }
    }

    /// The adjoint of [`gather`]: adds each row of `gradient`, one a pair, to the row that it was gathered from.
    ///
    /// # Panics
    ///
    /// If the two matrices have not as many rows together as were sorted by.
    pub fn add(&self, compute: &Compute, [own, others]: [&mut Matrix; 2], gradient: &Matrix) {
        assert_eq!(own.rows() + others.rows() + 1, self.offsets.len(), "rows of both matrices");
        let (width, split) = (gradient.columns(), own.rows());
        for (into, offsets) in [(own, &self.offsets[..=split]), (others, &self.offsets[split..])] {
            let pattern = Pattern { offsets, columns: &self.pairs, weights: Weights::Ones };
            sum_rows(compute, into.data_mut(), width, Store::Add, pattern, gradient.data());
        }
    }
}

/// `out[i] = a[i] ⊙ b[i]`.
///
/// # Panics
///
/// If the two have not one shape.
pub fn multiply(compute: &Compute, out: &mut Matrix, a: &Matrix, b: &Matrix) {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    out.reshape(a.rows(), a.columns());
    compute.rows(out.rows_mut(), |row, out| {
        for ((out, a), b) in out.iter_mut().zip(a.row(row)).zip(b.row(row)) {
            *out = a * b;
        }
    });
}

/// `out[i] = ⟨a[i], b[i]⟩`, one column.
///
/// # Panics
///
/// If the two have not one shape.
pub fn row_products(compute: &Compute, out: &mut Matrix, a: &Matrix, b: &Matrix) {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    out.reshape(a.rows(), 1);
    compute.rows(out.rows_mut(), |row, out| out[0] = dot(a.row(row), b.row(row)));
}

/// `out[i] = factors[i] · rows[i]`, where `factors` has one column.
///
/// # Panics
///
/// If there is not one factor a row.
pub fn scale_rows(compute: &Compute, out: &mut Matrix, factors: &Matrix, rows: &Matrix) {
    assert_eq!((factors.rows(), factors.columns()), (rows.rows(), 1));
    out.reshape(rows.rows(), rows.columns());
    compute.rows(out.rows_mut(), |row, out| {
        let factor = factors.row(row)[0];
        out.iter_mut().zip(rows.row(row)).for_each(|(out, value)| *out = factor * value);
    });
}

/// Parametric ReLU: `out = x` where that is positive, otherwise `slope · x`. What is no number stays none.
pub fn prelu(compute: &Compute, out: &mut Matrix, x: &Matrix, slope: f32) {
    out.reshape(x.rows(), x.columns());
    compute.rows(out.rows_mut(), |row, out| {
        for (out, &x) in out.iter_mut().zip(x.row(row)) {
            *out = if x > 0.0 { x } else { slope * x };
        }
    });
}

/// The adjoint of [`prelu`] at the inputs `x`: turns the gradient of its output into that of its input, and adds to
/// that of the slope.
///
/// # Panics
///
/// If the two have not one shape.
pub fn prelu_adjoint(compute: &mut Compute, gradient: &mut Matrix, x: &Matrix, slope: f32, dslope: &mut f32) {
    assert_eq!((gradient.rows(), gradient.columns()), (x.rows(), x.columns()));
    let pieces = row_pieces(x.rows());
    let size = x.rows().div_ceil(pieces).max(1) * x.columns();
    let (values, mut sum) = (&*gradient, [0.0]);
    compute.reduce(&mut sum, pieces, |piece, partial| {
        let range = (piece * size).min(x.data().len())..((piece + 1) * size).min(x.data().len());
        let pairs = values.data()[range.clone()].iter().zip(&x.data()[range]);
        partial[0] = sum_of(pairs.map(|(g, &x)| if x > 0.0 { 0.0 } else { g * x }));
    });
    *dslope += sum[0];
    compute.rows(gradient.rows_mut(), |row, gradient| {
        for (g, &x) in gradient.iter_mut().zip(x.row(row)) {
            *g *= if x > 0.0 { 1.0 } else { slope };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
        let key = Key::new(stream, Purpose::Test);
        Matrix::from_vec(rows, columns, (0..rows * columns).map(|i| key.with(i as u64).normal() as f32).collect())
    }

    fn product(a: &Matrix, b: &Matrix) -> f64 {
        a.data().iter().zip(b.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    #[test]
    fn scattering_is_the_adjoint_of_gathering_and_has_the_same_bits_on_any_number_of_threads() {
        let (own, others, gradient) = (random(300, 5, 1), random(70, 5, 2), random(2000, 5, 3));
        let key = Key::new(4, Purpose::Test);
        // Many pairs on few rows, and rows without any.
        let indices: Vec<u32> = (0..2000).map(|i| (key.with(i).unit().powi(3) * 370.0) as u32).collect();
        let results = [1, 2, 3].map(|threads| {
            let (compute, mut gathered) = (Compute::new(threads), Matrix::default());
            gather(&compute, &mut gathered, [&own, &others], &indices);
            let (mut into, mut beside) = (Matrix::zeros(300, 5), Matrix::zeros(70, 5));
            let mut scatter = Scatter::default();
            scatter.sort(&[7; 9], 10);
            scatter.sort(&indices, 370);
            scatter.add(&compute, [&mut into, &mut beside], &gradient);
            let (there, back) = (product(&gathered, &gradient), product(&own, &into) + product(&others, &beside));
            assert!((there - back).abs() < 1e-3 * there.abs().max(1.0), "{there} against {back}");
            [into.into_vec(), beside.into_vec()].concat().into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        });
        assert!(results.iter().all(|bits| *bits == results[0]));
    }
}
