//! Class scores on their way along edges: what happens to them row by row between two sums over neighbours.

use super::exponential::exp;
use crate::matrix::Matrix;
use crate::threads::Compute;

/// `rows = share · rows + (1 − share) · start`.
///
/// # Panics
///
/// If their shapes differ.
pub fn mix(compute: &Compute, rows: &mut Matrix, start: &Matrix, share: f32) {
    let width = rows.columns();
    assert_eq!((rows.rows(), width), (start.rows(), start.columns()), "rows of one shape");
    compute.rows((rows.data_mut(), width), |row, rows| {
        rows.iter_mut().zip(start.row(row)).for_each(|(row, start)| *row = share * *row + (1.0 - share) * start);
    });
}

/// Divides each row by the sum of its values and `more`, which keeps rows of next to nothing what they are.
pub fn divide_by_sums(compute: &Compute, rows: &mut Matrix, more: f32) {
    let width = rows.columns();
    compute.rows((rows.data_mut(), width), |_, row| {
        let sum = row.iter().sum::<f32>() + more;
        row.iter_mut().for_each(|value| *value /= sum);
    });
}

/// Takes values that lie outside to the nearer end of a range.
pub fn clamp(compute: &Compute, rows: &mut Matrix, (least, most): (f32, f32)) {
    let width = rows.columns();
    compute.rows((rows.data_mut(), width), |_, row| row.iter_mut().for_each(|value| *value = value.clamp(least, most)));
}

/// Sets each value to its logarithm, those below `least` to that of `least`: scores whose softmax are the shares that
/// the values have of their row's sum.
pub fn logarithms(compute: &Compute, rows: &mut Matrix, least: f32) {
    let width = rows.columns();
    compute.rows((rows.data_mut(), width), |_, row| row.iter_mut().for_each(|value| *value = value.max(least).ln()));
}

/// Sets each row of scores to its softmax: the shares that [`logarithms`] takes back to scores.
pub fn shares(compute: &Compute, rows: &mut Matrix) {
    let width = rows.columns();
    compute.rows((rows.data_mut(), width), |_, row| {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|value| *value = exp(*value - most));
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum);
    });
}

/// Adds to each row of `rows` that of `errors`, made as large as `size`, the sum of what its values are away from 0. A
/// row of next to no errors, that would be made more than a thousand times as large, is added as it is.
///
/// # Panics
///
/// If their shapes differ.
pub fn add_of_size(compute: &Compute, rows: &mut Matrix, errors: &Matrix, size: f32) {
    const MOST: f32 = 1000.0;
    let width = rows.columns();
    assert_eq!((rows.rows(), width), (errors.rows(), errors.columns()), "rows of one shape");
    compute.rows((rows.data_mut(), width), |row, rows| {
        let errors = errors.row(row);
        let factor = size / errors.iter().map(|error| error.abs()).sum::<f32>();
        let factor = if factor <= MOST { factor } else { 1.0 };
        rows.iter_mut().zip(errors).for_each(|(row, error)| *row += factor * error);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[f32]) -> Matrix {
        Matrix::from_vec(values.len() / 2, 2, values.to_vec())
    }

    #[test]
    fn rows_are_mixed_divided_and_clamped_value_by_value() {
        let (compute, start) = (Compute::new(1), rows(&[1.0, 0.0, 0.0, 0.0]));
        let mut found = rows(&[0.5, 0.25, 0.0, 4.0]);
        mix(&compute, &mut found, &start, 0.75);
        assert_eq!(found, rows(&[0.625, 0.1875, 0.0, 3.0]));
        clamp(&compute, &mut found, (0.25, 1.0));
        assert_eq!(found, rows(&[0.625, 0.25, 0.25, 1.0]));
        divide_by_sums(&compute, &mut found, 0.125);
        assert_eq!(found, rows(&[0.625, 0.25, 0.25 / 1.375, 1.0 / 1.375]));
    }

    #[test]
    fn logarithms_of_shares_are_scores_again_but_for_what_all_have_in_common() {
        let (compute, scores) = (Compute::new(1), rows(&[1.5, -0.5, 30.0, -3.0]));
        let mut found = scores.clone();
        shares(&compute, &mut found);
        let sums: Vec<f32> = (0..2).map(|row| found.row(row).iter().sum()).collect();
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6), "{sums:?}");
        logarithms(&compute, &mut found, 1e-30);
        for row in 0..2 {
            let apart = |of: &Matrix| of.row(row)[0] - of.row(row)[1];
            assert!((apart(&found) - apart(&scores)).abs() < 1e-4, "{found:?}");
        }
        let mut nothing = rows(&[0.0, -1.0]);
        logarithms(&compute, &mut nothing, 1e-30);
        assert_eq!(nothing.row(0)[0], nothing.row(0)[1]);
    }

    #[test]
    fn errors_have_the_size_that_is_asked_for_unless_there_are_next_to_none() {
        let compute = Compute::new(1);
        let mut found = rows(&[0.0; 8]);
        add_of_size(&compute, &mut found, &rows(&[0.25, -0.75, 0.0, 0.0, 1e-9, 0.0, 2e-3, 0.0]), 0.5);
        assert_eq!(found, rows(&[0.125, -0.375, 0.0, 0.0, 1e-9, 0.0, 0.5, 0.0]));
    }
}
