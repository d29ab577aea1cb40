//! Sums of rows at random places in the registers of AVX-512, and attention's in those of AVX2 as well. What the
//! compiler makes of the plain loops loads and stores a sum for every few rows and goes through what is left of a row
//! value by value; here the sum of a row of up to 256 columns stays in sixteen registers from its first entry to its
//! last, and the last vector has a mask. Of a sum and a product in one loop the compiler makes hardly any vectors for
//! AVX2.
//!
//! The order of sums is that of the plain loops, and products are rounded before they are added, as there: not one bit
//! differs.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::dispatch::Instructions;
use super::sum::Sum;
use crate::matrix::Value;

/// Values of a vector.
pub(super) const LANES: usize = 16;

/// The widest row whose sum stays in registers.
const WIDEST: usize = 16 * LANES;

/// Whether there are instructions for this here, and they are in use.
fn is_there() -> bool {
    cfg!(target_arch = "x86_64") && Instructions::in_use() >= Instructions::Avx512
}

/// Sets or adds up sums of rows, if they can be here: says whether.
pub(super) fn sum_rows<T: Value>(out: &mut [f32], sum: &Sum<'_, T>, weight: impl Fn(usize) -> f32) -> bool {
    if !is_there() || !(1..=WIDEST).contains(&sum.width) {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    match (T::plain(sum.rows), T::short(sum.rows)) {
        (Some(rows), _) => avx512::sum_rows(out, &sum.of(rows), weight),
        (None, Some(rows)) => avx512::sum_rows(out, &sum.of(rows), weight),
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
    /// The same of these rows.
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

    /// By which instructions this is done, if by any of these.
    fn way(&self) -> Option<Way> {
        if let Some((at_once, of_head)) = self.cut() {
            return Some(Way::Blocks(at_once, of_head));
        }
        #[cfg(target_arch = "x86_64")]
        if Instructions::in_use() >= Instructions::Avx2 && avx2::takes(self.columns / self.heads) {
            return Some(Way::Heads);
        }
        None
    }

    /// Panics unless all that is picked is there.
    fn check(&self, sums: &[f32]) {
        let there = self.rows.len() / self.columns;
        assert_eq!(sums.len(), self.columns, "one sum for each column");
        assert!(self.columns.is_multiple_of(self.heads), "heads are equally wide");
        assert!(self.factors.len() >= self.which.len() * self.heads, "one factor for each head");
        assert!(self.which.iter().all(|&row| (row as usize) < there), "a row that is there");
    }
}

/// How picked rows are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// So many vectors of AVX-512 at a time, of which a head has so many.
    Blocks(usize, usize),
    /// Head by head, in vectors of AVX2.
    Heads,
}

/// `sums += Σ factor · row` over what is picked, if it can be done here: says whether.
///
/// # Panics
///
/// If the shapes do not fit together, or a row lies beyond the matrix.
pub(super) fn add_picked<T: Value>(sums: &mut [f32], picked: Picked<'_, T>) -> bool {
    let Some(way) = picked.way() else { return false };
    #[cfg(target_arch = "x86_64")]
    match (way, T::plain(picked.rows), T::short(picked.rows)) {
        (Way::Blocks(at_once, of_head), Some(rows), _) => {
            avx512::add_picked(sums, (at_once, of_head), picked.of(rows));
        }
        (Way::Blocks(at_once, of_head), None, Some(rows)) => {
            avx512::add_picked(sums, (at_once, of_head), picked.of(rows));
        }
        (Way::Heads, Some(rows), _) => avx2::add_picked(sums, picked.of(rows)),
        (Way::Heads, None, Some(rows)) => avx2::add_picked(sums, picked.of(rows)),
        (_, None, None) => return false,
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sums, way);
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
    let Some(way) = picked.way() else { return false };
    #[cfg(target_arch = "x86_64")]
    match (way, T::plain(picked.rows), T::short(picked.rows)) {
        (Way::Blocks(at_once, of_head), Some(rows), _) => {
            avx512::add_and_multiply_picked((sums, along), other, (at_once, of_head), picked.of(rows));
        }
        (Way::Blocks(at_once, of_head), None, Some(rows)) => {
            avx512::add_and_multiply_picked((sums, along), other, (at_once, of_head), picked.of(rows));
        }
        (Way::Heads, Some(rows), _) => avx2::add_and_multiply_picked(sums, along, other, picked.of(rows)),
        (Way::Heads, None, Some(rows)) => avx2::add_and_multiply_picked(sums, along, other, picked.of(rows)),
        (_, None, None) => return false,
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sums, along, other, way);
    true
}

#[cfg(test)]
mod tests;
