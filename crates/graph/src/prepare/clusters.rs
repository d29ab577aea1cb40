//! Clusters of features, in the place of labels where there are none.

use laconic_key::{Key, Purpose};

use crate::dataset::{Features, Labels};

/// So many clusters, if there are as many nodes.
const CLUSTERS: usize = 16;
/// How often centres move.
const STEPS: usize = 3;

/// The cluster of each node: k-means from nodes drawn by `seed`, stopped early, since any division will do that tells
/// features apart. No labels without features.
pub fn feature_clusters(features: &Features, nodes: usize, seed: u64) -> Labels {
    let columns = features.columns();
    let clusters = CLUSTERS.min(nodes);
    if columns == 0 || clusters == 0 {
        return Labels::None;
    }
    let key = Key::new(seed, Purpose::Partition).with(2);
    let mut centres: Vec<Vec<f64>> = Vec::new();
    for cluster in 0..clusters as u64 {
        let mut centre = vec![0.0; columns];
        features
            .for_each_of(key.with(cluster).below(nodes as u64) as usize, |column, value| centre[column] = value.into());
        centres.push(centre);
    }
    let mut of = vec![0; nodes];
    for _ in 0..STEPS {
        let norms: Vec<f64> = centres.iter().map(|centre| centre.iter().map(|value| value * value).sum()).collect();
        of = (0..nodes).map(|node| nearest(features, node, (&centres, &norms))).collect();
        let mut counts = vec![0.0; clusters];
        let mut sums = vec![vec![0.0; columns]; clusters];
        for (node, &cluster) in of.iter().enumerate() {
            counts[cluster as usize] += 1.0;
            features.for_each_of(node, |column, value| sums[cluster as usize][column] += f64::from(value));
        }
        for ((centre, sum), count) in centres.iter_mut().zip(sums).zip(counts).filter(|(_, count)| *count > 0.0) {
            *centre = sum.into_iter().map(|value| value / count).collect();
        }
    }
    Labels::Single { classes: clusters, values: of }
}

/// The centre at the least distance, without the part of it that is the same for all.
fn nearest(features: &Features, node: usize, (centres, norms): (&[Vec<f64>], &[f64])) -> i32 {
    let distance = |(centre, norm): (&Vec<f64>, &f64)| {
        let mut product = 0.0;
        features.for_each_of(node, |column, value| product += f64::from(value) * centre[column]);
        norm - 2.0 * product
    };
    let distances: Vec<f64> = centres.iter().zip(norms).map(distance).collect();
    (0..distances.len()).min_by(|&a, &b| distances[a].total_cmp(&distances[b])).unwrap_or(0) as i32
}

#[cfg(test)]
mod tests {
    use super::feature_clusters;
    use crate::dataset::{Features, Labels};

    #[test]
    fn nodes_far_apart_are_in_other_clusters_and_sparse_features_give_the_same() {
        // Two heaps of twenty nodes.
        let values: Vec<f32> = (0..40).flat_map(|node| [f32::from(node < 20) * 100.0, node as f32 * 0.01]).collect();
        let dense = Features::Dense { columns: 2, values: values.clone().into() };
        let Labels::Single { classes, values: of } = feature_clusters(&dense, 40, 1) else { panic!("no labels") };
        assert_eq!(classes, 16);
        assert!(of[..20].iter().all(|cluster| !of[20..].contains(cluster)), "{of:?}");
        let offsets = (0..=40).map(|row| row * 2).collect();
        let sparse = Features::Sparse { columns: 2, offsets, indices: [0, 1].repeat(40), values };
        assert_eq!(feature_clusters(&sparse, 40, 1), Labels::Single { classes, values: of });
        assert_eq!(feature_clusters(&Features::None, 40, 1), Labels::None);
    }
}
