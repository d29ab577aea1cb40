//! Cluster batches (Chiang et al., 2019): small clusters of a part, some of them drawn together, with all edges among
//! them.

use laconic_key::{Key, Purpose};

use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::partition::{PartitionInput, PartitionOptions, Partitioner, PartitionerRegistry};

/// The rows of a part by cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusters {
    /// `offsets[c]..offsets[c + 1]` are the positions in `rows` of the rows of cluster `c`.
    offsets: Vec<usize>,
    /// Ascending within a cluster.
    rows: Vec<u32>,
}

impl Clusters {
    /// About `count` clusters of a part's own rows, no more than there are rows, from the edges between them alone
    /// ([`crate::plan::Topology::own`]).
    ///
    /// # Errors
    ///
    /// If the partitioner fails.
    pub fn of(partitioner: &dyn Partitioner, own: &Graph, count: usize, seed: u64) -> Result<Self> {
        let parts = count.clamp(1, own.rows().max(1));
        let input = PartitionInput { graph: own, roles: None, parts: parts as u32, seed };
        Self::new(&partitioner.assign(&input)?, parts)
    }

    /// The same by the partitioner that makes small cuts, as ClusterGCN does.
    ///
    /// # Errors
    ///
    /// If it fails.
    pub fn of_small_cuts(own: &Graph, count: usize, seed: u64) -> Result<Self> {
        let partitioner = PartitionerRegistry::of_small_cuts().build(&PartitionOptions::default())?;
        Self::of(partitioner.as_ref(), own, count, seed)
    }

    /// The clusters that a partitioner made: row `r` is in cluster `clusters[r]`, below `count`. Some may be empty.
    ///
    /// # Errors
    ///
    /// If a row is in a cluster that there is not.
    pub fn new(clusters: &[u32], count: usize) -> Result<Self> {
        let mut offsets = vec![0; count + 1];
        for (row, &cluster) in clusters.iter().enumerate() {
            let Some(size) = offsets.get_mut(cluster as usize + 1) else {
                let what = format!("row {row} is in cluster {cluster}, but there are only {count}");
                return Err(GraphError::invalid(what));
            };
            *size += 1;
        }
        for cluster in 0..count {
            offsets[cluster + 1] += offsets[cluster];
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; clusters.len()];
        for (row, &cluster) in clusters.iter().enumerate() {
            rows[next[cluster as usize]] = row as u32;
            next[cluster as usize] += 1;
        }
        Ok(Clusters { offsets, rows })
    }

    /// The number of clusters.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The rows of a cluster, ascending.
    pub fn rows(&self, cluster: usize) -> &[u32] {
        &self.rows[self.offsets[cluster]..self.offsets[cluster + 1]]
    }

    /// Which clusters make each of `batches` batches of this epoch on this part: all clusters in a random order,
    /// assigned so that no two batches differ by more than one. Some batches have none where there are more of them.
    ///
    /// # Panics
    ///
    /// If there are no batches.
    pub fn group(&self, seed: u64, epoch: u64, part: u32, batches: usize) -> Vec<Vec<u32>> {
        let mut order: Vec<u32> = (0..self.count() as u32).collect();
        Key::new(seed, Purpose::Batches).with(epoch).with(u64::from(part)).shuffle(&mut order);
        let mut groups = vec![Vec::new(); batches];
        order.into_iter().enumerate().for_each(|(place, cluster)| groups[place % batches].push(cluster));
        groups
    }

    /// Replaces what is in `into` by the rows of these clusters, ascending.
    pub fn rows_of(&self, clusters: &[u32], into: &mut Vec<u32>) {
        into.clear();
        clusters.iter().for_each(|&cluster| into.extend_from_slice(self.rows(cluster as usize)));
        into.sort_unstable();
    }
}
