//! The rules of arrays: lengths, finite numbers, ascending boundaries.

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
