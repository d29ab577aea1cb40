//! Sums of rows of up to 256 columns in sixteen registers, and of attention's picked rows.

use std::arch::x86_64::*;

use super::{LANES, Picked};
use crate::kernels::dispatch::prefetch_row;
use crate::kernels::sum::Sum;
use crate::matrix::Bf16;

/// Does the same for each vector, one statement after the other: a loop the compiler may leave as it is, with the
/// sums in memory.
macro_rules! each_vector {
    ($vectors:expr, |$at:ident| $body:expr) => {
        each_vector!($vectors, |$at| $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($vectors:expr, |$at:ident| $body:expr, $($number:literal)*) => {
        $({
            let $at = $number;
            if $at < $vectors {
                $body
            }
        })*
    };
}

/// Values that a vector is loaded from.
pub trait Lane: Copy {
    /// Those of the mask, and 0 in the places of the others.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 with bytes, words and short vectors, and the values of the mask are there.
    unsafe fn load(from: *const Self, mask: u16) -> __m512;
}

impl Lane for f32 {
    #[inline(always)]
    unsafe fn load(from: *const f32, mask: u16) -> __m512 {
        // SAFETY: as of this function.
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }
}

impl Lane for Bf16 {
    #[inline(always)]
    unsafe fn load(from: *const Bf16, mask: u16) -> __m512 {
        // SAFETY: as of this function; a bfloat16 is a word of 16 bits.
        unsafe {
            let words = _mm256_maskz_loadu_epi16(mask, from.cast());
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(words)))
        }
    }
}

pub fn sum_rows<T: Lane>(out: &mut [f32], sum: &Sum<'_, T>, weight: impl Fn(usize) -> f32) {
    // Not all numbers of vectors, since each is compiled apart: what lies behind a row has an empty mask.
    macro_rules! widths {
        ($($vectors:literal)*) => {
            match sum.width.div_ceil(LANES) {
                // SAFETY: the caller has asked for the instructions, and a row has at most so many vectors.
                $(..=$vectors => unsafe { sum_vectors::<T, $vectors>(out, sum, weight) },)*
                _ => unreachable!("a row has at most sixteen vectors"),
            }
        };
    }
    widths!(1 2 3 4 6 8 12 16);
}

/// # Safety
///
/// The processor has the instructions, and rows have at most so many vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn sum_vectors<T: Lane, const VECTORS: usize>(out: &mut [f32], sum: &Sum<'_, T>, weight: impl Fn(usize) -> f32) {
    let Sum { width, add, offsets, columns, rows } = *sum;
    let mask_of = |vector: usize| {
        let values = width.saturating_sub(vector * LANES).min(LANES);
        ((1u32 << values) - 1) as u16
    };
    let (there, distance) = (rows.len() / width, sum.distance());
    for (line, out) in out.chunks_exact_mut(width).enumerate() {
        let mut sums = [_mm512_setzero_ps(); VECTORS];
        if add {
            each_vector!(VECTORS, |vector| {
                // SAFETY: the row has all values of the mask.
                sums[vector] = unsafe { f32::load(out.as_ptr().wrapping_add(vector * LANES), mask_of(vector)) };
            });
        }
        for entry in offsets[line]..offsets[line + 1] {
            if let Some(&coming) = columns.get(entry + distance) {
                prefetch_row(rows, width, coming);
            }
            let column = columns[entry] as usize;
            assert!(column < there, "a row that is there");
            let factor = _mm512_set1_ps(weight(entry));
            each_vector!(VECTORS, |vector| {
                let from = rows.as_ptr().wrapping_add(column * width + vector * LANES);
                // SAFETY: the row is there, as asserted, and has all values of the mask.
                let values = unsafe { T::load(from, mask_of(vector)) };
                sums[vector] = _mm512_add_ps(sums[vector], _mm512_mul_ps(factor, values));
            });
        }
        each_vector!(VECTORS, |vector| {
            // SAFETY: as for loading it.
            unsafe {
                let to = out.as_mut_ptr().wrapping_add(vector * LANES);
                _mm512_mask_storeu_ps(to, mask_of(vector), sums[vector]);
            }
        });
    }
}

/// Calls a function for a block of so many vectors, of which each head has so many.
macro_rules! each_cut {
    ($cut:expr, $T:ty, $name:ident($($argument:expr),*)) => {
        match $cut {
            // SAFETY: the caller has asked for the instructions and compared the shapes.
            (16, 1) => unsafe { $name::<$T, 16, 1>($($argument),*) },
            (16, 2) => unsafe { $name::<$T, 16, 2>($($argument),*) },
            (16, 4) => unsafe { $name::<$T, 16, 4>($($argument),*) },
            (16, 8) => unsafe { $name::<$T, 16, 8>($($argument),*) },
            (16, 16) => unsafe { $name::<$T, 16, 16>($($argument),*) },
            (8, 1) => unsafe { $name::<$T, 8, 1>($($argument),*) },
            (8, 2) => unsafe { $name::<$T, 8, 2>($($argument),*) },
            (8, 4) => unsafe { $name::<$T, 8, 4>($($argument),*) },
            (8, 8) => unsafe { $name::<$T, 8, 8>($($argument),*) },
            (4, 1) => unsafe { $name::<$T, 4, 1>($($argument),*) },
            (4, 2) => unsafe { $name::<$T, 4, 2>($($argument),*) },
            (4, 4) => unsafe { $name::<$T, 4, 4>($($argument),*) },
            cut => unreachable!("blocks are not cut into {cut:?}"),
        }
    };
}

/// Asks for so many vectors, whether they are there or not.
#[inline(always)]
fn prefetch_block<T, const VECTORS: usize>(from: *const T) {
    for line in (0..VECTORS * LANES).step_by(64 / size_of::<T>()) {
        // SAFETY: prefetching has no effect but on caches.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.wrapping_add(line).cast()) }
    }
}

pub fn add_picked<T: Lane>(sums: &mut [f32], cut: (usize, usize), picked: Picked<'_, T>) {
    picked.check(sums);
    for (block, sums) in sums.chunks_exact_mut(cut.0 * LANES).enumerate() {
        each_cut!(cut, T, add_block(sums, block, &picked));
    }
}

/// # Safety
///
/// The processor has the instructions, and what is picked is there and is cut so.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn add_block<T: Lane, const VECTORS: usize, const OF_HEAD: usize>(
    sums: &mut [f32],
    block: usize,
    picked: &Picked<'_, T>,
) {
    let Picked { rows, columns, which, coming, factors, heads } = *picked;
    let (first, head) = (block * VECTORS * LANES, block * VECTORS / OF_HEAD);
    // SAFETY: the block has all vectors, the matrix all rows, and each row a factor for all heads.
    unsafe {
        let mut held = [_mm512_setzero_ps(); VECTORS];
        each_vector!(VECTORS, |vector| held[vector] = _mm512_loadu_ps(sums.as_ptr().add(vector * LANES)));
        for (at, &row) in which.iter().enumerate() {
            if let Some(&coming) = coming.get(at) {
                prefetch_block::<T, VECTORS>(rows.as_ptr().wrapping_add(coming as usize * columns + first));
            }
            let from = rows.as_ptr().add(row as usize * columns + first);
            let factors = factors.as_ptr().add(at * heads + head);
            each_vector!(VECTORS, |vector| {
                let factor = _mm512_set1_ps(*factors.add(vector / OF_HEAD));
                let values = T::load(from.add(vector * LANES), u16::MAX);
                held[vector] = _mm512_add_ps(held[vector], _mm512_mul_ps(factor, values));
            });
        }
        each_vector!(VECTORS, |vector| _mm512_storeu_ps(sums.as_mut_ptr().add(vector * LANES), held[vector]));
    }
}

pub fn add_and_multiply_picked<T: Lane>(
    (sums, along): (&mut [f32], &mut [f32]),
    other: &[f32],
    cut: (usize, usize),
    picked: Picked<'_, T>,
) {
    picked.check(sums);
    assert_eq!(other.len(), picked.columns, "one value for each column");
    assert!(along.len() >= picked.which.len() * picked.heads, "room for each head");
    for (block, sums) in sums.chunks_exact_mut(cut.0 * LANES).enumerate() {
        let other = &other[block * cut.0 * LANES..][..cut.0 * LANES];
        each_cut!(cut, T, add_and_multiply_block((&mut *sums, &mut *along), other, block, &picked));
    }
}

/// # Safety
///
/// As [`add_block`]; there is a place in `along` for each head of each row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn add_and_multiply_block<T: Lane, const VECTORS: usize, const OF_HEAD: usize>(
    (sums, along): (&mut [f32], &mut [f32]),
    other: &[f32],
    block: usize,
    picked: &Picked<'_, T>,
) {
    let Picked { rows, columns, which, coming, factors, heads } = *picked;
    let (first, head, of_block) = (block * VECTORS * LANES, block * VECTORS / OF_HEAD, VECTORS / OF_HEAD);
    // SAFETY: the block has all vectors, the matrix all rows, and each row a factor and a place for all heads.
    unsafe {
        let mut held = [_mm512_setzero_ps(); VECTORS];
        each_vector!(VECTORS, |vector| held[vector] = _mm512_loadu_ps(sums.as_ptr().add(vector * LANES)));
        for (at, &row) in which.iter().enumerate() {
            if let Some(&coming) = coming.get(at) {
                prefetch_block::<T, VECTORS>(rows.as_ptr().wrapping_add(coming as usize * columns + first));
            }
            let from = rows.as_ptr().add(row as usize * columns + first);
            let factors = factors.as_ptr().add(at * heads + head);
            let mut products = [_mm512_setzero_ps(); 16];
            each_vector!(VECTORS, |vector| {
                let factor = _mm512_set1_ps(*factors.add(vector / OF_HEAD));
                let values = T::load(from.add(vector * LANES), u16::MAX);
                held[vector] = _mm512_add_ps(held[vector], _mm512_mul_ps(factor, values));
                let product = _mm512_mul_ps(values, _mm512_loadu_ps(other.as_ptr().add(vector * LANES)));
                products[vector / OF_HEAD] = _mm512_add_ps(products[vector / OF_HEAD], product);
            });
            let to = along.as_mut_ptr().add(at * heads + head);
            let [a, b, c, d, e, f, g, h, ..] = products;
            let mask = (0xff_u16 >> 8_usize.saturating_sub(of_block)) as u8;
            _mm256_mask_storeu_ps(to, mask, sums_of_lanes([a, b, c, d, e, f, g, h]));
            if of_block > 8 {
                let [.., a, b, c, d, e, f, g, h] = products;
                _mm256_storeu_ps(to.add(8), sums_of_lanes([a, b, c, d, e, f, g, h]));
            }
        }
        each_vector!(VECTORS, |vector| _mm512_storeu_ps(sums.as_mut_ptr().add(vector * LANES), held[vector]));
    }
}

/// The sums of the lanes of eight vectors: upper halves are added to lower ones until one value is left.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sums_of_lanes(vectors: [__m512; 8]) -> __m256 {
    let [a, b, c, d, e, f, g, h] = vectors;
    // Two vectors, one behind the other, of eight lanes each; then four of four lanes, eight of two.
    let [ab, cd, ef, gh] = [in_halves(a, b), in_halves(c, d), in_halves(e, f), in_halves(g, h)];
    let (a, b) = (in_quarters(ab, cd), in_quarters(ef, gh));
    let twos = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(a, b), _mm512_shuffle_ps::<0xee>(a, b));
    let ones = _mm512_add_ps(_mm512_shuffle_ps::<0x88>(twos, twos), _mm512_shuffle_ps::<0xdd>(twos, twos));
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_castps512_ps256(_mm512_permutexvar_ps(order, ones))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn in_halves(a: __m512, b: __m512) -> __m512 {
    _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn in_quarters(a: __m512, b: __m512) -> __m512 {
    _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b))
}
