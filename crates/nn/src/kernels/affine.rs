//! Products with what stands before and behind them, a piece of rows after the other: what the first product of a
//! piece has written is still in the cache when the next one adds to it, and a bias, an activation or a scale costs no
//! pass of its own over memory.
//!
//! A pass over n rows of width w reads and writes 8·n·w bytes that a piece in the cache does not.

use std::ops::Range;

use laconic_array::Array;

use super::Store;
use super::dispatch::per_processor;
use super::elementwise::{dot, shift_piece};
use super::fold::{Pattern, Weights, sum_some_rows};
use super::long::{ROWS_OF_SUM, add_rows, in_blocks, sum_of};
use super::neighbours::Sums;
use super::product::{
    By, Factor, PRODUCT_ROWS, Weight, add_to_gradient, add_weight_gradient, product_pieces, transpose, with_left,
    with_right,
};
use super::product_tiles::Coming;
use super::stored::{Access, blocks_of, read_dense, read_stored};
use crate::matrix::{Bf16, DenseRows, Matrix, Precision, Rows, Span, Stored, Value, Values, each_value};
use crate::threads::{Compute, Rooms, row_pieces};

/// What one product reads.
#[derive(Debug, Clone, Copy)]
pub enum Left<'a> {
    /// Rows as they are.
    Rows(Rows<'a>),
    /// `x + factor · y`, made a piece at a time.
    Sum(DenseRows<'a>, f32, DenseRows<'a>),
    /// Sums of neighbours' rows, made a piece at a time.
    Neighbours(Sums<'a>),
}

impl<'a> Left<'a> {
    /// `x + factor · y` where both are dense.
    pub fn sum(x: Rows<'a>, factor: f32, y: Rows<'a>) -> Option<Left<'a>> {
        Some(Left::Sum(x.dense()?, factor, y.dense()?))
    }

    fn shape(&self) -> (usize, usize) {
        match self {
            Left::Rows(x) => (x.rows(), x.columns()),
            Left::Sum(x, ..) => (x.rows(), x.columns()),
            Left::Neighbours(sums) => (sums.along.block.destinations(), sums.rows.columns()),
        }
    }

    /// How its rows are stored; those of sparse rows are `f32`.
    fn precision(&self) -> Precision {
        match self {
            Left::Rows(x) => x.precision(),
            Left::Sum(x, ..) => x.precision(),
            Left::Neighbours(sums) => sums.rows.precision(),
        }
    }

    /// `task` on some of the rows: as they are, or made in a room.
    ///
    /// # Panics
    ///
    /// If they are sparse.
    fn dense<T>(
        &self,
        rooms: &Rooms,
        (first, count): (usize, usize),
        task: impl FnOnce(Values<&[f32], &[Bf16]>) -> T,
    ) -> T {
        let rows = first..first + count;
        match *self {
            Left::Rows(x) => match x.stored() {
                Stored::Dense(x) => read_stored(rooms, x, rows, task),
                Stored::Sparse(_) => unreachable!("sparse rows have products of their own"),
            },
            Left::Sum(x, factor, y) => rooms.lend(|room| {
                room.resize(room.len().max(count * x.columns()));
                let made = &mut room[..count * x.columns()];
                read_stored(rooms, x, rows.clone(), |x| {
                    each_value!(x, |x| read_stored(rooms, y, rows, |y| {
                        each_value!(y, |y| add_up(made, x, factor, y));
                    }));
                });
                task(Values::F32(made))
            }),
            Left::Neighbours(sums) => rooms.lend(|room| {
                let width = sums.rows.columns();
                room.resize(room.len().max(count * width));
                let made = &mut room[..count * width];
                sums.of_rows(rooms, made, first);
                task(Values::F32(made))
            }),
        }
    }

    /// Some of its rows as they stand in memory, where the product reads it in order.
    fn stored(&self, rows: Range<usize>) -> Option<Span<'a>> {
        match self {
            Left::Rows(x) => match x.stored() {
                Stored::Dense(x) => x.in_order(rows),
                Stored::Sparse(_) => None,
            },
            Left::Sum(..) | Left::Neighbours(_) => None,
        }
    }

    fn sparse(&self) -> Option<Pattern<'a>> {
        match self {
            Left::Rows(Rows::Sparse(x)) => {
                Some(Pattern { offsets: x.offsets(), columns: x.indices(), weights: Weights::Direct(x.values()) })
            }
            _ => None,
        }
    }
}

per_processor! {
    fn add_up<X: Value, Y: Value>(made: &mut [f32], x: &[X], factor: f32, y: &[Y]) {
        for ((made, x), y) in made.iter_mut().zip(x).zip(y) {
            *made = x.get() + factor * y.get();
        }
    }
}

/// `out = Σ x · Wᵀ + bias`, each W outputs × inputs, and then `end(first, rows)` on each piece of rows, of which
/// `first` is the first.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn affine(
    compute: &mut Compute,
    out: &mut Matrix,
    terms: &[(Left<'_>, &[f32])],
    bias: &[f32],
    end: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let outputs = out.columns();
    for (x, weight) in terms {
        let (rows, inputs) = x.shape();
        assert_eq!((out.rows(), weight.len(), bias.len()), (rows, outputs * inputs, outputs));
    }
    let by = By::of(terms.iter().map(|(x, _)| x.precision()).chain([out.precision()]));
    // Sparse rows add up rows of the transposed weight; dense ones may want it in panels.
    let room = |x: &Left<'_>, weight: &[f32]| match x.sparse() {
        Some(_) => weight.len(),
        None => Weight::transposed(weight, outputs).room(by),
    };
    let mut lent = compute.lend(terms.iter().map(|(x, weight)| room(x, weight)).sum());
    let mut rest = &mut lent[..];
    for (x, weight) in terms {
        let (ready, behind) = rest.split_at_mut(room(x, weight));
        match x.sparse() {
            Some(_) => transpose(compute, ready, weight, outputs, x.shape().1),
            None => Weight::transposed(weight, outputs).make_ready(by, ready),
        }
        rest = behind;
    }
    let (ready, rooms) = (&lent, compute.rooms());
    product_pieces(compute, by, (out, Access::Write), |first, out| {
        let (rows, mut store, mut used) = (out.len() / outputs, Store::Set, 0);
        for (x, weight) in terms {
            let ready = &ready[used..used + room(x, weight)];
            if let Some(pattern) = x.sparse() {
                sum_some_rows(&rooms, out, store, outputs, first, pattern, ready);
            } else {
                let factor = Weight::transposed(weight, outputs).made_ready(by, ready);
                let after = first + rows;
                let coming = Coming([x.stored(after..x.shape().0.min(after + rows)), None]);
                x.dense(&rooms, (first, rows), |x| factor.multiply(&rooms, (&mut *out, store), x, coming));
            }
            (store, used) = (Store::Add, used + ready.len());
        }
        shift_piece(out, outputs, None, Some(bias));
        end(first, out);
    });
    compute.give_back(lent);
}

/// The gradients of [`affine`]: adds `Σ rows of dz` to that of the bias, and `dzᵀ · x` to that of each weight, which is
/// outputs × inputs. All stand in `gradient`; terms say at which value each begins, and `bias` where that of the bias
/// does.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn add_affine_gradients(
    compute: &mut Compute,
    gradient: &mut [f32],
    bias: usize,
    dz: &Matrix,
    terms: &[(Left<'_>, usize)],
) {
    let (rows, outputs) = (dz.rows(), dz.columns());
    assert!(terms.iter().all(|(x, _)| x.shape().0 == rows), "one row each");
    // Pieces have copies of what is added up in them alone: sparse rows' weights, which may be large, are not.
    let is_dense = |(x, _): &&(Left<'_>, usize)| x.sparse().is_none();
    let dense = || terms.iter().filter(is_dense);
    let low = dense().map(|(_, at)| *at).fold(bias, usize::min);
    let high = dense().map(|(x, at)| at + outputs * x.shape().1).fold(bias + outputs, usize::max);
    // Sixteen copies of what is very large would not pay.
    let pieces = if high - low > 1 << 20 { 1 } else { row_pieces(rows) };
    let size = rows.div_ceil(pieces).max(1);
    let by = By::of(terms.iter().map(|(x, _)| x.precision()).chain([dz.precision()]));
    let at_once = by.rows_of_gradient();
    let rooms = compute.rooms();
    compute.reduce(&mut gradient[low..high], pieces, |piece, partial| {
        let (start, end) = ((piece * size).min(rows), ((piece + 1) * size).min(rows));
        in_blocks(&rooms, start..end, ROWS_OF_SUM, partial, |block, partial| {
            for first in block.clone().step_by(at_once) {
                let count = at_once.min(block.end - first);
                let next = first + count..end.min(first + count + at_once);
                let of_dz = dz.span(next.clone());
                let dz = dz.span(first..first + count);
                let of_bias = &mut partial[bias - low..][..outputs];
                each_value!(dz.values(), |dz| add_rows(&rooms, of_bias, dz));
                with_left(&rooms, (dz.values(), outputs), by, |dz| {
                    for (x, at) in dense() {
                        let inputs = x.shape().1;
                        let partial = &mut partial[at - low..][..outputs * inputs];
                        let coming = Coming([Some(of_dz), x.stored(next.clone())]);
                        x.dense(&rooms, (first, count), |x| {
                            with_right(&rooms, (x, inputs), by, |x| add_to_gradient(partial, dz, x, coming));
                        });
                    }
                });
            }
        });
    });
    for (x, at) in terms {
        if let Left::Rows(x @ Rows::Sparse(_)) = x {
            add_weight_gradient(compute, &mut gradient[*at..at + outputs * x.columns()], dz, *x);
        }
    }
}

/// `dz · W` for some rows in a room of its own, which is small enough to stay in the cache.
fn times_weight_apart<'a>(
    rooms: &Rooms,
    dz: Values<&[f32], &[Bf16]>,
    (rows, columns): (usize, usize),
    factor: Factor<'_>,
    room: &'a mut Array<f32>,
) -> &'a [f32] {
    room.resize(room.len().max(rows * columns));
    let made = &mut room[..rows * columns];
    factor.multiply(rooms, (made, Store::Set), dz, Coming::default());
    made
}

/// Turns `hidden`, which ReLU has output, into the gradient of what went into it, where that of what came out is
/// `dz · W`; W is outputs × the width of `hidden`.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times_weight_through_relu(compute: &mut Compute, hidden: &mut Matrix, dz: &Matrix, weight: &[f32]) {
    let (outputs, inputs) = (dz.columns(), hidden.columns());
    assert_eq!((hidden.rows(), weight.len()), (dz.rows(), outputs * inputs));
    let (by, weight) = (By::of([hidden.precision(), dz.precision()]), Weight::new(weight, inputs));
    let mut lent = compute.lend(weight.room(by));
    weight.make_ready(by, &mut lent);
    let (factor, rooms) = (weight.made_ready(by, &lent), compute.rooms());
    product_pieces(compute, by, (hidden, Access::Update), |first, hidden| {
        let rows = hidden.len() / inputs;
        let dz = dz.span(first..first + rows);
        rooms.lend(|room| {
            let made = times_weight_apart(&rooms, dz.values(), (rows, inputs), factor, room);
            let_through(hidden, made);
        });
    });
    compute.give_back(lent);
}

per_processor! {
    /// The gradient of what came out of ReLU, in the places of the `hidden` rows that did.
    fn let_through(hidden: &mut [f32], gradient: &[f32]) {
        for (hidden, gradient) in hidden.iter_mut().zip(gradient) {
            *hidden = if *hidden > 0.0 { *gradient } else { 0.0 };
        }
    }
}

/// ⟨dz · W, x⟩, W outputs × inputs, in a fixed order; where `in_place`, for which outputs and inputs must be equally
/// many, `dz` becomes `dz · W`.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times_weight_onto(compute: &mut Compute, dz: &mut Matrix, weight: &[f32], x: Rows<'_>, in_place: bool) -> f32 {
    let (outputs, inputs) = (dz.columns(), x.columns());
    assert_eq!((x.rows(), weight.len()), (dz.rows(), outputs * inputs));
    let mut sums = vec![0.0f64; dz.rows().div_ceil(PRODUCT_ROWS)];
    let (by, weight) = (By::of([dz.precision()]), Weight::new(weight, inputs));
    let mut lent = compute.lend(weight.room(by));
    weight.make_ready(by, &mut lent);
    let (factor, rooms) = (weight.made_ready(by, &lent), compute.rooms());
    let block = |first: usize, dz: &mut [f32], sum: &mut f64| {
        let rows = dz.len() / outputs;
        rooms.lend(|room| {
            let made = times_weight_apart(&rooms, Values::F32(dz), (rows, inputs), factor, room);
            *sum += onto(&rooms, made, first, x);
            if in_place {
                dz.copy_from_slice(made);
            }
        });
    };
    let at_once = by.rows_at_once();
    each_value!(dz.values_mut(), |dz| {
        compute.chunks2((dz, PRODUCT_ROWS * outputs), (&mut sums, 1), |piece, dz, sum| {
            blocks_of(&rooms, (dz, outputs), at_once, Access::Update, |first, dz| {
                block(piece * PRODUCT_ROWS + first, dz, &mut sum[0]);
            });
        });
    });
    compute.give_back(lent);
    sums.iter().sum::<f64>() as f32
}

/// ⟨made, x⟩ over as many rows of `x` as there are of `made`, from the row `first` on.
fn onto(rooms: &Rooms, made: &[f32], first: usize, x: Rows<'_>) -> f64 {
    let inputs = x.columns().max(1);
    match x.stored() {
        Stored::Dense(x) => read_dense(rooms, x, first..first + made.len() / inputs, |x| {
            let rows = made.chunks_exact(inputs).zip(x.chunks_exact(inputs));
            rows.map(|(made, x)| f64::from(dot(made, x))).sum()
        }),
        Stored::Sparse(x) => {
            let of_row = |(row, made): (usize, &[f32])| {
                let entries = x.offsets()[first + row]..x.offsets()[first + row + 1];
                f64::from(sum_of(entries.map(|entry| made[x.indices()[entry] as usize] * x.values()[entry])))
            };
            made.chunks_exact(inputs).enumerate().map(of_row).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::product::tests::{close, random};
    use crate::kernels::product::times_weight_then;
    use crate::matrix::Operand;

    /// ⟨a's row, b's row⟩ in f64.
    fn dot(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    const SHAPES: [(usize, usize, usize); 4] = [(2100, 37, 11), (1, 1, 1), (1025, 5, 3), (0, 4, 2)];

    /// Against nested loops in f64, with rows dense, sparse, and added up on the way, on one and two threads.
    #[test]
    fn sums_of_products_with_their_ends_agree_with_nested_loops() {
        for (n, inputs, outputs) in SHAPES {
            let (x, y, bias) = (random(n, inputs, 1), random(n, inputs, 2), random(1, outputs, 3));
            let (v, w) = (random(outputs, inputs, 4), random(outputs, inputs, 5));
            let mut few = random(n, inputs, 6);
            few.data_mut().iter_mut().for_each(|value| *value = if *value < 0.4 { 0.0 } else { *value });
            for (operand, threads) in [(Operand::Dense(few.clone()), 1), (Operand::compact(few.clone()), 2)] {
                let mut compute = Compute::new(threads);
                let mut out = random(n, outputs, 7);
                let sum = Left::sum(Rows::Dense(&x), 1.5, Rows::Dense(&y)).expect("both are dense");
                let terms = [(Left::Rows(operand.view()), v.data()), (sum, w.data())];
                affine(&mut compute, &mut out, &terms, bias.data(), |first, rows| {
                    rows.chunks_exact_mut(outputs).enumerate().for_each(|(row, values)| {
                        values.iter_mut().for_each(|value| *value *= (first + row) as f32);
                    });
                });
                for (row, output) in (0..n).step_by(41).flat_map(|row| (0..outputs).map(move |o| (row, o))) {
                    let of_sum = dot(x.row(row), w.row(output)) + 1.5 * dot(y.row(row), w.row(output));
                    let value = dot(few.row(row), v.row(output)) + of_sum + f64::from(bias.data()[output]);
                    assert!(close(out.row(row)[output] / row.max(1) as f32, value * f64::from(row > 0)));
                }
            }
        }
    }

    #[test]
    fn gradients_of_sums_of_products_agree_with_nested_loops() {
        for (n, inputs, outputs) in SHAPES {
            let (x, y, dz) = (random(n, inputs, 1), random(n, inputs, 2), random(n, outputs, 3));
            let values = outputs * inputs;
            let sum = Left::sum(Rows::Dense(&x), -0.5, Rows::Dense(&y)).expect("both are dense");
            let mut few = random(n, inputs, 6);
            few.data_mut().iter_mut().for_each(|value| *value = if *value < 0.4 { 0.0 } else { *value });
            let sparse = Operand::compact(few.clone());
            let runs = [1, 2].map(|threads| {
                let mut gradient = vec![0.25; 3 * values + outputs];
                let y = Left::Rows(Rows::Dense(&y));
                let terms = [(y, values + outputs), (Left::Rows(sparse.view()), 2 * values + outputs), (sum, 0)];
                add_affine_gradients(&mut Compute::new(threads), &mut gradient, values, &dz, &terms);
                gradient
            });
            assert_eq!(runs[0], runs[1], "the same bits on any number of threads");
            let column = |m: &Matrix, c: usize| (0..n).map(|r| m.row(r)[c]).collect::<Vec<_>>();
            for output in 0..outputs {
                let of_dz = column(&dz, output);
                assert!(close(runs[0][values + output], 0.25 + dot(&of_dz, &vec![1.0; n])));
                for input in 0..inputs {
                    let (of_x, of_y) = (dot(&of_dz, &column(&x, input)), dot(&of_dz, &column(&y, input)));
                    let at = output * inputs + input;
                    assert!(close(runs[0][at], 0.25 + of_x - 0.5 * of_y));
                    assert!(close(runs[0][values + outputs + at], 0.25 + of_y));
                    let of_few = dot(&of_dz, &column(&few, input));
                    assert!(close(runs[0][2 * values + outputs + at], 0.25 + of_few));
                }
            }
        }
    }

    #[test]
    fn gradients_through_weights_agree_with_nested_loops() {
        for (n, inputs, outputs) in SHAPES {
            let (dz, w, hidden) = (random(n, outputs, 1), random(outputs, inputs, 2), random(n, inputs, 3));
            let mut compute = Compute::new(2);
            let (mut plain, mut masked) = (random(n, inputs, 4), hidden.clone());
            times_weight_then(&mut compute, &mut plain, &dz, w.data(), |first, rows| {
                for (row, values) in rows.chunks_exact_mut(inputs).enumerate() {
                    values.iter_mut().for_each(|value| *value += (first + row) as f32);
                }
            });
            times_weight_through_relu(&mut compute, &mut masked, &dz, w.data());
            for (row, input) in (0..n).step_by(41).flat_map(|row| (0..inputs).map(move |i| (row, i))) {
                let column: Vec<f32> = (0..outputs).map(|output| w.row(output)[input]).collect();
                let value = dot(dz.row(row), &column);
                assert!(close(plain.row(row)[input], value + row as f64));
                let open = if hidden.row(row)[input] > 0.0 { value } else { 0.0 };
                assert!(close(masked.row(row)[input], open));
            }
        }
    }

    #[test]
    fn gradients_on_their_way_are_multiplied_by_rows_as_nested_loops_do() {
        for (n, inputs, outputs) in [(2100, 37, 11), (1025, 6, 6), (0, 4, 2), (1, 1, 1)] {
            let (dz, w) = (random(n, outputs, 1), random(outputs, inputs, 2));
            let mut few = random(n, inputs, 6);
            few.data_mut().iter_mut().for_each(|value| *value = if *value < 0.4 { 0.0 } else { *value });
            let product = |row: usize, input: usize| -> f64 {
                let column: Vec<f32> = (0..outputs).map(|output| w.row(output)[input]).collect();
                dot(dz.row(row), &column)
            };
            let of_row = |row| (0..inputs).map(|i| product(row, i) * f64::from(few.row(row)[i])).sum::<f64>();
            let expected: f64 = (0..n).map(of_row).sum();
            let in_place = inputs == outputs;
            for (operand, threads) in [(Operand::Dense(few.clone()), 1), (Operand::compact(few.clone()), 2)] {
                let mut made = dz.clone();
                let mut compute = Compute::new(threads);
                let sum = times_weight_onto(&mut compute, &mut made, w.data(), operand.view(), in_place);
                assert!(close(sum, expected), "{sum}, not {expected}");
                for (row, input) in (0..n).step_by(41).flat_map(|row| (0..made.columns()).map(move |i| (row, i))) {
                    let expected = if in_place { product(row, input) } else { f64::from(dz.row(row)[input]) };
                    assert!(close(made.row(row)[input], expected));
                }
            }
        }
    }
}
