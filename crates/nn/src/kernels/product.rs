//! Dense and sparse matrix products with weights in PyTorch's layout, `[outputs, inputs]`.
//!
//! Dense products are faer's, cut into pieces of rows by us: each piece runs on one thread, so that the bits do not
//! depend on the number of threads. `x · Wᵀ` on n rows costs 2·n·inputs·outputs flops.

use faer::{Accum, MatMut, MatRef, Par};

use super::Store;
use super::dispatch::clean_vector_registers;
use super::elementwise::add_values;
use super::fold::{Weights, sum_rows};
use crate::matrix::{Matrix, Rows, Span, SparseRows, Stored};
use crate::threads::{Compute, row_pieces};

/// Rows of one piece of a dense product: enough that packing the weights again for each piece is below a percent of the
/// work.
pub(super) const PRODUCT_ROWS: usize = 1024;

/// `out (=|+=) a · b` on this thread: the one place that calls foreign kernels.
///
/// faer's kernels for x86-64 (the assembly of private-gemm-x86 0.1, in which `vzeroupper` does not occur) return with
/// dirty vector registers, and what follows a product is often scalar: losses, evaluation, metrics. Remove the
/// cleaning when they do it themselves: <https://github.com/sarah-quinones/gemm-x64-v2>.
pub(super) fn product(out: MatMut<'_, f32>, store: Store, a: MatRef<'_, f32>, b: MatRef<'_, f32>) {
    let accumulate = match store {
        Store::Set => Accum::Replace,
        Store::Add => Accum::Add,
    };
    faer::linalg::matmul::matmul(out, accumulate, a, b, 1.0, Par::Seq);
    clean_vector_registers();
}

/// `out (=|+=) x · Wᵀ`: x is n × inputs, `weight` outputs × inputs, out n × outputs.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times_weight_transposed(compute: &mut Compute, out: &mut Matrix, store: Store, x: Rows<'_>, weight: &[f32]) {
    let (outputs, inputs) = (out.columns(), x.columns());
    assert_eq!((out.rows(), weight.len()), (x.rows(), outputs * inputs));
    match x.stored() {
        Stored::Dense(x) => {
            let weight = MatRef::from_row_major_slice(weight, outputs, inputs);
            compute.chunks(out.data_mut(), PRODUCT_ROWS * outputs, |piece, out| {
                let rows = out.len() / outputs;
                let x = &x.data()[piece * PRODUCT_ROWS * inputs..][..rows * inputs];
                let x = MatRef::from_row_major_slice(x, rows, inputs);
                let out = MatMut::from_row_major_slice_mut(out, rows, outputs);
                product(out, store, x, weight.transpose());
            });
        }
        Stored::Sparse(x) => {
            let mut lent = compute.lend(weight.len());
            let transposed = &mut lent[..weight.len()];
            transpose(compute, transposed, weight, outputs, inputs);
            let weights = Weights::Direct(x.values());
            sum_rows(compute, out.data_mut(), outputs, store, (x.offsets(), x.indices()), weights, transposed);
            compute.give_back(lent);
        }
    }
}

/// `out (=|+=) dz · W`: dz is n × outputs, `weight` outputs × inputs, out n × inputs.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times_weight(compute: &mut Compute, out: &mut Matrix, store: Store, dz: &Matrix, weight: &[f32]) {
    times_dense(compute, out, store, dz.span(0..dz.rows()), weight, |_, _| {});
}

/// `out = dz · W` as [`times_weight`], and then `end(first, rows)` on each piece of rows while it is in the cache, of
/// which `first` is the first.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times_weight_then(
    compute: &mut Compute,
    out: &mut Matrix,
    dz: &Matrix,
    weight: &[f32],
    end: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    times_dense(compute, out, Store::Set, dz.span(0..dz.rows()), weight, end);
}

fn times_dense(
    compute: &mut Compute,
    out: &mut Matrix,
    store: Store,
    dz: Span<'_>,
    weight: &[f32],
    end: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let (outputs, inputs) = (dz.columns(), out.columns());
    assert_eq!((out.rows(), weight.len()), (dz.rows(), outputs * inputs));
    let weight = MatRef::from_row_major_slice(weight, outputs, inputs);
    compute.chunks(out.data_mut(), PRODUCT_ROWS * inputs, |piece, out| {
        let (first, rows) = (piece * PRODUCT_ROWS, out.len() / inputs);
        let dz = &dz.data()[first * outputs..][..rows * outputs];
        let dz = MatRef::from_row_major_slice(dz, rows, outputs);
        product(MatMut::from_row_major_slice_mut(out, rows, inputs), store, dz, weight);
        end(first, out);
    });
}

/// `out (=|+=) x · W`: x is n × inputs, `weight` inputs × outputs, out n × outputs.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times(compute: &mut Compute, out: &mut Matrix, store: Store, x: Rows<'_>, weight: &[f32]) {
    match x.stored() {
        Stored::Dense(x) => times_dense(compute, out, store, x, weight, |_, _| {}),
        Stored::Sparse(x) => {
            assert_eq!((out.rows(), weight.len()), (x.rows(), x.columns() * out.columns()));
            let (outputs, weights) = (out.columns(), Weights::Direct(x.values()));
            sum_rows(compute, out.data_mut(), outputs, store, (x.offsets(), x.indices()), weights, weight);
        }
    }
}

/// `gradient += xᵀ · dz`: the gradient of the weights of [`times`], inputs × outputs, from x (n × inputs) and dz
/// (n × outputs).
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn add_product_gradient(compute: &mut Compute, gradient: &mut [f32], x: Rows<'_>, dz: &Matrix) {
    assert_eq!((dz.rows(), gradient.len()), (x.rows(), x.columns() * dz.columns()));
    match x.stored() {
        Stored::Dense(x) => dense_weight_gradient(compute, gradient, x, dz.span(0..dz.rows())),
        Stored::Sparse(x) => {
            let columns = x.by_column();
            let (pattern, weights) =
                ((&columns.offsets[..], &columns.rows[..]), Weights::Indexed(x.values(), &columns.positions));
            sum_rows(compute, gradient, dz.columns(), Store::Add, pattern, weights, dz.data());
        }
    }
}

/// `gradient += dzᵀ · x`: the gradient of the weights, outputs × inputs, from dz (n × outputs) and x (n × inputs).
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn add_weight_gradient(compute: &mut Compute, gradient: &mut [f32], dz: &Matrix, x: Rows<'_>) {
    let (outputs, inputs) = (dz.columns(), x.columns());
    assert_eq!((dz.rows(), gradient.len()), (x.rows(), outputs * inputs));
    match x.stored() {
        Stored::Dense(x) => dense_weight_gradient(compute, gradient, dz.span(0..dz.rows()), x),
        Stored::Sparse(x) => sparse_weight_gradient(compute, gradient, dz, x),
    }
}

/// The sum over rows is cut into pieces that are added in order. Where the result is so large that sixteen copies of it
/// would not pay, all rows go through one product.
fn dense_weight_gradient(compute: &mut Compute, gradient: &mut [f32], dz: Span<'_>, x: Span<'_>) {
    let (rows, outputs, inputs) = (dz.rows(), dz.columns(), x.columns());
    let pieces = if gradient.len() > 1 << 19 { 1 } else { row_pieces(rows) };
    let size = rows.div_ceil(pieces).max(1);
    compute.reduce(gradient, pieces, |piece, partial| {
        let (from, to) = ((piece * size).min(rows), ((piece + 1) * size).min(rows));
        let dz = MatRef::from_row_major_slice(&dz.data()[from * outputs..to * outputs], to - from, outputs);
        let x = MatRef::from_row_major_slice(&x.data()[from * inputs..to * inputs], to - from, inputs);
        let partial = MatMut::from_row_major_slice_mut(partial, outputs, inputs);
        product(partial, Store::Set, dz.transpose(), x);
    });
}

fn sparse_weight_gradient(compute: &mut Compute, gradient: &mut [f32], dz: &Matrix, x: &SparseRows) {
    let (outputs, inputs) = (dz.columns(), x.columns());
    let mut lent = compute.lend(gradient.len());
    let transposed = &mut lent[..gradient.len()];
    let columns = x.by_column();
    let weights = Weights::Indexed(x.values(), &columns.positions);
    sum_rows(compute, transposed, outputs, Store::Set, (&columns.offsets, &columns.rows), weights, dz.data());
    let transposed = &*transposed;
    compute.chunks(gradient, inputs, |output, row| {
        for (input, value) in row.iter_mut().enumerate() {
            *value += transposed[input * outputs + output];
        }
    });
    compute.give_back(lent);
}

/// `out[j][i] = from[i][j]` for `from` of shape rows × columns.
pub(super) fn transpose(compute: &Compute, out: &mut [f32], from: &[f32], rows: usize, columns: usize) {
    compute.chunks(out, rows * 16, |piece, out| {
        for (line, out) in out.chunks_mut(rows).enumerate() {
            let column = piece * 16 + line;
            for (row, value) in out.iter_mut().enumerate() {
                *value = from[row * columns + column];
            }
        }
    });
}

/// `gradient += Σ rows of dz`: the gradient of a bias.
pub fn add_bias_gradient(compute: &mut Compute, gradient: &mut [f32], dz: &Matrix) {
    let (rows, columns) = (dz.rows(), dz.columns());
    let pieces = row_pieces(rows);
    let size = rows.div_ceil(pieces).max(1);
    compute.reduce(gradient, pieces, |piece, partial| {
        for row in piece * size..((piece + 1) * size).min(rows) {
            add_values(partial, &dz.data()[row * columns..(row + 1) * columns]);
        }
    });
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::matrix::Operand;
    use laconic_key::{Key, Purpose};

    pub(in crate::kernels) fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
        let key = Key::new(stream, Purpose::Test);
        let value = |i: usize| (key.with(i as u64).unit() - 0.5) as f32;
        Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
    }

    pub(in crate::kernels) fn close(a: f32, b: f64) -> bool {
        (f64::from(a) - b).abs() < 2e-4 * (1.0 + b.abs())
    }

    /// Every product against three nested loops in f64, for dense and sparse rows and on one and two threads.
    #[test]
    fn products_agree_with_nested_loops() {
        let (n, inputs, outputs) = (2100, 37, 11);
        let mut x = random(n, inputs, 1);
        for (i, v) in x.data_mut().iter_mut().enumerate() {
            if Key::new(5, Purpose::Test).with(i as u64).unit() < 0.9 {
                *v = 0.0;
            }
        }
        let (w, dz) = (random(outputs, inputs, 2), random(n, outputs, 3));
        for (operand, threads) in [(Operand::Dense(x.clone()), 1), (Operand::compact(x.clone()), 2)] {
            let mut compute = Compute::new(threads);
            let mut z = Matrix::from_vec(n, outputs, vec![1.0; n * outputs]);
            times_weight_transposed(&mut compute, &mut z, Store::Add, operand.view(), w.data());
            let mut dx = Matrix::from_vec(n, inputs, vec![9.0; n * inputs]);
            times_weight(&mut compute, &mut dx, Store::Set, &dz, w.data());
            let mut dw = vec![0.5; outputs * inputs];
            add_weight_gradient(&mut compute, &mut dw, &dz, operand.view());
            for r in (0..n).step_by(97) {
                for o in 0..outputs {
                    let sum: f64 = (0..inputs).map(|i| f64::from(x.row(r)[i]) * f64::from(w.row(o)[i])).sum();
                    assert!(close(z.row(r)[o], 1.0 + sum));
                }
                for i in 0..inputs {
                    let sum: f64 = (0..outputs).map(|o| f64::from(dz.row(r)[o]) * f64::from(w.row(o)[i])).sum();
                    assert!(close(dx.row(r)[i], sum));
                }
            }
            for o in 0..outputs {
                for i in 0..inputs {
                    let sum: f64 = (0..n).map(|r| f64::from(dz.row(r)[o]) * f64::from(x.row(r)[i])).sum();
                    assert!(close(dw[o * inputs + i], 0.5 + sum));
                }
            }
        }
    }

    #[test]
    fn products_have_the_same_bits_on_any_number_of_threads() {
        let (x, w, dz) = (random(3000, 64, 1), random(48, 64, 2), random(3000, 48, 3));
        let run = |threads| {
            let mut compute = Compute::new(threads);
            let (mut z, mut dw, mut db) = (Matrix::zeros(3000, 48), vec![0.0; 48 * 64], vec![0.0; 48]);
            times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), w.data());
            add_weight_gradient(&mut compute, &mut dw, &dz, Rows::Dense(&x));
            add_bias_gradient(&mut compute, &mut db, &dz);
            z.data().iter().chain(&dw).chain(&db).map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        let one = run(1);
        assert!(run(2) == one && run(3) == one);
    }

    /// Small and large shapes take different kernels of faer.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn products_leave_the_vector_registers_clean() {
        use crate::kernels::dispatch::vector_registers_are_dirty;
        if vector_registers_are_dirty().is_none() {
            println!("skipped: this processor does not tell which registers are in use");
            return;
        }
        for (n, inputs, outputs) in [(3, 2, 1), (60, 8, 5), (1024, 64, 40), (2100, 200, 130)] {
            let (x, w, dz) = (random(n, inputs, 1), random(outputs, inputs, 2), random(n, outputs, 3));
            let mut compute = Compute::new(1);
            let (mut z, mut dx) = (Matrix::zeros(n, outputs), Matrix::zeros(n, inputs));
            let mut dw = vec![0.0; outputs * inputs];
            times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), w.data());
            let after_forward = vector_registers_are_dirty();
            times_weight(&mut compute, &mut dx, Store::Set, &dz, w.data());
            let after_backward = vector_registers_are_dirty();
            add_weight_gradient(&mut compute, &mut dw, &dz, Rows::Dense(&x));
            let after_gradient = vector_registers_are_dirty();
            let dirty = [after_forward, after_backward, after_gradient];
            assert_eq!(dirty, [Some(false); 3], "{n} x {inputs} x {outputs}");
        }
    }

    #[test]
    fn products_of_no_rows_are_empty() {
        let mut compute = Compute::new(2);
        let x = Matrix::zeros(0, 3);
        let (mut z, mut dw) = (Matrix::zeros(0, 2), vec![1.0; 6]);
        times_weight_transposed(&mut compute, &mut z, Store::Set, Rows::Dense(&x), &[0.0; 6]);
        add_weight_gradient(&mut compute, &mut dw, &z, Rows::Dense(&x));
        assert_eq!(dw, [1.0; 6]);
    }
}
