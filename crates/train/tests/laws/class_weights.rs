//! Weights of classes are weights of rows in the one loss of all workers.

use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_train::config::Config;

use crate::fixture::{config, first_gradient, graph, multi_label, run};
use crate::ledger_is_prediction::assert_predicted;
use crate::one_is_many::SCHEDULES;

const CLASSES: usize = 3;

/// How many training nodes each class has.
fn counts(dataset: &Dataset) -> Vec<f64> {
    let Labels::Single { values, .. } = &dataset.labels else { panic!("one class a node") };
    let of = |class: usize| {
        let is_of = |node: &usize| dataset.splits[0].roles[*node] == Split::TRAIN && values[*node] == class as i32;
        (0..values.len()).filter(is_of).count() as f64
    };
    (0..CLASSES).map(of).collect()
}

/// A graph in which the classes are of different sizes.
fn uneven() -> Dataset {
    let mut dataset = graph(240, CLASSES);
    if let Labels::Single { values, .. } = &mut dataset.labels {
        values.iter_mut().enumerate().filter(|(node, class)| **class == 1 && node % 3 > 0).for_each(|(_, c)| *c = 0);
    }
    let counts = counts(&dataset);
    assert!(counts[0] > 2.0 * counts[1] && counts[1] > 1.0, "{counts:?}");
    dataset
}

/// The same where only one class's nodes train.
fn only(dataset: &Dataset, class: usize) -> Dataset {
    let mut dataset = dataset.clone();
    let Labels::Single { values, .. } = &dataset.labels else { panic!("one class a node") };
    for (role, label) in dataset.splits[0].roles.iter_mut().zip(values) {
        if *label != class as i32 {
            *role &= !Split::TRAIN;
        }
    }
    dataset
}

fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5 * largest.max(1e-3), "{what}: {found} against {expected}");
    }
}

/// Σ w·n·g / Σ w·n, where g is the gradient of the mean over a class's n nodes.
#[test]
fn the_gradient_is_the_mean_of_classes_gradients_by_weight() {
    let dataset = uneven();
    let counts = counts(&dataset);
    let of_class: Vec<Vec<f64>> =
        (0..CLASSES).map(|class| first_gradient(&["model.arch=gcn"], &only(&dataset, class), 2)).collect();
    let all: f64 = counts.iter().sum();
    let balanced: Vec<f64> = counts.iter().map(|count| all / (CLASSES as f64 * count)).collect();
    for (key, weights) in [
        ("train.class_weights=[1, 1.0, 1]", vec![1.0; CLASSES]),
        ("train.class_weights=[0.5, 3, 2]", vec![0.5, 3.0, 2.0]),
        ("train.class_weights=balanced", balanced),
    ] {
        let mass: f64 = weights.iter().zip(&counts).map(|(weight, count)| weight * count).sum();
        let mut expected = vec![0.0; of_class[0].len()];
        for (class, gradient) in of_class.iter().enumerate() {
            let share = weights[class] * counts[class] / mass;
            expected.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += share * value);
        }
        for workers in [1, 2, 3] {
            assert_near(&first_gradient(&["model.arch=gcn", key], &dataset, workers), &expected, key);
        }
    }
}

#[test]
fn balanced_weights_are_those_of_the_counts_over_all_workers_bit_for_bit() {
    let dataset = uneven();
    let counts = counts(&dataset);
    let all: f64 = counts.iter().sum();
    let weights: Vec<f32> = counts.iter().map(|count| (all / (CLASSES as f64 * count)) as f32).collect();
    let given = format!("train.class_weights={weights:?}");
    for keys in [&["train.sync_every=1"][..], &["train.sync_every=2"], &["schedule.kind=lazy"]] {
        let trained = |key: &str| run(&config(&[keys, &[key]].concat()), &dataset, 3).swap_remove(0).trained;
        let (balanced, given) = (trained("train.class_weights=balanced"), trained(&given));
        assert_eq!(balanced.last, given.last, "{keys:?}");
        assert_ne!(balanced.last, trained("train.select_by=metric").last, "{keys:?}: weights change something");
    }
    // Of several labels, a label that is there counts for as many as it is not there.
    let sets = multi_label(180, CLASSES);
    let Labels::Multi { classes, values } = &sets.labels else { panic!("sets of labels") };
    let of = |class: usize, truth: u8| {
        let is_of =
            |node: &usize| sets.splits[0].roles[*node] == Split::TRAIN && values[node * classes + class] == truth;
        (0..values.len() / classes).filter(is_of).count() as f64
    };
    let weights: Vec<f32> = (0..CLASSES).map(|class| (of(class, 0) / of(class, 1)) as f32).collect();
    let trained = |key: &str| run(&config(&[key]), &sets, 3).swap_remove(0).trained.last;
    assert_eq!(trained("train.class_weights=balanced"), trained(&format!("train.class_weights={weights:?}")));
}

#[test]
fn one_worker_and_many_train_the_same_weighted_model() {
    for (dataset, weights) in [(uneven(), "balanced"), (uneven(), "[0.5, 3, 2]"), (multi_label(180, 3), "balanced")] {
        for schedule in SCHEDULES {
            let key = format!("train.class_weights={weights}");
            let trained = |workers| {
                let last = run(&config(&[schedule, &[&key]].concat()), &dataset, workers).swap_remove(0).trained.last;
                last.into_iter().map(f64::from).collect::<Vec<f64>>()
            };
            let one = trained(1);
            for workers in [2, 3] {
                let (many, largest) = (trained(workers), one.iter().fold(0.0f64, |most, value| most.max(value.abs())));
                for (one, many) in one.iter().zip(&many) {
                    assert!((one - many).abs() < 1e-4 * largest, "{key} {schedule:?}: {one} against {many}");
                }
            }
        }
    }
}

#[test]
fn a_weighted_model_predicts_other_nodes_which_weigh_nothing() {
    for weights in ["balanced", "[0.5, 3, 2]"] {
        let keys = [&format!("train.class_weights={weights}")[..], "partition.parts=2"];
        let run = laconic_train::train(&config(&keys), uneven(), Default::default()).expect("a run");
        let more = graph(180, CLASSES);
        let parts = laconic_train::predict(&run, more).expect("predictions");
        assert_eq!(parts.iter().map(|part| part.inferred.logits.rows()).sum::<usize>(), 180);
    }
}

#[test]
fn counting_classes_sends_what_was_predicted() {
    for dataset in [uneven(), multi_label(180, 3)] {
        for weights in ["train.class_weights=balanced", "train.class_weights=[1, 2, 3]"] {
            for schedule in SCHEDULES {
                assert_predicted(&dataset, &[schedule, &[weights]].concat(), 3);
            }
        }
    }
}

#[test]
fn weights_that_make_no_sense_are_refused_with_the_key() {
    let parse = |value: &str| Config::parse("", &[format!("train.class_weights={value}")]).map_err(|e| e.to_string());
    for value in ["evenly", "[1, -2]", "[1, 0.0]", "[1, \"x\"]", "3"] {
        let error = parse(value).expect_err(value);
        assert!(error.contains("class_weights"), "{error}");
    }
    let text = parse("[0.3, 2]").expect("weights").to_toml().expect("TOML");
    assert!(text.contains("class_weights = [0.3, 2.0]"), "{text}");
    assert!(parse("balanced").expect("weights").to_toml().expect("TOML").contains("class_weights = \"balanced\""));
    let config = config(&["train.class_weights=[1, 2]"]);
    let error = laconic_train::train(&config, graph(60, 3), Default::default()).map(|_| ()).expect_err("three classes");
    assert!(error.to_string().contains("train.class_weights: expected 3 numbers"), "{error}");
}
