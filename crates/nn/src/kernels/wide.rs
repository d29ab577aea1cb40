//! Sums of rows at random places in the registers of AVX-512. What the compiler makes of the plain loops loads and
//! stores a sum for every few rows and goes through what is left of a row value by value; here the sum of a row of up
//! to 256 columns stays in sixteen registers from its first entry to its last, and the last vector has a mask.
//!
//! The order of sums is that of the plain loops, and products are rounded before they are added, as there: not one bit
//! differs.
#![allow(unsafe_code)]

use super::dispatch::Instructions;
use super::fold::Sum;
use crate::matrix::Value;

/// Values of a vector.
pub(super) const LANES: usize = 16;

/// The widest row whose sum stays in registers.
const WIDEST: usize = 16 * LANES;

/// Whether there are instructions for this here, and they are in use.
fn is_there() -> bool {
    cfg!(target_arch = "x86_64") && Instructions::in_use() == Instructions::Avx512
}

/// Sets or adds up sums of rows, if they can be here: says whether.
pub(super) fn sum_rows<T: Value>(out: &mut [f32], sum: &Sum<'_, T>, weight: impl Fn(usize) -> f32) -> bool {
    if !is_there() || !(1..=WIDEST).contains(&sum.width) {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    match (T::plain(sum.rows), T::short(sum.rows)) {
        (Some(rows), _) => x86::sum_rows(out, &sum.of(rows), weight),
        (None, Some(rows)) => x86::sum_rows(out, &sum.of(rows), weight),
        (None, None) => return false,
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (out, weight);
    true
}

/// Some of the rows of a matrix, each head's columns of them by a factor of their own.
#[derive(Clone, Copy)]
pub(super) struct Picked<'a, T> {
    /// The matrix, row-major, of so many columns.
    pub rows: &'a [T],
    /// Columns of all heads.
    pub columns: usize,
    /// The rows that are picked.
    pub which: &'a [u32],
    /// The rows that will be read soon: one is asked for with each row that is read, as long as there are any.
    pub coming: &'a [u32],
    /// Picked rows × heads.
    pub factors: &'a [f32],
    /// How many heads there are, of equally many columns.
    pub heads: usize,
}

impl<'a, T> Picked<'a, T> {
    fn of<U>(self, rows: &'a [U]) -> Picked<'a, U> {
        let Picked { columns, which, coming, factors, heads, .. } = self;
        Picked { rows, columns, which, coming, factors, heads }
    }

    /// Vectors at a time, and vectors of a head, where heads are cut by vectors and blocks by heads.
    fn cut(&self) -> Option<(usize, usize)> {
        let of_head = self.columns / self.heads / LANES;
        let is_cut = self.columns == of_head * LANES * self.heads && of_head.is_power_of_two();
        let at_once = [16, 8, 4].into_iter().find(|at_once| self.columns.is_multiple_of(at_once * LANES))?;
        (is_cut && of_head <= at_once && is_there()).then_some((at_once, of_head))
    }
}

/// `sums += Σ factor · row` over what is picked, if it can be done here: says whether.
///
/// # Panics
///
/// If the shapes do not fit together, or a row lies beyond the matrix.
pub(super) fn add_picked<T: Value>(sums: &mut [f32], picked: Picked<'_, T>) -> bool {
    let Some(cut) = picked.cut() else { return false };
    #[cfg(target_arch = "x86_64")]
    match (T::plain(picked.rows), T::short(picked.rows)) {
        (Some(rows), _) => x86::add_picked(sums, cut, picked.of(rows)),
        (None, Some(rows)) => x86::add_picked(sums, cut, picked.of(rows)),
        (None, None) => return false,
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sums, cut);
    true
}

/// [`add_picked`], and in the same pass `along = ⟨row, other⟩`, head by head, of each row that is picked.
///
/// # Panics
///
/// As [`add_picked`].
pub(super) fn add_and_multiply_picked<T: Value>(
    sums: &mut [f32],
    along: &mut [f32],
    other: &[f32],
    picked: Picked<'_, T>,
) -> bool {
    let Some(cut) = picked.cut() else { return false };
    #[cfg(target_arch = "x86_64")]
    match (T::plain(picked.rows), T::short(picked.rows)) {
        (Some(rows), _) => x86::add_and_multiply_picked((sums, along), other, cut, picked.of(rows)),
        (None, Some(rows)) => x86::add_and_multiply_picked((sums, along), other, cut, picked.of(rows)),
        (None, None) => return false,
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sums, along, other, cut);
    true
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::dispatch::prefetch_row;
    use super::{LANES, Picked};
    use crate::kernels::fold::Sum;
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
    unsafe fn sum_vectors<T: Lane, const VECTORS: usize>(
        out: &mut [f32],
        sum: &Sum<'_, T>,
        weight: impl Fn(usize) -> f32,
    ) {
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

    /// Panics unless all that is picked is there.
    fn check<T>(sums: &[f32], picked: &Picked<'_, T>) {
        let there = picked.rows.len() / picked.columns;
        assert_eq!(sums.len(), picked.columns, "one sum for each column");
        assert!(picked.factors.len() >= picked.which.len() * picked.heads, "one factor for each head");
        assert!(picked.which.iter().all(|&row| (row as usize) < there), "a row that is there");
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
        check(sums, &picked);
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
        check(sums, &picked);
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
                _mm256_mask_storeu_ps(to, mask, sums_of_lanes([a, b], [c, d], [e, f], [g, h]));
                if of_block > 8 {
                    let [.., a, b, c, d, e, f, g, h] = products;
                    _mm256_storeu_ps(to.add(8), sums_of_lanes([a, b], [c, d], [e, f], [g, h]));
                }
            }
            each_vector!(VECTORS, |vector| _mm512_storeu_ps(sums.as_mut_ptr().add(vector * LANES), held[vector]));
        }
    }

    /// The sums of the lanes of eight vectors: upper halves are added to lower ones until one value is left.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn sums_of_lanes([a, b]: [__m512; 2], [c, d]: [__m512; 2], [e, f]: [__m512; 2], [g, h]: [__m512; 2]) -> __m256 {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Store;
    use crate::kernels::fold::{self, Weights, sum_piece};
    use crate::kernels::product::tests::random;
    use crate::matrix::{Precision, each_value};
    use crate::threads::Compute;

    /// Against the plain loops: empty rows, a hub, all widths about the sizes of vectors and registers.
    #[test]
    fn sums_of_rows_have_the_same_bits_by_the_widest_vectors_and_by_plain_loops() {
        let columns: Vec<u32> = (0..700).map(|i| i * i % 97).collect();
        let offsets = [0, 0, 1, 4, 9, 9, 609, 700];
        for width in [1, 2, 15, 16, 17, 31, 40, 47, 64, 65, 100, 127, 129, 192, 200, 255, 256, 257] {
            let rows = random(97, width, 1);
            let (begun, factors) = (random(offsets.len() - 1, width, 2), random(1, columns.len(), 3));
            for (precision, add) in
                Precision::ALL.into_iter().flat_map(|precision| [(precision, false), (precision, true)])
            {
                let rows = rows.clone().converted(precision);
                each_value!(rows.values(), |rows| {
                    let sum = Sum { width, add, offsets: &offsets, columns: &columns, rows };
                    for is_weighted in [false, true] {
                        let weight = |entry: usize| if is_weighted { factors.data()[entry] } else { 1.0 };
                        let [mut plain, mut wide] = [begun.data().to_vec(), begun.data().to_vec()];
                        sum_piece(&mut plain, sum, weight);
                        let is_done = sum_rows(&mut wide, &sum, weight);
                        assert_eq!(is_done, is_there() && width <= WIDEST);
                        let same = plain.iter().zip(&wide).all(|(a, b)| a.to_bits() == b.to_bits());
                        assert!(!is_done || same, "{width} columns, {precision:?}");
                    }
                });
            }
        }
    }

    /// By vectors and by plain loops, whichever there are: by the entry that everybody takes.
    #[test]
    #[should_panic]
    fn a_row_that_is_not_there_is_refused() {
        let pattern = (&[0, 1][..], &[3][..]);
        fold::sum_rows(&Compute::new(1), &mut [0.0; 16], 16, Store::Set, pattern, Weights::Ones, &[0.0f32; 48]);
    }
}
