//! From a list of edges to a [`Graph`].

mod listed;
mod merge;
mod plain;

pub use merge::Duplicates;

use crate::edges::EdgeData;
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::memory::afford;
use listed::Listed;
use std::cmp::Ordering;

/// How [`build_graph`] treats the edges it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BuildOptions {
    /// Adds the other direction of every edge.
    pub symmetrise: bool,
    /// Keeps edges from a node to itself; the usual models add their own.
    pub keep_self_loops: bool,
    /// The weight of an edge that is listed several times, in either direction where both are made.
    pub duplicates: Duplicates,
}

/// What [`build_graph`] left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Edges from a node to itself.
    pub self_loops: u64,
    /// Edges that had been there already, in the same direction.
    pub duplicates: u64,
    /// Of edges that got their other direction: pairs of nodes that were listed in both, and whose weights became one.
    pub reciprocal: u64,
    /// Whether other directions of weighted edges were asked for and each was there already, with the same weight: then
    /// the weights are as they were.
    pub both_ways: bool,
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
/// Duplicates are merged; their weights become one as [`BuildOptions::duplicates`] says, and an edge is held out if one
/// of them is. With `symmetrise` the same rule holds for all edges that join two nodes, whichever way they are listed,
/// and both directions get that weight; but where every edge is listed both ways with one weight, weights stay.
///
/// Edges of different relations are never duplicates of each other. With `symmetrise` the other direction of an edge
/// of relation r is one of relation r + R, where R relations were given, since it means something else.
///
/// Edges are sorted bucket by bucket, on all threads of the rayon pool that this is called in. Where nothing but their
/// ends is known of them four arrays of one `u32` an edge are alive at once; else six, or ten for both directions of
/// weighted edges, beside what is known.
///
/// # Errors
///
/// If an edge joins a node that there is not, the lists differ in length, or there are more nodes than 32-bit ids can
/// name.
pub fn build_graph(
    nodes: usize,
    sources: Vec<u32>,
    targets: Vec<u32>,
    data: impl Into<EdgeData>,
    options: BuildOptions,
) -> Result<(Graph, Removed)> {
    let (edges, data) = (sources.len(), data.into());
    if nodes as u64 > u64::from(u32::MAX) {
        return Err(GraphError::invalid(format!("{nodes} nodes are more than 32-bit ids can name")));
    }
    let weights = data.weights.as_ref().map_or(edges, Vec::len);
    if targets.len() != edges || weights != edges {
        let ends = format!("{edges} sources, {} targets", targets.len());
        return Err(GraphError::invalid(format!("{ends} and {weights} weights: expected as many of each")));
    }
    if let Some((array, what)) = data.violation(edges) {
        return Err(GraphError::invalid(format!("{array}: {what}")));
    }
    let ends = sources.iter().zip(&targets);
    if let Some((edge, (s, t))) = ends.enumerate().find(|(_, (s, t))| **s.max(t) as usize >= nodes) {
        return Err(GraphError::invalid(format!("edge {edge} joins nodes {s} and {t}, but nodes are 0..{nodes}")));
    }

    affordable([nodes, edges], options.symmetrise, &data)?;
    let (graph, removed) = sorted(nodes, (sources, targets), data, options)?;
    let again = removed.duplicates + removed.reciprocal;
    if options.duplicates == Duplicates::Error && again > 0 {
        let what = "edges are listed several times, which data.duplicates = \"error\" refuses";
        return Err(GraphError::invalid(format!("{again} {what}")));
    }
    Ok((graph, removed))
}

/// The same of edges that are as they should be.
fn sorted(
    nodes: usize,
    (sources, targets): (Vec<u32>, Vec<u32>),
    data: EdgeData,
    options: BuildOptions,
) -> Result<(Graph, Removed)> {
    if data == EdgeData::default() {
        let loops = |graph: &Graph| {
            let is_loop = |&v: &usize| graph.in_neighbours(v).binary_search(&(v as u32)).is_ok();
            if options.keep_self_loops { (0..graph.nodes()).filter(is_loop).count() } else { 0 }
        };
        let (graph, removed) = plain::sorted(nodes, sources, targets, options.keep_self_loops);
        if !options.symmetrise {
            return Ok((graph, removed));
        }
        // Of two directions of which both are listed, one would have been made.
        let (listed, loops) = (2 * graph.edges(), loops(&graph));
        let graph = plain::both_directions(&graph);
        let reciprocal = ((listed - loops - graph.edges()) / 2) as u64;
        return Ok((graph, Removed { reciprocal, ..removed }));
    }
    if options.symmetrise && data.weights.is_some() && data.relations.is_none() {
        return Ok(merge::both_directions(nodes, (sources, targets), data, options));
    }
    let ends = (&sources[..], &targets[..]);
    let (rows, self_loops) = match Listed::of((nodes, false), ends, &data, options.keep_self_loops) {
        Some((listed, self_loops)) => {
            // Their memory is for the rows.
            drop((sources, targets));
            (listed.graph(&data), self_loops)
        }
        None => listed::rows((nodes, false), ends, &data, options.keep_self_loops),
    };
    drop(data);
    let (mut graph, duplicates) = merge::merged(rows, options.duplicates);
    if options.symmetrise {
        let mut other = transpose(&graph);
        if let (Some(here), Some(back)) = (&mut graph.data.relations, &mut other.data.relations) {
            back.reverse(here)?;
        }
        graph = union(&graph, &other);
    }
    Ok((graph, Removed { self_loops, duplicates, ..Removed::default() }))
}

/// Refuses to build a graph for whose copies, two or with both directions three at a time, there is no memory, nor for
/// putting edges in order of which more is known than their ends: 16 bytes an edge in each direction.
fn affordable([nodes, edges]: [usize; 2], symmetrise: bool, data: &EdgeData) -> Result<()> {
    let copies = if symmetrise { 3 } else { 2 };
    let in_order = if symmetrise { 32u64.div_ceil(copies) } else { 16 / copies };
    let known = data.bytes_per_edge();
    let edge = if known > 0 { (4 + known).max(in_order) } else { 4 };
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
    let mut sources = laconic_array::zeros::<u32>(graph.edges());
    let mut data = graph.data.blank(graph.edges());
    for row in 0..nodes {
        for edge in graph.in_edges(row) {
            let place = &mut offsets[graph.sources[edge] as usize];
            sources[*place as usize] = row as u32;
            data.set(*place as usize, &graph.data, edge);
            *place += 1;
        }
    }
    rewind(&mut offsets);
    Graph { offsets, sources, data }
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

/// What tells the edges of a row apart: source and relation.
fn key(graph: &Graph, edge: usize) -> (u32, u16) {
    (graph.sources[edge], graph.data.relation(edge))
}

/// The edges of a graph in both directions, and nothing else of them; of several relations as many as there are.
pub(crate) fn both_directions(graph: &Graph) -> Graph {
    if graph.data.relations.is_none() {
        return plain::both_directions(graph);
    }
    let plain = Graph::new(graph.offsets.clone(), graph.sources.clone());
    union(&plain, &transpose(&plain))
}

/// All edges of two graphs with ascending rows and no weights that both have an edge with.
fn union(a: &Graph, b: &Graph) -> Graph {
    let nodes = a.nodes();
    let mut offsets = vec![0u64; nodes + 1];
    for row in 0..nodes {
        let mut count = 0;
        merge_rows((a, b), row, |_, _| count += 1);
        offsets[row + 1] = offsets[row] + count;
    }
    let edges = offsets[nodes] as usize;
    let mut sources = laconic_array::with_capacity(edges);
    let mut data = a.data.like(edges);
    for row in 0..nodes {
        merge_rows((a, b), row, |i, j| {
            let (from, edge) = i.map_or_else(|| (b, j.expect("one of the rows has the edge")), |i| (a, i));
            sources.push(from.sources[edge]);
            data.extend(&from.data, edge..edge + 1);
            let both = (i.zip(j), &mut data.held, &b.data.held);
            if let (Some((_, j)), Some(held), Some(other)) = both {
                let one = held.last_mut().expect("a role was pushed");
                *one = other[j].max(*one);
            }
        });
    }
    Graph { offsets, sources, data }
}

/// Calls `each(edge of a, edge of b)` for every edge into `row` of two graphs with ascending rows, in order.
fn merge_rows((a, b): (&Graph, &Graph), row: usize, mut each: impl FnMut(Option<usize>, Option<usize>)) {
    let (mut in_a, mut in_b) = (a.in_edges(row).peekable(), b.in_edges(row).peekable());
    loop {
        let order = match (in_a.peek(), in_b.peek()) {
            (Some(&i), Some(&j)) => key(a, i).cmp(&key(b, j)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let i = if order.is_le() { in_a.next() } else { None };
        let j = if order.is_ge() { in_b.next() } else { None };
        each(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::Relations;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use std::collections::BTreeMap;

    const SYMMETRISE: BuildOptions =
        BuildOptions { symmetrise: true, keep_self_loops: false, duplicates: Duplicates::Sum };

    /// The plain version: (target, source) → the weights that are listed, in their order.
    fn oracle(edges: &[(u32, u32, f32)], options: BuildOptions) -> Vec<(u32, u32, f32)> {
        let listed = |both: bool| {
            let mut found: BTreeMap<(u32, u32), Vec<f32>> = BTreeMap::new();
            for &(s, t, w) in edges.iter().filter(|e| e.0 != e.1 || options.keep_self_loops) {
                found.entry((t, s)).or_default().push(w);
                if both && s != t {
                    found.entry((s, t)).or_default().push(w);
                }
            }
            let weight = |w: Vec<f32>| match options.duplicates {
                Duplicates::Sum => w.iter().sum(),
                Duplicates::Mean => (w.iter().map(|&w| f64::from(w)).sum::<f64>() / w.len() as f64) as f32,
                Duplicates::Max => w.into_iter().fold(f32::NEG_INFINITY, f32::max),
                Duplicates::First | Duplicates::Error => w[0],
            };
            found.into_iter().map(|(ends, w)| (ends, weight(w))).collect::<BTreeMap<_, _>>()
        };
        let one_way = listed(false);
        let is_both_ways = one_way.iter().all(|((t, s), w)| one_way.get(&(*s, *t)) == Some(w));
        let found = if options.symmetrise && !is_both_ways { listed(true) } else { one_way };
        found.into_iter().map(|((t, s), w)| (t, s, w)).collect()
    }

    fn list(graph: &Graph) -> Vec<(u32, u32, f32)> {
        let weight = |e: usize| graph.data.weights.as_ref().map_or(1.0, |w| w[e]);
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
            rule in prop::sample::select(&Duplicates::ALL[..4]),
        ) {
            // Small integers, so that sums are exact in any order.
            let weight = |w: u32| if weighted { w as f32 } else { 1.0 };
            let edges: Vec<_> = edges.into_iter().map(|(s, t, w)| (s, t, weight(w))).collect();
            let options = BuildOptions { symmetrise, keep_self_loops, duplicates: rule };
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
            let distinct = oracle(&edges, BuildOptions { symmetrise: false, ..options }).len() as u64;
            prop_assert_eq!(removed.duplicates, edges.len() as u64 - removed.self_loops - distinct);
        }
    }

    /// The edges of one relation, as a graph without relations.
    fn of_relation(graph: &Graph, relation: u16) -> Graph {
        let (mut offsets, mut sources, mut weights) = (vec![0], Vec::new(), Vec::new());
        for node in 0..graph.nodes() {
            for edge in graph.in_edges(node).filter(|&edge| graph.data.relation(edge) == relation) {
                sources.push(graph.sources[edge]);
                weights.push(graph.data.weights.as_ref().unwrap()[edge]);
            }
            offsets.push(sources.len() as u64);
        }
        Graph { offsets, sources, data: Some(weights).into() }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default()
        })]
        #[test]
        fn relations_are_graphs_of_their_own_and_their_other_directions_are_too(
            edges in prop::collection::vec((0u32..6, 0u32..6, 1u32..5, 0u16..3), 0..80),
            symmetrise: bool,
        ) {
            let built = |kept: &dyn Fn(u16) -> bool, typed: bool, options| {
                let kept: Vec<_> = edges.iter().filter(|edge| kept(edge.3)).collect();
                let weights = Some(kept.iter().map(|edge| edge.2 as f32).collect());
                let relations = Relations { count: 3, of: kept.iter().map(|edge| edge.3).collect() };
                let (sources, targets) = (kept.iter().map(|e| e.0).collect(), kept.iter().map(|e| e.1).collect());
                let data = EdgeData { weights, relations: typed.then_some(relations), held: None };
                build_graph(6, sources, targets, data, options)
            };
            let options = BuildOptions { symmetrise, keep_self_loops: true, ..BuildOptions::default() };
            let (graph, removed) = built(&|_| true, true, options).unwrap();
            graph.check().unwrap();
            let mut duplicates = 0;
            for relation in 0..3 {
                let alone = BuildOptions { symmetrise: false, ..options };
                let (forward, removed) = built(&|r| r == relation, false, alone).unwrap();
                duplicates += removed.duplicates;
                if symmetrise {
                    prop_assert_eq!(of_relation(&graph, relation + 3), transpose(&forward));
                }
                prop_assert_eq!(of_relation(&graph, relation), forward);
            }
            prop_assert_eq!(removed.duplicates, duplicates);
            prop_assert_eq!(graph.data.relations.unwrap().count, if symmetrise { 6 } else { 3 });
        }
    }

    #[test]
    fn an_edge_given_both_ways_stays_one_edge_each_way() {
        let (graph, removed) = build_graph(3, vec![0, 1], vec![1, 0], None, SYMMETRISE).unwrap();
        assert_eq!(list(&graph), [(0, 1, 1.0), (1, 0, 1.0)]);
        assert_eq!(removed, Removed { reciprocal: 1, ..Removed::default() });
        let loops = BuildOptions { keep_self_loops: true, ..SYMMETRISE };
        let removed = build_graph(3, vec![0, 1, 1, 1], vec![1, 1, 0, 2], None, loops).unwrap().1;
        assert_eq!(removed, Removed { reciprocal: 1, ..Removed::default() });
        let refused = BuildOptions { duplicates: Duplicates::Error, ..SYMMETRISE };
        let error = build_graph(3, vec![0, 1], vec![1, 0], None, refused).unwrap_err().to_string();
        assert!(error.contains("1 edges are listed several times"), "{error}");
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
