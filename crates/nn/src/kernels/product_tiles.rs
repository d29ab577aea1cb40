//! Products in tiles whose sums stay in the registers of AVX-512 or AVX2: of `f32` by multiplying and adding at once,
//! and of bfloat16 by the instruction that multiplies pairs of them (`VDPBF16PS`), twice as many a cycle. No library
//! that is kept up has the latter for rows of a graph; of the former faer's are as fast with AVX-512 on rows that lie
//! in caches, but wait for those that do not, where these ask for the next rows while they multiply.
//!
//! Both sides are made of words that follow each other along the sum: values, or pairs of bfloat16. The left side
//! stands row by row, as rows of a matrix do anyway, the right side in panels of 64 columns, or of 16 for AVX2. A sum
//! runs over its words in their order whatever else is multiplied with it, so that no bit depends on how rows are cut
//! into pieces, nor on how long vectors are.
#![allow(unsafe_code)]

use super::Store;
use super::dispatch::{has_avx2_and_fma, has_avx512, multiplies_bf16, per_processor, prefetch};
use crate::matrix::{Bf16, Span, Value, each_value};

/// Values of a vector of AVX-512, or of two of AVX2.
const LANES: usize = 16;

/// Rows of a tile: with the vectors of a panel each, their sums and what they are made of fill the registers.
const TILE: usize = 6;

/// Rows that are multiplied by one panel before the next: they and what comes of them leave room for the panels in the
/// second cache.
const BLOCK: usize = 8 * TILE;

/// What the words of a product are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// `f32`, one each, sixteen at a time.
    Values,
    /// `f32`, one each, eight at a time.
    Eights,
    /// Two bfloat16 each.
    Pairs,
}

impl Words {
    /// Whether the processor has the instructions. Those of `f32` do not go by what kernels are limited to: where they
    /// are missing faer takes their place, which goes by the processor as well.
    pub fn are_multiplied(self) -> bool {
        match self {
            Words::Values => has_avx512(),
            Words::Eights => has_avx2_and_fma(),
            Words::Pairs => multiplies_bf16(),
        }
    }

    /// Columns of a panel.
    fn panel(self) -> usize {
        match self {
            Words::Values | Words::Pairs => 4 * LANES,
            Words::Eights => LANES,
        }
    }

    /// How many values a word has.
    fn values(self) -> usize {
        match self {
            Words::Values | Words::Eights => 1,
            Words::Pairs => 2,
        }
    }

    /// How many words so many values make.
    pub fn of(self, depth: usize) -> usize {
        depth.div_ceil(self.values())
    }

    /// Words of a right side of this depth and so many columns.
    pub fn right_len(self, depth: usize, columns: usize) -> usize {
        self.of(depth) * columns.next_multiple_of(LANES)
    }

    /// Words of a left side that is made of so many rows by [`columns_to_left`].
    pub fn left_len(self, depth: usize, columns: usize) -> usize {
        self.of(depth) * stride_of(columns)
    }
}

/// Words between rows of a left side that is made ready by columns: not a power of two, so that they do not fall into
/// the same places of a cache.
fn stride_of(columns: usize) -> usize {
    columns.next_multiple_of(LANES) + LANES
}

#[inline(always)]
fn word<T: Value>(low: T, high: T) -> f32 {
    let [low, high] = [low, high].map(|value| u32::from(Bf16::round(value.get()).bits()));
    f32::from_bits(high << 16 | low)
}

/// `words = rows`, of which there are one or two, word by word.
#[inline(always)]
fn join<T: Value>(words: &mut [f32], (low, high): (&[T], Option<&[T]>), of: Words) {
    match (of, high) {
        (Words::Values | Words::Eights, _) => {
            // As many as a vector has at a time: of one loop over all the compiler makes a call, which costs as much
            // as what it copies.
            for (to, low) in words.chunks_mut(LANES).zip(low.chunks(LANES)) {
                match (<&mut [f32; LANES]>::try_from(&mut *to), <&[T; LANES]>::try_from(low)) {
                    (Ok(to), Ok(low)) => to.iter_mut().zip(low).for_each(|(to, low)| *to = low.get()),
                    _ => to.iter_mut().zip(low).for_each(|(to, low)| *to = low.get()),
                }
            }
        }
        (Words::Pairs, None) => words.iter_mut().zip(low).for_each(|(to, low)| *to = word(*low, T::default())),
        (Words::Pairs, Some(high)) => {
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
            // A few words of all columns before the next ones, so that what is written stays in the first cache.
            for (start, panel) in panel.chunks_mut(LANES * width).enumerate() {
                for column in 0..count {
                    let row = &weight[(first + column) * depth..][..depth];
                    let row = &row[start * LANES * of.values()..];
                    for (to, values) in panel.chunks_exact_mut(width).zip(row.chunks(of.values())) {
                        to[column] = match of {
                            Words::Values | Words::Eights => values[0],
                            Words::Pairs => word(values[0], values.get(1).copied().unwrap_or(0.0)),
                        };
                    }
                }
            }
        }
    }
}

per_processor! {
    /// Makes the left side of `xᵀ · y` ready, x being depth × columns.
    pub(super) fn columns_to_left<T: Value>(left: &mut [f32], x: &[T], columns: usize, of: Words) {
        let stride = stride_of(columns);
        for (words, rows) in left.chunks_exact_mut(stride).zip(x.chunks(of.values() * columns)) {
            let (low, high) = rows.split_at(columns);
            join(words, (low, Some(high).filter(|high| !high.is_empty())), of);
        }
    }
}

per_processor! {
    /// Makes the left side of `x · W` ready in pairs, x having rows of this depth.
    pub(super) fn rows_to_left<T: Value>(left: &mut [f32], x: &[T], depth: usize) {
        for (words, row) in left.chunks_exact_mut(depth.div_ceil(2)).zip(x.chunks_exact(depth)) {
            for (to, values) in words.iter_mut().zip(row.chunks(2)) {
                *to = word(values[0], values.get(1).copied().unwrap_or_default());
            }
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
    /// What [`columns_to_left`] has made of rows of so many columns, each of which is a row of the product.
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

/// `out (=|+=) left · right`: out is rows × columns, and both sides are made of so many words a sum.
///
/// # Panics
///
/// If the shapes do not fit together, or the processor does not multiply such words.
pub(super) fn multiply_words(
    of: Words,
    (out, columns, store): (&mut [f32], usize, Store),
    left: LeftSide<'_>,
    (right, words): (&[f32], usize),
    coming: Coming<'_>,
) {
    assert!(of.are_multiplied(), "the processor multiplies {of:?}");
    let rows = out.len() / columns.max(1);
    if rows == 0 {
        return;
    }
    let (of_row, of_word) = left.strides();
    let last = (rows - 1) * of_row + words.saturating_sub(1) * of_word;
    assert!(words == 0 || last < left.words(), "the left side has all words");
    assert!(right.len() >= words * columns.next_multiple_of(LANES), "the right side has all words");
    #[cfg(target_arch = "x86_64")]
    {
        let panels = columns.div_ceil(of.panel());
        let (mut done, tiles) = (0, rows.div_ceil(TILE) * panels);
        for block in (0..rows).step_by(BLOCK) {
            let after = (block + BLOCK).min(rows)..(block + 2 * BLOCK).min(rows);
            let (first_tile, tiles_of_block) = (done, BLOCK.min(rows - block).div_ceil(TILE) * panels);
            for first in (0..columns).step_by(of.panel()) {
                let count = of.panel().min(columns - first);
                let vectors = count.div_ceil(LANES);
                let mask = u16::MAX >> (vectors * LANES - count);
                let panel = &right[first * words..];
                for row in (block..rows.min(block + BLOCK)).step_by(TILE) {
                    // The next rows on both sides of the product are on their way while these are multiplied.
                    let share = (done - first_tile, tiles_of_block);
                    if let LeftSide::Rows(left, words) = left {
                        ask_for(&left[after.start * words..after.end * words], share);
                    }
                    ask_for(&out[after.start * columns..after.end * columns], share);
                    coming.ask_for((done, tiles));
                    done += 1;
                    let at = x86::Tile {
                        left: left.start().wrapping_add(row * of_row),
                        of_row,
                        of_word,
                        right: panel.as_ptr(),
                        words,
                        out: out[row * columns + first..].as_mut_ptr(),
                        stride: columns,
                        mask,
                        adds: store == Store::Add,
                    };
                    // SAFETY: the processor was asked for the instructions; all words of both sides and all values of
                    // `out` that a tile of so many rows and vectors reads or writes lie within their slices, as
                    // asserted above.
                    unsafe { x86::tile(of, TILE.min(rows - row), vectors, &at) }
                }
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (store, right, coming);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Words;

    /// A tile of a product: where it begins on each side, and how far it is to what follows.
    pub struct Tile {
        pub left: *const u32,
        pub of_row: usize,
        pub of_word: usize,
        pub right: *const f32,
        pub words: usize,
        pub out: *mut f32,
        pub stride: usize,
        /// Which columns of the last vector there are.
        pub mask: u16,
        pub adds: bool,
    }

    /// A tile of so many rows and vectors.
    ///
    /// # Safety
    ///
    /// The processor has the instructions, and everything that the tile names is there.
    pub unsafe fn tile(of: Words, rows: usize, vectors: usize, at: &Tile) {
        macro_rules! sizes {
            ($run:ident: $($rows:literal)*) => {
                // SAFETY: as of this function.
                unsafe {
                    match (rows, vectors) {
                        $(($rows, 1) => $run::<$rows, 1>(at),
                        ($rows, 2) => $run::<$rows, 2>(at),
                        ($rows, 3) => $run::<$rows, 3>(at),
                        ($rows, _) => $run::<$rows, 4>(at),)*
                        _ => unreachable!("a tile has at most six rows"),
                    }
                }
            };
        }
        macro_rules! rows {
            ($($rows:literal)*) => {
                // SAFETY: as of this function.
                unsafe {
                    match rows {
                        $($rows => eights::<$rows>(at),)*
                        _ => unreachable!("a tile has at most six rows"),
                    }
                }
            };
        }
        match of {
            Words::Values => sizes!(values: 1 2 3 4 5 6),
            Words::Eights => rows!(1 2 3 4 5 6),
            Words::Pairs => sizes!(pairs: 1 2 3 4 5 6),
        }
    }

    /// A tile of this size, with this to add a product of words to sums.
    macro_rules! run {
        ($at:ident, $ROWS:ident, $VECTORS:ident, |$sum:ident, $left:ident, $right:ident| $multiply:expr) => {
            // SAFETY: everything that the tile names is there; vectors of bfloat16 are 64 bytes as all others are.
            unsafe {
                let mut sums = [[_mm512_setzero_ps(); $VECTORS]; $ROWS];
                for word in 0..$at.words {
                    let words = $at.right.add(word * $VECTORS * super::LANES);
                    let mut right = [_mm512_setzero_ps(); $VECTORS];
                    for (vector, right) in right.iter_mut().enumerate() {
                        *right = _mm512_loadu_ps(words.add(vector * super::LANES));
                    }
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let left = $at.left.add(row * $at.of_row + word * $at.of_word).read_unaligned();
                        let $left = _mm512_set1_ps(f32::from_bits(left));
                        for ($sum, $right) in sums.iter_mut().zip(right) {
                            *$sum = $multiply;
                        }
                    }
                }
                for (row, sums) in sums.iter().enumerate() {
                    for (vector, sum) in sums.iter().enumerate() {
                        let mask = if vector + 1 == $VECTORS { $at.mask } else { u16::MAX };
                        let to = $at.out.add(row * $at.stride + vector * super::LANES);
                        let sum = match $at.adds {
                            true => _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), *sum),
                            false => *sum,
                        };
                        _mm512_mask_storeu_ps(to, mask, sum);
                    }
                }
            }
        };
    }

    /// # Safety
    ///
    /// As [`tile`], for a tile of this size.
    #[target_feature(enable = "avx512f")]
    unsafe fn values<const ROWS: usize, const VECTORS: usize>(at: &Tile) {
        run!(at, ROWS, VECTORS, |sum, left, right| _mm512_fmadd_ps(left, right, *sum));
    }

    /// Which of eight columns there are, as AVX2 wants it: the highest bit of each lane.
    #[target_feature(enable = "avx2")]
    fn lanes(mask: u16) -> __m256i {
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(mask)), bits), bits)
    }

    /// # Safety
    ///
    /// As [`tile`], for a tile of so many rows and two vectors of eight.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn eights<const ROWS: usize>(at: &Tile) {
        // SAFETY: everything that the tile names is there.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
            for word in 0..at.words {
                let words = at.right.add(word * super::LANES);
                let right = [_mm256_loadu_ps(words), _mm256_loadu_ps(words.add(8))];
                for (row, sums) in sums.iter_mut().enumerate() {
                    let left = at.left.add(row * at.of_row + word * at.of_word).read_unaligned();
                    let left = _mm256_set1_ps(f32::from_bits(left));
                    for (sum, right) in sums.iter_mut().zip(right) {
                        *sum = _mm256_fmadd_ps(left, right, *sum);
                    }
                }
            }
            let masks = [lanes(at.mask), lanes(at.mask >> 8)];
            for (row, sums) in sums.iter().enumerate() {
                for (vector, (sum, mask)) in sums.iter().zip(masks).enumerate() {
                    let to = at.out.add(row * at.stride).wrapping_add(vector * 8);
                    let sum = match at.adds {
                        true => _mm256_add_ps(_mm256_maskload_ps(to, mask), *sum),
                        false => *sum,
                    };
                    if at.mask == u16::MAX {
                        _mm256_storeu_ps(to, sum);
                    } else {
                        _mm256_maskstore_ps(to, mask, sum);
                    }
                }
            }
        }
    }

    /// # Safety
    ///
    /// As [`tile`], for a tile of this size.
    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn pairs<const ROWS: usize, const VECTORS: usize>(at: &Tile) {
        run!(at, ROWS, VECTORS, |sum, left, right| {
            let of = |words: __m512| std::mem::transmute::<__m512, __m512bh>(words);
            _mm512_dpbf16_ps(*sum, of(left), of(right))
        });
    }
}

#[cfg(test)]
mod tests;
