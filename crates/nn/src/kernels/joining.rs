//! Rows of several layers put together into what one layer reads (Xu et al., 2018): side by side, or the largest of
//! each column.
//!
//! `xs` are the layers' rows, first layer first, all of one width. Of each the first rows count, as many as come out.

use super::Store;
use crate::matrix::Matrix;
use crate::threads::{Compute, ROWS_PER_PIECE};

/// How rows of several layers are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// Side by side.
    Concatenated,
    /// The largest of each column; of equals the first layer's.
    Largest,
}

impl Joining {
    /// The width of what comes out of so many layers' rows of this width.
    pub fn width(self, layers: usize, width: usize) -> usize {
        if self == Joining::Concatenated { layers * width } else { width }
    }
}

/// Puts the rows of layer `index` of `layers` into `out`, layer after layer; the first sets its shape to as many rows.
pub fn join(
    compute: &Compute,
    out: &mut Matrix,
    joining: Joining,
    (index, layers): (usize, usize),
    x: &Matrix,
    rows: usize,
) {
    let width = x.columns();
    if index == 0 {
        out.reshape(rows, joining.width(layers, width));
    }
    let x = &x.data()[..rows * width];
    match joining {
        Joining::Concatenated => {
            compute.rows((out.data_mut(), layers * width), |row, out| {
                out[index * width..][..width].copy_from_slice(&x[row * width..][..width]);
            });
        }
        Joining::Largest if index == 0 => out.data_mut().copy_from_slice(x),
        Joining::Largest => {
            let size = ROWS_PER_PIECE * width.max(1);
            compute.chunks(out.data_mut(), size, |piece, out| {
                for (out, x) in out.iter_mut().zip(&x[piece * size..]) {
                    // What is no number stays none.
                    if *x > *out || x.is_nan() {
                        *out = *x;
                    }
                }
            });
        }
    }
}

/// Rows of several layers, and what [`join`] made of them.
#[derive(Debug, Clone, Copy)]
pub struct Joined<'a> {
    /// How they were put together.
    pub joining: Joining,
    /// The layers' rows.
    pub xs: &'a [&'a Matrix],
    /// What came out.
    pub out: &'a Matrix,
}

/// The adjoint of [`join`] for the rows of layer `index`: sets `into`, or adds to its first rows, the gradient that
/// they have of `gradient`, which is that of what came out.
pub fn part(compute: &Compute, into: &mut Matrix, store: Store, index: usize, joined: Joined<'_>, gradient: &Matrix) {
    let Joined { joining, xs, out } = joined;
    let (rows, width) = (out.rows(), xs[index].columns());
    if store == Store::Set {
        into.reshape(rows, width);
        into.data_mut().fill(0.0);
    }
    let into = &mut into.data_mut()[..rows * width];
    if joining == Joining::Concatenated {
        let all = xs.len() * width;
        return compute.rows((into, width), |row, into| {
            let own = &gradient.data()[row * all + index * width..][..width];
            into.iter_mut().zip(own).for_each(|(sum, value)| *sum += value);
        });
    }
    let size = ROWS_PER_PIECE * width.max(1);
    compute.chunks(into, size, |piece, into| {
        for (at, into) in into.iter_mut().enumerate() {
            let at = piece * size + at;
            let largest = out.data()[at];
            let wins = |x: &&Matrix| x.data()[at] == largest;
            if wins(&xs[index]) && !xs[..index].iter().any(wins) {
                *into += gradient.data()[at];
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    /// Few values, so that many are equal.
    fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
        let key = Key::new(stream, Purpose::Test);
        let value = |i: usize| key.with(i as u64).below(4) as f32 - 1.0;
        Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
    }

    /// The definition, value by value: which layer's value came out, and whose gradient it is therefore.
    #[test]
    fn each_value_and_its_gradient_is_of_the_layer_that_it_came_from() {
        let (rows, width) = (300, 3);
        // The layers of a batch have more rows than what is read of them.
        let xs = [random(rows + 7, width, 1), random(rows + 2, width, 2), random(rows, width, 3)];
        let compute = Compute::new(2);
        for joining in [Joining::Concatenated, Joining::Largest] {
            let mut out = Matrix::default();
            xs.iter().enumerate().for_each(|(at, x)| join(&compute, &mut out, joining, (at, xs.len()), x, rows));
            let gradient = random(rows, joining.width(xs.len(), width), 4);
            let all: Vec<&Matrix> = xs.iter().collect();
            for (index, x) in xs.iter().enumerate() {
                let (mut set, mut added) = (Matrix::default(), random(x.rows(), width, 5));
                let before = added.clone();
                let joined = Joined { joining, xs: &all, out: &out };
                part(&compute, &mut set, Store::Set, index, joined, &gradient);
                part(&compute, &mut added, Store::Add, index, joined, &gradient);
                for row in 0..x.rows() {
                    for column in 0..width {
                        let values = || xs.iter().filter(|x| row < x.rows()).map(|x| x.row(row)[column]);
                        let expected = match joining {
                            _ if row >= rows => 0.0,
                            Joining::Concatenated => {
                                assert_eq!(out.row(row)[index * width + column], x.row(row)[column]);
                                gradient.row(row)[index * width + column]
                            }
                            Joining::Largest => {
                                let largest = values().fold(f32::MIN, f32::max);
                                assert_eq!(out.row(row)[column], largest);
                                let winner = values().position(|value| value == largest);
                                if winner == Some(index) { gradient.row(row)[column] } else { 0.0 }
                            }
                        };
                        assert_eq!(added.row(row)[column], before.row(row)[column] + expected);
                        assert!(row >= rows || set.row(row)[column] == expected);
                    }
                }
            }
        }
    }
}
