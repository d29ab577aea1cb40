//! A layer's functions at once, for rows of which all neighbours are here: nothing crosses, so that nothing has to
//! stand between message, fold and close.

use super::At;
use crate::block::Block;
use crate::kernels::Through;
use crate::matrix::Matrix;

/// All edges into the first of some rows, of which none comes from anywhere else.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// What messages are the rows times, where somebody has not multiplied them already
    /// ([`super::Facts::sender_weight`]).
    pub weight: Option<&'a [f32]>,
    /// All edges into the rows that are output.
    pub block: &'a Block,
}

/// A layer whose messages are rows times their senders' weights, and whose folds need not be kept: message, fold and
/// close as one function, and its adjoint. Up to the order of sums they are what the layer's own functions do one
/// after the other.
pub trait Undivided {
    /// Whether it is the better way forward, too: where messages are narrower than rows, these are cheaper to fold, and
    /// what the layer's own functions leave behind is not read.
    fn is_for_both_ways(&self) -> bool;

    /// Sets `out` to the output rows, of the block's destinations, from the rows `x` of its sources; nodes × inputs.
    fn forward(&self, at: &mut At<'_>, edges: Whole<'_>, x: &Matrix, out: &mut Matrix);

    /// From `dz`, the gradient of the output, adds to `g` and turns the rows into their gradient: nobody else reads
    /// them again, so that it needs no memory.
    fn backward(&self, at: &mut At<'_>, g: &mut [f32], edges: Whole<'_>, dz: &Matrix, x: (&mut Matrix, Through));
}
