//! Pairs that are no edges have targets of the type of the target whose place they take, whoever owns them; where
//! filtered ones run out, it is said how many are left.

use std::collections::BTreeSet;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::Dataset;
use laconic_graph::edges::EdgeData;
use laconic_graph::links::{EdgeSplit, LinkRole, Negatives};
use laconic_graph::node_types::{apart, beside};
use laconic_key::Key;
use laconic_train::run::verify::relative_difference;
use laconic_train::run::{Data, Options, predict, train};

use crate::fixture::{config, run};
use crate::links::{keys, unlabelled};

/// The type of a node: three of them, in turns, of unlike sizes.
fn kind(node: u64) -> u16 {
    [0, 1, 1, 2, 1, 0, 1][node as usize % 7]
}

/// A graph whose nodes are of three types.
fn typed() -> Dataset {
    let mut dataset = unlabelled();
    let of: Vec<u16> = (0..dataset.graph.rows() as u64).map(kind).collect();
    let types = apart(&dataset.features, &[], &of, ["a", "b", "c"].map(str::to_owned).into());
    (dataset.features, dataset.about.node_types, dataset.about.features) = beside(&types, &of);
    dataset.checked().expect("a sound dataset")
}

/// What each place of an edge's targets ends up with, as it is described: up to seven draws from these nodes, until one
/// is not the source and stands.
fn drawn(from: &[u64], (source, target): (u64, u64), places: u64, stands: impl Fn(u64) -> bool) -> Vec<Option<u64>> {
    let key: Key = Negatives::of_evaluation(3).with(source).with(target);
    let one = |place: u64, again: u64| {
        let key = if again == 0 { key.with(place) } else { key.with(place).with(again) };
        from[key.below(from.len() as u64) as usize]
    };
    let found = |place: u64| (0..7).map(|again| one(place, again)).find(|&node| node != source && stands(node));
    (0..places).map(found).collect()
}

/// The edges of a split of the links of all laws.
fn edges_of(dataset: &Dataset, role: LinkRole) -> Vec<(u64, u64)> {
    let split = EdgeSplit { val: 0.1, test: 0.2, seed: 3 };
    let into = |target: usize| {
        dataset.graph.in_neighbours(target).iter().map(move |&source| (u64::from(source), target as u64))
    };
    let all = (0..dataset.graph.rows()).flat_map(into);
    all.filter(|&(source, target)| source != target && split.role(source, target) == role).collect()
}

#[test]
fn typed_links_on_many_workers_are_those_on_one() {
    let dataset = typed();
    for more in [&["task.filter_negatives=true"][..], &["model.arch=sage", "task.negatives_per_edge=3"]] {
        let keys = keys(&[more, &["train.epochs=8", "train.eval_every=0", "train.epsilon=1e-3"]].concat());
        let one = run(&config(&keys), &dataset, 1).swap_remove(0).trained;
        for workers in [2, 3, 5] {
            let many = run(&config(&keys), &dataset, workers).swap_remove(0).trained;
            for (found, expected) in many.chosen.iter().zip(&one.chosen) {
                let difference = relative_difference(found, expected);
                assert!(difference <= 1e-4, "{keys:?}, {workers} workers: {difference:.1e}");
            }
            for (name, value) in &many.scores.test {
                let (found, expected) = (value.expect("a figure"), one.scores.test[name].expect("a figure"));
                assert!((found - expected).abs() <= 2e-3, "{keys:?}: {name} {found} against {expected}");
            }
            assert_eq!(many.scores.hits_pool, one.scores.hits_pool);
        }
    }
}

/// From everybody's embeddings, edge by edge: each among targets of its own target's type.
#[test]
fn ranks_among_typed_targets_are_those_of_plain_code() {
    let dataset = typed();
    let metrics = "train.metrics=[\"mrr\", \"recall@10\"]";
    for workers in ["partition.parts=1", "partition.parts=3"] {
        let keys = keys(&["train.epochs=4", "train.eval_every=0", workers, metrics]);
        let run = train(&config(&keys), dataset.clone(), Options::default()).expect("a run");
        let mut rows = vec![Vec::new(); dataset.graph.rows()];
        for part in predict(&run, Data::from(dataset.clone())).expect("embeddings") {
            for (row, &node) in part.nodes.iter().enumerate() {
                rows[node as usize] = part.inferred.logits.row(row).to_vec();
            }
        }
        let score = |a: u64, b: u64| -> f64 {
            rows[a as usize].iter().zip(&rows[b as usize]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let (mut reciprocal, mut within) = (0.0, 0.0);
        let edges = edges_of(&dataset, LinkRole::Test);
        for &(source, target) in &edges {
            let like: Vec<u64> = (0..180).filter(|&node| kind(node) == kind(target)).collect();
            let others = drawn(&like, (source, target), 20, |node| node != target);
            assert!(others.iter().all(|other| other.is_some_and(|node| kind(node) == kind(target))));
            let above = |other: &&Option<u64>| other.is_some_and(|node| score(source, node) >= score(source, target));
            let rank = 1 + others.iter().filter(above).count();
            reciprocal += 1.0 / rank as f64;
            within += f64::from(u8::from(rank <= 10));
        }
        let count = edges.len() as f64;
        assert!((run.test("mrr").expect("ranks") - reciprocal / count).abs() < 1e-3, "{workers}");
        assert!((run.test("recall@10").expect("ranks") - within / count).abs() < 0.011, "{workers}");
    }
}

/// Of 24 nodes all but five are everybody's neighbours: few pairs are left that are no edges.
#[test]
fn where_filtered_pairs_run_out_the_edges_concerned_are_counted() {
    let nodes = 24u32;
    let is_edge = |a: u32, b: u32| a != b && (a.max(b) < 19 || (a + b).is_multiple_of(4));
    let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))).filter(|&(a, b)| is_edge(a, b));
    let (sources, targets): (Vec<u32>, Vec<u32>) = pairs.unzip();
    let mut dataset = crate::fixture::graph(nodes as usize, 2);
    (dataset.graph, _) =
        build_graph(nodes as usize, sources, targets, EdgeData::default(), BuildOptions::default()).expect("edges");
    let all: Vec<u64> = (0..u64::from(nodes)).collect();
    let (edges, mut short, mut fewest) = (edges_of(&dataset, LinkRole::Test), 0, usize::MAX);
    for &(source, target) in &edges {
        let stands = |node: u64| node != target && !is_edge(source as u32, node as u32);
        let found = drawn(&all, (source, target), 20, stands);
        if found.contains(&None) {
            short += 1;
            fewest = fewest.min(found.into_iter().flatten().collect::<BTreeSet<u64>>().len());
        }
    }
    assert!(short > 0 && short < edges.len(), "{short} of {}", edges.len());
    let words = format!(
        "{short} of {} test edges have fewer than 20 drawn pairs that are no edges, at least {fewest} different",
        edges.len()
    );
    for workers in [1, 3] {
        let outcomes = run(&config(&keys(&["task.filter_negatives=true", "train.epochs=2"])), &dataset, workers);
        let notes = &outcomes[0].summary.as_ref().expect("worker 0 sums up").notes;
        assert_eq!(notes.iter().filter(|note| note.starts_with(&words)).count(), 1, "{words}: {notes:?}");
        crate::links::assert_within(&outcomes, "with few pairs left");
        let without = run(&config(&keys(&["train.epochs=2"])), &dataset, workers);
        let notes = &without[0].summary.as_ref().expect("worker 0 sums up").notes;
        assert!(notes.iter().all(|note| !note.contains("drawn pairs")), "{notes:?}");
    }
}
