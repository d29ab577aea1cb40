//! Small random datasets with everything a dataset can have.

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_key::{Key, Purpose};

/// A directed graph of about four edges a node, with loops, nodes without edges, weights, sparse features, several
/// labels a node, text ids and two splits.
pub fn rich(nodes: usize, seed: u64) -> Dataset {
    let key = Key::new(seed, Purpose::Test);
    let end = |edge: usize, which| key.with(which).with(edge as u64).below(nodes.max(1) as u64) as u32;
    let edges = if nodes == 0 { 0 } else { 4 * nodes };
    let sources: Vec<u32> = (0..edges).map(|edge| end(edge, 0)).collect();
    // A quarter of the nodes, those with large ids, have no in-edges.
    let targets = (0..edges).map(|edge| if edge % 50 == 0 { sources[edge] } else { end(edge, 1) * 3 / 4 }).collect();
    let weights = (0..edges).map(|edge| key.with(2).with(edge as u64).unit() as f32 + 0.5).collect();
    let options = BuildOptions { keep_self_loops: true, ..BuildOptions::default() };
    let (graph, _) = build_graph(nodes, sources, targets, Some(weights), options).unwrap();
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for node in 0..nodes as u64 {
        indices.extend((0..20).filter(|&column| key.with(3).with(node).with(u64::from(column)).unit() < 0.2));
        offsets.push(indices.len() as u64);
    }
    let values = (0..indices.len()).map(|at| key.with(4).with(at as u64).normal() as f32).collect();
    let role = |which, v| [0, Split::TRAIN, Split::VAL, Split::TEST][key.with(which).with(v).below(4) as usize];
    let split = |which| Split { roles: (0..nodes as u64).map(|v| role(which, v)).collect() };
    Dataset {
        name: format!("rich-{seed}"),
        graph,
        features: Features::Sparse { columns: 20, offsets, indices, values },
        labels: Labels::Multi {
            classes: 3,
            values: (0..3 * nodes as u64).map(|at| key.with(6).with(at).below(2) as u8).collect(),
        },
        splits: vec![split(7), split(8)],
        ids: Ids::Strings((0..nodes).map(|node| format!("Knoten-ä-{}", node * 17)).collect()),
        about: laconic_graph::about::About::default(),
        exact: Default::default(),
        negatives: None,
    }
}

/// A part for each node, some parts of `parts` empty.
pub fn assignment(nodes: usize, parts: u32, seed: u64) -> Vec<u32> {
    let key = Key::new(seed, Purpose::Test).with(9);
    // Part 1, where there is one, gets no node.
    let part = |node| match key.with(node as u64).below(u64::from(parts)) as u32 {
        1 => 0,
        part => part,
    };
    (0..nodes).map(part).collect()
}
