//! A layer's functions at once, for rows of which all neighbours are here: nothing crosses, so that nothing has to
//! stand between message, fold and close.

use super::At;
use crate::block::Block;
use crate::matrix::Matrix;

/// Rows, and the edges between them, of which none comes from anywhere else.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// The rows; nodes × inputs.
    pub x: &'a Matrix,
    /// What messages are these rows times, where somebody has not multiplied them already
    /// ([`super::Facts::sender_weight`]).
    pub weight: Option<&'a [f32]>,
    /// All edges into these rows.
    pub block: &'a Block,
}

/// A layer whose messages are rows times their senders' weights, and whose folds need not be kept: message, fold and
/// close as one function, and its adjoint. Up to the order of sums they are what the layer's own functions do one
/// after the other.
pub trait Undivided {
    /// Sets `out` to the output rows.
    fn forward(&self, at: &mut At<'_>, input: Whole<'_>, out: &mut Matrix);

    /// From `dz`, the gradient of the output, adds to `g` and sets `dx`, the gradient of [`Whole::x`].
    fn backward(&self, at: &mut At<'_>, g: &mut [f32], input: Whole<'_>, dz: &Matrix, dx: &mut Matrix);
}
