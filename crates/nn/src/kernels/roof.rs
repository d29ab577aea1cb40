//! What a machine does with memory where hardly anything is computed: the measures that other kernels are held against.
//!
//! They run on the same threads, in the same kind of pieces and with the same prefetching as the kernels that they
//! measure, and do nothing but move rows.

use super::dispatch::{per_processor, prefetch};
use crate::threads::Compute;

/// Values of a piece of a copy: 256 KiB, below what a C library copies past the caches.
const COPIED: usize = 1 << 16;

/// Picks of a piece of a gather.
const PICKS: usize = 4096;

/// Values that are prefetched ahead of the row at work, about.
const AHEAD: usize = 2048;

/// `out = from`, value by value: reads 4 and writes 4 bytes for each.
///
/// # Panics
///
/// If there are not as many values in both.
pub fn copy(compute: &Compute, out: &mut [f32], from: &[f32]) {
    assert_eq!(out.len(), from.len(), "one value for each");
    compute.chunks(out, COPIED, |piece, out| {
        out.copy_from_slice(&from[piece * COPIED..][..out.len()]);
    });
}

/// `out[i] = rows[picks[i]]` for rows of `width` values: reads 4·width bytes and writes as many for each pick.
///
/// # Panics
///
/// If `out` has not one row for each pick, or a pick lies beyond `rows`.
pub fn copy_picked(compute: &Compute, out: &mut [f32], width: usize, rows: &[f32], picks: &[u32]) {
    assert_eq!(out.len(), picks.len() * width, "one row for each pick");
    compute.chunks(out, PICKS * width, |piece, out| {
        copy_piece(out, width, rows, &picks[piece * PICKS..]);
    });
}

/// The rows that [`sum_picked`] outputs for so many picks.
pub fn sums_of(picks: usize) -> usize {
    picks.div_ceil(PICKS)
}

/// The sum of the picked rows of each run of some thousand picks: reads 4·width bytes for each pick, and writes next to
/// nothing. `out` has [`sums_of`] rows.
///
/// # Panics
///
/// If `out` has another number of rows, or a pick lies beyond `rows`.
pub fn sum_picked(compute: &Compute, out: &mut [f32], width: usize, rows: &[f32], picks: &[u32]) {
    assert_eq!(out.len(), sums_of(picks.len()) * width, "one row for each run of picks");
    compute.chunks(out, width, |piece, out| {
        let picks = &picks[piece * PICKS..((piece + 1) * PICKS).min(picks.len())];
        sum_piece(out, rows, picks);
    });
}

per_processor! {
    fn copy_piece(out: &mut [f32], width: usize, rows: &[f32], picks: &[u32]) {
        for (at, out) in out.chunks_exact_mut(width).enumerate() {
            ahead(width, rows, picks, at);
            out.copy_from_slice(&rows[picks[at] as usize * width..][..width]);
        }
    }
}

per_processor! {
    fn sum_piece(out: &mut [f32], rows: &[f32], picks: &[u32]) {
        let width = out.len();
        out.fill(0.0);
        // Four at a time, so that the sums are loaded and stored as seldom as in a fold.
        let mut fours = picks.chunks_exact(4);
        for (four, picked) in fours.by_ref().enumerate() {
            (0..4).for_each(|step| ahead(width, rows, picks, 4 * four + step));
            let row = |step: usize| &rows[picked[step] as usize * width..][..width];
            let of_four = row(0).iter().zip(row(1)).zip(row(2)).zip(row(3));
            for (sum, (((v0, v1), v2), v3)) in out.iter_mut().zip(of_four) {
                *sum = (((*sum + v0) + v1) + v2) + v3;
            }
        }
        for &pick in fours.remainder() {
            out.iter_mut().zip(&rows[pick as usize * width..][..width]).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// Prefetches a row that comes soon, if there is one: at least four picks ahead, and no more than caches hold.
#[inline(always)]
fn ahead(width: usize, rows: &[f32], picks: &[u32], at: usize) {
    let distance = (AHEAD / width.max(1)).clamp(4, 32);
    if let Some(&coming) = picks.get(at + distance) {
        let start = coming as usize * width;
        for line in (0..width).step_by(16) {
            prefetch(rows, start + line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    #[test]
    fn what_is_moved_arrives_whatever_the_threads() {
        let (rows, width) = (50, 19);
        let key = Key::new(5, Purpose::Test);
        // Whole numbers, whose sums are exact in any order.
        let from: Vec<f32> = (0..rows * width).map(|i| key.with(i as u64).below(100) as f32).collect();
        let picks: Vec<u32> =
            (0..2 * PICKS as u64 + 3).map(|i| key.with(1).with(i).below(rows as u64) as u32).collect();
        for threads in [1, 2] {
            let compute = Compute::new(threads);
            let large: Vec<f32> = (0..COPIED + 7).map(|i| i as f32).collect();
            let mut copied = vec![0.0; large.len()];
            copy(&compute, &mut copied, &large);
            assert_eq!(copied, large);
            let mut out = vec![-1.0; picks.len() * width];
            copy_picked(&compute, &mut out, width, &from, &picks);
            for (row, &pick) in out.chunks(width).zip(&picks) {
                assert_eq!(row, &from[pick as usize * width..][..width]);
            }
            assert_eq!(sums_of(picks.len()), 3);
            let mut sums = vec![-1.0; 3 * width];
            sum_picked(&compute, &mut sums, width, &from, &picks);
            for (run, sums) in sums.chunks(width).enumerate() {
                for (column, sum) in sums.iter().enumerate() {
                    let of_run = picks.iter().skip(run * PICKS).take(PICKS);
                    let expected: f32 = of_run.map(|&pick| from[pick as usize * width + column]).sum();
                    assert_eq!(*sum, expected);
                }
            }
        }
    }
}
