//! Features on one scale.

use super::rows::{Own, Rows};
use crate::about::{About, NodeType, Reading, Scale};
use crate::dataset::{Features, Split};
use crate::error::{GraphError, Result};
use crate::exact::{Exact, ExactColumn, Wide};
use crate::limits::Limits;
use std::ops::Range;

/// Divides each row by its sum, as papers do with bags of words; `exact` has columns of these features as they are.
///
/// Rows whose sum is not positive stay: PyG's `NormalizeFeatures` clamps sums to at least 1, and a division by a
/// negative sum would turn the signs round.
pub fn row_normalise(features: &mut Features, exact: &Exact) {
    match features {
        Features::None => {}
        Features::Dense { columns, values } => {
            for (row, values) in values.chunks_exact_mut((*columns).max(1)).enumerate() {
                divide_by_sum(values, &|column| exact.at(row, column));
            }
        }
        Features::Sparse { offsets, indices, values, .. } => {
            for (row, stored) in offsets.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).enumerate() {
                let columns = &indices[stored.clone()];
                divide_by_sum(&mut values[stored], &|at| exact.at(row, columns[at] as usize));
            }
        }
    }
}

fn divide_by_sum(row: &mut [f32], exact: &dyn Fn(usize) -> Option<Wide>) {
    let given = |(at, value): (usize, f32)| exact(at).map_or(f64::from(value), |wide| wide.value);
    let sum: f64 = row.iter().copied().enumerate().map(given).sum();
    if sum > 0.0 {
        row.iter_mut().enumerate().for_each(|(at, value)| *value = (given((at, *value)) / sum) as f32);
    }
}

/// Subtracts from each column its mean and divides by its (population) standard deviation, both over the nodes that
/// have the role [`Split::TRAIN`] in `roles`, so that nothing is learned from the others; over all nodes where there
/// are no roles. Columns of which `exact` has the numbers as they are lose nothing before that.
///
/// A column that is constant over these nodes is divided by 1, and one that `stays` (of columns, or of none) is as it
/// was. Where types have columns of their own, those of a type follow from its nodes alone (from all of them where none
/// is for training) and stay 0 for others, and the column that says of which type a node is stays as it is. Zeros do
/// not stay zeros: sparse features become dense, or with types store all columns of a node's own; an error if that
/// passes [`Limits::dense_values_max`]. Returns what [`rescale`] needs to do the same to other rows.
///
/// # Errors
///
/// If there is not one role for each row, no node is for training, or sparse features would need more values than the
/// limits allow.
pub fn standardise(
    (features, exact): (&mut Features, &Exact),
    roles: Option<&[u8]>,
    (stays, types): (&[bool], &[NodeType]),
    limits: &Limits,
) -> Result<Scale> {
    let own = Own::of(features, types);
    let Some(mut rows) = Rows::of(features, &own, limits)? else { return Ok(Scale::Given) };
    let (count, columns) = (rows.len(), rows.columns);
    if let Some(roles) = roles.filter(|roles| count != roles.len()) {
        return Err(GraphError::invalid(format!("{} roles for {count} rows of features", roles.len())));
    }
    let trains = |row: usize| roles.is_none_or(|roles| roles[row] & Split::TRAIN != 0);
    let counted = own.counted(&trains, count);
    let counts = |row: usize| if counted(row) { own.columns(row, columns) } else { 0..0 };
    let (mut means, mut deviations) = moments(&mut rows, &counts)?;
    let mut rests = vec![0.0f64; columns];
    for of in &exact.columns {
        let (mean, deviation) = of.moments(&|row| counts(row).contains(&of.column));
        (means[of.column], rests[of.column], deviations[of.column]) = (mean.value, mean.rest, deviation);
    }
    for column in (0..columns).filter(|column| stays.get(*column) == Some(&true) || own.is_flag(*column)) {
        (means[column], rests[column], deviations[column]) = (0.0, 0.0, 1.0);
    }
    if rests.iter().all(|&rest| rest == 0.0) {
        rests.clear();
    }
    shift(&mut rows, exact, &own, Moments { means: &means, rests: &rests, deviations: &deviations });
    Ok(Scale::Standardised { means, deviations, rests, by_type: !own.of_row.is_empty() })
}

/// Mean and deviation of each column over the rows that count for it, the latter 1 where all are equal.
fn moments(rows: &mut Rows<'_>, counts: &dyn Fn(usize) -> Range<usize>) -> Result<(Vec<f64>, Vec<f64>)> {
    let columns = rows.columns;
    let mut training = |each: &mut dyn FnMut(Range<usize>, &[f32])| {
        for row in 0..rows.len() {
            let own = counts(row);
            if !own.is_empty() {
                let (first, values) = rows.row(row);
                each(own.clone(), &values[own.start - first..own.end - first]);
            }
        }
    };
    let mut count = vec![0u64; columns];
    let mut means = vec![0.0f64; columns];
    let mut ranges = vec![(f32::INFINITY, f32::NEG_INFINITY); columns];
    training(&mut |own, row| {
        count[own.clone()].iter_mut().for_each(|count| *count += 1);
        for ((mean, range), &value) in means[own.clone()].iter_mut().zip(&mut ranges[own]).zip(row) {
            *mean += f64::from(value);
            *range = (range.0.min(value), range.1.max(value));
        }
    });
    if count.iter().all(|&count| count == 0) {
        return Err(GraphError::invalid("features can only be standardised over training nodes, and there are none"));
    }
    means.iter_mut().zip(&count).for_each(|(mean, &count)| *mean /= count.max(1) as f64);
    let mut deviations = vec![0.0f64; columns];
    training(&mut |own, row| {
        for ((deviation, mean), &value) in deviations[own.clone()].iter_mut().zip(&means[own]).zip(row) {
            *deviation += (f64::from(value) - mean).powi(2);
        }
    });
    for ((deviation, range), &count) in deviations.iter_mut().zip(&ranges).zip(&count) {
        // Asked of the range: the rounding of the mean gives a constant column a tiny deviation.
        *deviation = if range.0 < range.1 { (*deviation / count as f64).sqrt() } else { 1.0 };
    }
    Ok((means, deviations))
}

impl ExactColumn {
    /// Mean and deviation over the rows that count, the latter 1 where all are equal.
    fn moments(&self, counts: &dyn Fn(usize) -> bool) -> (Wide, f64) {
        let of = || self.values.iter().enumerate().filter(|(row, _)| counts(*row)).map(|(_, &number)| number);
        let Some(first) = of().next() else { return (Wide::default(), 1.0) };
        let (mut count, mut sum, mut range) = (0.0, 0.0, (0.0f64, 0.0f64));
        for number in of() {
            let step = number.minus(first);
            (count, sum, range) = (count + 1.0, sum + step, (range.0.min(step), range.1.max(step)));
        }
        let mean = first.plus(sum / count);
        let squares: f64 = of().map(|number| number.minus(mean).powi(2)).sum();
        (mean, if range.0 < range.1 { (squares / count).sqrt() } else { 1.0 })
    }
}

/// Which feature columns of a table no scale is put on: ones for categories and for gaps, and numbers that are 0 or 1
/// for every node, as they were given: those of `exact` are others that `f32` rounds to these.
pub fn unscaled((features, exact): (&Features, &Exact), about: &About) -> Vec<bool> {
    let width = features.columns();
    let mut stays = Vec::with_capacity(width);
    for column in &about.columns {
        let is_category = matches!(column.reading, Reading::Category { .. });
        let marks = usize::from(column.indicator);
        stays.extend(std::iter::repeat_n(is_category, column.width() - marks));
        stays.extend(std::iter::repeat_n(true, marks));
    }
    stays.resize(width, false);
    let mut are_flags = vec![true; width];
    features.for_each(|_, column, value| are_flags[column] &= value == 0.0 || value == 1.0);
    exact.columns.iter().for_each(|of| are_flags[of.column] = false);
    stays.iter_mut().zip(are_flags).for_each(|(stays, is_flag)| *stays |= is_flag);
    stays
}

/// What columns are shifted and scaled by.
#[derive(Clone, Copy)]
struct Moments<'a> {
    means: &'a [f64],
    /// What `f64` rounds off the means; empty where that is nothing.
    rests: &'a [f64],
    deviations: &'a [f64],
}

fn shift(rows: &mut Rows<'_>, exact: &Exact, own: &Own, moments: Moments<'_>) {
    let Moments { means, rests, deviations } = moments;
    for row in 0..rows.len() {
        let own = own.columns(row, means.len());
        let (first, values) = rows.row(row);
        let values = values[own.start - first..own.end - first].iter_mut();
        for ((value, mean), deviation) in values.zip(&means[own.clone()]).zip(&deviations[own]) {
            *value = ((f64::from(*value) - mean) / deviation) as f32;
        }
    }
    for ExactColumn { column, values: given } in &exact.columns {
        let mean = Wide { value: means[*column], rest: rests.get(*column).copied().unwrap_or(0.0) };
        for (row, number) in given.iter().enumerate() {
            if own.columns(row, means.len()).contains(column) {
                let (first, values) = rows.row(row);
                values[*column - first] = (number.minus(mean) / deviations[*column]) as f32;
            }
        }
    }
}

/// Does to features what was done to those that a model was trained on; `exact` has columns of them as they are, and
/// `types` are those that have columns of their own.
///
/// # Errors
///
/// If there are other columns than means, or sparse features would need more values than the limits allow.
pub fn rescale(
    (features, exact): (&mut Features, &Exact),
    (scale, types): (&Scale, &[NodeType]),
    limits: &Limits,
) -> Result<()> {
    match scale {
        Scale::Given => {}
        Scale::RowNormalised => row_normalise(features, exact),
        Scale::Standardised { means, deviations, rests, by_type } => {
            let columns = features.columns();
            if columns != means.len() || columns != deviations.len() {
                let known = means.len();
                let what = format!("features of {columns} columns, expected {known} as there are means of columns");
                return Err(GraphError::invalid(what));
            }
            let own = Own::of(features, if *by_type { types } else { &[] });
            if let Some(mut rows) = Rows::of(features, &own, limits)? {
                shift(&mut rows, exact, &own, Moments { means, rests, deviations });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::about::TableColumn;

    #[test]
    fn normalised_rows_sum_to_one_unless_their_sum_was_not_positive() {
        let mut dense = Features::Dense { columns: 2, values: vec![1.0, 3.0, 0.0, 0.0, -3.0, 1.0, 0.25, 0.25].into() };
        row_normalise(&mut dense, &Exact::default());
        assert_eq!(
            dense,
            Features::Dense { columns: 2, values: vec![0.25, 0.75, 0.0, 0.0, -3.0, 1.0, 0.5, 0.5].into() }
        );
        let sparse =
            |values| Features::Sparse { columns: 9, offsets: vec![0, 2, 2, 3], indices: vec![1, 4, 0], values };
        let mut features = sparse(vec![1.0, 3.0, 5.0]);
        row_normalise(&mut features, &Exact::default());
        assert_eq!(features, sparse(vec![0.25, 0.75, 1.0]));
    }

    #[test]
    fn only_training_rows_decide_mean_and_deviation() {
        let (train, test) = (Split::TRAIN, Split::TEST);
        let mut features = Features::Dense { columns: 2, values: vec![1.0, 0.1, 3.0, 0.1, 100.0, 1.1].into() };
        let mut again = features.clone();
        let scale = standardise(
            (&mut features, &Exact::default()),
            Some(&[train, train, test]),
            (&[], &[]),
            &Limits::default(),
        )
        .unwrap();
        rescale((&mut again, &Exact::default()), (&scale, &[]), &Limits::default()).unwrap();
        assert_eq!(again, features, "what is done again has the same bits");
        let mut narrow = Features::Dense { columns: 1, values: vec![1.0].into() };
        assert!(rescale((&mut narrow, &Exact::default()), (&scale, &[]), &Limits::default()).is_err());
        let Features::Dense { values, .. } = features else { panic!("dense stays dense") };
        assert_eq!(values[..4], [-1.0, 0.0, 1.0, 0.0]);
        assert_eq!(values[4], 98.0);
        // The second column is constant over the training rows: shifted, not scaled.
        assert!((values[5] - 1.0).abs() < 1e-6);
        let mut one = Features::Dense { columns: 1, values: vec![1.0].into() };
        assert!(standardise((&mut one, &Exact::default()), Some(&[test]), (&[], &[]), &Limits::default()).is_err());
        // Without roles all nodes count.
        let scale = standardise((&mut one, &Exact::default()), None, (&[], &[]), &Limits::default()).unwrap();
        assert_eq!(
            scale,
            Scale::Standardised { means: vec![1.0], deviations: vec![1.0], rests: Vec::new(), by_type: false }
        );
    }

    #[test]
    fn sparse_features_become_dense_within_the_limit_only() {
        let sparse = Features::Sparse { columns: 2, offsets: vec![0, 1, 1], indices: vec![1], values: vec![2.0] };
        let mut features = sparse.clone();
        standardise((&mut features, &Exact::default()), Some(&[Split::TRAIN; 2]), (&[], &[]), &Limits::default())
            .unwrap();
        assert_eq!(features, Features::Dense { columns: 2, values: vec![0.0, 1.0, 0.0, -1.0].into() });
        let small = Limits { dense_values_max: 3, ..Limits::default() };
        let error = standardise((&mut sparse.clone(), &Exact::default()), Some(&[Split::TRAIN; 2]), (&[], &[]), &small)
            .unwrap_err()
            .to_string();
        assert!(error.contains("2 rows × 2 columns pass the limit of 3"), "{error}");
    }

    /// A label of 0 or 1 on top of a number that `f32`, or even `f64`, cannot add 1 to.
    #[test]
    fn nothing_of_a_column_is_lost_before_its_mean_is_gone() {
        let (train, test) = (Split::TRAIN, Split::TEST);
        for far in [1_000_000_000i128, 1 << 60, i128::from(u64::MAX) - 9] {
            let values: Vec<Wide> = [0, 1, 1, 0, 3].map(|label| Wide::integer(far + label)).to_vec();
            let rounded = values.iter().map(|wide| wide.value as f32).collect();
            let exact = Exact { columns: vec![ExactColumn { column: 0, values }] };
            let mut features = Features::Dense { columns: 1, values: rounded };
            let mut again = features.clone();
            let roles = [train, train, train, train, test];
            let scale = standardise((&mut features, &exact), Some(&roles), (&[], &[]), &Limits::default()).unwrap();
            assert_eq!(
                features,
                Features::Dense { columns: 1, values: vec![-1.0, 1.0, 1.0, -1.0, 5.0].into() },
                "{far}"
            );
            rescale((&mut again, &exact), (&scale, &[]), &Limits::default()).unwrap();
            assert_eq!(again, features);
            let about = About { scale, ..About::default() };
            assert_eq!(serde_json::from_str::<About>(&serde_json::to_string(&about).unwrap()).unwrap(), about);
        }
    }

    #[test]
    fn sums_of_rows_are_of_the_numbers_as_they_are() {
        let given = |far: f64| ExactColumn { column: 0, values: vec![Wide::from(far)] };
        let mut features = Features::Dense { columns: 2, values: vec![1e9, -1e9].into() };
        row_normalise(&mut features, &Exact { columns: vec![given(1e9 + 2.0)] });
        let Features::Dense { values, .. } = features else { panic!("dense stays dense") };
        assert_eq!(values[..], [(1e9 / 2.0 + 1.0) as f32, -5e8]);
    }

    #[test]
    fn categories_marks_of_gaps_and_flags_stay_and_numbers_are_scaled() {
        let column =
            |name: &str, reading, indicator| TableColumn { name: name.to_owned(), reading, fill: None, indicator };
        let colours = Reading::Category { values: vec!["green".to_owned(), "red".to_owned()] };
        let columns = vec![
            column("age", Reading::Number, true),
            column("colour", colours, false),
            column("vip", Reading::Number, false),
        ];
        let about = About { columns, ..About::default() };
        let values = vec![20.0, 0.0, 1.0, 0.0, 1.0, 40.0, 1.0, 0.0, 1.0, 0.0];
        let mut features = Features::Dense { columns: 5, values: values.into() };
        let stays = unscaled((&features, &Exact::default()), &about);
        assert_eq!(stays, [false, true, true, true, true]);
        standardise((&mut features, &Exact::default()), None, (&stays, &[]), &Limits::default()).unwrap();
        let values = vec![-1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0];
        assert_eq!(features, Features::Dense { columns: 5, values: values.into() });
    }

    /// Two types, of a column each: the numbers of one are held against each other alone, and no 0 of another counts.
    #[test]
    fn columns_of_types_follow_from_the_nodes_of_their_type() {
        let types = ["user", "item"].map(|name| NodeType { name: name.to_owned(), columns: 2 });
        let indices = vec![0, 1, 0, 1, 2, 3, 2, 3, 0, 1];
        let values = vec![10.0, 1.0, 30.0, 1.0, 5.0, 1.0, 9.0, 1.0, 70.0, 1.0];
        let mut features = Features::Sparse { columns: 4, offsets: vec![0, 2, 4, 6, 8, 10], indices, values };
        let mut again = features.clone();
        let (train, test) = (Split::TRAIN, Split::TEST);
        // No item trains, so all of them count.
        let roles = [train, train, test, 0, test];
        let exact = Exact::default();
        let scale = standardise((&mut features, &exact), Some(&roles), (&[], &types), &Limits::default()).unwrap();
        let stored = |values: Vec<f32>| Features::Sparse {
            columns: 4,
            offsets: vec![0, 2, 4, 6, 8, 10],
            indices: vec![0, 1, 0, 1, 2, 3, 2, 3, 0, 1],
            values,
        };
        assert_eq!(features, stored(vec![-1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 5.0, 1.0]));
        rescale((&mut again, &exact), (&scale, &types), &Limits::default()).unwrap();
        assert_eq!(again, features);
        // A zero that is not stored is a number as any other, and is stored afterwards; dense rows come to the same.
        let sparse = Features::Sparse {
            columns: 4,
            offsets: vec![0, 1, 3, 5, 6, 8],
            indices: vec![1, 0, 1, 2, 3, 3, 0, 1],
            values: vec![1.0, 4.0, 1.0, 6.0, 1.0, 1.0, 8.0, 1.0],
        };
        let rows = [[0.0, 1.0, 0.0, 0.0], [4.0, 1.0, 0.0, 0.0], [0.0, 0.0, 6.0, 1.0], [0.0, 0.0, 0.0, 1.0]];
        let rows = rows.concat().into_iter().chain([8.0, 1.0, 0.0, 0.0]).collect::<Vec<f32>>();
        let mut features = [sparse, Features::Dense { columns: 4, values: rows.into() }];
        for features in &mut features {
            let found = standardise((features, &exact), Some(&roles), (&[], &types), &Limits::default()).unwrap();
            let Scale::Standardised { means, deviations, by_type: true, .. } = found else { panic!("{found:?}") };
            assert_eq!((&means[..], &deviations[..]), (&[2.0, 0.0, 3.0, 0.0][..], &[2.0, 1.0, 3.0, 1.0][..]));
        }
        let [sparse, dense] = features;
        assert_eq!(sparse, stored(vec![-1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 3.0, 1.0]));
        let values = [[-1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, -1.0, 1.0]];
        let values = values.concat().into_iter().chain([3.0, 1.0, 0.0, 0.0]).collect::<Vec<f32>>();
        assert_eq!(dense, Features::Dense { columns: 4, values: values.into() });
        let small = Limits { dense_values_max: 9, ..Limits::default() };
        let error = rescale((&mut stored(vec![1.0; 10]), &exact), (&scale, &types), &small).unwrap_err().to_string();
        assert!(error.contains("5 nodes of several types are 10 values, which pass the limit of 9"), "{error}");
    }
}
