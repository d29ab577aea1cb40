//! Attention's picked rows by vectors of eight. The sum of one head's columns stays in registers while it takes up all
//! rows that are picked; the lines of these rows are in the caches by then, as they have been asked for.

use std::arch::x86_64::*;

use super::Picked;
use crate::matrix::Bf16;

/// Values of a vector.
const EIGHT: usize = 8;

/// The widest head whose sum stays in registers, beside a factor, a row's values and two sums of products.
const WIDEST: usize = 8 * EIGHT;

/// Whether heads of so many columns are cut into vectors, and few enough of them.
pub fn takes(width: usize) -> bool {
    (EIGHT..=WIDEST).contains(&width) && width.is_multiple_of(EIGHT)
}

/// Values that a vector is loaded from.
pub trait Lane: Copy {
    /// Eight of them.
    ///
    /// # Safety
    ///
    /// The processor has AVX2, and the values are there.
    unsafe fn load(from: *const Self) -> __m256;
}

impl Lane for f32 {
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: as of this function.
        unsafe { _mm256_loadu_ps(from) }
    }
}

impl Lane for Bf16 {
    #[inline(always)]
    unsafe fn load(from: *const Bf16) -> __m256 {
        // SAFETY: as of this function; a bfloat16 is a word of 16 bits.
        unsafe {
            let words = _mm_loadu_si128(from.cast());
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(words)))
        }
    }
}

/// Calls a function for heads of as many vectors as there are.
macro_rules! each_width {
    ($vectors:expr, $T:ty, $name:ident($($argument:expr),*)) => {
        each_width!($vectors, $T, $name($($argument),*), 1 2 3 4 5 6 7 8)
    };
    ($vectors:expr, $T:ty, $name:ident $arguments:tt, $($number:literal)*) => {
        match $vectors {
            // SAFETY: the caller has asked for the instructions and compared the shapes.
            $($number => unsafe { each_width!(@ $T, $number, $name $arguments) },)*
            vectors => unreachable!("heads are not cut into {vectors} vectors"),
        }
    };
    (@ $T:ty, $number:literal, $name:ident($($argument:expr),*)) => {
        $name::<$T, $number>($($argument),*)
    };
}

/// Asks for the lines of so many vectors, whether they are there or not.
#[inline(always)]
fn prefetch_head<T, const VECTORS: usize>(from: *const T) {
    for line in (0..VECTORS * EIGHT).step_by(64 / size_of::<T>()) {
        // SAFETY: prefetching has no effect but on caches.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.wrapping_add(line).cast()) }
    }
}

/// [`super::add_picked`] for heads of a width that this [`takes`].
pub fn add_picked<T: Lane>(sums: &mut [f32], picked: Picked<'_, T>) {
    picked.check(sums);
    let width = picked.columns / picked.heads;
    for (head, sums) in sums.chunks_exact_mut(width).enumerate() {
        each_width!(width / EIGHT, T, add_head(sums, head, &picked));
    }
}

/// # Safety
///
/// The processor has AVX2, what is picked is there, and heads have so many vectors.
#[target_feature(enable = "avx2")]
unsafe fn add_head<T: Lane, const VECTORS: usize>(sums: &mut [f32], head: usize, picked: &Picked<'_, T>) {
    let Picked { rows, columns, which, coming, factors, heads } = *picked;
    let first = head * VECTORS * EIGHT;
    // SAFETY: the head has all vectors, the matrix all rows, and each row a factor for all heads.
    unsafe {
        let mut held = [_mm256_setzero_ps(); VECTORS];
        for (vector, held) in held.iter_mut().enumerate() {
            *held = _mm256_loadu_ps(sums.as_ptr().add(vector * EIGHT));
        }
        for (at, &row) in which.iter().enumerate() {
            if let Some(&coming) = coming.get(at) {
                prefetch_head::<T, VECTORS>(rows.as_ptr().wrapping_add(coming as usize * columns + first));
            }
            let from = rows.as_ptr().add(row as usize * columns + first);
            let factor = _mm256_set1_ps(*factors.as_ptr().add(at * heads + head));
            for (vector, held) in held.iter_mut().enumerate() {
                *held = _mm256_add_ps(*held, _mm256_mul_ps(factor, T::load(from.add(vector * EIGHT))));
            }
        }
        for (vector, held) in held.iter().enumerate() {
            _mm256_storeu_ps(sums.as_mut_ptr().add(vector * EIGHT), *held);
        }
    }
}

/// [`super::add_and_multiply_picked`] for heads of a width that this [`takes`].
pub fn add_and_multiply_picked<T: Lane>(sums: &mut [f32], along: &mut [f32], other: &[f32], picked: Picked<'_, T>) {
    picked.check(sums);
    assert_eq!(other.len(), picked.columns, "one value for each column");
    assert!(along.len() >= picked.which.len() * picked.heads, "room for each head");
    let width = picked.columns / picked.heads;
    for (head, (sums, other)) in sums.chunks_exact_mut(width).zip(other.chunks_exact(width)).enumerate() {
        each_width!(width / EIGHT, T, add_and_multiply_head((&mut *sums, &mut *along), other, head, &picked));
    }
}

/// # Safety
///
/// As [`add_head`]; there is a place in `along` for each head of each row.
#[target_feature(enable = "avx2")]
unsafe fn add_and_multiply_head<T: Lane, const VECTORS: usize>(
    (sums, along): (&mut [f32], &mut [f32]),
    other: &[f32],
    head: usize,
    picked: &Picked<'_, T>,
) {
    let Picked { rows, columns, which, coming, factors, heads } = *picked;
    let first = head * VECTORS * EIGHT;
    // SAFETY: the head has all vectors, the matrix all rows, and each row a factor and a place for all heads.
    unsafe {
        let mut held = [_mm256_setzero_ps(); VECTORS];
        for (vector, held) in held.iter_mut().enumerate() {
            *held = _mm256_loadu_ps(sums.as_ptr().add(vector * EIGHT));
        }
        for (at, &row) in which.iter().enumerate() {
            if let Some(&coming) = coming.get(at) {
                prefetch_head::<T, VECTORS>(rows.as_ptr().wrapping_add(coming as usize * columns + first));
            }
            let from = rows.as_ptr().add(row as usize * columns + first);
            let factor = _mm256_set1_ps(*factors.as_ptr().add(at * heads + head));
            // Of the lower and of the upper half of sixteen values each, as plain loops add them up.
            let mut products = [_mm256_setzero_ps(); 2];
            for (vector, held) in held.iter_mut().enumerate() {
                let values = T::load(from.add(vector * EIGHT));
                *held = _mm256_add_ps(*held, _mm256_mul_ps(factor, values));
                let product = _mm256_mul_ps(values, _mm256_loadu_ps(other.as_ptr().add(vector * EIGHT)));
                products[vector % 2] = _mm256_add_ps(products[vector % 2], product);
            }
            *along.as_mut_ptr().add(at * heads + head) = sum_of_lanes(_mm256_add_ps(products[0], products[1]));
        }
        for (vector, held) in held.iter().enumerate() {
            _mm256_storeu_ps(sums.as_mut_ptr().add(vector * EIGHT), *held);
        }
    }
}

/// The sum of the lanes of a vector: upper halves are added to lower ones until one value is left.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_lanes(of: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(of), _mm256_extractf128_ps::<1>(of));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
