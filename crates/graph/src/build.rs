//! From a list of edges to a [`Graph`].

use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::memory::afford;

/// How [`build_graph`] treats the edges it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BuildOptions {
    /// Adds the other direction of every edge.
    pub symmetrise: bool,
    /// Keeps edges from a node to itself; the usual models add their own.
    pub keep_self_loops: bool,
}

/// What [`build_graph`] left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Edges from a node to itself.
    pub self_loops: u64,
    /// Edges that had been there already, in the same direction.
    pub duplicates: u64,
}

impl Graph {
    /// A graph of `nodes` nodes and the directed edges `(source, target)`, each kept once; edges from a node to itself
    /// stay. An undirected graph names both directions of each edge. [`build_graph`] has weights, adds directions and
    /// takes the lists of sources and targets apart from each other.
    ///
    /// ```
    /// let star = laconic_graph::graph::Graph::from_edges(4, &[(3, 0), (1, 0), (2, 0), (1, 0)])?;
    /// assert_eq!(star.in_neighbours(0), [1, 2, 3]);
    /// assert!(laconic_graph::graph::Graph::from_edges(4, &[(4, 0)]).is_err());
    /// # Ok::<(), laconic_graph::error::GraphError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If an edge joins a node that there is not, or there are more nodes than 32-bit ids can name.
    pub fn from_edges(nodes: usize, edges: &[(u32, u32)]) -> Result<Graph> {
        let (sources, targets) = edges.iter().copied().unzip();
        let options = BuildOptions { keep_self_loops: true, ..BuildOptions::default() };
        Ok(build_graph(nodes, sources, targets, None, options)?.0)
    }
}

/// Sorts edges `sources[i] → targets[i]` into compressed sparse rows by destination, sources ascending, each edge once.
///
/// Duplicates are merged; their weights are summed. With `symmetrise` an edge given in one direction gets the same
/// weight in the other, and an edge given in both directions with different weights gets their mean.
///
/// Two counting sorts (by source, then by destination, which keeps the sources in order) instead of a comparison sort:
/// O(nodes + edges) time, and at most three arrays of one `u32` an edge are alive at once (four with `symmetrise`),
/// as many again of `f32` with weights.
///
/// # Errors
///
/// If an edge joins a node that there is not, the lists differ in length, or there are more nodes than 32-bit ids can
/// name.
pub fn build_graph(
    nodes: usize,
    sources: Vec<u32>,
    targets: Vec<u32>,
    weights: Option<Vec<f32>>,
    options: BuildOptions,
) -> Result<(Graph, Removed)> {
    let edges = sources.len();
    if nodes as u64 > u64::from(u32::MAX) {
        return Err(GraphError::invalid(format!("{nodes} nodes are more than 32-bit ids can name")));
    }
    if targets.len() != edges || weights.as_ref().is_some_and(|w| w.len() != edges) {
        return Err(GraphError::invalid(format!(
            "{edges} sources, {} targets and {} weights: expected as many of each",
            targets.len(),
            weights.as_ref().map_or(edges, Vec::len)
        )));
    }
    let ends = sources.iter().zip(&targets);
    if let Some((edge, (s, t))) = ends.enumerate().find(|(_, (s, t))| **s.max(t) as usize >= nodes) {
        return Err(GraphError::invalid(format!("edge {edge} joins nodes {s} and {t}, but nodes are 0..{nodes}")));
    }

    affordable([nodes, edges], options.symmetrise, weights.is_some())?;
    let mut removed = Removed::default();
    let mut offsets = vec![0u64; nodes + 1];
    for (&s, &t) in sources.iter().zip(&targets) {
        if s == t && !options.keep_self_loops {
            removed.self_loops += 1;
        } else {
            offsets[s as usize + 1] += 1;
        }
    }
    prefix_sums(&mut offsets);
    let kept = offsets[nodes] as usize;
    let mut by_source = Graph { offsets, sources: vec![0; kept], weights: weights.as_ref().map(|_| vec![0.0; kept]) };
    for (edge, (&s, &t)) in sources.iter().zip(&targets).enumerate() {
        if s != t || options.keep_self_loops {
            let place = &mut by_source.offsets[s as usize];
            by_source.sources[*place as usize] = t;
            if let (Some(into), Some(from)) = (&mut by_source.weights, &weights) {
                into[*place as usize] = from[edge];
            }
            *place += 1;
        }
    }
    rewind(&mut by_source.offsets);
    drop((sources, targets, weights));

    let mut graph = transpose(&by_source);
    drop(by_source);
    removed.duplicates = merge_duplicates(&mut graph);
    if options.symmetrise {
        let other = transpose(&graph);
        graph = union(&graph, &other);
    }
    Ok((graph, removed))
}

/// Refuses to build a graph for whose copies, two or with both directions three at a time, there is no memory.
fn affordable([nodes, edges]: [usize; 2], symmetrise: bool, weighted: bool) -> Result<()> {
    let copies = if symmetrise { 3 } else { 2 };
    let edge = if weighted { 8 } else { 4 };
    let bytes = (nodes as u64 * 8).saturating_add(edges as u64 * edge).saturating_mul(copies);
    afford(bytes).map_err(|what| GraphError::invalid(format!("a graph of {nodes} nodes and {edges} edges {what}")))
}

/// The graph with every edge turned round; rows come out ascending whatever the order within the rows that go in.
pub fn transpose(graph: &Graph) -> Graph {
    let nodes = graph.nodes();
    let mut offsets = vec![0u64; nodes + 1];
    for &s in &graph.sources {
        offsets[s as usize + 1] += 1;
    }
    prefix_sums(&mut offsets);
    let mut sources = vec![0u32; graph.edges()];
    let mut weights = graph.weights.as_ref().map(|w| vec![0.0f32; w.len()]);
    for row in 0..nodes {
        for edge in graph.in_edges(row) {
            let place = &mut offsets[graph.sources[edge] as usize];
            sources[*place as usize] = row as u32;
            if let (Some(into), Some(from)) = (&mut weights, &graph.weights) {
                into[*place as usize] = from[edge];
            }
            *place += 1;
        }
    }
    rewind(&mut offsets);
    Graph { offsets, sources, weights }
}

/// Counts, one place to the right, become row boundaries.
fn prefix_sums(offsets: &mut [u64]) {
    for row in 1..offsets.len() {
        offsets[row] += offsets[row - 1];
    }
}

/// Filling rows moved every boundary to the next one; moves them back.
fn rewind(offsets: &mut [u64]) {
    offsets.rotate_right(1);
    offsets[0] = 0;
}

/// Merges equal neighbours of ascending rows in place, adding their weights; returns how many went.
fn merge_duplicates(graph: &mut Graph) -> u64 {
    let before = graph.edges();
    let mut end = 0;
    for row in 0..graph.nodes() {
        let edges = graph.in_edges(row);
        // Boundaries to the right of `row` still hold; those to the left are already the new ones.
        let start = end;
        graph.offsets[row] = start as u64;
        for edge in edges {
            let source = graph.sources[edge];
            if end > start && graph.sources[end - 1] == source {
                if let Some(weights) = &mut graph.weights {
                    weights[end - 1] += weights[edge];
                }
            } else {
                graph.sources[end] = source;
                if let Some(weights) = &mut graph.weights {
                    weights[end] = weights[edge];
                }
                end += 1;
            }
        }
    }
    *graph.offsets.last_mut().expect("a graph has nodes + 1 row boundaries") = end as u64;
    if end < before {
        graph.sources.truncate(end);
        graph.sources.shrink_to_fit();
        if let Some(weights) = &mut graph.weights {
            weights.truncate(end);
            weights.shrink_to_fit();
        }
    }
    (before - end) as u64
}

/// All edges of two graphs with ascending rows; the mean weight where both have the edge.
fn union(a: &Graph, b: &Graph) -> Graph {
    let nodes = a.nodes();
    let mut offsets = vec![0u64; nodes + 1];
    for row in 0..nodes {
        let mut count = 0;
        merge_rows(a.in_neighbours(row), b.in_neighbours(row), |_, _, _| count += 1);
        offsets[row + 1] = offsets[row] + count;
    }
    let edges = offsets[nodes] as usize;
    let mut sources = Vec::with_capacity(edges);
    let mut weights = a.weights.as_ref().map(|_| Vec::with_capacity(edges));
    for row in 0..nodes {
        let (in_a, in_b) = (a.in_edges(row).start, b.in_edges(row).start);
        merge_rows(a.in_neighbours(row), b.in_neighbours(row), |source, i, j| {
            sources.push(source);
            if let (Some(weights), Some(a), Some(b)) = (&mut weights, &a.weights, &b.weights) {
                weights.push(match (i.map(|i| a[in_a + i]), j.map(|j| b[in_b + j])) {
                    (Some(one), Some(other)) => one + (other - one) / 2.0,
                    (one, other) => one.or(other).expect("the source is in one of the rows"),
                });
            }
        });
    }
    Graph { offsets, sources, weights }
}

/// Calls `each(source, place in a, place in b)` for every source of two ascending rows, in order.
fn merge_rows(a: &[u32], b: &[u32], mut each: impl FnMut(u32, Option<usize>, Option<usize>)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let source = match (a.get(i), b.get(j)) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => unreachable!("one of the rows has something left"),
        };
        let in_a = (a.get(i) == Some(&source)).then_some(i);
        let in_b = (b.get(j) == Some(&source)).then_some(j);
        i += usize::from(in_a.is_some());
        j += usize::from(in_b.is_some());
        each(source, in_a, in_b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use std::collections::BTreeMap;

    const SYMMETRISE: BuildOptions = BuildOptions { symmetrise: true, keep_self_loops: false };

    /// The plain version: (target, source) → (forward weight, backward weight).
    fn oracle(edges: &[(u32, u32, f32)], options: BuildOptions) -> Vec<(u32, u32, f32)> {
        let mut found: BTreeMap<(u32, u32), [Option<f32>; 2]> = BTreeMap::new();
        for &(s, t, w) in edges.iter().filter(|e| e.0 != e.1 || options.keep_self_loops) {
            *found.entry((t, s)).or_default()[0].get_or_insert(0.0) += w;
            if options.symmetrise {
                *found.entry((s, t)).or_default()[1].get_or_insert(0.0) += w;
            }
        }
        let weight = |w: [Option<f32>; 2]| match w {
            [Some(a), Some(b)] => (a + b) / 2.0,
            [a, b] => a.or(b).expect("one of them put it there"),
        };
        found.into_iter().map(|((t, s), w)| (t, s, weight(w))).collect()
    }

    fn list(graph: &Graph) -> Vec<(u32, u32, f32)> {
        let weight = |e: usize| graph.weights.as_ref().map_or(1.0, |w| w[e]);
        (0..graph.nodes())
            .flat_map(|v| graph.in_edges(v).map(move |e| (v as u32, graph.sources[e], weight(e))))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
        })]
        #[test]
        fn built_graphs_equal_the_sorted_merged_list(
            edges in prop::collection::vec((0u32..12, 0u32..12, 1u32..5), 0..80),
            symmetrise: bool,
            keep_self_loops: bool,
            weighted: bool,
        ) {
            // Small integers, so that sums and means are exact in any order.
            let weight = |w: u32| if weighted { w as f32 } else { 1.0 };
            let edges: Vec<_> = edges.into_iter().map(|(s, t, w)| (s, t, weight(w))).collect();
            let options = BuildOptions { symmetrise, keep_self_loops };
            let weights = weighted.then(|| edges.iter().map(|e| e.2).collect());
            let (sources, targets) = (edges.iter().map(|e| e.0).collect(), edges.iter().map(|e| e.1).collect());
            let (graph, removed) = build_graph(12, sources, targets, weights, options).unwrap();
            let mut expected = oracle(&edges, options);
            if !weighted {
                expected.iter_mut().for_each(|e| e.2 = 1.0);
            }
            prop_assert_eq!(list(&graph), expected);
            let loops = edges.iter().filter(|e| e.0 == e.1).count() as u64;
            prop_assert_eq!(removed.self_loops, if keep_self_loops { 0 } else { loops });
            let distinct = oracle(&edges, BuildOptions { symmetrise: false, keep_self_loops }).len() as u64;
            prop_assert_eq!(removed.duplicates, edges.len() as u64 - removed.self_loops - distinct);
        }
    }

    #[test]
    fn an_edge_given_both_ways_stays_one_edge_each_way() {
        let (graph, removed) = build_graph(3, vec![0, 1], vec![1, 0], None, SYMMETRISE).unwrap();
        assert_eq!(list(&graph), [(0, 1, 1.0), (1, 0, 1.0)]);
        assert_eq!(removed, Removed::default());
    }

    #[test]
    fn a_node_out_of_range_is_an_error_that_names_the_edge() {
        let error = build_graph(3, vec![0, 1], vec![1, 3], None, SYMMETRISE).unwrap_err().to_string();
        assert_eq!(error, "edge 1 joins nodes 1 and 3, but nodes are 0..3");
    }

    #[test]
    fn a_graph_without_nodes_is_a_graph() {
        let (graph, _) = build_graph(0, vec![], vec![], None, SYMMETRISE).unwrap();
        assert_eq!((graph.nodes(), graph.edges()), (0, 0));
    }
}
