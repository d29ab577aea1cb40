//! Known defects of RETEXO's published code, and that ours does not have them.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_graph::part::{Part, cut};
use laconic_nn::metric::argmax;
use laconic_train::TrainError;
use laconic_train::config::Config;
use laconic_train::fit::observe::RoundReport;
use laconic_train::plan::{Members, Plan};
use laconic_train::record::claim::METRICS;
use laconic_train::record::observer::Observer;
use laconic_train::record::summary::Summary;
use laconic_train::record::weights::{self, Weights};
use laconic_train::run::predict::predict_parts;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, run_threads};
use laconic_wire::{Kind, Row};

use crate::fixture::{config, draw, graph, into_folder, is_source_only, multi_label, parts, run, try_run};
use crate::ledger_is_prediction::assert_exact;
use crate::one_is_many::SCHEDULES;

const ARCHS: [&str; 4] = ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat"];

/// Weights as a run starts with them.
fn initial(config: &Config, dataset: &Dataset) -> Weights {
    let (columns, classes) = (dataset.features.columns(), dataset.labels.classes());
    let stages = Plan::for_model(&Members::default(), config, [columns, classes]).expect("stages").stages;
    let parameters: Vec<Vec<f32>> = stages.iter().map(|stage| stage.network.initial(draw(40))).collect();
    weights::weights(&stages, &parameters)
}

/// Logits of all nodes in node order.
pub fn logits(config: &Config, parts: Vec<Part>, weights: &Weights) -> Vec<Vec<f32>> {
    let mut rows: Vec<(u64, Vec<f32>)> = Vec::new();
    let widths = parts.first().map(|part| [part.global.columns, part.global.classes]).expect("parts");
    for part in predict_parts((&Members::default(), config), Source::of(parts), weights, widths).expect("predictions") {
        let of_row = |(row, &node): (usize, &u64)| (node, part.inferred.logits.row(row).to_vec());
        rows.extend(part.nodes.iter().enumerate().map(of_row));
    }
    rows.sort_by_key(|(node, _)| *node);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Defect 3: degrees counted in the sub-graph at hand. A node's logits depend on neither the partition nor the split.
#[test]
fn logits_of_a_node_depend_on_neither_partition_nor_split() {
    let dataset = graph(180, 4);
    let mut other_split = dataset.clone();
    other_split.splits[0].roles.rotate_left(7);
    for schedule in SCHEDULES {
        for arch in ARCHS {
            let keys = [schedule, &[arch]].concat();
            let config = config(&keys);
            let weights = initial(&config, &dataset);
            let expected = logits(&config, parts(&config, &dataset, 1), &weights);
            let multilevel = Config {
                partition: laconic_train::config::PartitionConfig {
                    method: "multilevel".to_owned(),
                    ..config.partition.clone()
                },
                ..config.clone()
            };
            let others = [
                (&config, &dataset, 4),
                (&multilevel, &dataset, 3),
                (&config, &other_split, 1),
                (&config, &other_split, 5),
            ];
            for (config, dataset, count) in others {
                let found = logits(config, parts(config, dataset, count), &weights);
                let largest = expected.iter().flatten().fold(0.0f32, |m, v| m.max(v.abs()));
                for (node, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    // A few dozen f32 sums in another order.
                    assert!(apart <= 1e-5 * largest, "{keys:?}, {count} parts: node {node}: {found:?}, {expected:?}");
                }
            }
        }
    }
}

/// Defect 4: nodes without in-neighbours dropped. Here they are all there is to learn from, and the loss falls.
#[test]
fn nodes_without_in_edges_are_trained() {
    let mut dataset = graph(180, 4);
    let role = |node: usize| if is_source_only(node) { Split::TRAIN } else { Split::TEST };
    dataset.splits[0].roles = (0..180).map(role).collect();
    for schedule in SCHEDULES {
        for arch in ARCHS {
            let loss = |epochs: &str| {
                let keys =
                    [schedule, &[arch, epochs, "train.eval_every=0", "model.dropout=0.0", "train.lr=0.05"]].concat();
                run(&config(&keys), &dataset, 3)[0].trained.scores.train["loss"].expect("a figure")
            };
            let (first, last) = (loss("train.epochs=1"), loss("train.epochs=30"));
            assert!(last < 0.95 * first, "{schedule:?} {arch}: from {first} to {last}");
        }
    }
}

/// Share of right guesses among the nodes of one role that have a label, and how many they are.
pub fn accuracy(dataset: &Dataset, logits: &[Vec<f32>], role: u8) -> (f64, usize) {
    let Labels::Single { values, .. } = &dataset.labels else { panic!("classes") };
    let roles = &dataset.splits[0].roles;
    let of_role: Vec<usize> = (0..roles.len()).filter(|&v| roles[v] & role != 0 && values[v] >= 0).collect();
    let right = of_role.iter().filter(|&&v| argmax(&logits[v]) == values[v] as usize).count();
    (right as f64 / of_role.len() as f64, of_role.len())
}

/// Defects 4 and 5: the model file holds norms and heads, gives the evaluation's figures again, exactly, and these
/// count every labelled node, with in-edges or without.
#[test]
fn the_model_file_reproduces_the_evaluation() {
    let dataset = graph(180, 4);
    for schedule in SCHEDULES {
        for arch in ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat", "model.arch=mlp"] {
            let keys = [schedule, &[arch, "model.layers=3", "train.epochs=6", "messages.forward=half"]].concat();
            let config = config(&keys);
            let folder = tempfile::tempdir().expect("a folder");
            let out = folder.path().join("run");
            let outcomes = try_run(&config, &dataset, 3, into_folder(&out)).expect("a run");
            let model = weights::read(&out.join(weights::FILE)).expect("a model");
            let (widths, weights) = (model.widths(), model.weights);
            assert_eq!(widths, [dataset.features.columns(), 4].into(), "{keys:?}");
            let has = |part: &str| weights.keys().any(|name| name.starts_with(part));
            let is_lazy = schedule.contains(&"schedule.kind=lazy");
            assert!(has("norms.0.weight") && has("norms.1.bias"), "{keys:?}: {:?}", weights.keys());
            assert_eq!(has("heads.1.weight"), is_lazy, "{keys:?}: {:?}", weights.keys());
            let logits = logits(&config, parts(&config, &dataset, 3), &weights);
            let scores = &outcomes[0].trained.scores;
            for (role, scores) in
                [(Split::TRAIN, &scores.train), (Split::VAL, &scores.val), (Split::TEST, &scores.test)]
            {
                assert_eq!(Some(accuracy(&dataset, &logits, role).0), scores["accuracy"], "{keys:?}, role {role}");
            }
        }
    }
}

/// Defect 8: the best figure on the test set. Ours is the test figure of the first round with the best validation
/// figure.
#[test]
fn the_test_figure_is_that_of_the_best_validation_round() {
    let dataset = graph(180, 4);
    let mut moved = false;
    for schedule in SCHEDULES {
        for seed in ["train.seed=1", "train.seed=2"] {
            let keys = [schedule, &["model.arch=sage", "train.epochs=15", "train.lr=0.1", seed]].concat();
            let folder = tempfile::tempdir().expect("a folder");
            let out = folder.path().join("run");
            let outcomes = try_run(&config(&keys), &dataset, 3, into_folder(&out)).expect("a run");
            let trained = &outcomes[0].trained;
            let log = log(&out);
            assert_eq!(log.len(), trained.rounds as usize);
            let last_stage = log.iter().filter(|r| r.stage == log[log.len() - 1].stage);
            let val = |report: &RoundReport| {
                report.scores.as_ref().expect("every round is evaluated").val["accuracy"].expect("a figure")
            };
            let best = last_stage.clone().fold(None, |best: Option<&RoundReport>, report| match best {
                Some(best) if val(best) >= val(report) => Some(best),
                _ => Some(report),
            });
            let best = best.expect("a round");
            assert_eq!((best.round, best.scores.as_ref()), (trained.best_round, Some(&trained.scores)), "{keys:?}");
            let summary = summary(&out);
            assert_eq!((summary.metrics.best_round, &summary.metrics.scores), (trained.best_round, &trained.scores));
            moved |= best.round != trained.rounds;
        }
    }
    assert!(moved, "in no run was the best round another than the last: the law was not tested");
}

fn log(out: &Path) -> Vec<RoundReport> {
    let text = std::fs::read_to_string(out.join(METRICS)).expect("a log of rounds");
    text.lines().map(|line| serde_json::from_str(line).expect("a line a round")).collect()
}

fn summary(out: &Path) -> Summary {
    let text = std::fs::read_to_string(out.join("summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("a summary")
}

/// Defect 9, first half: a mean over nothing. Workers without training, validation or any nodes take part in every
/// round.
#[test]
fn workers_with_nothing_to_learn_from_take_part() {
    for dataset in [graph(180, 2), multi_label(180, 3)] {
        let role = |node: usize| dataset.splits[0].roles[node];
        // Worker 1 has test nodes alone, worker 3 has validation nodes alone, worker 2 has none at all.
        let part = |node: usize| match role(node) {
            Split::TRAIN => 0,
            Split::VAL => 3,
            _ => (node % 2) as u32,
        };
        let assignment: Vec<u32> = (0..180).map(part).collect();
        for schedule in SCHEDULES {
            for arch in ARCHS {
                let metrics = "train.metrics=[\"accuracy\", \"macro_f1\", \"roc_auc\"]";
                let keys = [schedule, &[arch, metrics]].concat();
                let parts = cut(&dataset, Some(0), &assignment, 4).expect("parts");
                assert_eq!(parts[2].rows(), 0);
                let outcomes = run_threads(&config(&keys), Source::of(parts), Options::default());
                let outcomes = outcomes.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
                let scores = &outcomes[0].trained.scores;
                let figures = scores.train.values().chain(scores.val.values()).chain(scores.test.values());
                assert_eq!(figures.clone().count(), 12, "{keys:?}: {scores:?}");
                assert!(figures.flatten().all(|figure| figure.is_finite()), "{keys:?}: {scores:?}");
                assert_exact(&outcomes, &format!("{keys:?}"));
                for outcome in &outcomes {
                    let rounds = outcome.sent.iter().filter(|(entry, _)| entry.kind == Kind::ParameterGradients);
                    let rounds: std::collections::BTreeSet<u32> = rounds.map(|(entry, _)| entry.round).collect();
                    assert_eq!(rounds.len(), outcome.trained.rounds as usize, "{keys:?}, worker {}", outcome.rank);
                }
            }
        }
    }
}

/// Defect 9, second half: validation accuracy that never rises above 0, or no validation nodes at all.
#[test]
fn validation_that_is_always_wrong_or_missing_does_no_harm() {
    let mut wrong = graph(180, 5);
    let Labels::Single { values, .. } = &mut wrong.labels else { panic!("classes") };
    // No training node has class 4, every validation node has.
    for (class, &role) in values.iter_mut().zip(&wrong.splits[0].roles).filter(|(class, _)| **class >= 0) {
        *class = if role == Split::VAL { 4 } else { *class % 4 };
    }
    let mut missing = graph(180, 5);
    missing.splits[0].roles.iter_mut().for_each(|role| *role &= !Split::VAL);
    for schedule in SCHEDULES {
        let keys = [schedule, &["train.epochs=30", "train.eval_every=15", "train.lr=0.05"]].concat();
        let trained = run(&config(&keys), &wrong, 3).remove(0).trained;
        assert_eq!(trained.scores.val["accuracy"].expect("a figure"), 0.0, "{keys:?}");
        assert_eq!(trained.best_round, trained.rounds - 15, "{keys:?}: the first of equals is the best");
        assert!(trained.scores.test["accuracy"].expect("a figure") > 0.25, "{keys:?}");
        let trained = run(&config(&keys), &missing, 3).remove(0).trained;
        assert!(trained.scores.val.is_empty() && trained.best_round == trained.rounds, "{keys:?}");
        assert!(trained.scores.test["accuracy"].expect("a figure").is_finite(), "{keys:?}");
    }
}

struct Panicking;

impl Observer for Panicking {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        assert!(report.round < 2, "the observer had enough");
        ControlFlow::Continue(())
    }
}

/// Defect 6: errors in other threads swallowed. Whichever worker fails, its own error is what the caller gets.
#[test]
fn an_error_of_one_worker_is_the_error_of_the_run() {
    let dataset = graph(150, 4);
    let failing = |change: &dyn Fn(&mut Vec<Part>)| {
        let config = config(&["transport.deadline_s=20"]);
        let mut parts = parts(&config, &dataset, 3);
        change(&mut parts);
        run_threads(&config, Source::of(parts), Options::default()).err().expect("a failing worker")
    };
    let error = failing(&|parts| parts[1].edges.sources[0] = 1_000_000);
    assert!(matches!(error, TrainError::Data(_)) && error.to_string().contains("part 1"), "{error}");
    let error = failing(&|parts| {
        let Features::Dense { values, .. } = &mut parts[2].features else { panic!("dense features") };
        values.fill(f32::NAN);
    });
    assert!(matches!(error, TrainError::Data(_)) && error.to_string().contains("part 2"), "{error}");
    let options = Options { observer: Box::new(Panicking), ..Options::default() };
    let error = try_run(&config(&["transport.deadline_s=20"]), &dataset, 3, options).err().expect("a panic");
    assert!(matches!(&error, TrainError::Panicked { rank: 0, message } if message.contains("had enough")), "{error}");
    assert_eq!(error.exit_code(), 70);
}

/// A run whose last step leaves the numbers either says so, or leaves files that can be read back.
#[test]
fn what_a_run_leaves_behind_can_be_read_back() {
    for workers in [1, 3] {
        for schedule in SCHEDULES {
            let folder = tempfile::tempdir().expect("a folder");
            let out = folder.path().join("run");
            let keys = [schedule, &["train.lr=1e38", "model.norm=none", "train.epochs=1"]].concat();
            match try_run(&config(&keys), &graph(150, 4), workers, into_folder(&out)) {
                Err(error) => assert!(matches!(error, TrainError::Diverged { .. }), "{keys:?}, {workers}: {error}"),
                Ok(outcomes) => {
                    assert_eq!(log(&out).len(), outcomes[0].trained.rounds as usize, "{keys:?}, {workers}");
                    assert_eq!(summary(&out).rounds, outcomes[0].trained.rounds, "{keys:?}, {workers}");
                }
            }
        }
    }
}

#[derive(Default, Clone)]
struct Moved(Arc<Mutex<Option<String>>>);

impl Observer for Moved {
    fn started(&mut self, _: &Config, _: usize, moved: Option<&Path>) {
        *self.0.lock().expect("unpoisoned") = moved.map(|path| path.display().to_string());
    }
}

/// Defect 10: result files that append across runs, and one path for all ranks.
#[test]
fn a_second_run_moves_the_first_aside() {
    let dataset = graph(150, 4);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    for (index, epochs) in [3, 5, 2].into_iter().enumerate() {
        let moved = Moved::default();
        let options = Options { observer: Box::new(moved.clone()), ..into_folder(&out) };
        let config = config(&[&format!("train.epochs={epochs}")]);
        let outcomes = try_run(&config, &dataset, 3, options).expect("a run");
        let aside = (index > 0).then(|| format!("{}.{index}", out.display()));
        assert_eq!(*moved.0.lock().expect("unpoisoned"), aside);
        assert_eq!(log(&out).len(), epochs);
        let ledger = std::fs::read_to_string(out.join("ledger.csv")).expect("a ledger");
        let total: u64 = ledger.lines().skip(1).map(|row| row.parse::<Row>().expect("a row").count.framed).sum();
        assert_eq!(total, summary(&out).bytes.total);
        assert_eq!(Some(&summary(&out)), outcomes[0].summary.as_ref());
    }
    let rounds = ["run.1", "run.2", "run"].map(|name| log(&folder.path().join(name)).len());
    assert_eq!(rounds, [3, 5, 2]);
    let mut names: Vec<String> = std::fs::read_dir(&out)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let expected = [
        "checkpoint.safetensors",
        "config.toml",
        "ledger.csv",
        "metrics.jsonl",
        "model.safetensors",
        "summary.json",
        "timeline.csv",
    ];
    assert_eq!(names, expected);
}
