//! What every partitioner promises, whatever it makes small.

use std::path::PathBuf;

use crate::build::{BuildOptions, build_graph};
use crate::dataset::Split;
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::partition::{Objective, OptionValue, PartitionInput, PartitionOptions, PartitionerKind};

/// A graph with what else a partitioner is given.
struct Case {
    what: &'static str,
    graph: Graph,
    parts: u32,
}

const SEED: u64 = 11;

/// Checks the laws of partitioners on small graphs, each in less than a second. `options` gives the options for a graph
/// of so many nodes and so many parts, which a partitioner that is told the assignment needs to know.
///
/// - Every node gets a part below [`PartitionInput::parts`], in a graph with clusters, in one without edges, with
///   training nodes and without a split.
/// - The same input and options give the same parts, also from a partitioner that is built anew.
/// - With one part, all nodes are in it; no part is empty where there are as many nodes.
/// - No parts at all are an error. More parts than nodes are an error, or some of them are empty.
/// - An empty graph is an error, or its assignment is empty.
/// - Options that the kind does not list in [`PartitionerKind::options`] change nothing, and neither does the seed
///   where `seed` is not listed.
///
/// ```
/// use laconic_graph::laws::partitioners::check;
/// use laconic_graph::partition::{PartitionOptions, PartitionerRegistry};
/// check(PartitionerRegistry::default().get("random")?, &|_, _| PartitionOptions::default())?;
/// # Ok::<(), laconic_graph::error::GraphError>(())
/// ```
///
/// # Errors
///
/// [`GraphError::Invalid`] that names the kind, the graph and the law that it breaks there.
pub fn check(kind: &PartitionerKind, options: &dyn Fn(usize, u32) -> PartitionOptions) -> Result<()> {
    let clustered = clusters(6, 40)?;
    let nodes = clustered.nodes();
    let roles: Vec<u8> = (0..nodes).map(|node| [Split::TRAIN, Split::VAL, Split::TEST][node % 3]).collect();
    let edgeless = |nodes: usize| Graph::new(vec![0; nodes + 1], Vec::new());
    let cases = [
        Case { what: "a graph with clusters", graph: clustered.clone(), parts: 5 },
        Case { what: "a graph in one part", graph: clustered.clone(), parts: 1 },
        Case { what: "a graph without edges", graph: edgeless(50), parts: 3 },
        Case { what: "a single node", graph: edgeless(1), parts: 1 },
        Case { what: "as many parts as nodes", graph: edgeless(40), parts: 40 },
        Case { what: "hardly more nodes than parts", graph: clusters(1, 12)?, parts: 9 },
    ];
    for Case { what, graph, parts } in &cases {
        let wishes = options(graph.nodes(), *parts);
        for roles in [None, Some(&roles[..graph.nodes()])] {
            let input = PartitionInput { graph, roles, parts: *parts, seed: SEED };
            let fails = |law: String| Err(broken(kind, what, &law));
            let partitioner = kind.build(&wishes)?;
            let assignment = partitioner.assign(&input)?;
            if let Some(law) = misfit(&assignment, graph.nodes(), *parts) {
                return fails(law);
            }
            if let Some(empty) = (0..*parts).find(|part| !assignment.contains(part)) {
                return fails(format!("expected a node in every part, found none in part {empty}"));
            }
            if assignment != partitioner.assign(&input)? || assignment != assign(kind, &wishes, &input)? {
                return fails("expected the same parts from the same input".to_owned());
            }
            for (option, other, seed) in not_read(kind, &wishes) {
                if assignment != assign(kind, &other, &PartitionInput { seed, ..input })? {
                    return fails(format!("expected the same parts whatever {option} is, since it is not read"));
                }
            }
        }
    }
    check_edges(kind, options)
}

/// The cases that may be refused.
fn check_edges(kind: &PartitionerKind, options: &dyn Fn(usize, u32) -> PartitionOptions) -> Result<()> {
    let graph = clusters(1, 4)?;
    for (what, nodes, parts) in [("more parts than nodes", 4, 9), ("an empty graph", 0, 1)] {
        let graph = if nodes == 0 { Graph::from_edges(0, &[])? } else { graph.clone() };
        let input = PartitionInput { graph: &graph, roles: None, parts, seed: SEED };
        if let Ok(assignment) = assign(kind, &options(nodes, parts), &input)
            && let Some(law) = misfit(&assignment, nodes, parts)
        {
            return Err(broken(kind, what, &law));
        }
    }
    let input = PartitionInput { graph: &graph, roles: None, parts: 0, seed: SEED };
    match assign(kind, &options(4, 1), &input) {
        Ok(_) => Err(broken(kind, "no parts at all", "expected an error")),
        Err(_) => Ok(()),
    }
}

fn assign(kind: &PartitionerKind, options: &PartitionOptions, input: &PartitionInput) -> Result<Vec<u32>> {
    kind.build(options)?.assign(input)
}

/// Why this is no assignment of so many nodes to so many parts.
fn misfit(assignment: &[u32], nodes: usize, parts: u32) -> Option<String> {
    if assignment.len() != nodes {
        return Some(format!("expected parts for {nodes} nodes, found {}", assignment.len()));
    }
    let node = assignment.iter().position(|&part| part >= parts)?;
    Some(format!("expected parts below {parts}, found {} at node {node}", assignment[node]))
}

/// For each option that the kind does not read: its name, and options and a seed that differ in it alone.
fn not_read(kind: &PartitionerKind, wishes: &PartitionOptions) -> Vec<(&'static str, PartitionOptions, u64)> {
    let mut own = wishes.own.clone();
    own.insert("nobody reads this".to_owned(), OptionValue::Flag(true));
    let objective = if wishes.objective == Objective::Cut { Objective::Volume } else { Objective::Cut };
    let all = [
        ("objective", PartitionOptions { objective, ..wishes.clone() }, SEED),
        ("balance_train", PartitionOptions { balance_train: !wishes.balance_train, ..wishes.clone() }, SEED),
        ("balance_edges", PartitionOptions { balance_edges: !wishes.balance_edges, ..wishes.clone() }, SEED),
        ("imbalance", PartitionOptions { imbalance: wishes.imbalance + 0.5, ..wishes.clone() }, SEED),
        ("file", PartitionOptions { file: Some(PathBuf::from("not there")), ..wishes.clone() }, SEED),
        ("clusters", PartitionOptions { clusters: wishes.clusters + 3, ..wishes.clone() }, SEED),
        ("clusterer", PartitionOptions { clusterer: "none of these".to_owned(), ..wishes.clone() }, SEED),
        ("rule", PartitionOptions { rule: "ldg".to_owned(), ..wishes.clone() }, SEED),
        ("passes", PartitionOptions { passes: wishes.passes + 1, ..wishes.clone() }, SEED),
        ("an unknown option", PartitionOptions { own, ..wishes.clone() }, SEED),
        ("seed", wishes.clone(), SEED + 1),
    ];
    all.into_iter().filter(|(key, ..)| !kind.reads(key)).collect()
}

fn broken(kind: &PartitionerKind, what: &str, law: &str) -> GraphError {
    GraphError::invalid(format!("partitioner {:?}, {what}: {law}", kind.name))
}

/// Rings of so many nodes with chords, each joined to the next one by an edge.
fn clusters(rings: u32, size: u32) -> Result<Graph> {
    let ring = |ring: u32| {
        let inside = (0..size)
            .flat_map(move |node| [1, 2, 5].map(|step| (ring * size + node, ring * size + (node + step) % size)));
        inside.chain([(ring * size, (ring + 1) % rings * size)])
    };
    let (sources, targets) = (0..rings).flat_map(ring).unzip();
    let options = BuildOptions { symmetrise: true, ..BuildOptions::default() };
    Ok(build_graph((rings * size) as usize, sources, targets, None, options)?.0)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::error::Result;
    use crate::partition::{
        OptionValue, PartitionInput, PartitionOptions, Partitioner, PartitionerKind, PartitionerRegistry, Reads,
    };

    #[test]
    fn every_partitioner_keeps_the_laws() {
        let dir = tempfile::tempdir().unwrap();
        let options = |nodes: usize, parts: u32| {
            let file = dir.path().join(format!("{nodes}-{parts}"));
            let lines: String = (0..nodes).map(|node| format!("{}\n", node % parts as usize)).collect();
            std::fs::write(&file, lines).unwrap();
            PartitionOptions { file: Some(file), ..PartitionOptions::default() }
        };
        PartitionerRegistry::default().iter().for_each(|kind| check(kind, &options).unwrap());
    }

    /// Breaks one law, named by its option.
    struct Rogue(String);

    impl Partitioner for Rogue {
        fn check(&self, _: usize, _: u32) -> Result<()> {
            Ok(())
        }

        fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
            let nodes = input.graph.nodes();
            Ok(match self.0.as_str() {
                "range" => vec![input.parts; nodes],
                "length" => vec![0; nodes + 1],
                "zero" => vec![0; nodes],
                _ => vec![(input.seed % u64::from(input.parts.max(1))) as u32; nodes],
            })
        }
    }

    static ROGUE: PartitionerKind = PartitionerKind {
        name: "rogue",
        options: &["law"],
        reads: |_| Reads::Graph,
        build: |options| match options.own.get("law") {
            Some(OptionValue::Text(law)) => Ok(Box::new(Rogue(law.clone()))),
            _ => Err(crate::error::GraphError::invalid("expected a law to break")),
        },
    };

    #[test]
    fn each_broken_law_is_named() {
        for (law, expected) in [
            ("range", "expected parts below 5, found 5 at node 0"),
            ("length", "expected parts for 240 nodes, found 241"),
            ("zero", "no parts at all: expected an error"),
            ("seed", "whatever seed is, since it is not read"),
        ] {
            let mut options = PartitionOptions::default();
            options.own.insert("law".to_owned(), OptionValue::Text(law.to_owned()));
            let message = check(&ROGUE, &|_, _| options.clone()).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("rogue"), "{law}: {message}");
        }
    }
}
