//! Labels and splits from arrays of numbers.

use crate::dataset::{Labels, Split};
use crate::limits::Limits;

/// One class a node. Negative numbers and NaN mean unknown; `classes` is the least number of classes.
pub fn single(values: &[f64], classes: usize, limits: &Limits) -> Result<Labels, String> {
    let mut labels = Vec::with_capacity(values.len());
    let mut classes = classes as u64;
    for (node, &value) in values.iter().enumerate() {
        if value.is_nan() || value < 0.0 {
            labels.push(-1);
            continue;
        }
        if value.fract() != 0.0 || value >= limits.classes_max as f64 {
            return Err(format!("the label of node {node} is {value}, expected a class in 0..{}", limits.classes_max));
        }
        classes = classes.max(value as u64 + 1);
        labels.push(value as i32);
    }
    if classes > limits.classes_max {
        return Err(format!("{classes} classes, expected at most {}", limits.classes_max));
    }
    Ok(Labels::Single { classes: classes as usize, values: labels })
}

/// Any number of classes a node: 0 or 1, row-major. NaN means unknown.
pub fn multi(values: &[f64], classes: usize) -> Result<Labels, String> {
    let mut labels = Vec::with_capacity(values.len());
    for (place, &value) in values.iter().enumerate() {
        if value != 0.0 && value != 1.0 && !value.is_nan() {
            let (node, class) = (place / classes, place % classes);
            return Err(format!("class {class} of node {node} is {value}, expected 0 or 1"));
        }
        labels.push(if value.is_nan() { Labels::UNKNOWN } else { u8::from(value == 1.0) });
    }
    Ok(Labels::Multi { classes, values: labels })
}

/// Labels of shape [nodes], [nodes, 1] (a class a node) or [nodes, classes] (0 or 1).
pub fn from_array(shape: &[usize], values: &[f64], nodes: usize, limits: &Limits) -> Result<Labels, String> {
    match *shape {
        [rows] | [rows, 1] if rows == nodes => single(values, 0, limits),
        [rows, 0] if rows == nodes => Ok(Labels::None),
        [rows, classes] if rows == nodes => multi(values, classes),
        _ => Err(format!("expected {nodes} rows, one a node, found the shape {shape:?}")),
    }
}

/// Adds `role` to the nodes of each split whose mask is not 0. `mask` is [nodes] or [nodes, splits]; where one mask has
/// one column and another has several, the one column holds for all splits.
pub fn add_mask(splits: &mut Vec<Split>, role: u8, shape: &[usize], mask: &[u8], nodes: usize) -> Result<(), String> {
    let columns = match *shape {
        [rows] if rows == nodes => 1,
        [rows, columns] if rows == nodes && columns > 0 => columns,
        _ => return Err(format!("expected the shape [{nodes}] or [{nodes}, splits], found {shape:?}")),
    };
    if splits.is_empty() {
        splits.push(Split { roles: vec![0; nodes] });
    }
    if splits.len() == 1 {
        splits.resize(columns, splits[0].clone());
    } else if columns != 1 && columns != splits.len() {
        return Err(format!("{columns} splits, but another mask has {}", splits.len()));
    }
    for (number, split) in splits.iter_mut().enumerate() {
        let column = if columns == 1 { 0 } else { number };
        for (node, roles) in split.roles.iter_mut().enumerate() {
            if mask[node * columns + column] != 0 {
                *roles |= role;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mask_for_all_splits_meets_several_splits() {
        let mut splits = Vec::new();
        add_mask(&mut splits, Split::TRAIN, &[2, 2], &[1, 0, 0, 1], 2).unwrap();
        add_mask(&mut splits, Split::TEST, &[2], &[0, 1], 2).unwrap();
        let roles: Vec<_> = splits.into_iter().map(|s| s.roles).collect();
        assert_eq!(roles, [[Split::TRAIN, Split::TEST], [0, Split::TRAIN | Split::TEST]]);
    }

    #[test]
    fn unknown_labels_are_minus_one_and_fractions_are_refused() {
        let got = single(&[0.0, f64::NAN, -5.0, 2.0], 0, &Limits::default()).unwrap();
        assert_eq!(got, Labels::Single { classes: 3, values: vec![0, -1, -1, 2] });
        assert!(single(&[0.5], 0, &Limits::default()).is_err());
        assert!(single(&[1e18], 0, &Limits::default()).is_err());
    }
}
