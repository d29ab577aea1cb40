//! Folding messages along edges: weighted sums and maxima of source rows.
//!
//! A sum over E edges of width w reads 4·E·w bytes, nearly all of them at random rows; it is bound by memory latency,
//! so the rows of edges to come are prefetched while the current one is added to an accumulator that stays in registers
//! or L1.

use super::Store;
use super::dispatch::{per_processor, prefetch_row};
use super::elementwise::fill;
use super::long::{LONG, in_blocks};
use super::stored::pieces;
use super::sum::Sum;
use super::wide;
use crate::block::{Block, Csr};
use crate::matrix::{Matrix, Value, each_value};
use crate::threads::{Compute, ROWS_PER_PIECE, Rooms};

/// The factor of each entry of a sparse sum.
#[derive(Debug, Clone, Copy)]
pub enum Weights<'a> {
    /// Every factor is 1.
    Ones,
    /// The factor of entry `e` is `values[e]`.
    Direct(&'a [f32]),
    /// The factor of entry `e` is `values[positions[e]]`.
    Indexed(&'a [f32], &'a [u32]),
}

impl Weights<'_> {
    /// The factor of an entry.
    #[inline(always)]
    fn of(&self, entry: usize) -> f32 {
        match self {
            Weights::Ones => 1.0,
            Weights::Direct(values) => values[entry],
            Weights::Indexed(values, positions) => values[positions[entry] as usize],
        }
    }
}

/// Which rows a sparse sum adds up, and by what factors.
#[derive(Debug, Clone, Copy)]
pub struct Pattern<'a> {
    /// Where the entries of each sum begin, and where the last ones end.
    pub offsets: &'a [usize],
    /// The row that each entry adds.
    pub columns: &'a [u32],
    /// The factor of each entry.
    pub weights: Weights<'a>,
}

impl<'a> Pattern<'a> {
    /// The sums along edges, with these factors.
    pub fn of(Csr { offsets, columns }: Csr<'a>, weights: Weights<'a>) -> Pattern<'a> {
        Pattern { offsets, columns, weights }
    }
}

/// `out[v] (=|+=) Σ weight · rows[column]` over the entries of row v. `out` has `width` columns and one row for each
/// row of the pattern; `rows` is row-major with the same width.
///
/// # Panics
///
/// If `out` has not one row for each row of the pattern, or a column lies beyond `rows`.
pub fn sum_rows<T: Value>(
    compute: &Compute,
    out: &mut [f32],
    width: usize,
    store: Store,
    pattern: Pattern<'_>,
    rows: &[T],
) {
    assert_eq!(out.len(), (pattern.offsets.len() - 1) * width);
    let rooms = compute.rooms();
    compute.chunks(out, ROWS_PER_PIECE * width, |piece, out| {
        let first = piece * ROWS_PER_PIECE;
        sum_some_rows(&rooms, out, store, width, first, pattern, rows);
    });
}

/// [`sum_rows`] on this thread, for the rows from `first` on that `out` has room for.
pub(super) fn sum_some_rows<T: Value>(
    rooms: &Rooms,
    out: &mut [f32],
    store: Store,
    width: usize,
    first: usize,
    pattern: Pattern<'_>,
    rows: &[T],
) {
    let Pattern { offsets, columns, weights } = pattern;
    let offsets = &offsets[first..=first + out.len() / width.max(1)];
    let sum = Sum { width, add: store == Store::Add, offsets, columns, rows };
    each_run(rooms, out, sum, |out, sum| match weights {
        Weights::Ones => {
            if !wide::sum_rows(out, &sum, |_| 1.0) {
                sum_ones(out, sum);
            }
        }
        Weights::Direct(values) => {
            if !wide::sum_rows(out, &sum, |entry| values[entry]) {
                sum_direct(out, sum, values);
            }
        }
        Weights::Indexed(values, positions) => {
            if !wide::sum_rows(out, &sum, |entry| values[positions[entry] as usize]) {
                sum_indexed(out, sum, values, positions);
            }
        }
    });
}

/// Calls `kernel(out, sum)` for rows that follow each other and have few entries, and for those that have many a block
/// of entries at a time.
fn each_run<T: Value>(rooms: &Rooms, out: &mut [f32], sum: Sum<'_, T>, kernel: impl Fn(&mut [f32], Sum<'_, T>)) {
    let Sum { width, offsets, .. } = sum;
    let is_long = |row: usize| offsets[row + 1] - offsets[row] > LONG;
    let rows = out.len().checked_div(width).unwrap_or(0);
    let mut row = 0;
    while row < rows {
        let short = (row..rows).take_while(|&row| !is_long(row)).count();
        if short > 0 {
            kernel(&mut out[row * width..(row + short) * width], Sum { offsets: &offsets[row..=row + short], ..sum });
            row += short;
            continue;
        }
        let out = &mut out[row * width..(row + 1) * width];
        if !sum.add {
            out.fill(0.0);
        }
        in_blocks(rooms, offsets[row]..offsets[row + 1], LONG, out, |block, out| {
            kernel(out, Sum { add: true, offsets: &[block.start, block.end], ..sum });
        });
        row += 1;
    }
}

/// Sets `out` to such sums, of which the factors are also multiplied by the value that each entry's column has.
pub(super) fn sum_scaled_rows<T: Value>(
    rooms: &Rooms,
    out: &mut [f32],
    width: usize,
    first: usize,
    pattern: Pattern<'_>,
    of_columns: &[f32],
    rows: &[T],
) {
    let Pattern { offsets, columns, weights } = pattern;
    let offsets = &offsets[first..=first + out.len() / width.max(1)];
    let sum = Sum { width, add: false, offsets, columns, rows };
    each_run(rooms, out, sum, |out, sum| {
        if !wide::sum_rows(out, &sum, |entry| weights.of(entry) * of_columns[columns[entry] as usize]) {
            sum_scaled(out, sum, weights, of_columns);
        }
    });
}

per_processor! {
    fn sum_ones<T: Value>(out: &mut [f32], sum: Sum<'_, T>) {
        sum_piece(out, sum, |_| 1.0)
    }
}

per_processor! {
    fn sum_direct<T: Value>(out: &mut [f32], sum: Sum<'_, T>, values: &[f32]) {
        sum_piece(out, sum, |entry| values[entry])
    }
}

per_processor! {
    fn sum_indexed<T: Value>(out: &mut [f32], sum: Sum<'_, T>, values: &[f32], positions: &[u32]) {
        sum_piece(out, sum, |entry| values[positions[entry] as usize])
    }
}

per_processor! {
    fn sum_scaled<T: Value>(out: &mut [f32], sum: Sum<'_, T>, weights: Weights<'_>, of_columns: &[f32]) {
        sum_piece(out, sum, |entry| weights.of(entry) * of_columns[sum.columns[entry] as usize])
    }
}

#[inline(always)]
pub(super) fn sum_piece<T: Value>(out: &mut [f32], sum: Sum<'_, T>, weight: impl Fn(usize) -> f32) {
    let Sum { width, add, offsets, columns, rows } = sum;
    if width == 0 {
        return;
    }
    let distance = sum.distance();
    for (line, out) in out.chunks_exact_mut(width).enumerate() {
        let entries = offsets[line]..offsets[line + 1];
        if !add {
            out.fill(0.0);
        }
        // Four rows at a time are added to a sum that is loaded and stored once, in the order in which one at a time
        // would be.
        let mut entry = entries.start;
        while entry + 4 <= entries.end {
            let row = |step: usize| {
                ahead(columns, rows, width, entry + step + distance);
                let start = columns[entry + step] as usize * width;
                (weight(entry + step), &rows[start..start + width])
            };
            let ((f0, r0), (f1, r1), (f2, r2), (f3, r3)) = (row(0), row(1), row(2), row(3));
            for ((((sum, v0), v1), v2), v3) in out.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
                *sum = (((*sum + f0 * v0.get()) + f1 * v1.get()) + f2 * v2.get()) + f3 * v3.get();
            }
            entry += 4;
        }
        for entry in entry..entries.end {
            ahead(columns, rows, width, entry + distance);
            let factor = weight(entry);
            let start = columns[entry] as usize * width;
            for (sum, value) in out.iter_mut().zip(&rows[start..start + width]) {
                *sum += factor * value.get();
            }
        }
    }
}

/// Prefetches the row of an entry to come, if there is one.
#[inline(always)]
fn ahead<T>(columns: &[u32], rows: &[T], width: usize, entry: usize) {
    if let Some(&coming) = columns.get(entry) {
        prefetch_row(rows, width, coming);
    }
}

/// Sums the messages of a block's source rows into its destination rows.
pub fn sum_fold(compute: &Compute, out: &mut Matrix, store: Store, block: &Block, messages: &Matrix) {
    let weights = block.weights().map_or(Weights::Ones, Weights::Direct);
    sum_into(compute, out, store, Pattern::of(block.forward(), weights), messages);
}

/// [`sum_rows`] of rows however they are stored.
///
/// # Panics
///
/// If `out` has not one row for each row of the pattern, or a column lies beyond `rows`.
pub(super) fn sum_into(compute: &Compute, out: &mut Matrix, store: Store, pattern: Pattern<'_>, rows: &Matrix) {
    let Pattern { offsets, columns, .. } = pattern;
    let width = rows.columns();
    assert_eq!((out.rows(), out.columns()), (offsets.len() - 1, width), "one row for each");
    if store == Store::Add && columns.is_empty() {
        return;
    }
    let rooms = compute.rooms();
    each_value!(rows.values(), |rows| {
        pieces(compute, out, store.into(), |first, out| {
            sum_some_rows(&rooms, out, store, width, first, pattern, rows);
        });
    });
}

/// The adjoint of [`sum_fold`]: the gradient of each source row's message from the gradients of the sums.
pub fn sum_fold_adjoint(compute: &Compute, out: &mut Matrix, store: Store, block: &Block, gradient: &Matrix) {
    let weights = block.weights().map_or(Weights::Ones, |w| Weights::Indexed(w, block.positions()));
    sum_into(compute, out, store, Pattern::of(block.reverse(), weights), gradient);
}

/// [`sum_fold_adjoint`] for the first source rows alone, as many as `out` has, where no edge starts from any other.
///
/// # Panics
///
/// If one does.
pub fn sum_fold_adjoint_of_first(compute: &Compute, out: &mut Matrix, store: Store, block: &Block, gradient: &Matrix) {
    let weights = block.weights().map_or(Weights::Ones, |w| Weights::Indexed(w, block.positions()));
    let Csr { offsets, columns } = block.reverse();
    let first = Csr { offsets: &offsets[..=out.rows()], columns };
    assert_eq!(first.offsets.last(), offsets.last(), "an edge starts beyond source row {}", out.rows());
    sum_into(compute, out, store, Pattern::of(first, weights), gradient);
}

/// The winner of a maximum over no messages at all.
pub const NO_WINNER: u32 = u32::MAX;

/// Makes ready for the first block: −∞ everywhere and nobody has won. `maximum` has its shape already.
pub fn begin_maximum(compute: &Compute, maximum: &mut Matrix, winner: &mut Vec<u32>) {
    fill(compute, maximum, f32::NEG_INFINITY);
    winner.clear();
    winner.resize(maximum.data().len(), NO_WINNER);
}

/// Sets what nobody has won to 0, once every block is in.
pub fn end_maximum(compute: &Compute, maximum: &mut Matrix, winner: &[u32]) {
    let width = maximum.columns();
    compute.rows(maximum.rows_mut(), |row, maximum| {
        for (value, &winner) in maximum.iter_mut().zip(&winner[row * width..]) {
            *value = if winner == NO_WINNER { 0.0 } else { *value };
        }
    });
}

/// Raises `maximum` to the largest message of the block's sources, column by column, and notes in `winner` which source
/// that was, by its name ([`Block::names`]). Of equals the one with the smallest name wins, whichever block it is in.
/// Begin with [`begin_maximum`], end with [`end_maximum`].
pub fn max_fold(compute: &Compute, maximum: &mut Matrix, winner: &mut [u32], block: &Block, messages: &Matrix) {
    let (width, names) = (messages.columns(), block.names());
    let Csr { offsets, columns } = block.forward();
    compute.rows2(maximum.rows_mut(), (winner, width), |row, maximum, winner| {
        for &source in &columns[offsets[row]..offsets[row + 1]] {
            let (message, name) = (messages.row(source as usize), names[source as usize]);
            for ((best, who), &value) in maximum.iter_mut().zip(winner.iter_mut()).zip(message) {
                // A NaN wins over everything, so that it is not lost, and −∞, which stands for a message that is not
                // there, over nothing. Without branches, so that it stays vectors.
                let ties = (value == *best) & (name < *who) & (*who != NO_WINNER);
                let wins = (value > *best) | ties | value.is_nan();
                *best = if wins { value } else { *best };
                *who = if wins { name } else { *who };
            }
        }
    });
}

/// The adjoint of [`max_fold`]: each source row gets the gradients of the maxima that it won.
pub fn max_fold_adjoint(compute: &Compute, out: &mut Matrix, block: &Block, gradient: &Matrix, winner: &[u32]) {
    let (width, rooms) = (gradient.columns(), compute.rooms());
    let Csr { offsets, columns } = block.reverse();
    compute.rows(out.rows_mut(), |source, out| {
        let me = block.names()[source];
        out.fill(0.0);
        in_blocks(&rooms, offsets[source]..offsets[source + 1], LONG, out, |edges, out| {
            for &destination in &columns[edges] {
                let won = &winner[destination as usize * width..][..width];
                for ((sum, &who), &value) in out.iter_mut().zip(won).zip(gradient.row(destination as usize)) {
                    *sum += if who == me { value } else { 0.0 };
                }
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    pub(crate) fn random_block(destinations: usize, sources: usize, weighted: bool) -> Block {
        let key = Key::new(77, Purpose::Test);
        let (mut offsets, mut columns) = (vec![0], vec![]);
        for d in 0..destinations as u64 {
            for s in 0..sources as u64 {
                if key.with(d).with(s).unit() < 0.08 {
                    columns.push(s as u32);
                }
            }
            offsets.push(columns.len());
        }
        let weights = weighted.then(|| (0..columns.len()).map(|e| key.with(e as u64).unit() as f32).collect());
        Block::new(sources, offsets, columns, weights)
    }

    fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
        let key = Key::new(stream, Purpose::Test);
        let value = |i: usize| (key.with(i as u64).unit() - 0.5) as f32;
        Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
    }

    fn dot(a: &Matrix, b: &Matrix) -> f64 {
        a.data().iter().zip(b.data()).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    }

    #[test]
    fn sums_agree_with_a_dense_operator_and_its_transpose() {
        for weighted in [false, true] {
            for width in [1, 7, 16, 40, 256] {
                let block = random_block(700, 90, weighted);
                let mut dense = Matrix::zeros(700, 90);
                for d in 0..700 {
                    for e in block.forward().offsets[d]..block.forward().offsets[d + 1] {
                        dense.row_mut(d)[block.forward().columns[e] as usize] = block.weights().map_or(1.0, |w| w[e]);
                    }
                }
                let (m, g) = (random(90, width, 1), random(700, width, 2));
                let compute = Compute::new(2);
                let mut out = random(700, width, 3);
                let before = out.clone();
                sum_fold(&compute, &mut out, Store::Add, &block, &m);
                let mut back = Matrix::zeros(90, width);
                sum_fold_adjoint(&compute, &mut back, Store::Set, &block, &g);
                for d in 0..700 {
                    for c in 0..width {
                        let sum: f32 = (0..90).map(|s| dense.row(d)[s] * m.row(s)[c]).sum();
                        assert!((out.row(d)[c] - before.row(d)[c] - sum).abs() < 1e-4);
                    }
                }
                let mut only = Matrix::zeros(700, width);
                sum_fold(&compute, &mut only, Store::Set, &block, &m);
                assert!((dot(&only, &g) - dot(&m, &back)).abs() < 1e-3, "<Am, g> = <m, A'g>");
            }
        }
    }

    #[test]
    fn a_maximum_over_something_that_is_no_number_is_none() {
        let block = Block::new(3, vec![0, 3], vec![0, 1, 2], None);
        for place in 0..3 {
            let mut m = Matrix::from_vec(3, 1, vec![1.0, 2.0, 3.0]);
            m.row_mut(place)[0] = f32::NAN;
            let (mut maximum, mut winner) = (Matrix::zeros(1, 1), Vec::new());
            begin_maximum(&Compute::new(1), &mut maximum, &mut winner);
            max_fold(&Compute::new(1), &mut maximum, &mut winner, &block, &m);
            end_maximum(&Compute::new(1), &mut maximum, &winner);
            assert!(maximum.data()[0].is_nan(), "{place}");
        }
    }

    #[test]
    fn maximum_and_its_adjoint_follow_the_winners() {
        let block = random_block(300, 60, false).naming((5..65).collect());
        let (m, g) = (random(60, 9, 1), random(300, 9, 2));
        let compute = Compute::new(2);
        let mut maximum = Matrix::from_vec(300, 9, vec![f32::NEG_INFINITY; 2700]);
        let mut winner = vec![NO_WINNER; 2700];
        max_fold(&compute, &mut maximum, &mut winner, &block, &m);
        let mut back = Matrix::zeros(60, 9);
        max_fold_adjoint(&compute, &mut back, &block, &g, &winner);
        let mut expected = Matrix::zeros(60, 9);
        for d in 0..300 {
            let sources = &block.forward().columns[block.forward().offsets[d]..block.forward().offsets[d + 1]];
            for c in 0..9 {
                let best =
                    sources.iter().copied().max_by(|a, b| m.row(*a as usize)[c].total_cmp(&m.row(*b as usize)[c]));
                match best {
                    Some(s) => {
                        assert_eq!(maximum.row(d)[c], m.row(s as usize)[c]);
                        expected.row_mut(s as usize)[c] += g.row(d)[c];
                    }
                    None => assert_eq!(winner[d * 9 + c], NO_WINNER),
                }
            }
        }
        for (a, b) in back.data().iter().zip(expected.data()) {
            assert!((a - b).abs() < 1e-5);
        }
    }

    #[test]
    fn of_equal_maxima_the_smallest_name_wins_however_sources_are_divided() {
        let compute = Compute::new(1);
        let messages = |values: &[f32]| Matrix::from_vec(values.len(), 1, values.to_vec());
        // One destination; sources by name: 0 and 3 own, 1 and 2 from elsewhere. 1, 2 and 3 are equal.
        let values = [0.5, 0.75, 0.75, 0.75];
        let divide = |parts: &[&[u32]]| {
            let (mut maximum, mut winner) = (Matrix::zeros(1, 1), Vec::new());
            begin_maximum(&compute, &mut maximum, &mut winner);
            for names in parts {
                let columns = (0..names.len() as u32).collect();
                let block = Block::new(names.len(), vec![0, names.len()], columns, None).naming(names.to_vec());
                let rows: Vec<f32> = names.iter().map(|&name| values[name as usize]).collect();
                max_fold(&compute, &mut maximum, &mut winner, &block, &messages(&rows));
            }
            (maximum.data()[0], winner[0])
        };
        for parts in [&[&[0, 1, 2, 3][..]][..], &[&[0, 3], &[1, 2]], &[&[3], &[2, 0, 1]], &[&[3, 2, 1, 0], &[]]] {
            assert_eq!(divide(parts), (0.75, 1), "{parts:?}");
        }
        let (mut maximum, mut winner) = (Matrix::zeros(1, 1), Vec::new());
        begin_maximum(&compute, &mut maximum, &mut winner);
        let absent = messages(&[f32::NEG_INFINITY]);
        max_fold(&compute, &mut maximum, &mut winner, &Block::new(1, vec![0, 1], vec![0], None), &absent);
        end_maximum(&compute, &mut maximum, &winner);
        assert_eq!((maximum.data()[0], winner[0]), (0.0, NO_WINNER), "nobody is there");
    }
}
