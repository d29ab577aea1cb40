//! Sums of neighbours' rows that are multiplied by weights as they are made: no matrix of sums in either direction.
//!
//! Where all neighbours' rows are here, `z = D A S x · Wᵀ` (A the edges' weights, D and S those of their ends) is made
//! a piece of rows at a time, from sums that are in the cache. On the way back `G = S Aᵀ D dz` is all that is read of
//! dz: it is to x what dz is to the sums, so `dW = Gᵀ x` and `dx = G · W`, each from a piece of G that is in the cache,
//! and the sums themselves are not needed again. For E edges between n rows of width w that is 4·E·w bytes of random
//! rows each way, as for sums that are stored, and some 50·n·w bytes less of rows that are written and read again.

use super::Store;
use super::elementwise::{add_values, scale_rows};
use super::fold::{Pattern, Weights, sum_some_rows};
use super::product::{By, Factor, Weight, add_to_gradient, with_left, with_right};
use super::product_tiles::Coming;
use super::stored::{Access, blocks_of};
use crate::block::{Block, Csr};
use crate::matrix::{Matrix, Span, Value, each_value};
use crate::threads::{Compute, MOST_PIECES, Rooms, row_pieces};

/// Sums of rows along the edges of a block.
#[derive(Debug, Clone, Copy)]
pub struct Sums<'a> {
    /// The rows that are summed; sources × columns.
    pub rows: &'a Matrix,
    /// The edges, from sources to destinations.
    pub block: &'a Block,
    /// What each row is multiplied by; `None` stands for 1.
    pub of_sources: Option<&'a [f32]>,
    /// What each sum is multiplied by; `None` stands for 1.
    pub of_destinations: Option<&'a [f32]>,
}

/// Sets `out` to `scale · Σ weight · of_columns · row` for rows of the pattern from `first` on.
fn sum_and_scale(
    out: &mut [f32],
    first: usize,
    ((edges, weights), of_columns): (Pattern<'_>, Option<&[f32]>),
    rows: &Matrix,
    scale: Option<&[f32]>,
) {
    let width = rows.columns();
    let scaled = of_columns.map(|of_columns| Weights::Scaled(&weights, of_columns));
    let pattern = (edges, scaled.unwrap_or(weights));
    each_value!(rows.values(), |rows| sum_some_rows(out, width, Store::Set, first, pattern, rows));
    if let Some(scale) = scale {
        scale_rows(out, width, &scale[first..]);
    }
}

impl<'a> Sums<'a> {
    /// Sets `out` to the sums of some destinations, of which `first` is the first.
    pub(super) fn of_rows(&self, out: &mut [f32], first: usize) {
        let Csr { offsets, columns } = self.block.forward();
        let weights = self.block.weights().map_or(Weights::Ones, Weights::Direct);
        sum_and_scale(out, first, (((offsets, columns), weights), self.of_sources), self.rows, self.of_destinations);
    }

    /// Sets `out` to what comes back to some sources, of which `first` is the first, from the gradient of all sums.
    fn of_gradient(&self, out: &mut [f32], first: usize, gradient: &Matrix) {
        let Csr { offsets, columns } = self.block.reverse();
        let weights = self.block.weights().map_or(Weights::Ones, |w| Weights::Indexed(w, self.block.positions()));
        sum_and_scale(out, first, (((offsets, columns), weights), self.of_destinations), gradient, self.of_sources);
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

/// How many rows of what comes back are made at once: 400 KB of width 256, which stay in a core's cache until they are
/// multiplied.
const BACK_ROWS: usize = 384;

/// Bounds of pieces of sources that take equally long, about, whoever has how many edges; as many as there are in
/// front of the last one.
fn bounds(block: &Block) -> ([usize; MOST_PIECES + 1], usize) {
    let offsets = &block.reverse().offsets;
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
/// `gradient`, and sets `dx`, where sources and destinations are the same rows.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn neighbours_adjoint(
    compute: &mut Compute,
    gradient: &mut [f32],
    ends: Ends<'_>,
    sums: Sums<'_>,
    dz: &Matrix,
    dx: &mut Matrix,
) {
    let (outputs, inputs) = (dz.columns(), dx.columns());
    let rows = (dz.rows(), dx.rows());
    assert_eq!((sums.rows.rows(), sums.rows.columns(), rows), (dx.rows(), inputs, (dx.rows(), dx.rows())));
    assert_eq!((sums.block.sources(), sums.block.destinations()), rows, "the same rows on both sides");
    let weights = [Some(ends.neighbours), ends.own].map(|end| end.map(|(weight, _)| Weight::new(weight, inputs)));
    assert!([Some(ends.neighbours), ends.own].iter().flatten().all(|(weight, _)| weight.len() == outputs * inputs));
    let by = By::of([dz.precision(), sums.rows.precision(), dx.precision()]);
    let rooms = compute.rooms();
    let [of_sums, of_rows] = weights.map(|weight| weight.map_or(0, |weight| weight.room(by)));
    rooms.lend(|room| {
        room.resize(room.len().max(of_sums + of_rows), 0.0);
        let (left, right) = room.split_at_mut(of_sums);
        let ready = [left, &mut right[..of_rows]];
        for (weight, ready) in weights.iter().zip(ready) {
            weight.iter().for_each(|weight| weight.make_ready(by, ready));
        }
        let (left, right) = room.split_at(of_sums);
        let [of_sums, of_rows] = weights;
        let factors =
            [of_sums.map(|weight| weight.made_ready(by, left)), of_rows.map(|weight| weight.made_ready(by, right))];
        let back = Back { rooms: &rooms, by, ends, sums, factors, dz, widths: (outputs, inputs) };
        let (bounds, pieces) = bounds(sums.block);
        let of_values = bounds.map(|bound| bound * inputs);
        each_value!(dx.values_mut(), |dx| {
            compute.reduce_beside(gradient, (dx, &of_values[..=pieces]), |piece, partial, dx| {
                for (block, dx) in dx.chunks_mut((BACK_ROWS * inputs).max(1)).enumerate() {
                    back.block(bounds[piece] + block * BACK_ROWS, partial, dx);
                }
            });
        });
    });
}

/// What all pieces of the way back read.
struct Back<'a> {
    rooms: &'a Rooms,
    by: By,
    ends: Ends<'a>,
    sums: Sums<'a>,
    /// W and V.
    factors: [Option<Factor<'a>>; 2],
    dz: &'a Matrix,
    /// Outputs and inputs.
    widths: (usize, usize),
}

impl Back<'_> {
    /// Some sources, of which `first` is the first.
    fn block<T: Value>(&self, first: usize, partial: &mut [f32], dx: &mut [T]) {
        let (outputs, inputs) = self.widths;
        let count = dx.len() / inputs.max(1);
        self.rooms.lend(|room| {
            room.resize(room.len().max(count * outputs), 0.0);
            let back = &mut room[..count * outputs];
            self.sums.of_gradient(back, first, self.dz);
            let back = Span::of(back, outputs);
            self.to_rows((first, back), dx);
            self.add_gradients((first, back), partial);
        });
    }

    /// Sets `dx` from what came `back` to these rows along edges, and from what comes from themselves.
    fn to_rows<T: Value>(&self, (first, back): (usize, Span<'_>), dx: &mut [T]) {
        let (at_once, inputs) = (self.by.rows_at_once(), self.widths.1);
        let [of_sums, of_rows] = self.factors;
        blocks_of(self.rooms, (dx, inputs), at_once, Access::Write, |start, dx| {
            for (block, dx) in dx.chunks_mut(at_once * inputs).enumerate() {
                let start = start + block * at_once;
                let rows = start..start + dx.len() / inputs;
                let here = self.dz.span(first + rows.start..first + rows.end);
                // The rows of dz behind those that are multiplied next come with these.
                let after = (first + rows.end).min(self.dz.rows());
                let next = self.dz.span(after..(after + rows.len()).min(self.dz.rows()));
                let of_products =
                    [(of_sums, back.span(rows), Coming::default()), (of_rows, here, Coming([Some(next), None]))];
                let mut store = Store::Set;
                for (factor, left, coming) in of_products {
                    if let Some(factor) = factor {
                        factor.multiply(self.rooms, (dx, store), left.values(), coming);
                        store = Store::Add;
                    }
                }
            }
        });
    }

    /// Adds what these rows are of the gradients of weights and bias.
    fn add_gradients(&self, (first, back): (usize, Span<'_>), partial: &mut [f32]) {
        let ((outputs, inputs), rooms, by, ends) = (self.widths, self.rooms, self.by, self.ends);
        let (at_once, len) = (by.rows_of_gradient(), outputs * inputs);
        for start in (0..back.rows()).step_by(at_once) {
            let rows = start..back.rows().min(start + at_once);
            let here = first + rows.start..first + rows.end;
            let next = here.end..(here.end + rows.len()).min(first + back.rows());
            let (x, dz) = (self.sums.rows.span(here.clone()), self.dz.span(here));
            let coming = Coming([Some(self.sums.rows.span(next)), None]);
            let of_bias = &mut partial[ends.bias..][..outputs];
            each_value!(dz.values(), |dz| dz.chunks_exact(outputs.max(1)).for_each(|row| add_values(of_bias, row)));
            each_value!(x.values(), |x| with_right(rooms, (x, inputs), by, |x| {
                let of_sums = &mut partial[ends.neighbours.1..][..len];
                with_left(rooms, back.span(rows), by, |back| add_to_gradient(of_sums, back, x, coming));
                if let Some((_, at)) = ends.own {
                    let of_rows = &mut partial[at..][..len];
                    with_left(rooms, dz, by, |dz| add_to_gradient(of_rows, dz, x, Coming::default()));
                }
            }));
        }
    }
}

#[cfg(test)]
mod tests;
