//! Edges of which more is known than their ends, and what becomes of those that are listed several times.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::listed::rows;
use super::{BuildOptions, Removed, key, merge_rows, transpose};
use crate::edges::EdgeData;
use crate::graph::Graph;

/// The weight of an edge that is listed several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// The sum of all weights.
    #[default]
    Sum,
    /// Their mean.
    Mean,
    /// The largest.
    Max,
    /// The one that is listed first.
    First,
    /// None: an edge may not be listed several times.
    Error,
}

impl Duplicates {
    /// All rules, in the order of listings.
    pub const ALL: [Duplicates; 5] =
        [Duplicates::Sum, Duplicates::Mean, Duplicates::Max, Duplicates::First, Duplicates::Error];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Duplicates::Sum => "sum",
            Duplicates::Mean => "mean",
            Duplicates::Max => "max",
            Duplicates::First => "first",
            Duplicates::Error => "error",
        }
    }

    /// The rule of this name.
    pub fn from_name(name: &str) -> Option<Duplicates> {
        Duplicates::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// What is said of weights that become one.
    pub fn said(self) -> &'static str {
        match self {
            Duplicates::Sum => "weights are added",
            Duplicates::Mean => "the mean of their weights counts",
            Duplicates::Max => "the largest of their weights counts",
            Duplicates::First => "the weight that is listed first counts",
            Duplicates::Error => "they are refused",
        }
    }
}

/// The weights of one edge, as far as they have been seen.
struct Seen {
    sum: f64,
    count: u64,
}

impl Seen {
    fn of(weight: f32) -> Seen {
        Seen { sum: f64::from(weight), count: 1 }
    }

    /// One more weight; what all of them come to, where `before` is what they came to without it.
    fn add(&mut self, weight: f32, before: f32, rule: Duplicates) -> f32 {
        self.sum += f64::from(weight);
        self.count += 1;
        match rule {
            Duplicates::Sum => self.sum as f32,
            Duplicates::Mean => (self.sum / self.count as f64) as f32,
            Duplicates::Max if weight > before => weight,
            Duplicates::Max | Duplicates::First | Duplicates::Error => before,
        }
    }
}

/// The graph of weighted edges of one kind in both directions, and what was left out.
pub(super) fn both_directions(
    nodes: usize,
    (sources, targets): (Vec<u32>, Vec<u32>),
    data: EdgeData,
    options: BuildOptions,
) -> (Graph, Removed) {
    let (listed, self_loops) = rows((nodes, false), (&sources, &targets), &data, options.keep_self_loops);
    let (mut graph, duplicates) = merged(listed, options.duplicates);
    let removed = Removed { self_loops, duplicates, ..Removed::default() };
    let other = transpose(&graph);
    let is_same = graph.offsets == other.offsets && graph.sources == other.sources;
    if is_same && graph.data.weights == other.data.weights {
        if let (Some(held), Some(back)) = (&mut graph.data.held, &other.data.held) {
            held.iter_mut().zip(back).for_each(|(held, &back)| *held = back.max(*held));
        }
        let both_ways = graph.edges() > 0;
        return (graph, Removed { both_ways, ..removed });
    }
    let mut listed_twice = 0;
    for row in 0..nodes {
        merge_rows((&graph, &other), row, |here, back| {
            let is_pair = here.zip(back).is_some_and(|(edge, _)| (graph.sources[edge] as usize) < row);
            listed_twice += u64::from(is_pair);
        });
    }
    drop((graph, other));
    let (all, _) = rows((nodes, true), (&sources, &targets), &data, options.keep_self_loops);
    drop((sources, targets, data));
    (merged(all, options.duplicates).0, Removed { reciprocal: listed_twice, ..removed })
}

/// The graph of these rows with each edge once, and how many had been there already.
pub(super) fn merged(mut rows: Graph, rule: Duplicates) -> (Graph, u64) {
    let duplicates = merge_duplicates(&mut rows, rule);
    (rows, duplicates)
}

/// Merges edges of one relation that follow each other in ascending rows, in place; returns how many went. Edges of one
/// source come out by relation.
fn merge_duplicates(graph: &mut Graph, rule: Duplicates) -> u64 {
    let before = graph.edges();
    let mut end = 0;
    let mut seen = Seen::of(0.0);
    for row in 0..graph.nodes() {
        let edges = graph.in_edges(row);
        sort_by_relation(graph, edges.clone());
        // Boundaries to the right of `row` still hold; those to the left are already the new ones.
        let start = end;
        graph.offsets[row] = start as u64;
        for edge in edges {
            if end > start && key(graph, end - 1) == key(graph, edge) {
                if let Some(weights) = &mut graph.data.weights {
                    weights[end - 1] = seen.add(weights[edge], weights[end - 1], rule);
                }
                if let Some(held) = &mut graph.data.held {
                    held[end - 1] = held[end - 1].max(held[edge]);
                }
            } else {
                graph.sources[end] = graph.sources[edge];
                graph.data.shift(end, edge);
                seen = Seen::of(graph.data.weights.as_ref().map_or(1.0, |weights| weights[end]));
                end += 1;
            }
        }
    }
    *graph.offsets.last_mut().expect("a graph has nodes + 1 row boundaries") = end as u64;
    if end < before {
        graph.sources.truncate(end);
        graph.sources.shrink_to_fit();
        graph.data.truncate(end);
    }
    (before - end) as u64
}

/// Orders the edges of a row that start at the same node by their relations, where there are several.
fn sort_by_relation(graph: &mut Graph, row: Range<usize>) {
    let Some(relations) = &mut graph.data.relations else { return };
    for run in graph.sources[row.clone()].chunk_by(|a, b| a == b).scan(row.start, |start, run| {
        *start += run.len();
        Some(*start - run.len()..*start)
    }) {
        if relations.of[run.clone()].is_sorted() {
            continue;
        }
        let mut order: Vec<usize> = run.clone().collect();
        order.sort_by_key(|&edge| relations.of[edge]);
        let sorted: Vec<u16> = order.iter().map(|&edge| relations.of[edge]).collect();
        relations.of[run.clone()].copy_from_slice(&sorted);
        if let Some(weights) = &mut graph.data.weights {
            let sorted: Vec<f32> = order.iter().map(|&edge| weights[edge]).collect();
            weights[run.clone()].copy_from_slice(&sorted);
        }
        if let Some(held) = &mut graph.data.held {
            let sorted: Vec<u8> = order.iter().map(|&edge| held[edge]).collect();
            held[run].copy_from_slice(&sorted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::build_graph;

    fn weights(edges: &[(u32, u32, f32)], duplicates: Duplicates) -> (Vec<f32>, Removed) {
        let options = BuildOptions { symmetrise: true, keep_self_loops: true, duplicates };
        let (sources, targets) = edges.iter().map(|edge| (edge.0, edge.1)).unzip();
        let weights = Some(edges.iter().map(|edge| edge.2).collect::<Vec<f32>>());
        let (graph, removed) = build_graph(6, sources, targets, weights, options).unwrap();
        (graph.data.weights.unwrap(), removed)
    }

    #[test]
    fn the_same_edges_weigh_the_same_whichever_way_they_are_listed() {
        // 0-1 listed both ways, 2-3 twice one way, 4-5 once.
        let edges = [(0, 1, 3.0), (1, 0, 2.0), (2, 3, 3.0), (2, 3, 2.0), (4, 5, 5.0)];
        for (rule, each) in [
            (Duplicates::Sum, [5.0; 6]),
            (Duplicates::Mean, [2.5, 2.5, 2.5, 2.5, 5.0, 5.0]),
            (Duplicates::Max, [3.0, 3.0, 3.0, 3.0, 5.0, 5.0]),
            (Duplicates::First, [3.0, 3.0, 3.0, 3.0, 5.0, 5.0]),
        ] {
            let expected = Removed { duplicates: 1, reciprocal: 1, ..Removed::default() };
            assert_eq!(weights(&edges, rule), (each.to_vec(), expected), "{rule:?}");
        }
        // The mean is over all that are listed, not over the two directions' means.
        let three = [(0, 1, 1.0), (0, 1, 2.0), (1, 0, 6.0)];
        assert_eq!(weights(&three, Duplicates::Mean).0, [3.0; 2]);
        assert_eq!(weights(&[(1, 0, 6.0), (0, 1, 1.0)], Duplicates::First).0, [6.0; 2]);
    }

    #[test]
    fn edges_that_are_all_listed_both_ways_with_one_weight_keep_it() {
        let both = [(0, 1, 3.0), (1, 0, 3.0), (2, 3, 7.0), (3, 2, 7.0), (4, 4, 2.0)];
        for rule in [Duplicates::Sum, Duplicates::Mean, Duplicates::Max, Duplicates::First] {
            let (found, removed) = weights(&both, rule);
            assert_eq!((found, removed), (vec![3.0, 3.0, 7.0, 7.0, 2.0], Removed { both_ways: true, ..removed }));
        }
        // One weight that differs makes a list of directed edges of it.
        let (found, removed) = weights(&[(0, 1, 3.0), (1, 0, 3.0), (2, 3, 7.0), (3, 2, 1.0)], Duplicates::Sum);
        assert_eq!((found, removed.reciprocal, removed.both_ways), (vec![6.0, 6.0, 8.0, 8.0], 2, false));
        assert!(!weights(&[], Duplicates::Sum).1.both_ways);
    }

    #[test]
    fn a_million_equal_weights_of_one_edge_add_up_exactly() {
        let many = vec![(0, 1, 0.1f32); 1 << 20];
        let sum = f64::from(0.1f32) * f64::from(1 << 20);
        assert_eq!(weights(&many, Duplicates::Sum).0, [sum as f32; 2]);
    }
}
