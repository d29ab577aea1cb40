//! Figures of rows and of flat vectors, in double precision.

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
    fn norms_done_by_hand() {
        assert_eq!(norm(&[3.0, -4.0]), 5.0);
    }
}
