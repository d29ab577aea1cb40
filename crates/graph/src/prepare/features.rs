//! Features on one scale.

use crate::about::Scale;
use crate::dataset::{Features, Split};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::afford;

/// Divides each row by its sum, as papers do with bags of words.
///
/// Rows whose sum is not positive stay: PyG's `NormalizeFeatures` clamps sums to at least 1, and a division by a
/// negative sum would turn the signs round.
pub fn row_normalise(features: &mut Features) {
    match features {
        Features::None => {}
        Features::Dense { columns, values } => values.chunks_exact_mut((*columns).max(1)).for_each(divide_by_sum),
        Features::Sparse { offsets, values, .. } => {
            for row in offsets.windows(2) {
                divide_by_sum(&mut values[row[0] as usize..row[1] as usize]);
            }
        }
    }
}

fn divide_by_sum(row: &mut [f32]) {
    let sum: f64 = row.iter().map(|&value| f64::from(value)).sum();
    if sum > 0.0 {
        row.iter_mut().for_each(|value| *value = (f64::from(*value) / sum) as f32);
    }
}

/// Subtracts from each column its mean and divides by its (population) standard deviation, both over the nodes that
/// have the role [`Split::TRAIN`] in `roles`, so that nothing is learned from the others.
///
/// A column that is constant over the training nodes is divided by 1. Sparse features become dense, since zeros do not
/// stay zeros; an error if that passes [`Limits::dense_values_max`]. Returns what [`rescale`] needs to do the same to
/// other rows.
///
/// # Errors
///
/// If there is not one role for each row, no node is for training, or sparse features would need more values than the
/// limits allow.
pub fn standardise(features: &mut Features, roles: &[u8], limits: &Limits) -> Result<Scale> {
    make_dense(features, limits)?;
    let Features::Dense { columns, values } = features else { return Ok(Scale::Given) };
    let columns = *columns;
    if columns == 0 {
        return Ok(Scale::Given);
    }
    if values.len() != roles.len() * columns {
        return Err(GraphError::invalid(format!(
            "{} roles for {} rows of features",
            roles.len(),
            values.len() / columns
        )));
    }
    let training = |values: &mut dyn FnMut(&[f32]), from: &[f32]| {
        let rows = from.chunks_exact(columns).zip(roles).filter(|(_, role)| **role & Split::TRAIN != 0);
        rows.for_each(|(row, _)| values(row));
    };
    let mut count = 0u64;
    let mut means = vec![0.0f64; columns];
    let mut ranges = vec![(f32::INFINITY, f32::NEG_INFINITY); columns];
    training(
        &mut |row| {
            count += 1;
            for ((mean, range), &value) in means.iter_mut().zip(&mut ranges).zip(row) {
                *mean += f64::from(value);
                *range = (range.0.min(value), range.1.max(value));
            }
        },
        values,
    );
    if count == 0 {
        return Err(GraphError::invalid("features can only be standardised over training nodes, and there are none"));
    }
    means.iter_mut().for_each(|mean| *mean /= count as f64);
    let mut deviations = vec![0.0f64; columns];
    training(
        &mut |row| {
            for ((deviation, mean), &value) in deviations.iter_mut().zip(&means).zip(row) {
                *deviation += (f64::from(value) - mean).powi(2);
            }
        },
        values,
    );
    for (deviation, range) in deviations.iter_mut().zip(&ranges) {
        // Asked of the range: the rounding of the mean gives a constant column a tiny deviation.
        *deviation = if range.0 < range.1 { (*deviation / count as f64).sqrt() } else { 1.0 };
    }
    shift(values, &means, &deviations);
    Ok(Scale::Standardised { means, deviations })
}

fn shift(values: &mut [f32], means: &[f64], deviations: &[f64]) {
    for row in values.chunks_exact_mut(means.len()) {
        for ((value, mean), deviation) in row.iter_mut().zip(means).zip(deviations) {
            *value = ((f64::from(*value) - mean) / deviation) as f32;
        }
    }
}

/// Does to features what was done to those that a model was trained on.
///
/// # Errors
///
/// If there are other columns than means, or sparse features would need more values than the limits allow.
pub fn rescale(features: &mut Features, scale: &Scale, limits: &Limits) -> Result<()> {
    match scale {
        Scale::Given => {}
        Scale::RowNormalised => row_normalise(features),
        Scale::Standardised { means, deviations } => {
            let columns = features.columns();
            if columns != means.len() || columns != deviations.len() {
                let known = means.len();
                let what = format!("features of {columns} columns, expected {known} as there are means of columns");
                return Err(GraphError::invalid(what));
            }
            make_dense(features, limits)?;
            if let (Features::Dense { values, .. }, 1..) = (features, columns) {
                shift(values, means, deviations);
            }
        }
    }
    Ok(())
}

fn make_dense(features: &mut Features, limits: &Limits) -> Result<()> {
    let Features::Sparse { columns, offsets, indices, values } = features else { return Ok(()) };
    let (rows, columns) = (offsets.len() - 1, *columns);
    if rows as u64 * columns as u64 > limits.dense_values_max {
        return Err(GraphError::invalid(format!(
            "standardised features are dense, and {rows} rows × {columns} columns pass the limit of {} values; \
             use row-normalised features, or fewer columns",
            limits.dense_values_max
        )));
    }
    afford(rows as u64 * columns as u64 * size_of::<f32>() as u64).map_err(|what| {
        GraphError::invalid(format!("standardised features are dense: {rows} rows × {columns} columns, which {what}"))
    })?;
    let mut dense = vec![0.0; rows * columns];
    for row in 0..rows {
        for item in offsets[row] as usize..offsets[row + 1] as usize {
            dense[row * columns + indices[item] as usize] = values[item];
        }
    }
    *features = Features::Dense { columns, values: dense };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_rows_sum_to_one_unless_their_sum_was_not_positive() {
        let mut dense = Features::Dense { columns: 2, values: vec![1.0, 3.0, 0.0, 0.0, -3.0, 1.0, 0.25, 0.25] };
        row_normalise(&mut dense);
        assert_eq!(dense, Features::Dense { columns: 2, values: vec![0.25, 0.75, 0.0, 0.0, -3.0, 1.0, 0.5, 0.5] });
        let sparse =
            |values| Features::Sparse { columns: 9, offsets: vec![0, 2, 2, 3], indices: vec![1, 4, 0], values };
        let mut features = sparse(vec![1.0, 3.0, 5.0]);
        row_normalise(&mut features);
        assert_eq!(features, sparse(vec![0.25, 0.75, 1.0]));
    }

    #[test]
    fn only_training_rows_decide_mean_and_deviation() {
        let (train, test) = (Split::TRAIN, Split::TEST);
        let mut features = Features::Dense { columns: 2, values: vec![1.0, 0.1, 3.0, 0.1, 100.0, 1.1] };
        let mut again = features.clone();
        let scale = standardise(&mut features, &[train, train, test], &Limits::default()).unwrap();
        rescale(&mut again, &scale, &Limits::default()).unwrap();
        assert_eq!(again, features, "what is done again has the same bits");
        let mut narrow = Features::Dense { columns: 1, values: vec![1.0] };
        assert!(rescale(&mut narrow, &scale, &Limits::default()).is_err());
        let Features::Dense { values, .. } = features else { panic!("dense stays dense") };
        assert_eq!(values[..4], [-1.0, 0.0, 1.0, 0.0]);
        assert_eq!(values[4], 98.0);
        // The second column is constant over the training rows: shifted, not scaled.
        assert!((values[5] - 1.0).abs() < 1e-6);
        assert!(
            standardise(&mut Features::Dense { columns: 1, values: vec![1.0] }, &[test], &Limits::default()).is_err()
        );
    }

    #[test]
    fn sparse_features_become_dense_within_the_limit_only() {
        let sparse = Features::Sparse { columns: 2, offsets: vec![0, 1, 1], indices: vec![1], values: vec![2.0] };
        let mut features = sparse.clone();
        standardise(&mut features, &[Split::TRAIN; 2], &Limits::default()).unwrap();
        assert_eq!(features, Features::Dense { columns: 2, values: vec![0.0, 1.0, 0.0, -1.0] });
        let small = Limits { dense_values_max: 3, ..Limits::default() };
        let error = standardise(&mut sparse.clone(), &[Split::TRAIN; 2], &small).unwrap_err().to_string();
        assert!(error.contains("2 rows × 2 columns pass the limit of 3"), "{error}");
    }
}
