//! What a partition costs: cut, halo, balance and memory, before anything is trained on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::Split;
use crate::error::{GraphError, Result};
use crate::graph::Graph;

/// The figures of one partition. Balances are largest over mean: 1 is perfect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Quality {
    /// One entry a part.
    pub parts: Vec<PartQuality>,
    /// Directed edges in the graph.
    pub edges: u64,
    /// Directed edges between parts.
    pub cut_edges: u64,
    /// `cut_edges` over `edges`.
    pub cut_share: f64,
    /// Halo rows of all parts: what one exchange sends, in rows.
    pub halo_rows: u64,
    /// Halo rows over all rows that the parts hold, own and halo.
    pub halo_share: f64,
    /// The largest part over the mean, by own nodes.
    pub node_balance: f64,
    /// The same by edges that end at own nodes.
    pub edge_balance: f64,
    /// The same by own training nodes; 1 without any.
    pub train_balance: f64,
    /// How often a node is held, on average: own and halo rows over nodes.
    pub replication: f64,
}

/// The figures of one part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartQuality {
    /// The number of own nodes.
    pub nodes: u64,
    /// Edges that end at own nodes.
    pub edges: u64,
    /// Own training nodes.
    pub train: u64,
    /// Nodes of other parts that own nodes have as in-neighbours.
    pub halo_rows: u64,
    /// Own and halo rows over own rows; 1 without own rows.
    pub replication: f64,
    /// Estimated memory in bytes: features of own and halo rows as `f32`, and both blocks of the graph.
    pub memory_bytes: u64,
}

/// Computes the figures of `assignment`. `roles` are the flags of [`Split`], `feature_columns` is for the memory
/// estimate. Reads each edge once.
///
/// # Errors
///
/// If there is not a part below `parts` for each node.
pub fn quality(
    graph: &Graph,
    assignment: &[u32],
    parts: u32,
    roles: Option<&[u8]>,
    feature_columns: usize,
) -> Result<Quality> {
    let nodes = graph.nodes();
    if assignment.len() != nodes || roles.is_some_and(|roles| roles.len() != nodes) {
        return Err(GraphError::invalid(format!("expected one part and one role for each of {nodes} nodes")));
    }
    let mut members = vec![Vec::new(); parts as usize];
    for (node, &part) in assignment.iter().enumerate() {
        let Some(members) = members.get_mut(part as usize) else {
            return Err(GraphError::invalid(format!(
                "node {node} goes to part {part}, but there are only {parts} parts"
            )));
        };
        members.push(node);
    }
    // The last part that was found to need each node: parts are looked at one after the other.
    let mut needed_by = vec![u32::MAX; nodes];
    let mut cut_edges = 0;
    let mut figures = Vec::with_capacity(parts as usize);
    for (part, members) in members.iter().enumerate() {
        let part = part as u32;
        let (mut edges, mut train, mut halo_rows) = (0, 0, 0);
        for &node in members {
            edges += graph.in_edges(node).len() as u64;
            train += u64::from(roles.is_some_and(|roles| roles[node] & Split::TRAIN != 0));
            for &source in graph.in_neighbours(node) {
                let source = source as usize;
                if assignment[source] != part {
                    cut_edges += 1;
                    halo_rows += u64::from(needed_by[source] != part);
                    needed_by[source] = part;
                }
            }
        }
        let held = (feature_columns, 4 + graph.data.bytes_per_edge());
        figures.push(PartQuality::new([members.len() as u64, edges, train, halo_rows], held));
    }
    Ok(Quality::of(figures, cut_edges))
}

impl PartQuality {
    /// Of so many nodes, edges, training nodes and halo rows, with so many columns of features and bytes an edge.
    pub(crate) fn new([nodes, edges, train, halo_rows]: [u64; 4], (columns, edge_bytes): (usize, u64)) -> PartQuality {
        let rows = nodes + halo_rows;
        PartQuality {
            nodes,
            edges,
            train,
            halo_rows,
            replication: ratio(rows, nodes, 1.0),
            memory_bytes: 4 * columns as u64 * rows + 16 * (nodes + 1) + edge_bytes * edges,
        }
    }
}

impl Quality {
    /// Of these parts, between which there are so many edges.
    pub(crate) fn of(parts: Vec<PartQuality>, cut_edges: u64) -> Quality {
        let sum = |of: fn(&PartQuality) -> u64| parts.iter().map(of).sum::<u64>();
        let (nodes, edges, halo_rows) = (sum(|part| part.nodes), sum(|part| part.edges), sum(|part| part.halo_rows));
        let rows = nodes + halo_rows;
        Quality {
            edges,
            cut_edges,
            cut_share: ratio(cut_edges, edges, 0.0),
            halo_rows,
            halo_share: ratio(halo_rows, rows, 0.0),
            node_balance: balance(&parts, |figure| figure.nodes),
            edge_balance: balance(&parts, |figure| figure.edges),
            train_balance: balance(&parts, |figure| figure.train),
            replication: ratio(rows, nodes, 1.0),
            parts,
        }
    }
}

fn ratio(part: u64, whole: u64, of_nothing: f64) -> f64 {
    if whole == 0 { of_nothing } else { part as f64 / whole as f64 }
}

fn balance(figures: &[PartQuality], of: impl Fn(&PartQuality) -> u64) -> f64 {
    let total: u64 = figures.iter().map(&of).sum();
    let largest = figures.iter().map(&of).max().unwrap_or(0);
    ratio(largest * figures.len() as u64, total, 1.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::quality;
    use crate::dataset::Split;
    use crate::graph::Graph;

    /// Arcs 1→0, 2→0, 3→0, 3→1, 3→2, 0→3; parts {0, 2}, {1}, {3}.
    fn small() -> (Graph, [u32; 4]) {
        let graph = Graph::new(vec![0, 3, 4, 5, 6], vec![1, 2, 3, 3, 3, 0]);
        (graph, [0, 1, 0, 2])
    }

    #[test]
    fn figures_are_those_of_brute_force() {
        let (graph, assignment) = small();
        let roles = [Split::TRAIN, Split::TEST, Split::TRAIN, Split::TRAIN];
        let figures = quality(&graph, &assignment, 3, Some(&roles), 10).unwrap();
        let mut halo = BTreeSet::new();
        let mut cut = 0;
        for node in 0..4 {
            for &source in graph.in_neighbours(node) {
                if assignment[node] != assignment[source as usize] {
                    halo.insert((assignment[node], source));
                    cut += 1;
                }
            }
        }
        assert_eq!((figures.cut_edges, figures.halo_rows), (cut, halo.len() as u64));
        assert_eq!((cut, halo.len()), (5, 4));
        let of = |part: usize| {
            let figure = figures.parts[part];
            (figure.nodes, figure.edges, figure.train, figure.halo_rows, figure.memory_bytes)
        };
        assert_eq!(of(0), (2, 4, 2, 2, 4 * 40 + 3 * 16 + 4 * 4));
        assert_eq!(of(1), (1, 1, 0, 1, 2 * 40 + 2 * 16 + 4));
        assert_eq!(of(2), (1, 1, 1, 1, 2 * 40 + 2 * 16 + 4));
        assert_eq!((figures.node_balance, figures.edge_balance, figures.train_balance), (1.5, 2.0, 2.0));
        assert_eq!((figures.replication, figures.halo_share), (2.0, 0.5));
    }

    #[test]
    fn figures_serialise_and_a_part_that_does_not_exist_is_refused() {
        let (graph, assignment) = small();
        let figures = quality(&graph, &assignment, 4, None, 0).unwrap();
        let json = serde_json::to_value(&figures).unwrap();
        assert_eq!(json["parts"][3]["replication"], 1.0);
        assert!(quality(&graph, &assignment, 2, None, 0).is_err());
    }
}
