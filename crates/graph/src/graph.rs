//! The graph itself: compressed sparse rows by destination.

/// A directed graph as compressed sparse rows by destination: for each node, the sources of the edges that end at it.
///
/// Sources are ascending within a node. An undirected graph has both directions of each edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// `offsets[v]..offsets[v + 1]` are the positions in [`Graph::sources`] of the edges that end at node `v`; length nodes + 1.
    pub offsets: Vec<u64>,
    /// The source of each edge.
    pub sources: Vec<u32>,
    /// The weight of each edge, in the order of [`Graph::sources`]; `None` where every edge weighs 1.
    pub weights: Option<Vec<f32>>,
}

impl Graph {
    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of (directed) edges.
    pub fn edges(&self) -> usize {
        self.sources.len()
    }

    /// The positions in [`Graph::sources`] of the edges that end at `node`.
    pub fn in_edges(&self, node: usize) -> std::ops::Range<usize> {
        self.offsets[node] as usize..self.offsets[node + 1] as usize
    }

    /// The sources of the edges that end at `node`.
    pub fn in_neighbours(&self, node: usize) -> &[u32] {
        &self.sources[self.in_edges(node)]
    }
}
