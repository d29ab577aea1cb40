//! Row-wise arithmetic: scaling, biases, ReLU, dropout. Each reads and writes its rows once.

use super::Store;
use super::dispatch::{per_processor, prefetch};
use super::stored::{Access, drop_piece, pieces, read, read_dense, rows as each_row};
use crate::dropout::Dropout;
use crate::matrix::{Matrix, Operand, Rows, SparseRows, SparseSpan, Stored, Value};
use crate::threads::Compute;

/// Rows with names: for each row the global id of its node, which keys everything random about it.
pub type NodeIds<'a> = &'a [u64];

/// `out[v] = scale[v] · out[v] + bias`; either may be left out.
///
/// # Panics
///
/// If `scale` has not one value a row.
pub fn scale_and_shift(compute: &Compute, out: &mut Matrix, scale: Option<&[f32]>, bias: Option<&[f32]>) {
    assert!(scale.is_none_or(|s| s.len() == out.rows()), "one factor a row");
    let width = out.columns().max(1);
    pieces(compute, out, Access::Update, |first, out| {
        shift_piece(out, width, scale.map(|scale| &scale[first..]), bias);
    });
}

per_processor! {
    /// [`scale_and_shift`] on some rows, with the factors of these.
    pub(super) fn shift_piece(out: &mut [f32], width: usize, scale: Option<&[f32]>, bias: Option<&[f32]>) {
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let factor = scale.map_or(1.0, |scale| scale[row]);
            match bias {
                Some(bias) => {
                    for (value, shift) in out.iter_mut().zip(bias) {
                        *value = *value * factor + shift;
                    }
                }
                None => out.iter_mut().for_each(|value| *value *= factor),
            }
        }
    }
}

/// Multiplies each row of `width` values by its own factor, on this thread.
pub(crate) fn scale_rows(rows: &mut [f32], width: usize, scale: &[f32]) {
    shift_piece(rows, width.max(1), Some(scale), None);
}

/// `out[v] (=|+=) factor · scale[v] · x[v]`; without `scale` every row counts fully.
///
/// # Panics
///
/// If the shapes of `out` and `x` differ, or `scale` has not one value a row.
pub fn copy_scaled(compute: &Compute, out: &mut Matrix, store: Store, x: Rows<'_>, factor: f32, scale: Option<&[f32]>) {
    assert_eq!((out.rows(), out.columns()), (x.rows(), x.columns()));
    assert!(scale.is_none_or(|s| s.len() == out.rows()), "one factor a row");
    let (width, rooms) = (out.columns().max(1), compute.rooms());
    let access = Access::from(store);
    let factor = |row: usize| factor * scale.map_or(1.0, |s| s[row]);
    match x.stored() {
        Stored::Dense(x) => pieces(compute, out, access, |first, out| {
            read_dense(&rooms, x, first..first + out.len() / width, |x| {
                for (line, (out, x)) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
                    match store {
                        Store::Set => set_scaled(out, factor(first + line), x),
                        Store::Add => add_scaled_values(out, factor(first + line), x),
                    }
                }
            });
        }),
        Stored::Sparse(x) => each_row(compute, out, access, |row, out| {
            if store == Store::Set {
                out.fill(0.0);
            }
            for entry in x.offsets()[row]..x.offsets()[row + 1] {
                out[x.indices()[entry] as usize] += factor(row) * x.values()[entry];
            }
        }),
    }
}

/// `out[v] = x[v] + bias`.
///
/// # Panics
///
/// If the shapes of `out` and `x` differ.
pub fn copy_shifted(compute: &Compute, out: &mut Matrix, x: Rows<'_>, bias: &[f32]) {
    assert_eq!((out.rows(), out.columns()), (x.rows(), x.columns()));
    let (width, rooms) = (out.columns().max(1), compute.rooms());
    match x.stored() {
        Stored::Dense(x) => pieces(compute, out, Access::Write, |first, out| {
            read_dense(&rooms, x, first..first + out.len() / width, |x| {
                let rows = out.chunks_exact_mut(width).zip(x.chunks_exact(width));
                rows.for_each(|(out, x)| set_shifted(out, x, bias));
            });
        }),
        Stored::Sparse(x) => each_row(compute, out, Access::Write, |row, out| {
            out.copy_from_slice(bias);
            for entry in x.offsets()[row]..x.offsets()[row + 1] {
                out[x.indices()[entry] as usize] += x.values()[entry];
            }
        }),
    }
}

per_processor! {
    fn set_shifted(out: &mut [f32], x: &[f32], bias: &[f32]) {
        out.iter_mut().zip(x).zip(bias).for_each(|((value, x), bias)| *value = x + bias);
    }
}

per_processor! {
    fn set_scaled(out: &mut [f32], factor: f32, x: &[f32]) {
        out.iter_mut().zip(x).for_each(|(value, x)| *value = factor * x);
    }
}

per_processor! {
    fn add_scaled_values(out: &mut [f32], factor: f32, x: &[f32]) {
        out.iter_mut().zip(x).for_each(|(value, x)| *value += factor * x);
    }
}

per_processor! {
    /// `sums += values`, value by value, on this thread.
    pub(crate) fn add_values<T: Value>(sums: &mut [f32], values: &[T]) {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value.get());
    }
}

/// How many values one piece of elementwise work has.
const VALUES_PER_PIECE: usize = 1 << 14;

/// Sets every value of `out`.
pub fn fill(compute: &Compute, out: &mut Matrix, value: f32) {
    pieces(compute, out, Access::Write, |_, out| out.fill(value));
}

/// Sets every value of the rows of `out` that `which` picks. The other rows stay.
pub fn fill_rows(compute: &Compute, out: &mut Matrix, which: impl Fn(usize) -> bool + Sync + Send, value: f32) {
    each_row(compute, out, Access::Update, |row, out| {
        if which(row) {
            out.fill(value);
        }
    });
}

/// `into += from`, value by value.
///
/// # Panics
///
/// If the two are not of one length.
pub fn add(compute: &Compute, into: &mut [f32], from: &[f32]) {
    assert_eq!(into.len(), from.len(), "one value for each");
    compute.chunks(into, VALUES_PER_PIECE, |piece, into| {
        add_values(into, &from[piece * VALUES_PER_PIECE..]);
    });
}

/// `into += from`, row by row.
///
/// # Panics
///
/// If their shapes differ.
pub fn add_rows(compute: &Compute, into: &mut Matrix, from: &Matrix) {
    assert_eq!((into.rows(), into.columns()), (from.rows(), from.columns()), "one row for each");
    let (width, rooms) = (into.columns().max(1), compute.rooms());
    pieces(compute, into, Access::Update, |first, into| {
        read(&rooms, from.all(), first..first + into.len() / width, |from| add_values(into, from));
    });
}

/// `into += factor · from`, value by value.
///
/// # Panics
///
/// If the two are not of one length.
pub fn add_scaled(compute: &Compute, into: &mut [f32], factor: f32, from: &[f32]) {
    assert_eq!(into.len(), from.len(), "one value for each");
    compute.chunks(into, VALUES_PER_PIECE, |piece, into| {
        add_scaled_values(into, factor, &from[piece * VALUES_PER_PIECE..]);
    });
}

/// `average = m · average + (1 − m) · arrived`: one step of a moving average.
///
/// # Panics
///
/// If the two are not of one length.
pub fn blend(compute: &Compute, average: &mut [f32], arrived: &[f32], m: f32) {
    assert_eq!(average.len(), arrived.len(), "one value for each");
    compute.chunks(average, VALUES_PER_PIECE, |piece, average| {
        for (average, arrived) in average.iter_mut().zip(&arrived[piece * VALUES_PER_PIECE..]) {
            *average = m * *average + (1.0 - m) * arrived;
        }
    });
}

/// ReLU of one value. What is no number stays none, as in PyTorch, so that training that has diverged shows it;
/// [`f32::max`] would make it 0.
#[inline(always)]
pub(crate) fn positive_part(value: f32) -> f32 {
    if value <= 0.0 { 0.0 } else { value }
}

/// `x = max(x, 0)`; NaN stays.
pub fn relu(compute: &Compute, x: &mut Matrix) {
    pieces(compute, x, Access::Update, |_, x| relu_piece(x));
}

per_processor! {
    /// [`relu`] of some rows.
    pub(crate) fn relu_piece(x: &mut [f32]) {
        x.iter_mut().for_each(|value| *value = positive_part(*value));
    }
}

/// Stops the gradient where the ReLU's `output` is 0.
pub fn relu_adjoint(compute: &Compute, gradient: &mut Matrix, output: &Matrix) {
    let (width, rooms) = (gradient.columns().max(1), compute.rooms());
    pieces(compute, gradient, Access::Update, |first, gradient| {
        let rows = first..first + gradient.len() / width;
        read(&rooms, output.all(), rows, |output| open_piece(gradient, output, 1.0));
    });
}

per_processor! {
    /// `gradient · scale` where `output` is above 0, and 0 elsewhere: the adjoint of ReLU, and of a dropout after it.
    pub(crate) fn open_piece(gradient: &mut [f32], output: &[f32], scale: f32) {
        for (gradient, output) in gradient.iter_mut().zip(output) {
            let through = *gradient * scale;
            *gradient = if *output > 0.0 { through } else { 0.0 };
        }
    }
}

/// The inner product, summed in eight lanes so that it vectorises; the order is fixed.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    let (a_runs, b_runs) = (a.chunks_exact(8), b.chunks_exact(8));
    let (a_rest, b_rest) = (a_runs.remainder(), b_runs.remainder());
    for (a, b) in a_runs.zip(b_runs) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}

/// `out = mask ⊙ x / (1 − p)` for sparse rows, of whose pattern `out` is; dense ones are dropped out as they are read
/// ([`crate::matrix::DenseRows`]).
///
/// # Panics
///
/// If the pattern is another, or there is not a node for each row.
pub fn drop_out_sparse(out: &mut SparseRows, x: SparseSpan<'_>, dropout: Dropout, nodes: NodeIds<'_>) {
    assert_eq!((out.rows(), x.rows()), (x.rows(), nodes.len()), "one node a row");
    let first = x.offsets()[0];
    drop_entries(out, dropout, nodes, |entry, _| x.values()[first + entry]);
}

/// Sets each stored value to that which `before` makes of its place and of itself, with dropout.
fn drop_entries(out: &mut SparseRows, dropout: Dropout, nodes: NodeIds<'_>, before: impl Fn(usize, f32) -> f32) {
    let (offsets, indices, values) = out.parts_mut();
    for (row, &node) in nodes.iter().enumerate() {
        let kept = dropout.of_row(node);
        for entry in offsets[row]..offsets[row + 1] {
            values[entry] = kept(indices[entry] as usize, before(entry, values[entry]));
        }
    }
}

/// How many rows ahead [`gather`] asks for what it copies next.
const AHEAD: usize = 8;

/// Sets the rows of `out` to copies of rows from wherever they stand, with dropout where there is one.
pub fn gather<'a>(
    compute: &Compute,
    out: &mut Matrix,
    row: impl Fn(usize) -> &'a [f32] + Sync + Send,
    dropout: Option<Dropout>,
    nodes: NodeIds<'_>,
) {
    let (count, width) = (out.rows(), out.columns().max(1));
    compute.rows(out.rows_mut(), |at, out| {
        if at + AHEAD < count {
            let coming = row(at + AHEAD);
            (0..width).step_by(16).for_each(|line| prefetch(coming, line));
        }
        match &dropout {
            Some(dropout) => drop_piece(out, row(at), width, dropout, &nodes[at..=at]),
            None => out.copy_from_slice(row(at)),
        }
    });
}

/// `x = mask ⊙ x / (1 − p)`, where the rows stand.
pub fn drop_out_in_place(compute: &Compute, x: &mut Operand, dropout: Dropout, nodes: NodeIds<'_>) {
    match x {
        Operand::Sparse(x) => drop_entries(x, dropout, nodes, |_, value| value),
        dense => compute.rows(dense.dense_mut().rows_mut(), |row, x| drop_in_place(x, &dropout, nodes[row])),
    }
}

per_processor! {
    fn drop_in_place(x: &mut [f32], dropout: &Dropout, node: u64) {
        let kept = dropout.of_row(node);
        x.iter_mut().enumerate().for_each(|(column, x)| *x = kept(column, *x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    fn dropout(probability: f32) -> Dropout {
        Dropout { probability, key: Key::new(1, Purpose::Dropout) }
    }

    #[test]
    fn dropout_keeps_the_right_share_of_every_column_and_row_and_is_unbiased() {
        let (rows, columns) = (4000, 50);
        let mut out = Operand::Dense(Matrix::from_vec(rows, columns, vec![1.0; rows * columns]));
        let nodes: Vec<u64> = (0..rows as u64).collect();
        drop_out_in_place(&Compute::new(2), &mut out, dropout(0.3), &nodes);
        let Operand::Dense(out) = out else { panic!("dense in, dense out") };
        for column in 0..columns {
            let kept = (0..rows).filter(|&r| out.row(r)[column] != 0.0).count();
            // 0.7 · 4000 = 2800 with a standard deviation of 29; five of them.
            assert!((2655..2945).contains(&kept), "column {column} keeps {kept}");
        }
        let mean = out.data().iter().sum::<f32>() / (rows * columns) as f32;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
        // Neighbouring columns are independent: both stay with probability 0.49.
        let both = (0..rows).flat_map(|r| out.row(r).windows(2)).filter(|w| w[0] != 0.0 && w[1] != 0.0).count();
        let share = both as f64 / (rows * (columns - 1)) as f64;
        assert!((share - 0.49).abs() < 0.006, "{share}");
    }

    #[test]
    fn a_shifted_copy_is_each_row_with_the_bias_added_however_it_is_stored() {
        let dense = Matrix::from_vec(3, 2, vec![1.0, 0.0, 0.0, 0.0, -2.0, 4.0]);
        let sparse = crate::matrix::SparseRows::new(2, vec![0, 1, 1, 3], vec![0, 0, 1], vec![1.0, -2.0, 4.0]);
        for x in [Operand::Dense(dense), Operand::Sparse(sparse)] {
            let mut out = Matrix::from_vec(3, 2, vec![f32::NAN; 6]);
            copy_shifted(&Compute::new(2), &mut out, x.view(), &[10.0, 20.0]);
            assert_eq!(out.data(), [11.0, 20.0, 10.0, 20.0, 8.0, 24.0]);
        }
    }

    #[test]
    fn relu_keeps_what_is_no_number_and_every_bit_of_what_is_positive() {
        let values = [1.5, f32::from_bits(1), f32::MAX, f32::INFINITY, 0.0, -0.0, -1.0, f32::NEG_INFINITY];
        let mut x = Matrix::from_vec(1, 8, values.to_vec());
        relu(&Compute::new(1), &mut x);
        let expected = [1.5, f32::from_bits(1), f32::MAX, f32::INFINITY, 0.0, 0.0, 0.0, 0.0];
        assert!(x.data().iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{:?}", x.data());
        let mut x = Matrix::from_vec(2, 20, vec![f32::NAN; 40]);
        relu(&Compute::new(1), &mut x);
        assert!(x.data().iter().all(|value| value.is_nan()));
    }

    #[test]
    fn dropout_of_a_node_does_not_depend_on_its_row_or_on_sparsity() {
        let mut x = Matrix::zeros(3, 64);
        x.row_mut(0)[5] = 1.0;
        x.row_mut(1)[63] = 2.0;
        x.row_mut(2)[7] = 3.0;
        x.row_mut(2)[8] = 4.0;
        let (dense, sparse) = (Operand::Dense(x.clone()), Operand::compact(x));
        let compute = Compute::new(1);
        let (mut a, mut c, mut sparse_in_place) = (dense.clone(), dense.gather(&[2, 0, 1]), sparse.clone());
        drop_out_in_place(&compute, &mut a, dropout(0.5), &[10, 11, 12]);
        drop_out_in_place(&compute, &mut c, dropout(0.5), &[12, 10, 11]);
        drop_out_in_place(&compute, &mut sparse_in_place, dropout(0.5), &[10, 11, 12]);
        let (Operand::Dense(a), Operand::Dense(c)) = (a, c) else { panic!("kinds stay") };
        let (Operand::Sparse(sparse), Operand::Sparse(sparse_in_place)) = (sparse, sparse_in_place) else {
            panic!("kinds stay")
        };
        let mut b = sparse.clone();
        drop_out_sparse(&mut b, sparse.all(), dropout(0.5), &[10, 11, 12]);
        let mut gathered = Matrix::zeros(20, 64);
        let picked: Vec<usize> = (0..20).map(|row| row * 7 % 3).collect();
        let ids: Vec<u64> = picked.iter().map(|&row| 10 + row as u64).collect();
        let Operand::Dense(from) = &dense else { panic!("kinds stay") };
        gather(&compute, &mut gathered, |row| from.row(picked[row]), Some(dropout(0.5)), &ids);
        assert_eq!(sparse_in_place.values(), b.values());
        picked.iter().enumerate().for_each(|(to, &from)| assert_eq!(gathered.row(to), a.row(from)));
        for row in 0..3 {
            for entry in b.offsets()[row]..b.offsets()[row + 1] {
                assert_eq!(b.values()[entry], a.row(row)[b.indices()[entry] as usize]);
            }
        }
        assert_eq!([c.row(1), c.row(2), c.row(0)].concat(), a.data());
    }
}
