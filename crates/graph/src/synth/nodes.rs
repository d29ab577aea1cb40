//! What generated nodes are: classes, roles and features.

use std::ops::Range;

use laconic_array::Array;
use laconic_key::{Key, Purpose};
use rayon::prelude::*;

use crate::dataset::{Features, Split};
use crate::memory::afford;

/// A class for each of these nodes, each as likely as the other.
pub(super) fn classes(nodes: Range<usize>, classes: usize, seed: u64) -> Vec<i32> {
    let key = property(seed, 0);
    let class = |node| key.with(node as u64).below(classes as u64) as i32;
    nodes.into_par_iter().map(class).collect()
}

/// A role for each of these nodes: training and validation with these probabilities, test otherwise.
pub(super) fn split(nodes: Range<usize>, train: f64, val: f64, seed: u64) -> Split {
    let key = property(seed, 1);
    let role = |node| match key.with(node as u64).unit() {
        unit if unit < train => Split::TRAIN,
        unit if unit < train + val => Split::VAL,
        _ => Split::TEST,
    };
    Split { roles: nodes.into_par_iter().map(role).collect() }
}

/// A uniform number for each node, which its degree is made of.
pub(super) fn degree_key(seed: u64) -> Key {
    property(seed, 2)
}

fn property(seed: u64, which: u64) -> Key {
    Key::new(seed, Purpose::GraphNodes).with(which)
}

/// Refuses matrices of these shapes and so many directed edges where there is no memory for them. Edges are in memory
/// as they were drawn and, sorted, up to four times more.
pub(super) fn affordable(matrices: &[[usize; 2]], edges: f64) -> Result<(), String> {
    let nodes = matrices[0][0] as f64 * 64.0;
    let values: f64 = matrices.iter().map(|[rows, columns]| *rows as f64 * *columns as f64 * 4.0).sum();
    afford((nodes + values + edges * 16.0) as u64).map_err(|what| format!("a graph of that size {what}"))
}

/// Standard normal noise round `mean` rows, for each of these nodes: node `v` has the mean `means[mean_of(v)]`, where
/// `means` is a row-major matrix of `columns` columns.
pub(super) fn features(
    nodes: Range<usize>,
    columns: usize,
    seed: u64,
    means: &[f32],
    mean_of: impl Fn(usize) -> usize + Sync,
) -> Features {
    if columns == 0 {
        return Features::None;
    }
    let key = Key::new(seed, Purpose::GraphFeatures).with(1);
    let mut values = Array::zeros(nodes.len() * columns);
    values.par_chunks_mut(columns).enumerate().for_each(|(row, values)| {
        let node = nodes.start + row;
        let (key, mean) = (key.with(node as u64), &means[mean_of(node) * columns..][..columns]);
        for (column, (value, mean)) in values.iter_mut().zip(mean).enumerate() {
            *value = mean + key.with(column as u64).normal() as f32;
        }
    });
    Features::Dense { columns, values }
}

/// One row a class: random directions, so long that two classes lie about `distance` apart (exactly so on average over
/// squares; two of many random directions are nearly orthogonal).
pub(super) fn class_means(classes: usize, columns: usize, distance: f64, seed: u64) -> Vec<f32> {
    let key = Key::new(seed, Purpose::GraphFeatures).with(0);
    let mut means = Vec::with_capacity(classes * columns);
    for class in 0..classes {
        let direction: Vec<f64> =
            (0..columns).map(|column| key.with(class as u64).with(column as u64).normal()).collect();
        let length = direction.iter().map(|value| value * value).sum::<f64>().sqrt();
        let scale = distance / std::f64::consts::SQRT_2 / length.max(f64::MIN_POSITIVE);
        means.extend(direction.into_iter().map(|value| (value * scale) as f32));
    }
    means
}
