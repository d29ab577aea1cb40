//! What makes a dataset useless for training whatever the model: found here for checks, runs and cuts alike.

use crate::dataset::{Dataset, Features, Ids};
use crate::graph::Graph;

/// The first reason why nothing should be trained on `dataset` with its split number `split`: features or weights that
/// are not finite, nodes with more than one role.
pub fn unusable(dataset: &Dataset, split: Option<usize>) -> Option<String> {
    let roles = split.and_then(|index| dataset.splits.get(index));
    broken_features(&dataset.features, &dataset.ids)
        .or_else(|| broken_weights(&dataset.graph, &dataset.ids))
        .or_else(|| roles.and_then(|split| overlapping_roles(&split.roles, &dataset.ids)))
}

/// Says how many features are not finite and where the first is.
pub(crate) fn broken_features(features: &Features, ids: &Ids) -> Option<String> {
    let (mut broken, mut first) = (0, None);
    features.for_each(|row, column, value| {
        if !value.is_finite() {
            broken += 1;
            first.get_or_insert((row, column));
        }
    });
    let (row, column) = first?;
    let node = ids.name(row);
    Some(format!("{broken} feature values are not finite, the first at node {node}, column {column}"))
}

/// Says how many edge weights are not finite and where the first is.
pub(crate) fn broken_weights(graph: &Graph, ids: &Ids) -> Option<String> {
    let weights = graph.data.weights.as_deref()?;
    let first = weights.iter().position(|weight| !weight.is_finite())?;
    let broken = weights.iter().filter(|weight| !weight.is_finite()).count();
    let target = graph.offsets.partition_point(|&start| start as usize <= first) - 1;
    let (source, target) = (ids.name(graph.sources[first] as usize), ids.name(target));
    Some(format!("{broken} edge weights are not finite, the first from node {source} to node {target}"))
}

/// Says how many nodes have more than one role and which is the first.
pub(crate) fn overlapping_roles(roles: &[u8], ids: &Ids) -> Option<String> {
    let first = roles.iter().position(|roles| roles.count_ones() > 1)?;
    let count = roles.iter().filter(|roles| roles.count_ones() > 1).count();
    Some(format!("{count} nodes have more than one role, the first is node {}", ids.name(first)))
}
