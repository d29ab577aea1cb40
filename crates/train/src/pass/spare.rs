//! Memory that goes from one matrix of a pass to another: what a step of a pass has used up is what the next step
//! fills.
//!
//! A pass asks in the same order in every round, so from the second round on everything fits and nothing is allocated.
//! What is lent is at most three times as large as what it is lent for: a narrow matrix that held the memory of a wide
//! one would have the next wide one ask for more.

use laconic_array::Array;
use laconic_nn::matrix::{Bf16, Value, Values};
use laconic_nn::network::Network;
use laconic_nn::{Matrix, Precision};

/// What is lent is so many times as large as what it is lent for, at most. Features of 100 columns have the memory of
/// rows of 256 so: it would be theirs alone, and idle while rows are made.
pub const LENT: usize = 3;

/// Memory of matrices that nobody reads any more.
#[derive(Default)]
pub(super) struct Spare {
    of_own: Arrays,
    /// Of matrices of the halo's rows, of which there may be many more or far fewer.
    of_halo: Arrays,
    /// How a pass stores what it does not say otherwise of.
    precision: Precision,
    /// Values of the largest matrix of own rows of a pass.
    largest: usize,
}

#[derive(Default)]
struct Arrays {
    plain: Vec<Array<f32>>,
    short: Vec<Array<Bf16>>,
}

impl Arrays {
    fn shape(
        &mut self,
        matrix: &mut Matrix,
        (rows, columns): (usize, usize),
        (precision, largest): (Precision, usize),
    ) {
        if matrix.precision() != precision {
            self.take(matrix);
        }
        let needed = rows * columns;
        let values = match (std::mem::take(matrix).into_values(), precision) {
            (Values::Bf16(own), _) => Values::Bf16(lend(&mut self.short, own, needed, largest)),
            (Values::F32(_), Precision::Bf16) => Values::Bf16(lend(&mut self.short, Array::new(), needed, largest)),
            (Values::F32(own), Precision::F32) => Values::F32(lend(&mut self.plain, own, needed, largest)),
        };
        *matrix = Matrix::from_values(rows, columns, values);
    }

    fn take(&mut self, matrix: &mut Matrix) {
        match std::mem::take(matrix).into_values() {
            Values::F32(values) => put(&mut self.plain, values),
            Values::Bf16(values) => put(&mut self.short, values),
        }
    }
}

/// The width of the widest rows between a network's layers: what a pass's largest matrices are as wide as.
pub fn widest(network: &Network) -> usize {
    let widths = network.units().iter().enumerate().map(|(index, unit)| {
        let inputs = if index > 0 { unit.layer.facts().inputs } else { 0 };
        unit.layer.facts().outputs.max(inputs)
    });
    widths.max().unwrap_or(0)
}

impl Spare {
    /// Makes what is new and has a third of the size of the largest matrix of a pass as large as that one, so that it
    /// can be lent to it, and stores values so.
    pub fn expect(&mut self, largest: usize, precision: Precision) {
        (self.largest, self.precision) = (largest, precision);
    }

    /// Gives a matrix the shape `rows` × `columns`, in its own memory if there is room, else in the smallest that fits
    /// and is not far too large, else in new memory. What it holds is unspecified.
    pub fn shape(&mut self, matrix: &mut Matrix, shape: (usize, usize)) {
        self.shape_as(matrix, shape, self.precision);
    }

    /// The same, with values stored so whatever the pass.
    pub fn shape_as(&mut self, matrix: &mut Matrix, shape: (usize, usize), precision: Precision) {
        self.of_own.shape(matrix, shape, (precision, self.largest));
    }

    /// Takes the memory of a matrix that nobody reads any more, and leaves an empty one.
    pub fn take(&mut self, matrix: &mut Matrix) {
        self.of_own.take(matrix);
    }

    /// [`Spare::shape`] of a matrix of the halo's rows.
    pub fn shape_halo(&mut self, matrix: &mut Matrix, shape: (usize, usize)) {
        self.of_halo.shape(matrix, shape, (self.precision, 0));
    }

    /// [`Spare::take`] of a matrix of the halo's rows.
    pub fn take_halo(&mut self, matrix: &mut Matrix) {
        self.of_halo.take(matrix);
    }
}

/// So many values in the memory of `own` or of one of the arrays, or in new memory.
fn lend<T: Value>(arrays: &mut Vec<Array<T>>, own: Array<T>, needed: usize, largest: usize) -> Array<T> {
    let mut array = own;
    if array.capacity() < needed {
        put(arrays, array);
        let fits = |(_, array): &(usize, &Array<T>)| (needed..=LENT * needed).contains(&array.capacity());
        let best = arrays.iter().enumerate().filter(fits).min_by_key(|(_, array)| array.capacity());
        array = best.map(|(at, _)| at).map_or_else(Array::new, |at| arrays.swap_remove(at));
    }
    if array.capacity() < needed {
        // What grew would be copied.
        let is_large = LENT * needed >= largest;
        drop(array);
        array = Array::zeros(if is_large { needed.max(largest) } else { needed });
    }
    array.resize(needed);
    array
}

fn put<T: Value>(arrays: &mut Vec<Array<T>>, array: Array<T>) {
    if array.capacity() > 0 {
        arrays.push(array);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_is_lent_again_where_it_fits_best() {
        let (mut spare, mut large, mut small) = (Spare::default(), Matrix::default(), Matrix::default());
        spare.shape(&mut large, (100, 10));
        spare.shape(&mut small, (100, 2));
        let places = [&large, &small].map(|matrix| matrix.data().as_ptr());
        spare.take(&mut large);
        spare.take(&mut small);
        assert_eq!((large.rows(), small.rows()), (0, 0));
        let [mut first, mut second, mut third]: [Matrix; 3] = Default::default();
        spare.shape(&mut first, (50, 3));
        spare.shape(&mut second, (60, 12));
        spare.shape(&mut third, (1, 1));
        assert_eq!((first.data().as_ptr(), second.data().as_ptr()), (places[1], places[0]));
        assert_eq!((first.rows(), first.columns(), second.data().len(), third.data()), (50, 3, 720, &[0.0][..]));
        // What is narrow leaves wide memory to what is wide.
        spare.take(&mut second);
        spare.shape(&mut third, (10, 10));
        spare.shape(&mut second, (60, 12));
        assert_eq!(second.data().as_ptr(), places[0]);
        // Its own memory is the first that is tried.
        spare.shape(&mut second, (10, 100));
        assert_eq!(second.data().as_ptr(), places[0]);
    }
}
