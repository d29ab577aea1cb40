//! What streaming promises beyond the laws of all partitioners.

use super::{NOWHERE, RULES};
use crate::graph::Graph;
use crate::partition::{PartitionInput, PartitionOptions, PartitionerRegistry, RowsInput, quality};
use crate::source::{EachRows, RowSource, Rows};
use crate::synth::{RmatSpec, SbmSpec, rmat, sbm};

fn with(rule: &str, passes: u32) -> PartitionOptions {
    PartitionOptions { rule: rule.to_owned(), passes, ..PartitionOptions::default() }
}

fn assign(method: &str, graph: &Graph, parts: u32, options: &PartitionOptions) -> Vec<u32> {
    let input = PartitionInput { graph, roles: None, parts, seed: 3 };
    PartitionerRegistry::default().get(method).unwrap().build(options).unwrap().assign(&input).unwrap()
}

fn cut(graph: &Graph, of: &[u32], parts: u32) -> f64 {
    quality(graph, of, parts, None, 0).unwrap().cut_share
}

fn communities() -> Graph {
    let spec = SbmSpec { nodes: 8000, classes: 40, homophily: 0.8, features: 0, ..SbmSpec::default() };
    sbm(&spec).unwrap().graph
}

/// A graph that hands out so many rows at a time.
struct Pieces<'a>(&'a Graph, usize);

impl RowSource for Pieces<'_> {
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    fn edges(&self) -> u64 {
        self.0.edges() as u64
    }

    fn pass(&self, each: &mut EachRows) -> crate::error::Result<()> {
        for first in (0..self.0.nodes()).step_by(self.1) {
            let last = (first + self.1).min(self.0.nodes());
            let base = self.0.offsets[first];
            let offsets: Vec<u64> = self.0.offsets[first..=last].iter().map(|offset| offset - base).collect();
            let sources = &self.0.sources[base as usize..self.0.offsets[last] as usize];
            each(Rows { first, offsets: &offsets, sources })?;
        }
        Ok(())
    }
}

#[test]
fn no_part_is_larger_than_the_imbalance_allows() {
    let graph = communities();
    for rule in RULES {
        for (parts, imbalance) in [(7, 0.0), (7, 0.05), (40, 0.3)] {
            let of = assign("streaming", &graph, parts, &PartitionOptions { imbalance, ..with(rule, 6) });
            let mut sizes = vec![0u64; parts as usize];
            of.iter().for_each(|&part| sizes[part as usize] += 1);
            let mean = 8000.0 / f64::from(parts);
            let most = (mean * (1.0 + imbalance)).max(mean.ceil()) as u64;
            assert!(sizes.iter().all(|&size| size <= most), "{rule} {parts} {imbalance}: {sizes:?} above {most}");
        }
    }
}

#[test]
fn more_passes_cut_less_and_clusters_cut_nearly_as_little_as_multilevel() {
    let graph = communities();
    let of = |rule, passes| cut(&graph, &assign("streaming", &graph, 8, &with(rule, passes)), 8);
    let random = cut(&graph, &assign("random", &graph, 8, &PartitionOptions::default()), 8);
    let multilevel = cut(&graph, &assign("multilevel", &graph, 8, &PartitionOptions::default()), 8);
    for rule in ["fennel", "ldg"] {
        let (once, often) = (of(rule, 1), of(rule, 10));
        assert!(often < once && once < random, "{rule}: {often} {once} {random}");
    }
    assert!(of("clusters", 10) < 1.2 * multilevel, "{} {multilevel}", of("clusters", 10));
}

#[test]
fn parts_do_not_depend_on_how_rows_are_handed_over() {
    let graph = rmat(&RmatSpec { scale: 10, features: 0, classes: 0, ..RmatSpec::default() }).unwrap().graph;
    for rule in RULES {
        let whole = assign("streaming", &graph, 5, &with(rule, 5));
        let partitioner = super::KIND.build(&with(rule, 5)).unwrap();
        for size in [1, 37, 2000] {
            let rows = &Pieces(&graph, size);
            let input = RowsInput { rows, in_edges: rows, roles: None, parts: 5, seed: 3, tell: &|_| (), kept: &() };
            assert_eq!(partitioner.assign_rows(&input).unwrap(), whole, "{rule} {size}");
        }
        assert!(whole.iter().all(|&part| part != NOWHERE));
    }
}

#[test]
fn edges_of_one_direction_hold_nodes_together_from_both_ends() {
    // Two rings of arcs, ids interleaved.
    let nodes = 400u32;
    let arcs: Vec<(u32, u32)> = (0..nodes).map(|node| (node, (node + 2) % nodes)).collect();
    let graph = Graph::from_edges(nodes as usize, &arcs).unwrap();
    let both = Graph::from_edges(
        nodes as usize,
        &[&arcs[..], &arcs.iter().map(|&(a, b)| (b, a)).collect::<Vec<_>>()].concat(),
    );
    for rule in RULES {
        assert_eq!(
            assign("streaming", &graph, 2, &with(rule, 5)),
            assign("streaming", both.as_ref().unwrap(), 2, &with(rule, 5))
        );
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    for (options, expected) in [
        (with("metis", 5), "expected the rule clusters, fennel or ldg, found \"metis\""),
        (with("ldg", 0), "expected 1 to 1000 passes for the rule \"ldg\", found 0"),
        (with("clusters", 2), "expected 3 to 1000 passes for the rule \"clusters\", found 2"),
        (PartitionOptions { imbalance: f64::NAN, ..with("ldg", 1) }, "expected an imbalance from 0 to 1000, found NaN"),
    ] {
        assert_eq!(super::KIND.build(&options).err().unwrap().to_string(), expected);
    }
}

/// The largest part over the mean: of nodes, and of the edges that end at them, counted by hand.
fn balances(graph: &Graph, of: &[u32], parts: u32) -> [f64; 2] {
    let mut sums = vec![[0u64; 2]; parts as usize];
    for (node, &part) in of.iter().enumerate() {
        sums[part as usize][0] += 1;
        sums[part as usize][1] += graph.in_neighbours(node).len() as u64;
    }
    let all = [graph.nodes() as u64, graph.edges() as u64];
    [0, 1].map(|what| sums.iter().map(|sum| sum[what]).max().unwrap() as f64 * f64::from(parts) / all[what] as f64)
}

#[test]
fn edges_are_balanced_where_that_is_asked_for_and_nodes_are_still() {
    let hubs = rmat(&RmatSpec { scale: 13, features: 0, classes: 0, ..RmatSpec::default() }).unwrap().graph;
    // Arcs of one direction: the nodes that many edges end at are others than those that many start at.
    let nodes = 3000u32;
    let arcs: Vec<(u32, u32)> = (0..nodes)
        .flat_map(|node| (0..if node < 600 { 40 } else { 2 }).map(move |step| ((node * 7 + step * 311) % nodes, node)))
        .chain((0..600).flat_map(|node| (0..40).map(move |step| (nodes - 1 - node, (node * 5 + step * 71) % 600))))
        .filter(|(from, to)| from != to)
        .collect();
    let one_way = Graph::from_edges(nodes as usize, &arcs).unwrap();
    for (graph, parts) in [(&hubs, 8), (&one_way, 6)] {
        let largest = (0..graph.nodes()).map(|node| graph.in_neighbours(node).len()).max().unwrap();
        let hub = largest as f64 * f64::from(parts) / graph.edges() as f64;
        let random = cut(graph, &assign("random", graph, parts, &PartitionOptions::default()), parts);
        for rule in RULES {
            let free = with(rule, 6);
            let bound = PartitionOptions { balance_edges: true, ..free.clone() };
            let [_, before] = balances(graph, &assign("streaming", graph, parts, &free), parts);
            let of = assign("streaming", graph, parts, &bound);
            let [nodes, edges] = balances(graph, &of, parts);
            assert!(before > 1.08, "{rule}: {before} is balanced by itself");
            assert!(nodes <= 1.051 && edges <= 1.06 + hub, "{rule}: {nodes} {edges} {hub}");
            assert!(cut(graph, &of, parts) < random, "{rule}");
        }
        let bound = PartitionOptions { balance_edges: true, ..PartitionOptions::default() };
        let [_, edges] = balances(graph, &assign("multilevel", graph, parts, &bound), parts);
        assert!(edges < 1.2, "multilevel: {edges}");
    }
}

#[test]
fn nodes_are_balanced_where_there_are_no_edges_to_balance() {
    let graph = Graph::new(vec![0; 51], Vec::new());
    for rule in RULES {
        let of = assign("streaming", &graph, 5, &PartitionOptions { balance_edges: true, ..with(rule, 3) });
        let sizes = (0..5).map(|part| of.iter().filter(|&&of| of == part).count());
        assert!(sizes.max() == Some(10), "{rule}: {of:?}");
    }
    let of = assign("multilevel", &graph, 5, &PartitionOptions { balance_edges: true, ..PartitionOptions::default() });
    assert_eq!(of.len(), 50);
}
