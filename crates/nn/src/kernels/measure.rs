//! Figures of rows and of flat vectors, in double precision.

/// The largest value of a row less the smallest; NaNs are passed over. Negative for a row without values.
pub fn row_range(row: &[f32]) -> f64 {
    let (low, high) = row.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    f64::from(high) - f64::from(low)
}

/// The sum of squares, first value first.
pub fn squared_norm(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v) * f64::from(*v)).sum()
}

/// The Euclidean norm: the root of [`squared_norm`].
pub fn norm(values: &[f32]) -> f64 {
    squared_norm(values).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_norms_of_rows_done_by_hand() {
        assert_eq!(row_range(&[3.0, -4.0]), 7.0);
        assert_eq!(row_range(&[f32::NAN, 1.0]), 0.0);
        assert!(row_range(&[]) < 0.0);
        assert_eq!(norm(&[3.0, -4.0]), 5.0);
    }
}
