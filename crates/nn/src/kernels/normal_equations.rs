//! The normal equations of a linear fit by least squares: sums over rows, which add up over workers, and their
//! solution.
//!
//! Rows have a constant column of 1 behind theirs, for the bias. Targets are 1 in the column of a row's class and 0
//! elsewhere. Sums are made in `f64`, row after row, and leave as `f32`; they are solved in `f64` by Cholesky
//! decomposition.

use crate::matrix::Operand;

/// Lanes of a sum of products, so that the compiler finds vectors; the order of additions is fixed.
const LANES: usize = 8;

/// Sums of products over rows: of columns with columns, and of columns with targets.
#[derive(Debug, Clone)]
pub struct NormalEquations {
    shape: Shape,
    /// The upper triangle, row after row.
    squares: Vec<f64>,
    /// Width × outputs.
    products: Vec<f64>,
    /// A row with its constant.
    row: Vec<f64>,
}

/// How many columns rows have, without the constant, and how many classes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many columns rows have.
    pub columns: usize,
    /// How many classes there are.
    pub outputs: usize,
}

/// What solves the equations.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The weights, outputs × columns.
    pub weight: Vec<f32>,
    /// What is added to each output.
    pub bias: Vec<f32>,
    /// The mean of squared errors over all rows, as they count.
    pub error: f64,
}

impl Shape {
    fn width(self) -> usize {
        self.columns + 1
    }

    /// Where row `row` of the upper triangle begins.
    fn start(self, row: usize) -> usize {
        row * self.width() - row * row.saturating_sub(1) / 2
    }

    fn triangle(self) -> usize {
        self.width() * (self.width() + 1) / 2
    }

    /// How many sums there are: of an upper triangle, and of columns with targets.
    pub fn sums(self) -> usize {
        self.triangle() + self.width() * self.outputs
    }
}

impl NormalEquations {
    /// Sums over no row.
    pub fn new(shape: Shape) -> NormalEquations {
        let products = vec![0.0; shape.width() * shape.outputs];
        NormalEquations { shape, squares: vec![0.0; shape.triangle()], products, row: Vec::new() }
    }

    /// Adds a row of a class, which counts for `weight`.
    ///
    /// # Panics
    ///
    /// If there is no such row or class, or the row is not stored as `f32`.
    pub fn add(&mut self, rows: &Operand, row: usize, (class, weight): (usize, f64)) {
        let Shape { columns, outputs } = self.shape;
        assert!(class < outputs, "class {class} of {outputs}");
        match rows {
            Operand::Sparse(sparse) => {
                let own = sparse.offsets()[row]..sparse.offsets()[row + 1];
                let entries = sparse.indices()[own.clone()].iter().zip(&sparse.values()[own]);
                let entries = entries.map(|(&column, &value)| (column as usize, f64::from(value)));
                let entries: Vec<(usize, f64)> = entries.chain([(columns, 1.0)]).collect();
                for (at, &(column, value)) in entries.iter().enumerate() {
                    let (start, value) = (self.shape.start(column), weight * value);
                    entries[at..].iter().for_each(|(other, of)| self.squares[start + other - column] += value * of);
                    self.products[column * outputs + class] += value;
                }
            }
            dense => {
                let mut own = std::mem::take(&mut self.row);
                own.clear();
                own.extend(dense.dense_row(row).iter().map(|&value| f64::from(value)).chain([1.0]));
                for (column, of) in own.iter().enumerate().filter(|(_, of)| **of != 0.0) {
                    let (start, value) = (self.shape.start(column), weight * of);
                    let sums = self.squares[start..].iter_mut();
                    sums.zip(&own[column..]).for_each(|(sum, other)| *sum += value * other);
                    self.products[column * outputs + class] += value;
                }
                self.row = own;
            }
        }
    }

    /// All sums, as they add up over workers.
    pub fn into_sums(self) -> Vec<f32> {
        self.squares.iter().chain(&self.products).map(|&sum| sum as f32).collect()
    }
}

/// Solves `(XᵀX + penalty · I) W = XᵀY` for these sums over all rows; the constant column has no penalty. `None` where
/// the matrix is not positive definite, or a sum is no number.
///
/// # Panics
///
/// If there are other than [`Shape::sums`].
pub fn solve(shape: Shape, sums: &[f32], penalty: f64) -> Option<Solution> {
    assert_eq!(sums.len(), shape.sums(), "sums of another shape");
    let Shape { columns, outputs } = shape;
    let (width, sums) = (shape.width(), sums.iter().map(|&sum| f64::from(sum)).collect::<Vec<f64>>());
    let (squares, products) = sums.split_at(shape.triangle());
    let rows = squares[shape.triangle() - 1];
    let mut lower = vec![0.0; width * width];
    for column in 0..width {
        let of_row = &squares[shape.start(column)..][..width - column];
        (column..).zip(of_row).for_each(|(row, &sum)| lower[row * width + column] = sum);
    }
    (0..columns).for_each(|column| lower[column * (width + 1)] += penalty);
    decompose(&mut lower, width)?;
    let mut solved = products.to_vec();
    substitute(&lower, width, &mut solved, outputs);
    if !solved.iter().all(|value| (*value as f32).is_finite()) {
        return None;
    }
    // What is left of a sum of squares where the equations hold.
    let of_targets: f64 = solved.iter().zip(products).map(|(value, product)| value * product).sum();
    let (weight, bias) = solved.split_at(columns * outputs);
    let left = rows - of_targets - penalty * weight.iter().map(|value| value * value).sum::<f64>();
    let by_output = (0..outputs).flat_map(|output| (0..columns).map(move |column| column * outputs + output));
    Some(Solution {
        weight: by_output.map(|at| weight[at] as f32).collect(),
        bias: bias.iter().map(|&value| value as f32).collect(),
        error: (left / rows).max(0.0),
    })
}

/// Replaces the lower triangle of a symmetric matrix by its Cholesky factor; `None` where it is not positive definite.
fn decompose(matrix: &mut [f64], width: usize) -> Option<()> {
    for row in 0..width {
        let (above, own) = matrix.split_at_mut(row * width);
        for column in 0..row {
            let other = &above[column * width..][..=column];
            own[column] = (own[column] - dot(&own[..column], &other[..column])) / other[column];
        }
        let square = own[row] - dot(&own[..row], &own[..row]);
        if !(square.is_finite() && square > 0.0) {
            return None;
        }
        own[row] = square.sqrt();
    }
    Some(())
}

/// Solves for a matrix of so many outputs a row, in place, by the Cholesky factor.
fn substitute(lower: &[f64], width: usize, values: &mut [f64], outputs: usize) {
    let minus = |into: &mut [f64], factor: f64, of: &[f64]| {
        into.iter_mut().zip(of).for_each(|(value, of)| *value -= factor * of);
    };
    for row in 0..width {
        let (before, own) = values.split_at_mut(row * outputs);
        let own = &mut own[..outputs];
        (0..row).for_each(|other| minus(own, lower[row * width + other], &before[other * outputs..][..outputs]));
        own.iter_mut().for_each(|value| *value /= lower[row * (width + 1)]);
    }
    for row in (0..width).rev() {
        let (own, behind) = values[row * outputs..].split_at_mut(outputs);
        for other in row + 1..width {
            minus(own, lower[other * width + row], &behind[(other - row - 1) * outputs..][..outputs]);
        }
        own.iter_mut().for_each(|value| *value /= lower[row * (width + 1)]);
    }
}

/// The sum of products, by lanes.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let ((left, left_over), (right, right_over)) = (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
    for (left, right) in left.iter().zip(right) {
        (0..LANES).for_each(|lane| lanes[lane] += left[lane] * right[lane]);
    }
    let rest: f64 = left_over.iter().zip(right_over).map(|(left, right)| left * right).sum();
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Matrix, SparseRows};

    const SHAPE: Shape = Shape { columns: 2, outputs: 2 };

    fn sums(rows: &Operand, classes: &[usize], weights: &[f64]) -> Vec<f32> {
        let mut sums = NormalEquations::new(SHAPE);
        for (row, (&class, &weight)) in classes.iter().zip(weights).enumerate() {
            sums.add(rows, row, (class, weight));
        }
        sums.into_sums()
    }

    #[test]
    fn sums_are_those_of_the_matrix_of_rows_with_a_constant_whether_rows_are_dense_or_sparse() {
        let dense = Operand::Dense(Matrix::from_vec(3, 2, vec![1.0, 2.0, 0.0, 3.0, -1.0, 0.0]));
        let sparse = SparseRows::new(2, vec![0, 2, 3, 4], vec![0, 1, 1, 0], vec![1.0, 2.0, 3.0, -1.0]);
        // By hand: columns with columns from the diagonal on, then each column by class.
        let expected = [1.0 + 2.0, 2.0, 1.0 - 2.0, 4.0 + 9.0, 2.0 + 3.0, 4.0, 1.0 - 2.0, 0.0, 2.0, 3.0, 3.0, 1.0];
        for rows in [dense, Operand::Sparse(sparse)] {
            assert_eq!(sums(&rows, &[0, 1, 0], &[1.0, 1.0, 2.0]), expected);
        }
    }

    #[test]
    fn what_solves_them_leaves_no_gradient_and_says_how_far_it_is_off() {
        let rows = [[1.0, 2.0], [0.5, -1.0], [-2.0, 0.25], [3.0, 1.0]];
        let classes = [0, 1, 1, 0];
        let dense = Operand::Dense(Matrix::from_vec(4, 2, rows.iter().flatten().map(|&v| v as f32).collect()));
        let penalty = 0.5;
        let solved = solve(SHAPE, &sums(&dense, &classes, &[1.0; 4]), penalty).expect("it is positive definite");
        let mut square = 0.0;
        for output in 0..2 {
            let weight = |column: usize| f64::from(solved.weight[output * 2 + column]);
            let off = |row: usize| {
                let target = f64::from(u8::from(classes[row] == output));
                weight(0) * rows[row][0] + weight(1) * rows[row][1] + f64::from(solved.bias[output]) - target
            };
            for column in 0..2 {
                let slope: f64 = rows.iter().enumerate().map(|(row, values)| off(row) * values[column]).sum();
                assert!((slope + penalty * weight(column)).abs() < 1e-5);
            }
            assert!((0..4).map(off).sum::<f64>().abs() < 1e-5, "the constant has no penalty");
            square += (0..4).map(|row| off(row).powi(2)).sum::<f64>();
        }
        assert!((solved.error - square / 4.0).abs() < 1e-5, "{} {square}", solved.error);
    }

    #[test]
    fn columns_that_say_the_same_need_a_penalty() {
        let same = Operand::Dense(Matrix::from_vec(3, 2, vec![1.0, 1.0, 2.0, 2.0, -1.0, -1.0]));
        let sums = sums(&same, &[0, 1, 0], &[1.0; 3]);
        assert_eq!(solve(SHAPE, &sums, 0.0), None);
        assert!(solve(SHAPE, &sums, 0.1).is_some());
        assert_eq!(solve(SHAPE, &NormalEquations::new(SHAPE).into_sums(), 1.0), None, "no row");
    }
}
