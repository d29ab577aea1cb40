//! What the last unit reads where that is the rows of several units before it, put together.

use laconic_nn::kernels::Store;
use laconic_nn::kernels::joining::{self, join, part};
use laconic_nn::network::Joined;
use laconic_nn::{Compute, Matrix};

/// The memory of it.
#[derive(Default)]
pub(super) struct Jumping {
    /// What the unit before the last outputs.
    pub top: Matrix,
    /// The gradient by what the last unit reads.
    pub gradient: Matrix,
}

/// The rows that the last unit reads put together: of what the units before it read, in their order, those from behind
/// the first of `joined` on, and what the unit right before it outputs.
pub(super) fn rows_of<'a>(joined: Joined, read: impl Iterator<Item = &'a Matrix>, top: &'a Matrix) -> Vec<&'a Matrix> {
    read.skip(joined.first + 1).chain([top]).collect()
}

/// Sets `out`, what the last unit reads, from what the units before it output.
pub(super) fn join_all(compute: &Compute, joined: Joined, xs: &[&Matrix], out: &mut Matrix) {
    let rows = xs.last().map_or(0, |x| x.rows());
    for (index, x) in xs.iter().enumerate() {
        join(compute, out, joined.joining, (index, xs.len()), x, rows);
    }
}

/// Turns the gradient by what unit `index` reads into that by what the unit before it outputs: the last unit reads
/// that, too, and perhaps nothing else does. Called for the last unit first, whose gradient is `kept` for the others.
pub(super) fn return_part(
    compute: &Compute,
    joined: Joined,
    index: usize,
    xs: &[&Matrix],
    out: &Matrix,
    kept: &mut Matrix,
    gradient: &mut Matrix,
) {
    let is_last = index == joined.first + xs.len();
    if is_last {
        std::mem::swap(kept, gradient);
    }
    if let Some(unit) = (index - 1).checked_sub(joined.first) {
        let store = if is_last { Store::Set } else { Store::Add };
        part(compute, gradient, store, unit, joining::Joined { joining: joined.joining, xs, out }, kept);
    }
}
