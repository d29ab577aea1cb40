//! Evaluations tell others counts, and no node's score or label: how much is sent does not depend on how many there
//! are.

use laconic_graph::dataset::{Dataset, Labels};
use laconic_wire::{Count, Kind};

use crate::fixture::{config, graph, multi_label, run};
use crate::ledger_is_prediction::assert_exact;

/// What workers sent for evaluations by round; a perceptron's rows stay at home.
fn sent(dataset: &Dataset, metrics: &str, workers: u32) -> Vec<(u32, u32, Count)> {
    let outcomes = run(&config(&["model.arch=mlp", metrics, "train.epochs=2"]), dataset, workers);
    assert_exact(&outcomes, metrics);
    let of = |entry: laconic_wire::Entry| entry.kind == Kind::Evaluation;
    let each = outcomes.iter().flat_map(|outcome| {
        outcome.sent.iter().filter(|(entry, _)| of(*entry)).map(|(entry, count)| (outcome.rank, entry.peer.0, count))
    });
    each.collect()
}

/// The same nodes, two thirds of them without labels.
fn hardly_labelled(mut dataset: Dataset) -> Dataset {
    match &mut dataset.labels {
        Labels::Single { values, .. } => (0..values.len()).filter(|n| n % 3 > 0).for_each(|node| values[node] = -1),
        Labels::Multi { classes, values } => {
            let classes = *classes;
            (0..values.len()).filter(|i| i / classes % 3 > 0).for_each(|entry| values[entry] = Labels::UNKNOWN);
        }
        Labels::None => unreachable!("the graphs of tests have labels"),
    }
    dataset
}

#[test]
fn evaluations_send_as_much_however_many_nodes_have_labels() {
    let counted = "train.metrics=[\"roc_auc\", \"accuracy\", \"macro_f1\"]";
    let exact = "train.metrics=[\"roc_auc_exact\"]";
    for (many, more) in [(graph(150, 2), graph(400, 2)), (multi_label(150, 3), multi_label(400, 3))] {
        let few = hardly_labelled(many.clone());
        for workers in [2, 3] {
            let expected = sent(&many, counted, workers);
            assert!(!expected.is_empty());
            assert_eq!(sent(&few, counted, workers), expected);
            assert_eq!(sent(&more, counted, workers), expected);
            assert_ne!(sent(&few, exact, workers), sent(&many, exact, workers), "scores of all labelled nodes travel");
        }
    }
}

#[test]
fn areas_from_counts_are_near_the_exact_ones_and_the_same_for_any_number_of_workers() {
    let metrics = "train.metrics=[\"roc_auc\", \"roc_auc_exact\"]";
    for dataset in [graph(400, 2), multi_label(400, 3)] {
        // The graph is cut one way and another; no step is taken that would round differently.
        let scores = |workers| {
            let keys = ["model.arch=mlp", metrics, "train.epochs=1", "train.lr=1e-30"];
            run(&config(&keys), &dataset, workers).swap_remove(0).trained.scores
        };
        let alone = scores(1);
        for split in [&alone.train, &alone.val, &alone.test] {
            let [counted, exact] = ["roc_auc", "roc_auc_exact"].map(|name| split[name].expect("a figure"));
            assert!(counted > 0.0 && (counted - exact).abs() < 5e-3, "{counted} against {exact}");
        }
        for workers in [2, 3, 5] {
            let together = scores(workers);
            for (one, many) in [(&alone.train, &together.train), (&alone.test, &together.test)] {
                for name in ["roc_auc", "roc_auc_exact"] {
                    assert_eq!(one[name], many[name], "{name}, {workers} workers");
                }
            }
        }
    }
}
