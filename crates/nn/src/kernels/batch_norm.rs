//! BatchNorm (Ioffe and Szegedy, 2015) over the rows of all workers: means and variances of columns, in pieces that can
//! be put together, and the adjoint of normalising by them.

use super::dispatch::per_processor;
use crate::matrix::Matrix;
use crate::threads::{Compute, ROWS_PER_PIECE, row_pieces};

/// The share of a round's statistics in running ones, PyTorch's default.
pub const MOMENTUM: f32 = 0.1;

/// What columns are normalised by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    /// The mean of each.
    pub means: Vec<f32>,
    /// 1 / √(variance + ε) of each.
    pub reciprocals: Vec<f32>,
    /// The variance of each as an estimate for rows that were not seen (divided by one row less), which running
    /// statistics are of.
    pub variances: Vec<f32>,
    /// Of how many rows they are; 0 of running ones.
    pub rows: f64,
}

/// Statistics of the columns of some rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Moments {
    /// How many rows.
    pub rows: f64,
    /// The mean of each column.
    pub means: Vec<f32>,
    /// The mean square distance from it.
    pub variances: Vec<f32>,
}

impl Moments {
    /// Those of the rows of a matrix.
    pub fn of(compute: &Compute, z: &Matrix) -> Moments {
        let (rows, width) = (z.rows(), z.columns());
        let count = rows.max(1) as f64;
        let mut means = sum_columns(compute, rows, width, |row, sums| {
            sums.iter_mut().zip(z.row(row)).for_each(|(sum, value)| *sum += f64::from(*value));
        });
        means.iter_mut().for_each(|sum| *sum /= count);
        let squares = sum_columns(compute, rows, width, |row, sums| {
            for ((sum, value), mean) in sums.iter_mut().zip(z.row(row)).zip(&means) {
                let distance = f64::from(*value) - mean;
                *sum += distance * distance;
            }
        });
        Moments {
            rows: rows as f64,
            means: means.iter().map(|mean| *mean as f32).collect(),
            variances: squares.iter().map(|sum| (sum / count) as f32).collect(),
        }
    }
}

impl Columns {
    /// What all of these rows together are normalised by (Chan, Golub and LeVeque, 1979). Where there are none nothing
    /// changes.
    pub fn of(all: &[Moments], epsilon: f32) -> Columns {
        let rows: f64 = all.iter().map(|moments| moments.rows).sum();
        let width = all.first().map_or(0, |moments| moments.means.len());
        let mut columns = Columns { rows, ..Columns::default() };
        for column in 0..width {
            let mean_over = |value: &dyn Fn(&Moments) -> f64| {
                all.iter().map(|moments| moments.rows * value(moments)).sum::<f64>() / rows.max(1.0)
            };
            let mean = mean_over(&|moments| f64::from(moments.means[column]));
            let variance = mean_over(&|moments| {
                let distance = f64::from(moments.means[column]) - mean;
                f64::from(moments.variances[column]) + distance * distance
            });
            columns.means.push(mean as f32);
            columns.reciprocals.push((1.0 / (variance + f64::from(epsilon)).sqrt()) as f32);
            columns.variances.push((variance * rows / (rows - 1.0).max(1.0)) as f32);
        }
        columns
    }

    /// Takes up running means and variances.
    pub fn set_running(&mut self, [means, variances]: [&[f32]; 2], epsilon: f32) {
        self.rows = 0.0;
        for (to, from) in [(&mut self.means, means), (&mut self.variances, variances)] {
            to.clear();
            to.extend_from_slice(from);
        }
        self.reciprocals.clear();
        self.reciprocals.extend(variances.iter().map(|variance| 1.0 / (variance + epsilon).sqrt()));
    }
}

/// The sums over rows of the gradient by normalised, scaled and shifted values, and of its products with the normalised
/// ones: the gradients of β and γ of these rows, one after the other.
pub fn gradient_sums(compute: &Compute, gradient: &Matrix, z: &Matrix, columns: &Columns) -> Vec<f32> {
    let width = z.columns();
    let sums = sum_columns(compute, z.rows(), 2 * width, |row, sums| {
        let (bias, weight) = sums.split_at_mut(width);
        let values = gradient.row(row).iter().zip(z.row(row)).zip(columns.means.iter().zip(&columns.reciprocals));
        for ((bias, weight), ((gradient, z), (mean, reciprocal))) in bias.iter_mut().zip(weight).zip(values) {
            *bias += f64::from(*gradient);
            *weight += f64::from(gradient * (z - mean) * reciprocal);
        }
    });
    sums.into_iter().map(|sum| sum as f32).collect()
}

/// Turns the gradient by normalised, scaled and shifted values into that by `z`, in place. `sums` are
/// [`gradient_sums`], added up over all rows that the statistics are of.
pub fn normalise_adjoint(
    compute: &Compute,
    gradient: &mut Matrix,
    z: &Matrix,
    columns: &Columns,
    weight: &[f32],
    sums: &[f32],
) {
    let width = z.columns().max(1);
    let means: Vec<f32> = sums.iter().map(|sum| (f64::from(*sum) / columns.rows.max(1.0)) as f32).collect();
    let of_columns = Returning { columns, weight, means: &means };
    compute.chunks(gradient.data_mut(), ROWS_PER_PIECE * width, |piece, gradient| {
        let z = &z.data()[piece * ROWS_PER_PIECE * width..][..gradient.len()];
        return_piece(gradient, z, width, &of_columns);
    });
}

/// What the adjoint knows of columns.
struct Returning<'a> {
    columns: &'a Columns,
    weight: &'a [f32],
    /// Means over rows of the gradient and of its products with normalised values.
    means: &'a [f32],
}

per_processor! {
    fn return_piece(gradient: &mut [f32], z: &[f32], width: usize, of: &Returning<'_>) {
        let Returning { columns: Columns { means, reciprocals, .. }, weight, .. } = of;
        let (average, slope) = of.means.split_at(width);
        for (gradient, z) in gradient.chunks_exact_mut(width).zip(z.chunks_exact(width)) {
            for column in 0..width {
                let normalised = (z[column] - means[column]) * reciprocals[column];
                gradient[column] = weight[column]
                    * reciprocals[column]
                    * (gradient[column] - average[column] - normalised * slope[column]);
            }
        }
    }
}

/// Sums over rows in double precision: `add(row, sums)` adds a row. In pieces that are added in their order.
fn sum_columns(
    compute: &Compute,
    rows: usize,
    width: usize,
    add: impl Fn(usize, &mut [f64]) + Sync + Send,
) -> Vec<f64> {
    let pieces = row_pieces(rows);
    let size = rows.div_ceil(pieces).max(1);
    let mut partials = vec![0.0; pieces * width];
    compute.chunks(&mut partials, width, |piece, sums| {
        (piece * size..rows.min((piece + 1) * size)).for_each(|row| add(row, sums));
    });
    let (first, others) = partials.split_at_mut(width.min(pieces * width));
    for piece in others.chunks_exact(width.max(1)) {
        first.iter_mut().zip(piece).for_each(|(sum, value)| *sum += value);
    }
    partials.truncate(width);
    partials
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    const EPSILON: f32 = 1e-5;

    fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
        let key = Key::new(stream, Purpose::Test);
        let value = |i: usize| 3.0 * (i % columns) as f32 + key.with(i as u64).normal() as f32;
        Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
    }

    fn part(z: &Matrix, rows: std::ops::Range<usize>) -> Matrix {
        let width = z.columns();
        Matrix::from_vec(rows.len(), width, z.data()[rows.start * width..rows.end * width].to_vec())
    }

    /// The definition, column by column in double precision.
    #[test]
    fn statistics_of_divided_rows_are_those_of_all() {
        let (rows, width) = (2500, 7);
        let z = random(rows, width, 1);
        let compute = Compute::new(2);
        for cuts in [&[0, 2500][..], &[0, 1, 1200, 1200, 2500], &[0, 0, 2500, 2500]] {
            let each: Vec<Moments> =
                cuts.windows(2).map(|ends| Moments::of(&compute, &part(&z, ends[0]..ends[1]))).collect();
            let columns = Columns::of(&each, EPSILON);
            assert_eq!(columns.rows, rows as f64);
            for column in 0..width {
                let values: Vec<f64> = (0..rows).map(|row| f64::from(z.row(row)[column])).collect();
                let mean = values.iter().sum::<f64>() / rows as f64;
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                let close = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 1e-6 * (1.0 + b.abs()), "{a}, {b}");
                close(columns.means[column], mean);
                close(columns.variances[column], squares / (rows - 1) as f64);
                close(columns.reciprocals[column], 1.0 / (squares / rows as f64 + f64::from(EPSILON)).sqrt());
            }
        }
    }

    #[test]
    fn nobody_s_rows_and_a_single_one_have_statistics() {
        let compute = Compute::new(1);
        let none = Columns::of(&[Moments::of(&compute, &Matrix::zeros(0, 2))], EPSILON);
        assert!(none.reciprocals.iter().chain(&none.variances).all(|value| value.is_finite()));
        let one = Columns::of(&[Moments::of(&compute, &random(1, 2, 3))], EPSILON);
        assert_eq!((one.rows, &one.variances[..]), (1.0, &[0.0, 0.0][..]));
    }

    /// ⟨g, f(z + εd) − f(z − εd)⟩ / 2ε against ⟨f'(z)ᵀ g, d⟩: statistics move with the rows. Two parts know of each
    /// other's rows by their sums alone.
    #[test]
    fn the_adjoint_agrees_with_finite_differences_on_divided_rows() {
        let (rows, width) = (60, 5);
        let (z, g, d) = (random(rows, width, 1), random(rows, width, 2), random(rows, width, 3));
        let weight = random(1, width, 4).into_vec();
        let compute = Compute::new(2);
        let normalised = |z: &Matrix| {
            let columns = Columns::of(&[Moments::of(&compute, z)], EPSILON);
            let value = |at: usize| {
                let column = at % width;
                (z.data()[at] - columns.means[column]) * columns.reciprocals[column] * weight[column]
            };
            (0..rows * width).map(|at| f64::from(value(at)) * f64::from(g.data()[at])).sum::<f64>()
        };
        let moved =
            |e: f32| Matrix::from_vec(rows, width, z.data().iter().zip(d.data()).map(|(z, d)| z + e * d).collect());
        let numeric = (normalised(&moved(1e-2)) - normalised(&moved(-1e-2))) / 2e-2;
        let columns = Columns::of(&[Moments::of(&compute, &z)], EPSILON);
        let parts = [0..23, 23..rows];
        let of_part = |rows: &std::ops::Range<usize>| (part(&z, rows.clone()), part(&g, rows.clone()));
        let mut sums = vec![0.0; 2 * width];
        for (z, g) in parts.iter().map(of_part) {
            let own = gradient_sums(&compute, &g, &z, &columns);
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let mut exact = 0.0;
        for rows in &parts {
            let (z, mut gradient) = of_part(rows);
            normalise_adjoint(&compute, &mut gradient, &z, &columns, &weight, &sums);
            let along = part(&d, rows.clone());
            exact += gradient.data().iter().zip(along.data()).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        }
        assert!((numeric - exact).abs() < 1e-2 * (1.0 + exact.abs()), "{numeric} against {exact}");
        // The gradient of γ is that of a map that is linear in it.
        let along: f64 = weight.iter().zip(&sums[width..]).map(|(w, sum)| f64::from(w * sum)).sum();
        let value = normalised(&z);
        assert!((along - value).abs() < 1e-3 * (1.0 + value.abs()), "{along} against {value}");
    }
}
