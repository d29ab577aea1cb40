//! A figure that would be 0/0 is absent, never a number: what it decides falls to the loss, and a sentence says why.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_graph::edges::EdgeData;
use laconic_train::fit::observe::RoundReport;
use laconic_train::record::observer::Observer;
use laconic_train::run::{Options, Outcome};

use crate::fixture::{config, graph, multi_label, try_run};

struct Log(Arc<Mutex<Vec<RoundReport>>>);

impl Observer for Log {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        self.0.lock().expect("nobody panics with it").push(report.clone());
        ControlFlow::Continue(())
    }
}

/// Worker 0 of a run and the rounds in which it was evaluated.
fn logged(keys: &[&str], dataset: &Dataset, workers: u32) -> (Outcome, Vec<RoundReport>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let options = Options { observer: Box::new(Log(log.clone())), ..Options::default() };
    let outcome = try_run(&config(keys), dataset, workers, options).expect("a run").swap_remove(0);
    let rounds = log.lock().expect("nobody panics with it").clone();
    (outcome, rounds.into_iter().filter(|report| report.scores.is_some()).collect())
}

/// The graph with validation nodes of one class alone.
fn one_class(mut dataset: Dataset) -> Dataset {
    let roles = &dataset.splits[0].roles;
    match &mut dataset.labels {
        Labels::Single { values, .. } => {
            let labelled = values.iter_mut().zip(roles).filter(|(class, role)| **role == Split::VAL && **class >= 0);
            labelled.for_each(|(class, _)| *class = 1);
        }
        Labels::Multi { classes, values } => {
            let of_node = values.chunks_exact_mut(*classes).zip(roles).filter(|(_, role)| **role == Split::VAL);
            of_node.flat_map(|(set, _)| set).filter(|label| **label <= 1).for_each(|label| *label = 0);
        }
        Labels::None => unreachable!("the graphs of tests have labels"),
    }
    dataset
}

fn notes(outcome: &Outcome) -> String {
    outcome.summary.as_ref().map(|summary| summary.notes.join("\n")).unwrap_or_default()
}

const METHODS: [&[&str]; 4] = [
    &["schedule.kind=synchronous"],
    &["schedule.kind=lazy"],
    &["schedule.kind=averaging", "schedule.interval=1 step", "schedule.limit=8 steps"],
    &["batch.size=20"],
];

#[test]
fn an_area_of_one_class_is_absent_and_the_least_loss_chooses_the_round() {
    for metric in ["roc_auc", "roc_auc_exact"] {
        for keys in METHODS {
            let metrics = format!("train.metrics=[\"{metric}\"]");
            let keys = [keys, &[metrics.as_str(), "train.epochs=8", "train.lr=0.05"]].concat();
            for workers in [1, 3] {
                let (outcome, rounds) = logged(&keys, &one_class(graph(150, 2)), workers);
                let of = |report: &RoundReport| report.scores.clone().expect("figures").val;
                assert!(rounds.iter().all(|report| of(report)[metric].is_none()), "{keys:?}");
                let stage = rounds.last().expect("rounds").stage;
                let last = rounds.iter().filter(|report| report.stage == stage);
                let best = last.min_by(|a, b| of(a)["loss"].partial_cmp(&of(b)["loss"]).expect("numbers"));
                assert_eq!(outcome.trained.best_round, best.expect("rounds").round, "{keys:?}, {workers} workers");
                assert!(outcome.trained.scores.test[metric].is_some(), "{keys:?}");
                let said = notes(&outcome);
                let why = format!("{metric} of validation is not defined: all");
                assert!(said.contains(&why) && said.contains("nodes are of class 1"), "{said}");
                assert!(said.contains("least validation loss chose the best round"), "{said}");
                let json = serde_json::to_value(&outcome.summary).expect("a summary");
                assert!(json["metrics"]["val"].get(metric).is_some_and(serde_json::Value::is_null), "{json}");
            }
        }
    }
}

#[test]
fn patience_waits_for_the_loss_where_the_metric_is_not_defined() {
    let keys = ["train.metrics=[\"roc_auc\"]", "train.epochs=300", "train.lr=0.2", "train.patience=4"];
    let (outcome, rounds) = logged(&keys, &one_class(graph(150, 2)), 3);
    assert_eq!(rounds.last().expect("rounds").round, outcome.trained.best_round + 4);
    assert!(outcome.trained.rounds < 300, "patience has not ended it");
}

#[test]
fn nothing_in_validation_leaves_the_last_round_and_that_is_said() {
    let mut dataset = graph(150, 2);
    dataset.splits[0].roles.iter_mut().filter(|role| **role == Split::VAL).for_each(|role| *role = 0);
    for keys in METHODS {
        let (outcome, _) = logged(&[keys, &["train.epochs=8"]].concat(), &dataset, 3);
        assert_eq!(outcome.trained.best_round, outcome.trained.rounds, "{keys:?}");
        assert!(notes(&outcome).contains("so the last round stands for the best"), "{}", notes(&outcome));
    }
}

#[test]
fn areas_of_several_labels_are_the_mean_over_labels_that_have_both_values() {
    let metrics = "train.metrics=[\"roc_auc\", \"roc_auc_exact\"]";
    let (outcome, _) = logged(&[metrics, "train.epochs=2"], &one_class(multi_label(180, 3)), 3);
    assert_eq!(outcome.trained.scores.val["roc_auc"], None);
    assert!(notes(&outcome).contains("roc_auc of validation is not defined: of each label all nodes are alike"));
    // One of three labels is everybody's: the mean is over the other two.
    let mut some = multi_label(180, 3);
    let Labels::Multi { classes, values } = &mut some.labels else { unreachable!("it has several") };
    values.iter_mut().step_by(*classes).filter(|label| **label <= 1).for_each(|label| *label = 1);
    let (outcome, _) = logged(&[metrics, "train.epochs=2"], &some, 3);
    assert!(notes(&outcome).contains("roc_auc of test is the mean over 2 of 3 labels"), "{}", notes(&outcome));
    assert!(outcome.trained.scores.test["roc_auc_exact"].is_some());
}

#[test]
fn links_without_any_pair_to_set_them_against_have_no_ranks() {
    // Everybody is everybody's neighbour: filtered, nothing is left to be drawn.
    let nodes = 12u32;
    let pairs = (0..nodes).flat_map(|a| (0..nodes).filter(move |b| a != *b).map(move |b| (a, b)));
    let (sources, targets): (Vec<u32>, Vec<u32>) = pairs.unzip();
    let mut dataset = graph(nodes as usize, 2);
    (dataset.graph, _) =
        build_graph(nodes as usize, sources, targets, EdgeData::default(), BuildOptions::default()).expect("edges");
    let keys = [
        "task.kind=link_prediction",
        "task.split={ val = 0.2, test = 0.2, seed = 1 }",
        "task.filter_negatives=true",
        "train.metrics=[\"mrr\", \"hits@10\", \"roc_auc\"]",
        "train.epochs=3",
    ];
    for workers in [1, 3] {
        let (outcome, _) = logged(&keys, &dataset, workers);
        for split in [&outcome.trained.scores.val, &outcome.trained.scores.test] {
            assert_eq!(["mrr", "hits@10", "roc_auc"].map(|name| split[name]), [None; 3], "{split:?}");
            assert!(split["loss"].is_some());
        }
        let said = notes(&outcome);
        assert!(said.contains("mrr of validation is not defined: there is no pair"), "{said}");
        assert!(said.contains("least validation loss chose the best round"), "{said}");
    }
}

/// Nodes of a split by their class, counted from the data alone.
fn truths(dataset: &Dataset, role: u8) -> Vec<i32> {
    let Labels::Single { values, .. } = &dataset.labels else { unreachable!("a class a node") };
    let of_role = values.iter().zip(&dataset.splits[0].roles).filter(|(class, roles)| **roles == role && **class >= 0);
    of_role.map(|(class, _)| *class).collect()
}

#[test]
fn a_model_to_which_all_nodes_look_alike_is_said_to_predict_one_class_and_held_to_the_best() {
    let mut dataset = graph(150, 3);
    dataset.features = Features::Dense { columns: 2, values: vec![1.0; 300].into() };
    for keys in METHODS.iter().filter(|keys| keys[0] != "schedule.kind=lazy") {
        for (workers, lr) in [(1, "train.lr=0.05"), (3, "train.lr=0.05"), (3, "train.lr=1e-30")] {
            let keys = [keys, &["model.arch=mlp", "train.metrics=[\"accuracy\"]", "train.epochs=8", lr][..]].concat();
            let (outcome, _) = logged(&keys, &dataset, workers);
            let said = notes(&outcome);
            for (name, role) in [("validation", Split::VAL), ("test", Split::TEST)] {
                let truths = truths(&dataset, role);
                let shares = [0, 1, 2].map(|class| truths.iter().filter(|truth| **truth == class).count());
                let best = shares.into_iter().max().expect("classes") as f64 / truths.len() as f64;
                let split = if role == Split::VAL { &outcome.trained.scores.val } else { &outcome.trained.scores.test };
                let found = split["accuracy"].expect("a figure");
                let is_answer = |class: &usize| {
                    let what = format!("predicts one class ({class}) for all {} {name} nodes", truths.len());
                    said.contains(&what)
                };
                let answer = (0..3).find(is_answer).unwrap_or_else(|| panic!("{keys:?}: {said}"));
                assert!((found - shares[answer] as f64 / truths.len() as f64).abs() < 1e-12, "{said}");
                assert!(
                    said.contains(&format!("accuracy of {name} is {found:.4}, no better than {best:.4}")),
                    "{said}"
                );
            }
        }
    }
    // Where nobody counts classes nothing is known of them; one that tells nodes apart is said nothing of.
    let silent = logged(&["model.arch=mlp", "train.epochs=2", "train.part_figures=false"], &dataset, 3).0;
    assert!(!notes(&silent).contains("predicts"), "{}", notes(&silent));
    let told = logged(&["train.epochs=60", "train.lr=0.05", "train.metrics=[\"accuracy\"]"], &graph(150, 3), 3).0;
    assert!(!notes(&told).contains("predicts") && !notes(&told).contains("no better"), "{}", notes(&told));
}

#[test]
fn labels_that_are_the_same_for_all_nodes_are_said_to_be() {
    let mut dataset = multi_label(180, 3);
    dataset.features = Features::Dense { columns: 2, values: vec![1.0; 360].into() };
    let keys = ["model.arch=mlp", "train.epochs=3", "train.metrics=[\"micro_f1\"]"];
    for workers in [1, 3] {
        let said = notes(&logged(&keys, &dataset, workers).0);
        assert!(said.contains("predicts the same labels (") && said.contains("test nodes"), "{said}");
    }
}

#[test]
fn links_that_all_score_the_same_are_no_better_than_that() {
    let mut dataset = graph(150, 2);
    dataset.features = Features::Dense { columns: 2, values: vec![1.0; 300].into() };
    for (metric, figure) in [("mrr", "0.0476"), ("hits@10", "0.0000"), ("roc_auc", "0.5000")] {
        let metrics = format!("train.metrics=[\"{metric}\"]");
        let keys =
            ["task.kind=link_prediction", "task.eval_negatives=20", "model.arch=mlp", "train.epochs=2", &metrics];
        for workers in [1, 3] {
            let said = notes(&logged(&keys, &dataset, workers).0);
            let what = format!("{metric} of test is {figure}, no better than {figure}, scores that are the same");
            assert!(said.contains(&what), "{said}");
        }
    }
}
