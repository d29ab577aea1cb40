//! Products in tiles whose sums stay in the registers of AVX-512 or AVX2: of `f32` by multiplying and adding at once,
//! and of bfloat16 by the instruction that multiplies pairs of them (`VDPBF16PS`), twice as many a cycle, or by those
//! that multiply squares of pairs (`amx`). No library that is kept up has the latter two for rows of a graph; of the
//! former those of faer 0.24 are as fast with AVX-512 on rows in caches, but wait for others, where these ask
//! for the next rows while they multiply.
//!
//! Both sides are made of words that follow each other along the sum: values, or pairs of bfloat16. The left side
//! stands row by row, as rows of a matrix do anyway, the right side in panels of 64 columns, of 32 for squares, of 16
//! for AVX2. A sum runs over its words in one order whatever else is multiplied with it, so that no bit depends on how
//! rows are cut into pieces; nor on how long vectors of `f32` are. In a square the processor adds up the halves of
//! pairs apart.
#![allow(unsafe_code)]

use super::Store;
#[cfg(target_arch = "x86_64")]
use super::dispatch::has_amx;
use super::dispatch::{
    has_avx2_and_fma, has_avx512, has_pairs, multiplies_pairs, multiplies_squares, per_processor, prefetch,
};
use crate::matrix::{Bf16, Span, Value, each_value};

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod vectors;

/// Values of a vector of AVX-512, or of two of AVX2.
const LANES: usize = 16;

/// What the words of a product are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// `f32`, one each, sixteen at a time.
    F32x16,
    /// `f32`, one each, eight at a time.
    F32x8,
    /// Two bfloat16 each.
    Bf16Pairs,
    /// Two bfloat16 each, multiplied in squares of sixteen by sixteen: each sum has as many as whole squares have.
    AmxTiles,
}

/// Rows of a square, and words of each of them.
const SQUARE: usize = 16;

impl Words {
    /// Whether the processor has the instructions.
    fn can_be_multiplied(self) -> bool {
        match self {
            Words::F32x16 => has_avx512(),
            Words::F32x8 => has_avx2_and_fma(),
            Words::Bf16Pairs => has_pairs(),
            #[cfg(target_arch = "x86_64")]
            Words::AmxTiles => has_amx(),
            #[cfg(not(target_arch = "x86_64"))]
            Words::AmxTiles => false,
        }
    }

    /// Whether they are in use. Those of `f32` do not go by what kernels are limited to: where they are missing
    /// ndarray's take their place, which go by the processor as well.
    pub fn are_multiplied(self) -> bool {
        match self {
            Words::F32x16 | Words::F32x8 => self.can_be_multiplied(),
            Words::Bf16Pairs => multiplies_pairs(),
            Words::AmxTiles => multiplies_squares(),
        }
    }

    /// Columns of a panel.
    fn panel(self) -> usize {
        match self {
            Words::F32x16 | Words::Bf16Pairs => 4 * LANES,
            Words::AmxTiles => 2 * LANES,
            Words::F32x8 => LANES,
        }
    }

    /// How many values a word has.
    fn values(self) -> usize {
        match self {
            Words::F32x16 | Words::F32x8 => 1,
            Words::Bf16Pairs | Words::AmxTiles => 2,
        }
    }

    /// How many words a sum of so many products has.
    pub fn of(self, depth: usize) -> usize {
        let words = depth.div_ceil(self.values());
        if self == Words::AmxTiles { words.next_multiple_of(SQUARE) } else { words }
    }

    /// Words of a right side of this depth and so many columns.
    pub fn right_len(self, depth: usize, columns: usize) -> usize {
        self.of(depth) * columns.next_multiple_of(LANES)
    }

    /// Words of a left side that is made of so many rows by [`columns_to_left`].
    pub fn left_len(self, depth: usize, columns: usize) -> usize {
        self.of(depth) * if self == Words::AmxTiles { columns } else { stride_of(columns) }
    }
}

/// Words between rows of a left side that is made ready by columns: not a power of two, so that they do not fall into
/// the same places of a cache.
fn stride_of(columns: usize) -> usize {
    columns.next_multiple_of(LANES) + LANES
}

#[inline(always)]
fn word<T: Value>(low: T, high: T) -> f32 {
    let [low, high] = [low, high].map(|value| u32::from(value.rounded().bits()));
    f32::from_bits(high << 16 | low)
}

/// `words = rows`, of which there are one or two, word by word.
#[inline(always)]
fn join<T: Value>(words: &mut [f32], (low, high): (&[T], Option<&[T]>), of: Words) {
    match (of, high) {
        (Words::F32x16 | Words::F32x8, _) => {
            // As many as a vector has at a time: of one loop over all the compiler makes a call, which costs as much
            // as what it copies.
            for (to, low) in words.chunks_mut(LANES).zip(low.chunks(LANES)) {
                match (<&mut [f32; LANES]>::try_from(&mut *to), <&[T; LANES]>::try_from(low)) {
                    (Ok(to), Ok(low)) => to.iter_mut().zip(low).for_each(|(to, low)| *to = low.get()),
                    _ => to.iter_mut().zip(low).for_each(|(to, low)| *to = low.get()),
                }
            }
        }
        (Words::Bf16Pairs | Words::AmxTiles, None) => {
            words.iter_mut().zip(low).for_each(|(to, low)| *to = word(*low, T::default()))
        }
        (Words::Bf16Pairs | Words::AmxTiles, Some(high)) => {
            for ((to, low), high) in words.iter_mut().zip(low).zip(high) {
                *to = word(*low, *high);
            }
        }
    }
}

per_processor! {
    /// Makes the right side of `x · W` ready, W being depth × columns.
    pub(super) fn rows_to_right<T: Value>(right: &mut [f32], weight: &[T], columns: usize, of: Words) {
        let depth = weight.len() / columns.max(1);
        let words = of.of(depth);
        for first in (0..columns).step_by(of.panel()) {
            let count = of.panel().min(columns - first);
            let width = count.next_multiple_of(LANES);
            let panel = &mut right[first * words..][..width * words];
            for (to, rows) in panel.chunks_exact_mut(width).zip(weight.chunks(of.values() * columns)) {
                let (low, high) = rows.split_at(columns);
                to[count..].fill(0.0);
                join(to, (&low[first..][..count], high.get(first..first + count)), of);
            }
            panel[depth.div_ceil(of.values()) * width..].fill(0.0);
        }
    }
}

per_processor! {
    /// Makes the right side of `x · Wᵀ` ready, W being columns × depth.
    pub(super) fn columns_to_right(right: &mut [f32], weight: &[f32], depth: usize, of: Words) {
        let columns = weight.len() / depth.max(1);
        let words = of.of(depth);
        for first in (0..columns).step_by(of.panel()) {
            let count = of.panel().min(columns - first);
            let width = count.next_multiple_of(LANES);
            let panel = &mut right[first * words..][..width * words];
            panel.fill(0.0);
            // A few words of all columns before the next ones, so that what is written stays in the L1 cache.
            for (start, panel) in panel.chunks_mut(LANES * width).enumerate() {
                for column in 0..count {
                    let row = &weight[(first + column) * depth..][..depth];
                    let row = &row[start * LANES * of.values()..];
                    for (to, values) in panel.chunks_exact_mut(width).zip(row.chunks(of.values())) {
                        to[column] = match of {
                            Words::F32x16 | Words::F32x8 => values[0],
                            Words::Bf16Pairs | Words::AmxTiles => {
                                word(values[0], values.get(1).copied().unwrap_or(0.0))
                            }
                        };
                    }
                }
            }
        }
    }
}

/// The left side of `xᵀ · y`, made in `left`, x being depth × columns.
pub(super) fn columns_to_left<'a, T: Value>(left: &'a mut [f32], x: &[T], columns: usize, of: Words) -> LeftSide<'a> {
    #[cfg(target_arch = "x86_64")]
    if of == Words::AmxTiles {
        assert!(of.can_be_multiplied(), "the processor multiplies {of:?}");
        // SAFETY: the processor was asked.
        unsafe { amx::columns_to_rows(left, x, columns) }
        return LeftSide::Rows(left, of.of(x.len() / columns.max(1)));
    }
    join_columns(left, x, columns, of);
    LeftSide::Columns(left, columns)
}

per_processor! {
    fn join_columns<T: Value>(left: &mut [f32], x: &[T], columns: usize, of: Words) {
        let stride = stride_of(columns);
        for (words, rows) in left.chunks_exact_mut(stride).zip(x.chunks(of.values() * columns)) {
            let (low, high) = rows.split_at(columns);
            join(words, (low, Some(high).filter(|high| !high.is_empty())), of);
        }
    }
}

per_processor! {
    /// Makes the left side of `x · W` ready in pairs, x having rows of this depth, which become so many words each.
    pub(super) fn rows_to_left<T: Value>(left: &mut [f32], x: &[T], depth: usize, words: usize) {
        for (to, row) in left.chunks_exact_mut(words).zip(x.chunks_exact(depth)) {
            let (pairs, last) = row.as_chunks::<2>();
            let (to, rest) = to.split_at_mut(pairs.len());
            to.iter_mut().zip(pairs).for_each(|(to, [low, high])| *to = word(*low, *high));
            rest.fill(0.0);
            rest.iter_mut().zip(last).for_each(|(to, low)| *to = word(*low, T::default()));
        }
    }
}

/// The left side of a product.
#[derive(Clone, Copy)]
pub(super) enum LeftSide<'a> {
    /// Rows of so many bfloat16, an even number, as they are stored.
    Stored(&'a [Bf16], usize),
    /// Rows of so many words.
    Rows(&'a [f32], usize),
    /// Words one below the other, of rows of so many columns, each of which is a row of the product.
    Columns(&'a [f32], usize),
}

impl LeftSide<'_> {
    /// Words from a row of the product to the next, and from a word of it to the next.
    fn strides(&self) -> (usize, usize) {
        match *self {
            LeftSide::Stored(_, depth) => (depth.div_ceil(2), 1),
            LeftSide::Rows(_, words) => (words, 1),
            LeftSide::Columns(_, columns) => (1, stride_of(columns)),
        }
    }

    /// How many words there are.
    fn words(&self) -> usize {
        match self {
            LeftSide::Stored(values, depth) => {
                assert!(depth % 2 == 0, "pairs do not reach from one row into the next");
                values.len() / 2
            }
            LeftSide::Rows(words, _) | LeftSide::Columns(words, _) => words.len(),
        }
    }

    fn start(&self) -> *const u32 {
        match self {
            LeftSide::Stored(values, _) => values.as_ptr().cast(),
            LeftSide::Rows(words, _) | LeftSide::Columns(words, _) => words.as_ptr().cast(),
        }
    }
}

/// The right side of a product.
#[derive(Clone, Copy)]
pub(super) struct RightSide<'a> {
    /// Its panels one after the other, as [`rows_to_right`] and [`columns_to_right`] make them.
    pub panels: &'a [f32],
    /// How many words a sum has.
    pub words: usize,
}

/// Where a product goes.
pub(super) struct Target<'a> {
    /// Its rows, row-major.
    pub rows: &'a mut [f32],
    /// Columns of the rows.
    pub columns: usize,
    /// Whether the product is added to what is there.
    pub store: Store,
}

/// Rows that are read when a product is done: they are asked for meanwhile, as many with each tile.
#[derive(Clone, Copy, Default)]
pub(super) struct Coming<'a>(pub [Option<Span<'a>>; 2]);

impl Coming<'_> {
    /// Asks for one of so many shares.
    fn ask_for(&self, share: (usize, usize)) {
        for rows in self.0.iter().flatten() {
            each_value!(rows.values(), |values| ask_for(values, share));
        }
    }
}

/// Asks for one of so many shares of values.
fn ask_for<T>(values: &[T], (share, shares): (usize, usize)) {
    let (from, to) = (values.len() * share / shares, values.len() * (share + 1) / shares);
    (from..to).step_by(64 / size_of::<T>()).for_each(|at| prefetch(values, at));
}

/// `target (=|+=) left · right`, both sides of words of one kind.
///
/// # Panics
///
/// If the shapes do not fit together, or the processor does not multiply such words.
pub(super) fn multiply_words(
    of: Words,
    target: Target<'_>,
    left: LeftSide<'_>,
    right: RightSide<'_>,
    coming: Coming<'_>,
) {
    let (columns, words) = (target.columns, right.words);
    assert!(of.can_be_multiplied(), "the processor multiplies {of:?}");
    let rows = target.rows.len() / columns.max(1);
    if rows == 0 {
        return;
    }
    let (of_row, of_word) = left.strides();
    let last = (rows - 1) * of_row + words.saturating_sub(1) * of_word;
    assert!(words == 0 || last < left.words(), "the left side has all words");
    assert!(right.panels.len() >= words * columns.next_multiple_of(LANES), "the right side has all words");
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the processor was asked for the instructions, and all words and values are there, as asserted above.
        match of {
            Words::AmxTiles => unsafe { amx::multiply(target, left, right, coming) },
            _ => unsafe { vectors::multiply(of, target, left, right, coming) },
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (target.store, coming);
}

#[cfg(test)]
mod tests;
