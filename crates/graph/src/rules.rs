//! The rules of arrays with a row for each node, whether the nodes are a dataset's or a part's.

use crate::dataset::{Features, Ids, Labels};

/// A broken rule: the array it was found in, and what was expected.
pub(crate) type Violation = (&'static str, String);

pub(crate) fn length_violation(array: &'static str, found: usize, expected: usize) -> Option<Violation> {
    (found != expected).then(|| (array, format!("expected {expected} values, found {found}")))
}

pub(crate) fn finite_violation(array: &'static str, values: &[f32]) -> Option<Violation> {
    let at = values.iter().position(|value| !value.is_finite())?;
    Some((array, format!("expected finite numbers, found {} at position {at}", values[at])))
}

pub(crate) fn offsets_violation(array: &'static str, offsets: &[u64], rows: usize, end: usize) -> Option<Violation> {
    if let Some(violation) = length_violation(array, offsets.len(), rows + 1) {
        return Some(violation);
    }
    if offsets[0] != 0 || offsets[rows] != end as u64 {
        let (first, last) = (offsets[0], offsets[rows]);
        return Some((array, format!("expected to run from 0 to {end}, found {first} to {last}")));
    }
    let row = (0..rows).find(|&row| offsets[row] > offsets[row + 1])?;
    Some((array, format!("expected ascending offsets, found {} after {}", offsets[row + 1], offsets[row])))
}

/// The shape of features: as many rows as nodes, and in sparse ones columns that ascend and are there. Whether the
/// values are finite is another question: readers take those that are not, and [`crate::info::check()`] names them.
pub(crate) fn feature_violation(features: &Features, rows: usize) -> Option<Violation> {
    match features {
        Features::None => None,
        Features::Dense { columns, values } => {
            length_violation("features", values.len(), rows.saturating_mul(*columns))
        }
        Features::Sparse { columns, offsets, indices, values } => {
            if let Some(violation) = offsets_violation("features_offsets", offsets, rows, values.len())
                .or_else(|| length_violation("features_indices", indices.len(), values.len()))
            {
                return Some(violation);
            }
            let bad_row = (0..rows).find(|&row| {
                let indices = &indices[offsets[row] as usize..offsets[row + 1] as usize];
                indices.windows(2).any(|pair| pair[0] >= pair[1])
                    || indices.last().is_some_and(|&last| last as usize >= *columns)
            })?;
            Some(("features_indices", format!("expected ascending columns below {columns} in row {bad_row}")))
        }
    }
}

/// As many labels as nodes, and classes that there are.
pub(crate) fn label_violation(labels: &Labels, rows: usize) -> Option<Violation> {
    match labels {
        Labels::None => None,
        Labels::Single { classes, values } => length_violation("labels", values.len(), rows).or_else(|| {
            let bad = values.iter().find(|&&value| value < -1 || value >= 0 && value as usize >= *classes)?;
            Some(("labels", format!("expected −1 or a class below {classes}, found {bad}")))
        }),
        Labels::Multi { classes, values } => length_violation("labels", values.len(), rows.saturating_mul(*classes))
            .or_else(|| {
                let bad = values.iter().find(|&&value| value > 1)?;
                Some(("labels", format!("expected 0 or 1, found {bad}")))
            }),
    }
}

/// One set of the flags of [`crate::dataset::Split`] a node.
pub(crate) fn role_violation(roles: &[u8], rows: usize) -> Option<Violation> {
    if let Some(role) = roles.iter().find(|&&role| role > 7) {
        return Some(("roles", format!("expected sets of the flags 1, 2 and 4, found {role}")));
    }
    length_violation("roles", roles.len(), rows)
}

/// One id a node.
pub(crate) fn id_violation(ids: &Ids, rows: usize) -> Option<Violation> {
    match ids {
        Ids::Row => None,
        Ids::Integers(ids) => length_violation("ids", ids.len(), rows),
        Ids::Strings(ids) => length_violation("id_bytes", ids.len(), rows),
    }
}
