//! Dense and sparse matrix products with weights in PyTorch's layout, `[outputs, inputs]`.
//!
//! Rows are cut into pieces that run on one thread each, so that the bits do not depend on the number of threads. What
//! multiplies them is in `product_tiles`, or where the processor lacks its instructions ndarray (matrixmultiply).
//! `x · Wᵀ` on n rows costs 2·n·inputs·outputs flops.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

use super::Store;
use super::fold::{Pattern, Weights, sum_rows, sum_some_rows};
use super::long::{ROWS_OF_SUM, add_rows, in_blocks};
use super::product_tiles::{
    Coming, LeftSide, RightSide, Target, Words, columns_to_left, columns_to_right, multiply_words, rows_to_left,
    rows_to_right,
};
use super::stored::{Access, pieces, pieces_of, read_stored, read_values};
use crate::matrix::{Bf16, DenseRows, Matrix, Precision, Rows, SparseRows, SparseSpan, Stored, Values, each_value};
use crate::threads::{Compute, Rooms, row_pieces};

/// Rows of a dense product that a thread takes at once: so many that what the library packs anew for each of them is
/// below a percent of the work.
pub(super) const PRODUCT_ROWS: usize = 1024;

/// `out (=|+=) a · b` on this thread, for row-major views or transposed ones: the one place that calls foreign kernels.
pub(super) fn product(mut out: ArrayViewMut2<'_, f32>, store: Store, a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>) {
    let keep = match store {
        Store::Set => 0.0,
        Store::Add => 1.0,
    };
    general_mat_mul(1.0, &a, &b, keep, &mut out);
}

/// Values as a row-major matrix.
fn view(values: &[f32], rows: usize, columns: usize) -> ArrayView2<'_, f32> {
    assert_eq!(values.len(), rows * columns);
    ArrayView2::from_shape((rows, columns), values).expect("as many values as the matrix has")
}

/// The same, to be written.
fn view_mut(values: &mut [f32], rows: usize, columns: usize) -> ArrayViewMut2<'_, f32> {
    assert_eq!(values.len(), rows * columns);
    ArrayViewMut2::from_shape((rows, columns), values).expect("as many values as the matrix has")
}

/// A matrix of weights that many rows are multiplied by.
#[derive(Clone, Copy)]
pub(super) struct Weight<'a> {
    values: &'a [f32],
    /// Values of a row that is multiplied, and of what comes out.
    depth: usize,
    columns: usize,
    /// Whether the matrix stands as columns × depth.
    is_transposed: bool,
}

impl<'a> Weight<'a> {
    /// W of `x · W`, with rows of so many columns.
    pub fn new(values: &'a [f32], columns: usize) -> Self {
        Weight { values, depth: values.len() / columns.max(1), columns, is_transposed: false }
    }

    /// W of `x · Wᵀ`, with so many rows.
    pub fn transposed(values: &'a [f32], columns: usize) -> Self {
        Weight { is_transposed: true, ..Weight::new(values, columns) }
    }

    /// How much memory [`Weight::make_ready`] takes.
    pub fn room(&self, by: By) -> usize {
        match by {
            By::Library => 0,
            By::Tiles(words) => words.right_len(self.depth, self.columns),
        }
    }

    /// Makes the weight ready for products, in memory that is lent.
    pub fn make_ready(self, by: By, room: &mut [f32]) {
        match (by, self.is_transposed) {
            (By::Library, _) => {}
            (By::Tiles(words), true) => columns_to_right(room, self.values, self.depth, words),
            (By::Tiles(words), false) => rows_to_right(room, self.values, self.columns, words),
        }
    }

    /// The weight as [`Weight::make_ready`] has made it.
    pub fn made_ready<'b>(self, by: By, room: &'b [f32]) -> Factor<'b>
    where
        'a: 'b,
    {
        let Weight { values, depth, columns, is_transposed } = self;
        match (by, is_transposed) {
            (By::Tiles(words), _) => Factor::Tiles { words, right: room, depth, columns },
            (By::Library, true) => Factor::Plain(view(values, columns, depth).reversed_axes()),
            (By::Library, false) => Factor::Plain(view(values, depth, columns)),
        }
    }
}

/// How products are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// By the library, of `f32`.
    Library,
    /// In tiles of our own.
    Tiles(Words),
}

impl By {
    /// How matrices that are stored so are multiplied: in squares or pairs of bfloat16 where one of them is, as far as
    /// the processor has an instruction for it that pays. Else such rows are widened.
    pub fn of(matrices: impl IntoIterator<Item = Precision>) -> By {
        let is_short = matrices.into_iter().any(|precision| precision == Precision::Bf16);
        let ways = [Words::AmxTiles, Words::Bf16Pairs, Words::F32x16, Words::F32x8];
        let ways = &ways[if is_short { 0 } else { 2 }..];
        ways.iter().find(|words| words.are_multiplied()).map_or(By::Library, |&words| By::Tiles(words))
    }

    /// How many rows are made at once, with all that is done to them while they are in the cache.
    pub fn rows_at_once(self) -> usize {
        match self {
            By::Library => PRODUCT_ROWS,
            By::Tiles(Words::F32x16 | Words::F32x8) => 192,
            By::Tiles(Words::Bf16Pairs | Words::AmxTiles) => 96,
        }
    }

    /// How many rows go into a gradient of weights at once: they stay in the cache for all that is made of them.
    pub fn rows_of_gradient(self) -> usize {
        match self {
            By::Library => 512,
            By::Tiles(Words::F32x16 | Words::F32x8) => 128,
            By::Tiles(Words::Bf16Pairs | Words::AmxTiles) => 256,
        }
    }
}

/// A weight that is ready to be multiplied, depth × columns.
#[derive(Clone, Copy)]
pub(super) enum Factor<'a> {
    /// As it stands, for products by the library.
    Plain(ArrayView2<'a, f32>),
    /// For products in tiles, as [`multiply_words`] takes it.
    Tiles {
        /// What they are made of.
        words: Words,
        /// The words.
        right: &'a [f32],
        /// How many values a row has that is multiplied.
        depth: usize,
        /// How many values come out of it.
        columns: usize,
    },
}

impl Factor<'_> {
    /// `out (=|+=) x · W` on this thread, while other rows are coming.
    pub fn multiply(
        self,
        rooms: &Rooms,
        (out, store): (&mut [f32], Store),
        x: Values<&[f32], &[Bf16]>,
        coming: Coming<'_>,
    ) {
        match self {
            // Without columns the weight says nothing of how deep it is.
            Factor::Plain(_) if out.is_empty() => {}
            Factor::Plain(weight) => each_value!(x, |x| {
                read_values(rooms, x, |x| {
                    let rows = out.len() / weight.ncols().max(1);
                    product(view_mut(out, rows, weight.ncols()), store, view(x, rows, weight.nrows()), weight);
                });
            }),
            Factor::Tiles { words: words @ (Words::F32x16 | Words::F32x8), right, depth, columns } => {
                each_value!(x, |x| {
                    read_values(rooms, x, |x| {
                        let target = Target { rows: out, columns, store };
                        let right = RightSide { panels: right, words: depth };
                        multiply_words(words, target, LeftSide::Rows(x, depth), right, coming);
                    });
                })
            }
            Factor::Tiles { words: words @ (Words::Bf16Pairs | Words::AmxTiles), right, depth, columns } => {
                let right = RightSide { panels: right, words: words.of(depth) };
                let target = Target { rows: out, columns, store };
                match x {
                    Values::Bf16(x) if depth == 2 * right.words => {
                        multiply_words(words, target, LeftSide::Stored(x, depth), right, coming);
                    }
                    x => each_value!(x, |x| rooms.lend(|room| {
                        let len = x.len() / depth.max(1) * right.words;
                        room.resize(room.len().max(len));
                        rows_to_left(&mut room[..len], x, depth, right.words);
                        let left = LeftSide::Rows(&room[..len], right.words);
                        multiply_words(words, target, left, right, coming);
                    })),
                }
            }
        }
    }
}

/// Calls `task(first, rows)` for the rows of a product, on all threads, for as many at a time as are made at once.
pub(super) fn product_pieces(
    compute: &Compute,
    by: By,
    (out, access): (&mut Matrix, Access),
    task: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let (at_once, width) = (by.rows_at_once(), out.columns().max(1));
    pieces_of(compute, (PRODUCT_ROWS, at_once), out, access, |first, out| {
        for (block, out) in out.chunks_mut(at_once * width).enumerate() {
            task(first + block * at_once, out);
        }
    });
}

/// `out (=|+=) x · W`, and then `end(first, rows)` on each piece of rows while it is in the cache, of which `first` is
/// the first.
fn multiply_rows(
    compute: &mut Compute,
    (out, store): (&mut Matrix, Store),
    x: DenseRows<'_>,
    weight: Weight<'_>,
    end: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let columns = out.columns();
    assert_eq!((out.rows(), weight.values.len()), (x.rows(), x.columns() * columns));
    let by = By::of([x.precision(), out.precision()]);
    let mut lent = compute.lend(weight.room(by));
    weight.make_ready(by, &mut lent);
    let (factor, rooms) = (weight.made_ready(by, &lent), compute.rooms());
    product_pieces(compute, by, (out, store.into()), |first, out| {
        let (rows, after) = (first..first + out.len() / columns, first + out.len() / columns);
        let next = x.in_order(after..x.rows().min(after + rows.len()));
        let coming = Coming([next, None]);
        read_stored(&rooms, x, rows, |x| factor.multiply(&rooms, (&mut *out, store), x, coming));
        end(first, out);
    });
    compute.give_back(lent);
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
        Stored::Dense(x) => multiply_rows(compute, (out, store), x, Weight::transposed(weight, outputs), |_, _| {}),
        Stored::Sparse(x) => {
            let mut lent = compute.lend(weight.len());
            transpose(compute, &mut lent[..weight.len()], weight, outputs, inputs);
            sum_sparse(compute, (out, store), x, &lent[..weight.len()]);
            compute.give_back(lent);
        }
    }
}

/// `out (=|+=) x · W` for sparse rows: they add up rows of W, which is inputs × outputs.
fn sum_sparse(compute: &Compute, (out, store): (&mut Matrix, Store), x: SparseSpan<'_>, weight: &[f32]) {
    let pattern = Pattern { offsets: x.offsets(), columns: x.indices(), weights: Weights::Direct(x.values()) };
    let outputs = out.columns();
    let rooms = compute.rooms();
    pieces(compute, out, store.into(), |first, out| {
        sum_some_rows(&rooms, out, store, outputs, first, pattern, weight);
    });
}

/// `out (=|+=) dz · W`: dz is n × outputs, `weight` outputs × inputs, out n × inputs.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times_weight(compute: &mut Compute, out: &mut Matrix, store: Store, dz: &Matrix, weight: &[f32]) {
    let columns = out.columns();
    multiply_rows(compute, (out, store), dz.all().into(), Weight::new(weight, columns), |_, _| {});
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
    let columns = out.columns();
    multiply_rows(compute, (out, Store::Set), dz.all().into(), Weight::new(weight, columns), end);
}

/// `out (=|+=) x · W`: x is n × inputs, `weight` inputs × outputs, out n × outputs.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn times(compute: &mut Compute, out: &mut Matrix, store: Store, x: Rows<'_>, weight: &[f32]) {
    let columns = out.columns();
    assert_eq!((out.rows(), weight.len()), (x.rows(), x.columns() * columns));
    match x.stored() {
        Stored::Dense(x) => multiply_rows(compute, (out, store), x, Weight::new(weight, columns), |_, _| {}),
        Stored::Sparse(x) => sum_sparse(compute, (out, store), x, weight),
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
        Stored::Dense(x) => dense_weight_gradient(compute, gradient, x, dz.all().into()),
        Stored::Sparse(x) => by_column(x, |x| {
            let columns = x.by_column();
            let weights = Weights::Indexed(x.values(), &columns.positions);
            let pattern = Pattern { offsets: &columns.offsets, columns: &columns.rows, weights };
            each_value!(dz.values(), |values| {
                sum_rows(compute, gradient, dz.columns(), Store::Add, pattern, values);
            });
        }),
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
        Stored::Dense(x) => dense_weight_gradient(compute, gradient, dz.all().into(), x),
        Stored::Sparse(x) => by_column(x, |x| sparse_weight_gradient(compute, gradient, dz, x)),
    }
}

/// `task` on rows whose columns are known: those of a matrix, or of a copy where they are some of its rows.
fn by_column(x: SparseSpan<'_>, task: impl FnOnce(&SparseRows)) {
    match x.whole() {
        Some(x) => task(x),
        None => task(&x.copied()),
    }
}

/// The sum over rows is cut into pieces that are added in order. Where the result is so large that sixteen copies of it
/// would not pay, all rows go through one product.
fn dense_weight_gradient(compute: &mut Compute, gradient: &mut [f32], dz: DenseRows<'_>, x: DenseRows<'_>) {
    let rows = dz.rows();
    let pieces = if gradient.len() > 1 << 19 { 1 } else { row_pieces(rows) };
    let size = rows.div_ceil(pieces).max(1);
    let (rooms, by) = (compute.rooms(), By::of([dz.precision(), x.precision()]));
    compute.reduce(gradient, pieces, |piece, partial| {
        let (start, end) = ((piece * size).min(rows), ((piece + 1) * size).min(rows));
        in_blocks(&rooms, start..end, ROWS_OF_SUM, partial, |block, partial| {
            for first in block.clone().step_by(by.rows_of_gradient()) {
                let rows = first..block.end.min(first + by.rows_of_gradient());
                let next = rows.end..end.min(rows.end + rows.len());
                let coming = Coming([dz, x].map(|of| of.in_order(next.clone())));
                read_stored(&rooms, dz, rows.clone(), |values| {
                    with_left(&rooms, (values, dz.columns()), by, |dz| {
                        read_stored(&rooms, x, rows, |values| {
                            with_right(&rooms, (values, x.columns()), by, |x| add_to_gradient(partial, dz, x, coming));
                        });
                    });
                });
            }
        });
    });
}

/// The left side of a gradient of weights, dzᵀ, made ready.
#[derive(Clone, Copy)]
pub(super) enum Transposed<'a> {
    /// Rows of `f32`, of so many columns.
    Plain(&'a [f32], usize),
    /// Words of so many rows.
    Words(Words, LeftSide<'a>, usize),
}

/// `task` on some rows, of so many values, as the left side of gradients of weights.
pub(super) fn with_left(
    rooms: &Rooms,
    (dz, columns): (Values<&[f32], &[Bf16]>, usize),
    by: By,
    task: impl FnOnce(Transposed<'_>),
) {
    each_value!(dz, |dz| match by {
        By::Tiles(words) => rooms.lend(|room| {
            let rows = dz.len() / columns.max(1);
            let len = words.left_len(rows, columns);
            room.resize(room.len().max(len));
            let left = columns_to_left(&mut room[..len], dz, columns, words);
            task(Transposed::Words(words, left, rows));
        }),
        By::Library => read_values(rooms, dz, |dz| task(Transposed::Plain(dz, columns))),
    });
}

/// The right side of a gradient of weights, made ready.
#[derive(Clone, Copy)]
pub(super) enum Beside<'a> {
    /// Rows of `f32`, of so many columns.
    Plain(&'a [f32], usize),
    /// Words for so many columns.
    Words(&'a [f32], usize),
}

/// `task` on some rows, of so many values, as the right side of gradients of weights.
pub(super) fn with_right(
    rooms: &Rooms,
    (x, inputs): (Values<&[f32], &[Bf16]>, usize),
    by: By,
    task: impl FnOnce(Beside<'_>),
) {
    each_value!(x, |x| match by {
        By::Tiles(words) => rooms.lend(|room| {
            let len = words.right_len(x.len() / inputs.max(1), inputs);
            room.resize(room.len().max(len));
            rows_to_right(&mut room[..len], x, inputs, words);
            task(Beside::Words(&room[..len], inputs));
        }),
        By::Library => read_values(rooms, x, |x| task(Beside::Plain(x, inputs))),
    })
}

/// `partial += dzᵀ · x` on this thread; other rows are coming.
///
/// # Panics
///
/// If the two sides were made ready for different ways to multiply.
pub(super) fn add_to_gradient(partial: &mut [f32], dz: Transposed<'_>, x: Beside<'_>, coming: Coming<'_>) {
    match (dz, x) {
        (Transposed::Plain(dz, outputs), Beside::Plain(x, inputs)) => {
            // One of the two may have no columns, and says nothing of rows then.
            let rows = (dz.len() / outputs.max(1)).max(x.len() / inputs.max(1));
            let dz = view(dz, rows, outputs).reversed_axes();
            product(view_mut(partial, outputs, inputs), Store::Add, dz, view(x, rows, inputs));
        }
        (Transposed::Words(words, dz, rows), Beside::Words(right, inputs)) => {
            let target = Target { rows: partial, columns: inputs, store: Store::Add };
            multiply_words(words, target, dz, RightSide { panels: right, words: words.of(rows) }, coming);
        }
        _ => unreachable!("both sides are made ready for the same products"),
    }
}

fn sparse_weight_gradient(compute: &mut Compute, gradient: &mut [f32], dz: &Matrix, x: &SparseRows) {
    let (outputs, inputs) = (dz.columns(), x.columns());
    let mut lent = compute.lend(gradient.len());
    let transposed = &mut lent[..gradient.len()];
    let columns = x.by_column();
    let weights = Weights::Indexed(x.values(), &columns.positions);
    let pattern = Pattern { offsets: &columns.offsets, columns: &columns.rows, weights };
    each_value!(dz.values(), |dz| {
        sum_rows(compute, transposed, outputs, Store::Set, pattern, dz);
    });
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
    let rows = dz.rows();
    let pieces = row_pieces(rows);
    let (size, rooms) = (rows.div_ceil(pieces).max(1), compute.rooms());
    compute.reduce(gradient, pieces, |piece, partial| {
        let rows = (piece * size).min(rows)..((piece + 1) * size).min(rows);
        each_value!(dz.span(rows).values(), |dz| add_rows(&rooms, partial, dz));
    });
}

#[cfg(test)]
pub(super) mod tests;
