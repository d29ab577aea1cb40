//! What streaming promises beyond the laws of all partitioners.

use super::NOWHERE;
use crate::graph::Graph;
use crate::partition::{PartitionInput, PartitionOptions, PartitionerRegistry, RowsInput, quality};
use crate::source::{EachRows, RowSource, Rows};
use crate::synth::{RmatSpec, SbmSpec, rmat, sbm};

const RULES: [&str; 3] = ["clusters", "fennel", "ldg"];

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
            let input = RowsInput { rows, roles: None, parts: 5, seed: 3, tell: &|_| () };
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
