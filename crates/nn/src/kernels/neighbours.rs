//! Sums of neighbours' rows that are multiplied by weights as they are made: no matrix of sums in either direction.
//!
//! Where all neighbours' rows are here, `z = D A S x · Wᵀ` (A the edges' weights, D and S those of their ends) is made
//! a piece of rows at a time, from sums that are in the cache. In the backward pass `G = S Aᵀ D dz` is all that is read
//! of dz: it is to x what dz is to the sums, so `dW = Gᵀ x` and `dx = G · W`, each from a piece of G that is in the
//! cache, and the sums themselves are not needed again. For E edges between n rows of width w that is 4·E·w bytes of
//! random rows each way, as for sums that are stored, and some 40·n·w bytes less of rows that are written and read
//! again.

use super::back::{Back, Reads};
use super::elementwise::scale_rows;
use super::fold::{Pattern, Weights, sum_scaled_rows, sum_some_rows};
use super::long::add_rows;
use super::{Store, Through};
use crate::block::Block;
use crate::matrix::{Matrix, each_value};
use crate::threads::{Compute, MOST_PIECES, Rooms, row_pieces};

/// Sums of rows along the edges of a block.
#[derive(Debug, Clone, Copy)]
pub struct Sums<'a> {
    /// The rows that are summed; sources × columns.
    pub rows: &'a Matrix,
    /// What they are summed along.
    pub along: Along<'a>,
}

/// The edges of a block, with what is multiplied at their ends.
#[derive(Debug, Clone, Copy)]
pub struct Along<'a> {
    /// The edges, from sources to destinations.
    pub block: &'a Block,
    /// What each row is multiplied by; `None` stands for 1.
    pub of_sources: Option<&'a [f32]>,
    /// What each sum is multiplied by; `None` stands for 1.
    pub of_destinations: Option<&'a [f32]>,
}

/// Sets `out` to `scale · Σ weight · of_columns · row` for rows of the pattern from `first` on.
fn sum_and_scale(
    rooms: &Rooms,
    out: &mut [f32],
    first: usize,
    pattern: Pattern<'_>,
    of_columns: Option<&[f32]>,
    rows: &Matrix,
    scale: Option<&[f32]>,
) {
    let width = rows.columns();
    each_value!(rows.values(), |rows| match of_columns {
        Some(of_columns) => sum_scaled_rows(rooms, out, width, first, pattern, of_columns, rows),
        None => sum_some_rows(rooms, out, Store::Set, width, first, pattern, rows),
    });
    if let Some(scale) = scale {
        scale_rows(out, width, &scale[first..]);
    }
}

impl Sums<'_> {
    /// Sets `out` to the sums of some destinations, of which `first` is the first.
    pub(super) fn of_rows(&self, rooms: &Rooms, out: &mut [f32], first: usize) {
        let Along { block, of_sources, of_destinations } = self.along;
        let weights = block.weights().map_or(Weights::Ones, Weights::Direct);
        let pattern = Pattern::of(block.forward(), weights);
        sum_and_scale(rooms, out, first, pattern, of_sources, self.rows, of_destinations);
    }
}

impl Along<'_> {
    /// Sets `out` to what comes back to some sources, of which `first` is the first, from the gradient of all sums.
    fn of_gradient(&self, rooms: &Rooms, out: &mut [f32], first: usize, gradient: &Matrix) {
        let weights = self.block.weights().map_or(Weights::Ones, |w| Weights::Indexed(w, self.block.positions()));
        let pattern = Pattern::of(self.block.reverse(), weights);
        sum_and_scale(rooms, out, first, pattern, self.of_destinations, gradient, self.of_sources);
    }
}

/// The products of `z = sums · Wᵀ + x · Vᵀ + bias`, and where their gradients begin in a slice.
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    /// W, outputs × inputs.
    pub neighbours: (&'a [f32], usize),
    /// V, outputs × inputs, where rows themselves are read.
    pub own: Option<(&'a [f32], usize)>,
    /// Where the gradient of the bias begins.
    pub bias: usize,
}

/// How many edges take about as long as all that is multiplied for a row.
const EDGES_OF_PRODUCTS: usize = 32;

/// Bounds of pieces of sources that take equally long, about, whoever has how many edges; as many as there are in
/// front of the last one.
fn bounds(block: &Block) -> ([usize; MOST_PIECES + 1], usize) {
    let offsets = block.reverse().offsets;
    let (rows, pieces) = (block.sources(), row_pieces(block.sources()));
    let until = |row: usize| offsets[row] + EDGES_OF_PRODUCTS * row;
    let mut bounds = [rows; MOST_PIECES + 1];
    for (piece, bound) in bounds[..pieces].iter_mut().enumerate() {
        let share = (until(rows) as u128 * piece as u128 / pieces as u128) as usize;
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low.midpoint(high);
            if until(middle) < share { low = middle + 1 } else { high = middle }
        }
        *bound = low;
    }
    (bounds, pieces)
}

/// The gradients of `z = sums · Wᵀ + x · Vᵀ + bias` by everything, from `dz`: adds to those of weights and bias in
/// `gradient`, and turns the rows `x` into theirs; destinations are the first rows.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn neighbours_adjoint(
    compute: &mut Compute,
    gradient: &mut [f32],
    ends: Ends<'_>,
    along: Along<'_>,
    dz: &Matrix,
    (x, through): (&mut Matrix, Through),
) {
    let (block, outputs) = (along.block, dz.columns());
    assert_eq!((x.rows(), dz.rows()), (block.sources(), block.destinations()));
    assert!(block.sources() >= block.destinations(), "destinations are the first rows");
    let ((bounds, pieces), rooms) = (bounds(block), compute.rooms());
    let back = Back {
        made: ends.neighbours,
        own: ends.own.map(|(weight, at)| (weight, at, dz)),
        make: &|first, out| along.of_gradient(&rooms, out, first, dz),
        also: &|rows, partial| {
            let of_bias = &mut partial[ends.bias..][..outputs];
            let rows = rows.start.min(dz.rows())..rows.end.min(dz.rows());
            each_value!(dz.span(rows).values(), |dz| add_rows(&rooms, of_bias, dz));
        },
    };
    back.add(compute, gradient, &bounds[..=pieces], Reads::InPlace(x, through));
}

#[cfg(test)]
mod tests;
