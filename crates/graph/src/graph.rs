//! The graph itself: compressed sparse rows by destination.

use std::cmp::Ordering;

use rayon::prelude::*;

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

    /// Whether some edge leads from a node to itself. Looks no further than the first, on all threads of the pool.
    pub fn has_self_loops(&self) -> bool {
        let is_own = |node: usize| self.in_neighbours(node).binary_search(&(node as u32)).is_ok();
        (0..self.nodes()).into_par_iter().any(is_own)
    }

    /// Whether some edge has no other that leads back. Looks no further than the first, on all threads of the pool.
    pub fn has_one_way_edges(&self) -> bool {
        let leads_back = |node: usize, source: u32| {
            let back = self.in_neighbours(source as usize);
            back.binary_search(&(node as u32)).is_ok()
        };
        // How many come from nodes before this one, each of which has an edge back, and how many from nodes behind it.
        let of_node = |node: usize| {
            let (mut before, mut behind) = (0u64, 0u64);
            for of_source in self.in_neighbours(node).chunk_by(|a, b| a == b) {
                match (of_source[0] as usize).cmp(&node) {
                    Ordering::Less if !leads_back(node, of_source[0]) => return None,
                    Ordering::Less => before += 1,
                    Ordering::Equal => {}
                    Ordering::Greater => behind += 1,
                }
            }
            Some((before, behind))
        };
        let both = (0..self.nodes()).into_par_iter().map(of_node);
        // What leads back from a node before is an edge from one behind: where there are no others, those lead back.
        both.try_reduce(|| (0, 0), |a, b| Some((a.0 + b.0, a.1 + b.1))).is_none_or(|(before, behind)| before != behind)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use crate::build::{BuildOptions, build_graph};
    use crate::edges::{EdgeData, Relations};

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default()
        })]
        /// By looking each edge up in the list; of several relations an edge of any leads back.
        #[test]
        fn one_way_edges_are_found_wherever_they_are(
            pairs in prop::collection::vec((0u32..7, 0u32..7, 0u16..2), 0..20),
            alone in prop::collection::vec((0u32..7, 0u32..7, 0u16..2), 0..2),
            typed: bool,
        ) {
            let back = pairs.iter().map(|&(s, t, relation)| (t, s, 1 - relation));
            let edges: Vec<_> = pairs.iter().copied().chain(back).chain(alone).collect();
            let (sources, targets) = (edges.iter().map(|e| e.0).collect(), edges.iter().map(|e| e.1).collect());
            let relations = Relations { count: 2, of: edges.iter().map(|e| e.2).collect() };
            let data = EdgeData { relations: typed.then_some(relations), ..EdgeData::default() };
            let options = BuildOptions { keep_self_loops: true, ..BuildOptions::default() };
            let (graph, _) = build_graph(7, sources, targets, data, options).unwrap();
            let is_there = |s: u32, t: u32| edges.iter().any(|edge| (edge.0, edge.1) == (s, t));
            prop_assert_eq!(graph.has_one_way_edges(), edges.iter().any(|&(s, t, _)| !is_there(t, s)));
        }
    }
}
