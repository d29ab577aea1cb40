//! What is balanced: nodes, and the edges that end at them where that is asked for.

use crate::error::Result;
use crate::partition::RowsInput;

/// How much a part may have, and what each node counts for.
pub(super) struct Balance {
    /// As many nodes as a part may have.
    pub(super) nodes_most: u64,
    /// As many edges; no bound where these are not balanced.
    pub(super) edges_most: u64,
    /// The edges that end at each node; empty where they are not balanced.
    edges: Vec<u32>,
    /// How many nodes one edge counts for, so that all edges count for as much as all nodes.
    per_edge: f64,
}

/// Bytes for so many nodes where edges are balanced: the edges of each, and those of its cluster.
pub(super) fn memory(nodes: u64) -> u64 {
    12 * nodes
}

impl Balance {
    /// Parts no more than `imbalance` above the mean. Goes through the edges once where they are balanced.
    pub(super) fn of(input: &RowsInput, imbalance: f64, by_edges: bool) -> Result<Balance> {
        let nodes = input.rows.nodes();
        let most = |all: u64| {
            let mean = all as f64 / f64::from(input.parts);
            ((mean * (1.0 + imbalance)) as u64).max(all.div_ceil(u64::from(input.parts)))
        };
        let nodes_most = most(nodes as u64);
        if !by_edges {
            return Ok(Balance { nodes_most, edges_most: u64::MAX, edges: Vec::new(), per_edge: 0.0 });
        }
        (input.tell)("counting the edges of each node");
        let mut edges = vec![0; nodes];
        input.in_edges.pass(&mut |rows| {
            rows.iter().for_each(|(node, sources)| edges[node] = u32::try_from(sources.len()).unwrap_or(u32::MAX));
            Ok(())
        })?;
        let all: u64 = edges.iter().map(|&edges| u64::from(edges)).sum();
        if all == 0 {
            return Ok(Balance { nodes_most, edges_most: u64::MAX, edges: Vec::new(), per_edge: 0.0 });
        }
        Ok(Balance { nodes_most, edges_most: most(all), edges, per_edge: nodes as f64 / all as f64 })
    }

    /// Whether edges are balanced.
    pub(super) fn by_edges(&self) -> bool {
        !self.edges.is_empty()
    }

    /// The edges that end at a node; 0 where they are not balanced.
    pub(super) fn edges(&self, node: usize) -> u64 {
        self.edges.get(node).map_or(0, |&edges| u64::from(edges))
    }

    /// How many nodes its edges make a node count for besides itself.
    pub(super) fn demand(&self, node: usize) -> f64 {
        self.edges(node) as f64 * self.per_edge
    }

    /// What so many nodes with so many edges come to, each in nodes.
    pub(super) fn sizes(&self, [nodes, edges]: [u64; 2]) -> [f64; 2] {
        [nodes as f64, edges as f64 * self.per_edge]
    }
}
