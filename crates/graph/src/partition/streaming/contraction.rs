//! The graph of clusters: how many edges there are between any two, in bounded memory.

use metis::Idx;
use rayon::prelude::*;

/// Compressed rows of the neighbours of each cluster, and the weight of each edge.
pub(super) type Contracted = (Vec<Idx>, Vec<Idx>, Vec<Idx>);

/// Weights add up to about this at most, in 32 bits.
const SUM_MAX: u64 = 1 << 30;

/// What one pair of clusters takes at most: while pairs are merged, or while the multilevel method has the graph.
pub(super) const PAIR_BYTES: u64 = 96;

/// So many pairs of clusters may have edges between them, in a graph of so many nodes: as many as the multilevel method
/// counts.
pub(super) fn pairs_max(nodes: u64) -> u64 {
    nodes.clamp(1 << 21, (1 << 30) - 1)
}

/// Pairs of clusters and how many edges join them.
pub(super) struct Contraction {
    /// Each pair once, ascending.
    pairs: Vec<(u64, u32)>,
    /// Pairs as they came.
    fresh: Vec<u64>,
    most: usize,
    too_many: bool,
}

impl Contraction {
    /// For a graph of so many nodes.
    pub(super) fn new(nodes: u64) -> Contraction {
        Contraction { pairs: Vec::new(), fresh: Vec::new(), most: pairs_max(nodes) as usize, too_many: false }
    }

    /// Counts an edge.
    pub(super) fn add(&mut self, one: u32, other: u32) {
        if one == other || self.too_many {
            return;
        }
        self.fresh.push(u64::from(one.min(other)) << 32 | u64::from(one.max(other)));
        if self.fresh.len() >= self.most {
            self.merge();
        }
    }

    /// Whether there are few enough pairs. To be asked at the end.
    pub(super) fn fits(&mut self) -> bool {
        self.merge();
        self.fresh = Vec::new();
        !self.too_many
    }

    fn merge(&mut self) {
        self.fresh.par_sort_unstable();
        let mut merged = Vec::with_capacity(self.pairs.len());
        let mut old = std::mem::take(&mut self.pairs).into_iter().peekable();
        for run in self.fresh.chunk_by(|a, b| a == b) {
            let pair = run[0];
            while let Some(earlier) = old.next_if(|earlier| earlier.0 < pair) {
                merged.push(earlier);
            }
            let before = old.next_if(|earlier| earlier.0 == pair).map_or(0, |earlier| earlier.1);
            merged.push((pair, before.saturating_add(run.len() as u32)));
            if merged.len() > self.most {
                self.too_many = true;
                self.fresh = Vec::new();
                return;
            }
        }
        merged.extend(old);
        self.too_many |= merged.len() > self.most;
        self.pairs = merged;
        self.fresh.clear();
    }

    /// Both directions of every pair, by cluster. Weights are in units in which the multilevel method can add them up.
    pub(super) fn finish(self, clusters: u32) -> Contracted {
        let mut offsets = vec![0 as Idx; clusters as usize + 1];
        let unit = self.pairs.iter().map(|pair| 2 * u64::from(pair.1)).sum::<u64>() / SUM_MAX + 1;
        let ends = |pair: u64| [(pair >> 32) as usize, (pair & 0xffff_ffff) as usize];
        for &(pair, _) in &self.pairs {
            ends(pair).into_iter().for_each(|end| offsets[end + 1] += 1);
        }
        (0..clusters as usize).for_each(|row| offsets[row + 1] += offsets[row]);
        let mut next = offsets.clone();
        let mut neighbours = vec![0 as Idx; 2 * self.pairs.len()];
        let mut weights = vec![0 as Idx; 2 * self.pairs.len()];
        for &(pair, weight) in &self.pairs {
            let [one, other] = ends(pair);
            for (from, to) in [(one, other), (other, one)] {
                let place = next[from] as usize;
                neighbours[place] = to as Idx;
                weights[place] = (u64::from(weight) / unit).max(1) as Idx;
                next[from] += 1;
            }
        }
        (offsets, neighbours, weights)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use laconic_key::{Key, Purpose};

    use super::Contraction;

    #[test]
    fn edges_between_clusters_are_those_that_a_map_counts() {
        let key = Key::new(2, Purpose::Test);
        let mut contraction = Contraction::new(0);
        contraction.most = 70;
        let mut counts = BTreeMap::<(u32, u32), i32>::new();
        for edge in 0..1000 {
            let end = |which| key.with(edge).with(which).below(12) as u32;
            let (one, other) = (end(0), end(1));
            contraction.add(one, other);
            if one != other {
                *counts.entry((one, other)).or_default() += 1;
                *counts.entry((other, one)).or_default() += 1;
            }
        }
        assert!(contraction.fits());
        let (offsets, neighbours, weights) = contraction.finish(12);
        let mut found = BTreeMap::new();
        for row in 0..12 {
            for at in offsets[row] as usize..offsets[row + 1] as usize {
                assert!(found.insert((row as u32, neighbours[at] as u32), weights[at]).is_none());
            }
        }
        assert_eq!(found, counts);
    }

    #[test]
    fn weights_of_any_number_of_edges_add_up_in_32_bits() {
        let mut contraction = Contraction::new(0);
        contraction.pairs = vec![(1, u32::MAX), (2, u32::MAX / 2), (3, 7)];
        let (_, _, weights) = contraction.finish(4);
        assert!(weights.iter().map(|&weight| i64::from(weight)).sum::<i64>() < i64::from(i32::MAX));
        assert!(weights[0] > weights[1] && weights.iter().all(|&weight| weight > 0), "{weights:?}");
    }

    #[test]
    fn too_many_pairs_are_not_kept() {
        let mut contraction = Contraction::new(0);
        contraction.most = 70;
        (0..200).for_each(|cluster| contraction.add(cluster, cluster + 1));
        assert!(!contraction.fits());
    }
}
