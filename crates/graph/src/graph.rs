//! The graph itself: compressed sparse rows by destination.

use crate::edges::Edges;
use crate::error::{GraphError, Result};
use crate::rules::offsets_violation;

/// A directed graph as compressed sparse rows by destination: for each node, the sources of the edges that end at it.
///
/// Sources are ascending within a node. An undirected graph has both directions of each edge.
pub type Graph = Edges<u32>;

impl Graph {
    /// Checks what everything that takes a graph relies on: boundaries that ascend from 0 to the number of edges,
    /// sources that there are and that ascend within a node, and each column of what else is known as long as there are
    /// edges. Reads all edges once.
    ///
    /// # Errors
    ///
    /// Names the array and what was expected in it.
    pub fn check(&self) -> Result<()> {
        let error = |(array, what): (&str, String)| Err(GraphError::invalid(format!("{array}: {what}")));
        if self.offsets.is_empty() {
            return error(("offsets", "expected a boundary before the first node, found none".to_owned()));
        }
        let (nodes, edges) = (self.nodes(), self.edges());
        if nodes as u64 > u64::from(u32::MAX) {
            return error(("offsets", format!("expected at most as many nodes as 32-bit ids can name, found {nodes}")));
        }
        if let Some(violation) = offsets_violation("offsets", &self.offsets, nodes, edges) {
            return error(violation);
        }
        for node in 0..nodes {
            let sources = self.in_neighbours(node);
            if let Some(pair) = sources.windows(2).find(|pair| pair[0] > pair[1]) {
                let what = format!("expected ascending sources of node {node}, found {} after {}", pair[1], pair[0]);
                return error(("sources", what));
            }
            if let Some(last) = sources.last().filter(|&&last| last as usize >= nodes) {
                return error(("sources", format!("expected nodes below {nodes}, found {last}")));
            }
        }
        match self.data.violation(edges) {
            Some(violation) => error(violation),
            None => Ok(()),
        }
    }

    /// The number of nodes.
    ///
    /// # Panics
    ///
    /// If [`Edges::offsets`] is empty, which [`Graph::check`] refuses.
    pub fn nodes(&self) -> usize {
        self.rows()
    }

    /// Whether some edge has no other that leads back. Looks no further than the first.
    pub fn has_one_way_edges(&self) -> bool {
        let leads_back = |node: usize, &source: &u32| {
            let back = self.in_neighbours(source as usize);
            back.binary_search(&(node as u32)).is_ok()
        };
        (0..self.nodes()).any(|node| !self.in_neighbours(node).iter().all(|source| leads_back(node, source)))
    }
}
