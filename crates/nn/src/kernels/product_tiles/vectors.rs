//! Products in tiles by vectors of AVX-512 or AVX2.

use std::arch::x86_64::*;

use super::{Coming, LANES, LeftSide, RightSide, Store, Target, Words, ask_for};

/// Rows of a tile: with the vectors of a panel each, their sums and what they are made of fill the registers.
const TILE: usize = 6;

/// Rows that are multiplied by one panel before the next: they and what comes of them leave room for the panels in the
/// L2 cache.
const BLOCK: usize = 8 * TILE;

/// `target (=|+=) left · right`, as [`multiply_words`](super::multiply_words), which has compared the shapes.
///
/// # Safety
///
/// The processor has the instructions, and both sides and `target` have all that the shapes name.
pub(super) unsafe fn multiply(
    of: Words,
    target: Target<'_>,
    left: LeftSide<'_>,
    right: RightSide<'_>,
    coming: Coming<'_>,
) {
    let Target { rows: out, columns, store } = target;
    let (RightSide { panels: right, words }, adds) = (right, store == Store::Add);
    let rows = out.len() / columns;
    let (of_row, of_word) = left.strides();
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
                let at = Tile {
                    left: left.start().wrapping_add(row * of_row),
                    of_row,
                    of_word,
                    right: panel.as_ptr(),
                    words,
                    out: out[row * columns + first..].as_mut_ptr(),
                    stride: columns,
                    mask,
                    adds,
                };
                // SAFETY: as of this function; all that a tile of so many rows and vectors reads or writes lies within
                // its slice.
                unsafe { tile(of, TILE.min(rows - row), vectors, &at) }
            }
        }
    }
}

/// A tile of a product: where it begins on each side, and how far it is to what follows.
struct Tile {
    left: *const u32,
    of_row: usize,
    of_word: usize,
    right: *const f32,
    words: usize,
    out: *mut f32,
    stride: usize,
    /// Which columns of the last vector there are.
    mask: u16,
    adds: bool,
}

/// A tile of so many rows and vectors.
///
/// # Safety
///
/// The processor has the instructions, and everything that the tile names is there.
unsafe fn tile(of: Words, rows: usize, vectors: usize, at: &Tile) {
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
        Words::F32x16 => sizes!(values: 1 2 3 4 5 6),
        Words::F32x8 => rows!(1 2 3 4 5 6),
        Words::Bf16Pairs => sizes!(pairs: 1 2 3 4 5 6),
        Words::AmxTiles => unreachable!("squares are multiplied elsewhere"),
    }
}

/// A tile of this size, with this to add a product of words to sums.
macro_rules! run {
    ($at:ident, $ROWS:ident, $VECTORS:ident, |$sum:ident, $left:ident, $right:ident| $multiply:expr) => {
        // SAFETY: everything that the tile names is there; vectors of bfloat16 are 64 bytes as all others are.
        unsafe {
            let mut sums = [[_mm512_setzero_ps(); $VECTORS]; $ROWS];
            for word in 0..$at.words {
                let words = $at.right.add(word * $VECTORS * LANES);
                let mut right = [_mm512_setzero_ps(); $VECTORS];
                for (vector, right) in right.iter_mut().enumerate() {
                    *right = _mm512_loadu_ps(words.add(vector * LANES));
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
                    let to = $at.out.add(row * $at.stride + vector * LANES);
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
            let words = at.right.add(word * LANES);
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
