//! The same run on one worker and on many ends with the same parameters, dropout on: degrees, losses and masks are
//! global, so only the order of sums differs.
//!
//! Evaluation is off until the last round (`train.eval_every = 0`): best-round selection compares figures that jump by
//! whole nodes, and a tie decided by a rounding error would compare the parameters of different rounds.

use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::node_types::{apart, beside};
use laconic_train::TrainError;
use laconic_train::plan::Plan;
use laconic_train::run::verify::relative_difference;
use laconic_train::run::{Options, Outcome};

use crate::fixture::{config, graph, multi_label, parts, related, run, try_run, weighted};

/// Single precision rounds at 6e-8; ten steps of Adam, whose first step has the length of the rate whatever the
/// gradient's, multiply that by less than a thousand.
const TOLERANCE: f64 = 1e-4;

pub const SCHEDULES: [&[&str]; 6] = [
    &["schedule.kind=synchronous"],
    &["schedule.kind=synchronous", "schedule.cache_inputs=false"],
    &["schedule.kind=lazy", "schedule.start=features"],
    &["schedule.kind=lazy", "schedule.start=mlp"],
    &["schedule.kind=lazy", "schedule.start=features", "schedule.hand_on={columns=3}"],
    &["schedule.kind=lazy", "schedule.start=mlp", "schedule.hand_on=hidden"],
];

/// Compares 1 worker with each number of workers under both partitioners; returns the largest difference.
pub fn compare(dataset: &Dataset, keys: &[&str], workers: &[u32]) -> f64 {
    let keys = [keys, &["train.epochs=10", "train.eval_every=0"]].concat();
    let one = run(&config(&keys), dataset, 1);
    let mut worst = 0.0f64;
    for method in ["partition.method=random", "partition.method=multilevel"] {
        for &count in workers {
            let config = config(&[&keys[..], &[method]].concat());
            let many = run(&config, dataset, count);
            let stages = Plan::of(&config, &parts(&config, dataset, count)[0].global).expect("stages").stages;
            assert_eq!(many[0].trained.chosen.len(), stages.len(), "{keys:?}");
            for (stage, (found, expected)) in
                stages.iter().zip(many[0].trained.chosen.iter().zip(&one[0].trained.chosen))
            {
                for ((spec, found), (_, expected)) in stage.network.named(found).zip(stage.network.named(expected)) {
                    let difference = match &found {
                        // GIN multiplies by 1 + ε, and an ε on its way through 0 has no size to compare with.
                        [epsilon] if spec.name.ends_with("eps") => {
                            relative_difference(&[1.0 + epsilon], &[1.0 + expected[0]])
                        }
                        _ => relative_difference(found, expected),
                    };
                    let name = &spec.name;
                    assert!(difference <= TOLERANCE, "{keys:?}, {method}, {count} workers: {name} {difference:.1e}");
                    worst = worst.max(difference);
                }
            }
            let losses = |outcomes: &[Outcome]| outcomes[0].trained.scores.train["loss"].expect("a figure");
            let (found, expected) = (losses(&many), losses(&one));
            assert!((found - expected).abs() <= TOLERANCE * expected, "{keys:?}: loss {found} instead of {expected}");
        }
    }
    worst
}

fn every_schedule(dataset: &Dataset, keys: &[&str]) {
    for norm in ["model.norm=layer", "model.norm=none"] {
        for schedule in SCHEDULES {
            let worst = compare(dataset, &[keys, schedule, &[norm]].concat(), &[2, 3, 4, 7]);
            println!("{keys:?} {schedule:?} {norm}: {worst:.1e}");
        }
    }
}

#[test]
fn gcn_on_many_workers_is_gcn_on_one() {
    every_schedule(&graph(180, 4), &["model.arch=gcn"]);
}

#[test]
fn sage_on_many_workers_is_sage_on_one() {
    every_schedule(&graph(180, 4), &["model.arch=sage"]);
}

#[test]
fn gin_on_many_workers_is_gin_on_one() {
    every_schedule(&graph(180, 4), &["model.arch=gin"]);
}

#[test]
fn gat_on_many_workers_is_gat_on_one() {
    every_schedule(&graph(180, 4), &["model.arch=gat"]);
}

#[test]
fn rgcn_on_many_workers_is_rgcn_on_one() {
    for bases in ["model.bases=2", "model.bases=0"] {
        every_schedule(&related(180, 4), &["model.arch=rgcn", bases]);
    }
}

/// Two types of nodes, in turns, of which each has feature columns of its own.
fn typed(nodes: usize, classes: usize) -> Dataset {
    let mut dataset = related(nodes, classes);
    let of: Vec<u16> = (0..nodes).map(|node| (node % 3 / 2) as u16).collect();
    let types = apart(&dataset.features, &[], &of, vec!["a".to_owned(), "b".to_owned()]);
    let (features, node_types, names) = beside(&types, &of);
    dataset.features = features;
    (dataset.about.node_types, dataset.about.features) = (node_types, names);
    dataset.checked().expect("a sound dataset")
}

#[test]
fn typed_inputs_mapped_on_many_workers_are_those_on_one() {
    let dataset = typed(180, 4);
    for arch in ["model.arch=rgcn", "model.arch=sage", "model.arch=gat"] {
        for schedule in SCHEDULES.iter().filter(|keys| keys[0] == "schedule.kind=synchronous") {
            let keys = [&[arch, "model.input_width=8"], *schedule].concat();
            println!("{keys:?}: {:.1e}", compare(&dataset, &keys, &[2, 3]));
        }
    }
}

#[test]
fn mlp_on_many_workers_is_mlp_on_one() {
    every_schedule(&graph(180, 4), &["model.arch=mlp"]);
}

/// Under Adam an entry whose winner among equals changes sides would show; SGD takes steps as long as the gradient.
#[test]
fn the_maximum_over_neighbours_is_the_same_on_many_workers() {
    let sgd = ["model.arch=sage", "model.aggregator=max", "train.optimiser=sgd"];
    every_schedule(&graph(180, 4), &sgd);
}

/// Whoever wins among equals does so by its number in the whole graph. Edges that weigh next to nothing make sums equal
/// that are none, and features of few values make many rows alike.
#[test]
fn ties_of_a_maximum_are_broken_alike_on_many_workers() {
    let mut dataset = weighted(180, 4);
    dataset.graph.data.weights.iter_mut().flatten().for_each(|weight| *weight = 1e-38);
    let Features::Dense { values, .. } = &mut dataset.features else { unreachable!("generated features are dense") };
    values.iter_mut().for_each(|value| *value = value.signum());
    let keys = ["model.arch=sage", "model.aggregator=max", "train.optimiser=sgd"];
    for schedule in SCHEDULES {
        for more in [&["model.dropout=0.0"][..], &["model.norm=none"], &["model.layers=3"]] {
            compare(&dataset, &[&keys, schedule, more].concat(), &[3]);
        }
    }
}

#[test]
fn averaged_heads_three_layers_and_turned_defaults_are_the_same_on_many_workers() {
    let dataset = graph(180, 4);
    for keys in [
        &["model.arch=gat", "model.head_merge=mean"][..],
        &["model.arch=gat", "model.self_loops=false"],
        &["model.arch=gcn", "model.self_loops=false", "model.layers=3"],
        &["model.arch=gin", "model.learn_epsilon=false", "model.layers=3"],
        &["model.arch=sage", "model.self_loops=true", "model.layers=1"],
        &["model.arch=sage", "train.optimiser=adamw", "train.clip=0.1", "train.lr_schedule=cosine"],
    ] {
        for schedule in SCHEDULES {
            let worst = compare(&dataset, &[keys, schedule].concat(), &[3]);
            println!("{keys:?} {schedule:?}: {worst:.1e}");
        }
    }
}

#[test]
fn weights_and_sets_of_labels_are_the_same_on_many_workers() {
    for arch in ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat"] {
        for schedule in SCHEDULES {
            for dataset in [weighted(180, 4), multi_label(180, 4)] {
                let worst = compare(&dataset, &[&[arch], schedule].concat(), &[3]);
                println!("{arch} {schedule:?}: {worst:.1e}");
            }
        }
    }
}

/// Errors too: training that leaves the numbers ends with the same one on any number of workers, whoever notices it
/// first.
#[test]
fn divergence_on_many_workers_is_divergence_on_one() {
    let dataset = graph(150, 4);
    for schedule in SCHEDULES {
        for lr in ["train.lr=1e25", "train.lr=1e38"] {
            for workers in [1, 3] {
                let keys = [schedule, &[lr, "model.arch=gcn", "model.norm=none"]].concat();
                let error = try_run(&config(&keys), &dataset, workers, Options::default()).err().expect("divergence");
                assert!(matches!(error, TrainError::Diverged { .. }), "{keys:?} on {workers} workers: {error}");
                assert_eq!(error.exit_code(), 6);
            }
        }
    }
}

/// What the laws rely on: parts without training nodes, nodes without in-edges, nodes without a label are really there.
#[test]
fn the_graphs_hold_what_published_code_forgets() {
    let dataset = graph(180, 4);
    let parts = parts(&config(&[]), &dataset, 3);
    assert!(
        parts[2].rows() > 0 && parts[2].roles.iter().all(|role| role & 3 == 0),
        "a part with nothing to learn from"
    );
    let is_lonely = |node: &usize| dataset.graph.in_neighbours(*node).is_empty();
    let lonely = (0..180).filter(is_lonely).count();
    let train = (0..180).filter(is_lonely).filter(|&node| dataset.splits[0].roles[node] == 1).count();
    assert!(lonely >= 16 && train >= 3, "{lonely} nodes without in-edges, {train} of them for training");
    let laconic_graph::dataset::Labels::Single { values, .. } = &dataset.labels else { panic!("classes") };
    assert!(values.contains(&-1));
    let directed = |t: usize| {
        dataset.graph.in_neighbours(t).iter().any(|&s| !dataset.graph.in_neighbours(s as usize).contains(&(t as u32)))
    };
    assert!((0..180).any(directed), "edges in one direction only");
}
