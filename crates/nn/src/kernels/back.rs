//! What comes back to rows, multiplied a piece at a time as it is made: gradients of weights and of rows from one
//! reading of each.

use std::ops::Range;

use super::Store;
use super::long::in_blocks;
use super::product::{By, Factor, Weight, add_to_gradient, with_left, with_right};
use super::product_tiles::Coming;
use super::stored::{Access, blocks_of, read_stored};
use crate::matrix::{DenseRows, Matrix, Span, Value, each_value};
use crate::threads::{Compute, MOST_PIECES, Rooms};

/// How many rows are made at once: 400 KB of width 256, which stay in a core's cache until they are multiplied.
const BACK_ROWS: usize = 384;

/// Rows whose gradients of weights are added up in one matrix before it is added to the others.
const ROWS_OF_SUM: usize = 10 * BACK_ROWS;

/// The backward pass through `G ↦ x · Wᵀ`, where the gradient G of what was output is made from something else, and
/// through a product of the same rows by a second matrix, of which the gradient stands somewhere.
#[derive(Clone, Copy)]
pub(super) struct Back<'a> {
    /// The rows that were multiplied; rows × inputs.
    pub x: DenseRows<'a>,
    /// W, outputs × inputs, and where its gradient begins.
    pub made: (&'a [f32], usize),
    /// Sets some rows of G, of which the number is the first.
    pub make: &'a (dyn Fn(usize, &mut [f32]) + Sync),
    /// The second matrix, outputs × inputs, where its gradient begins, and that of its product.
    pub own: Option<(&'a [f32], usize, &'a Matrix)>,
    /// Adds to the gradient what else comes of some rows.
    pub also: &'a (dyn Fn(Range<usize>, &mut [f32]) + Sync),
}

impl Back<'_> {
    /// Adds to the `gradient` of the weights, and to or sets `dx`, that of x, where it is wanted. Rows are cut at
    /// `bounds`, of which the first is 0 and the last their number; each piece is added up apart.
    ///
    /// # Panics
    ///
    /// If the shapes do not fit together, or there are more pieces than [`MOST_PIECES`].
    pub fn add(&self, compute: &mut Compute, gradient: &mut [f32], bounds: &[usize], dx: Option<(&mut Matrix, Store)>) {
        let inputs = self.x.columns();
        let (made, own) = (self.made.0, self.own.map(|own| own.0));
        assert!([made].into_iter().chain(own).all(|weight| weight.len() == self.outputs() * inputs));
        assert_eq!(bounds.last(), Some(&self.x.rows()), "pieces of all rows");
        let (mut nothing, mut store) = (Matrix::zeros(0, inputs), None);
        let dx = match dx {
            Some((dx, how)) => {
                assert_eq!((dx.rows(), dx.columns()), (self.x.rows(), inputs));
                store = Some(how);
                dx
            }
            None => &mut nothing,
        };
        let of_own = self.own.map(|own| own.2.precision());
        let by = By::of([self.x.precision(), dx.precision()].into_iter().chain(of_own));
        let (made, own) = (Weight::new(made, inputs), own.map(|own| Weight::new(own, inputs)));
        let (of_made, of_own) = (made.room(by), own.as_ref().map_or(0, |own| own.room(by)));
        let rooms = compute.rooms();
        let mut of_values = [0; MOST_PIECES + 1];
        let of_values = &mut of_values[..bounds.len()];
        if store.is_some() {
            of_values.iter_mut().zip(bounds).for_each(|(values, bound)| *values = bound * inputs);
        }
        rooms.lend(|room| {
            room.resize(room.len().max(of_made + of_own));
            let (left, right) = room.split_at_mut(of_made);
            let right = &mut right[..of_own];
            made.make_ready(by, left);
            own.iter().for_each(|own| own.make_ready(by, right));
            let factors = (made.made_ready(by, left), own.as_ref().map(|own| own.made_ready(by, right)));
            let pieces = Pieces { back: self, rooms: &rooms, by, factors, store };
            each_value!(dx.values_mut(), |dx| {
                compute.reduce_beside(gradient, (dx, of_values), |piece, partial, dx| {
                    pieces.piece(bounds[piece]..bounds[piece + 1], partial, dx);
                });
            });
        });
    }

    fn outputs(&self) -> usize {
        self.made.0.len() / self.x.columns().max(1)
    }
}

/// What all pieces read.
struct Pieces<'a> {
    back: &'a Back<'a>,
    rooms: &'a Rooms,
    by: By,
    /// The weights: of what is made, and of the second product.
    factors: (Factor<'a>, Option<Factor<'a>>),
    /// What becomes of the gradient of rows, where it is wanted.
    store: Option<Store>,
}

impl Pieces<'_> {
    fn piece<T: Value>(&self, rows: Range<usize>, partial: &mut [f32], dx: &mut [T]) {
        let (outputs, inputs) = (self.back.outputs(), self.back.x.columns());
        in_blocks(self.rooms, rows.clone(), ROWS_OF_SUM, partial, |some, partial| {
            for first in some.clone().step_by(BACK_ROWS) {
                let block = first..some.end.min(first + BACK_ROWS);
                self.rooms.lend(|room| {
                    room.resize(room.len().max(block.len() * outputs));
                    let made = &mut room[..block.len() * outputs];
                    (self.back.make)(first, made);
                    let made = Span::of(made, outputs);
                    if let Some(store) = self.store {
                        let dx = &mut dx[(first - rows.start) * inputs..][..block.len() * inputs];
                        self.to_rows((first, made), (dx, store));
                    }
                    self.add_gradients((first, made), partial);
                    (self.back.also)(block, partial);
                });
            }
        });
    }

    /// The gradient of rows of which `first` is the first, from that of what they output.
    fn to_rows<T: Value>(&self, (first, made): (usize, Span<'_>), (dx, store): (&mut [T], Store)) {
        let (at_once, inputs) = (self.by.rows_at_once(), self.back.x.columns());
        blocks_of(self.rooms, (dx, inputs), at_once, Access::from(store), |start, dx| {
            for (block, dx) in dx.chunks_mut((at_once * inputs).max(1)).enumerate() {
                let start = start + block * at_once;
                let rows = start..start + dx.len() / inputs;
                let (of_made, of_own) = self.factors;
                let piece = made.span(rows.clone());
                of_made.multiply(self.rooms, (&mut *dx, store), piece.values(), Coming::default());
                if let (Some(factor), Some((_, _, dz))) = (of_own, self.back.own) {
                    let here = first + rows.start..first + rows.end;
                    // The rows behind those that are multiplied next come with these.
                    let next = dz.span(here.end..(here.end + rows.len()).min(dz.rows()));
                    factor.multiply(self.rooms, (dx, Store::Add), dz.span(here).values(), Coming([Some(next), None]));
                }
            }
        });
    }

    /// Adds what these rows are of the gradients of weights.
    fn add_gradients(&self, (first, made): (usize, Span<'_>), partial: &mut [f32]) {
        let (Back { x, own, made: (weight, at), .. }, rooms, by) = (self.back, self.rooms, self.by);
        let (at_once, len, outputs) = (by.rows_of_gradient(), weight.len(), made.columns());
        for start in (0..made.rows()).step_by(at_once) {
            let rows = start..made.rows().min(start + at_once);
            let here = first + rows.start..first + rows.end;
            let next = x.in_order(here.end..(here.end + rows.len()).min(first + made.rows()));
            let coming = Coming([next, None]);
            read_stored(rooms, *x, here.clone(), |values| {
                with_right(rooms, (values, x.columns()), by, |right| {
                    let of_made = &mut partial[*at..][..len];
                    with_left(rooms, (made.span(rows).values(), outputs), by, |made| {
                        add_to_gradient(of_made, made, right, coming)
                    });
                    if let Some((_, at, dz)) = own {
                        let of_own = &mut partial[*at..][..len];
                        let coming = Coming::default();
                        with_left(rooms, (dz.span(here).values(), outputs), by, |dz| {
                            add_to_gradient(of_own, dz, right, coming)
                        });
                    }
                });
            });
        }
    }
}
