//! Sums of many addends that stay right: in blocks of few, and the blocks' sums with what each addition rounds off.
//!
//! Added up one after the other in `f32`, a million times 0.1 is 100,958: every addend is rounded to a unit of the sum
//! so far, in the same direction. Here a few addends at a time are added up, and what adding these sums up rounds off
//! is kept beside them (Møller's and Knuth's exact sum of two). So the error is that of one block, below 1e-6 of the
//! sum of magnitudes, at any length. Sums of no more than one block are bitwise identical to the plain loop.

use std::ops::Range;

use super::dispatch::per_processor;
use super::elementwise::add_values;
pub(crate) use crate::long::{LONG, sum_of};
use crate::matrix::Value;
use crate::threads::Rooms;

/// How many rows' products are added up in matrices of sums before these are added up in turn: what that reads and
/// writes is little beside so many rows' products.
pub(super) const ROWS_OF_SUM: usize = 4096;

per_processor! {
    /// `high + low += block`, with nothing rounded off but in the last places of `low`.
    pub(super) fn add_block(high: &mut [f32], low: &mut [f32], block: &[f32]) {
        for ((high, low), &block) in high.iter_mut().zip(low).zip(block) {
            let sum = *high + block;
            let of_block = sum - *high;
            *low += (*high - (sum - of_block)) + (block - of_block);
            *high = sum;
        }
    }
}

per_processor! {
    /// `high += low`. Of what is infinite nothing was rounded off.
    pub(super) fn close(high: &mut [f32], low: &[f32]) {
        for (high, &low) in high.iter_mut().zip(low) {
            *high = if high.is_finite() { *high + low } else { *high };
        }
    }
}

/// Calls `task(addends, sums)` for at most `size` of the addends at a time, in order: it adds these to the sums that it
/// is given. Where all are one block these are `sums`, else zeros whose results are added to `sums` in turn.
#[inline(always)]
pub(crate) fn in_blocks(
    rooms: &Rooms,
    addends: Range<usize>,
    size: usize,
    sums: &mut [f32],
    mut task: impl FnMut(Range<usize>, &mut [f32]),
) {
    if addends.len() <= size {
        return task(addends, sums);
    }
    rooms.lend(|room| {
        let len = sums.len();
        room.resize(room.len().max(2 * len));
        let (low, block) = room[..2 * len].split_at_mut(len);
        low.fill(0.0);
        for start in addends.clone().step_by(size) {
            block.fill(0.0);
            task(start..addends.end.min(start + size), block);
            add_block(sums, low, block);
        }
        close(sums, low);
    });
}

/// `sums += Σ rows`, for rows of as many values as there are sums.
pub(crate) fn add_rows<T: Value>(rooms: &Rooms, sums: &mut [f32], rows: &[T]) {
    let width = sums.len().max(1);
    in_blocks(rooms, 0..rows.len() / width, LONG, sums, |block, sums| {
        rows[block.start * width..block.end * width].chunks_exact(width).for_each(|row| add_values(sums, row));
    });
}

#[cfg(test)]
mod tests;
