//! What comes back to rows, multiplied a piece at a time as it is made: gradients of weights and of rows from one
//! reading of each.

use std::ops::Range;

use super::elementwise::open_piece;
use super::long::in_blocks;
use super::product::{Beside, By, Factor, Transposed, Weight, add_to_gradient, with_left, with_right};
use super::product_tiles::Coming;
use super::stored::{Access, blocks_of, read_stored};
use super::{Store, Through};
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
    /// W, outputs × inputs, and where its gradient begins.
    pub made: (&'a [f32], usize),
    /// Sets some rows of G, of which the number is the first.
    pub make: &'a (dyn Fn(usize, &mut [f32]) + Sync),
    /// The second matrix, outputs × inputs, where its gradient begins, and that of its product with the first rows.
    pub own: Option<(&'a [f32], usize, &'a Matrix)>,
    /// Adds to the gradient what else comes of some rows.
    pub also: &'a (dyn Fn(Range<usize>, &mut [f32]) + Sync),
}

/// The rows that were multiplied, rows × inputs, and where their gradient goes.
pub(super) enum Reads<'r, 'm> {
    /// Into a matrix of its own, where it is wanted.
    Rows(DenseRows<'r>, Option<(&'m mut Matrix, Store)>),
    /// Into their place.
    InPlace(&'m mut Matrix, Through),
}

impl Back<'_> {
    /// Adds to the `gradient` of the weights, and to or sets that of x, where it is wanted. Rows are cut at `bounds`,
    /// of which the first is 0 and the last their number; each piece is added up apart.
    ///
    /// # Panics
    ///
    /// If the shapes do not fit together, or there are more pieces than [`MOST_PIECES`].
    pub fn add(&self, compute: &mut Compute, gradient: &mut [f32], bounds: &[usize], reads: Reads<'_, '_>) {
        let mut nothing = Matrix::default();
        let (x, dx, store, through) = match reads {
            Reads::Rows(x, Some((dx, store))) => (Some(x), dx, Some(store), Through::All),
            Reads::Rows(x, None) => (Some(x), &mut nothing, None, Through::All),
            Reads::InPlace(x, through) => (None, x, Some(Store::Set), through),
        };
        let (rows, inputs) = x.map_or((dx.rows(), dx.columns()), |x| (x.rows(), x.columns()));
        let (made, own) = (self.made.0, self.own.map(|own| own.0));
        assert_eq!(made.len() % inputs.max(1), 0, "W is outputs × inputs");
        assert!(own.is_none_or(|own| own.len() == made.len()), "both matrices are outputs × inputs");
        assert_eq!(bounds.last(), Some(&rows), "pieces of all rows");
        assert!(store.is_none() || (dx.rows(), dx.columns()) == (rows, inputs), "a gradient a row");
        let of_own = self.own.map(|own| own.2.precision());
        let by = By::of([x.map(|x| x.precision()), Some(dx.precision()), of_own].into_iter().flatten());
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
            let pieces = Pieces { back: self, rooms: &rooms, by, factors, inputs, x, store, through };
            each_value!(dx.values_mut(), |dx| {
                compute.reduce_beside(gradient, (dx, of_values), |piece, partial, dx| {
                    pieces.piece(bounds[piece]..bounds[piece + 1], partial, dx);
                });
            });
        });
    }
}

/// What all pieces read.
struct Pieces<'a> {
    back: &'a Back<'a>,
    rooms: &'a Rooms,
    by: By,
    /// The weights: of what is made, and of the second product.
    factors: (Factor<'a>, Option<Factor<'a>>),
    inputs: usize,
    /// The rows; `None` where their gradient takes their place.
    x: Option<DenseRows<'a>>,
    /// What becomes of the gradient of rows, where it is wanted.
    store: Option<Store>,
    through: Through,
}

/// Those of these rows that are among the first, of which a matrix has one each.
fn of_first(first: &Matrix, rows: Range<usize>) -> Range<usize> {
    rows.start.min(first.rows())..rows.end.min(first.rows())
}

/// Rows that a gradient of weights is made of.
#[derive(Clone, Copy)]
enum Right<'a> {
    Rows(DenseRows<'a>),
    /// Those of a piece.
    Here(Span<'a>),
}

impl Pieces<'_> {
    fn piece<T: Value>(&self, rows: Range<usize>, partial: &mut [f32], dx: &mut [T]) {
        let (outputs, inputs) = (self.back.made.0.len() / self.inputs.max(1), self.inputs);
        in_blocks(self.rooms, rows.clone(), ROWS_OF_SUM, partial, |some, partial| {
            for first in some.clone().step_by(BACK_ROWS) {
                let block = first..some.end.min(first + BACK_ROWS);
                self.rooms.lend(|room| {
                    room.resize(room.len().max(block.len() * outputs));
                    let made = &mut room[..block.len() * outputs];
                    (self.back.make)(first, made);
                    let made = Span::of(&*made, outputs);
                    let wanted = if self.store.is_some() { block.len() * inputs } else { 0 };
                    let dx = &mut dx[(first - rows.start) * inputs * usize::from(wanted > 0)..][..wanted];
                    // Rows that make room for their gradient are read before.
                    let x = self.x.map_or_else(|| Right::Here(Span::of(dx, inputs)), Right::Rows);
                    self.add_gradients((first, made), x, partial);
                    if let Some(store) = self.store {
                        self.to_rows((first, made), (dx, store));
                    }
                    (self.back.also)(block, partial);
                });
            }
        });
    }

    /// The gradient of rows of which `first` is the first, from that of what they output.
    fn to_rows<T: Value>(&self, (first, made): (usize, Span<'_>), (dx, store): (&mut [T], Store)) {
        let (at_once, inputs) = (self.by.rows_at_once(), self.inputs);
        let set = |dx: &mut [f32], rows: Range<usize>| {
            let (of_made, of_own) = self.factors;
            let piece = made.span(rows.clone());
            of_made.multiply(self.rooms, (&mut *dx, store), piece.values(), Coming::default());
            if let (Some(factor), Some((_, _, dz))) = (of_own, self.back.own) {
                let here = of_first(dz, first + rows.start..first + rows.end);
                // The rows behind those that are multiplied next come with these.
                let next = of_first(dz, here.end..here.end + rows.len());
                let (coming, dx) = (Coming([Some(dz.span(next)), None]), &mut dx[..here.len() * inputs]);
                factor.multiply(self.rooms, (dx, Store::Add), dz.span(here).values(), coming);
            }
        };
        let access = if self.through == Through::All { Access::from(store) } else { Access::Update };
        blocks_of(self.rooms, (dx, inputs), at_once, access, |start, dx| {
            for (block, dx) in dx.chunks_mut((at_once * inputs).max(1)).enumerate() {
                let start = start + block * at_once;
                let rows = start..start + dx.len() / inputs;
                match self.through {
                    Through::All => set(dx, rows),
                    Through::Positive => self.rooms.lend(|room| {
                        room.resize(room.len().max(dx.len()));
                        let x = &mut room[..dx.len()];
                        x.copy_from_slice(dx);
                        set(dx, rows);
                        open_piece(dx, x, 1.0);
                    }),
                }
            }
        });
    }

    /// Adds what these rows are of the gradients of weights.
    fn add_gradients(&self, (first, made): (usize, Span<'_>), x: Right<'_>, partial: &mut [f32]) {
        let (Back { own, made: (weight, at), .. }, rooms, by) = (self.back, self.rooms, self.by);
        let (at_once, len, outputs) = (by.rows_of_gradient(), weight.len(), made.columns());
        for start in (0..made.rows()).step_by(at_once) {
            let rows = start..made.rows().min(start + at_once);
            let here = first + rows.start..first + rows.end;
            let next = here.end..(here.end + rows.len()).min(first + made.rows());
            let coming = match x {
                Right::Rows(x) => Coming([x.in_order(next), None]),
                Right::Here(_) => Coming::default(),
            };
            let own = own.map(|(_, at, dz)| (at, dz.span(of_first(dz, here.clone()))));
            let add_own = |partial: &mut [f32], right: Beside<'_>, of: usize| {
                if let Some((at, dz)) = own.filter(|(_, dz)| dz.rows() == of) {
                    let of_own = &mut partial[at..][..len];
                    let add = |dz: Transposed<'_>| add_to_gradient(of_own, dz, right, Coming::default());
                    with_left(rooms, (dz.values(), outputs), by, add);
                }
            };
            let count = here.len();
            let add = |x: Span<'_>| {
                with_right(rooms, (x.values(), self.inputs), by, |right| {
                    let of_made = &mut partial[*at..][..len];
                    with_left(rooms, (made.span(rows).values(), outputs), by, |made| {
                        add_to_gradient(of_made, made, right, coming)
                    });
                    add_own(partial, right, count);
                });
                let first = own.map_or(0, |(_, dz)| dz.rows());
                if (1..count).contains(&first) {
                    let x = x.span(0..first);
                    with_right(rooms, (x.values(), self.inputs), by, |right| add_own(partial, right, first));
                }
            };
            match x {
                Right::Rows(x) => read_stored(rooms, x, here, |x| add(Span::from_values(x, self.inputs))),
                Right::Here(x) => add(x.span(start..start + count)),
            }
        }
    }
}
