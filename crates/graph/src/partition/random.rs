//! Random assignment: what RandomTMA trains on, and the worst case for the halo.

use laconic_key::{Key, Purpose};
use rayon::prelude::*;

use crate::error::Result;
use crate::partition::{PartitionInput, Partitioner, PartitionerKind, Reads, RowsInput};

pub(super) static KIND: PartitionerKind =
    PartitionerKind { name: "random", options: &["seed"], reads: |_| Reads::Nodes, build: |_| Ok(Box::new(Random)) };

/// Sends each node to a part by a hash of its id alone, so every owner can compute where any node lives. Part sizes are
/// binomial, not equal: drawing exactly equal sizes would need all nodes at once.
struct Random;

impl Partitioner for Random {
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
        Ok(draw(input.graph.nodes(), input.parts, input.seed))
    }

    fn assign_rows(&self, input: &RowsInput) -> Result<Vec<u32>> {
        Ok(draw(input.rows.nodes(), input.parts, input.seed))
    }
}

fn draw(nodes: usize, parts: u32, seed: u64) -> Vec<u32> {
    let key = Key::new(seed, Purpose::Partition);
    (0..nodes).into_par_iter().map(|node| key.with(node as u64).below(u64::from(parts)) as u32).collect()
}

#[cfg(test)]
mod tests {
    use crate::graph::Graph;
    use crate::partition::{PartitionInput, Partitioner};

    fn assign(graph: &Graph, parts: u32, seed: u64) -> Vec<u32> {
        super::Random.assign(&PartitionInput { graph, roles: None, parts, seed }).unwrap()
    }

    fn edgeless(nodes: usize) -> Graph {
        Graph::new(vec![0; nodes + 1], Vec::new())
    }

    #[test]
    fn part_sizes_are_binomial() {
        let (nodes, parts) = (70_000, 7);
        let mut sizes = [0; 7];
        assign(&edgeless(nodes), parts, 3).iter().for_each(|&part| sizes[part as usize] += 1);
        // Five standard deviations of a binomial(70000, 1/7).
        let bound = 5.0 * (nodes as f64 * 6.0 / 49.0).sqrt();
        assert!(sizes.iter().all(|&size| (f64::from(size) - 10_000.0).abs() < bound), "{sizes:?}");
    }

    #[test]
    fn a_nodes_part_does_not_depend_on_the_graph() {
        let ring = Graph::new((0..=100).collect(), (1..100).chain([0]).collect());
        let small = assign(&ring, 5, 9);
        assert_eq!(small, assign(&edgeless(1000), 5, 9)[..100]);
        assert_ne!(small, assign(&ring, 5, 10));
        assert_eq!(assign(&ring, 1, 9), [0; 100]);
    }
}
