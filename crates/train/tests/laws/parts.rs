//! Figures of single parts and classes: what parts tell adds up to the figures of all, is what the model says of each
//! part's own nodes, and survives whatever a run survives.

use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_graph::links::LinkRole;
use laconic_graph::part::Part;
use laconic_train::Summary;
use laconic_train::config::Config;
use laconic_train::plan::Members;
use laconic_train::record::parts::{ClassSummary, Judged, PartsSummary};
use laconic_train::record::weights;
use laconic_train::run::predict::{Predictions, predict_parts};
use laconic_train::run::source::Source;
use laconic_train::run::{Data, Options, Outcome, predict, train};
use laconic_wire::{Count, Kind};

use crate::fixture::{config, folder, graph, into_folder, multi_label, parts, run, try_run};
use crate::hosted::Until;
use crate::links::{self, Oracle};
use crate::same_bits::stop_after;

const METHODS: [&[&str]; 5] = [
    &["schedule.kind=synchronous"],
    &["schedule.kind=lazy"],
    &["schedule.kind=averaging", "schedule.interval=2 steps", "schedule.limit=8 steps", "transport.kind=simulated"],
    &["schedule.kind=llcg", "schedule.corrections=1", "schedule.interval=2 steps", "schedule.limit=8 steps"],
    &["batch.size=20"],
];

const TRAINERS_OF_LINKS: [&str; 4] =
    ["schedule.kind=averaging", "schedule.interval=2 steps", "schedule.limit=6 steps", "task.negatives=local"];

const COUNTED: &str = "train.metrics=[\"accuracy\", \"micro_f1\", \"macro_f1\"]";

fn summary(outcomes: &[Outcome]) -> &Summary {
    outcomes[0].summary.as_ref().expect("worker 0 sums up")
}

/// What a run says of its best round.
fn told(outcomes: &[Outcome]) -> impl PartialEq + std::fmt::Debug + '_ {
    let Summary { metrics, parts, classes, confusion, .. } = summary(outcomes);
    (metrics, parts, classes, confusion)
}

fn both<T>(of: &Option<Judged<T>>) -> [&T; 2] {
    let Judged { val, test } = of.as_ref().expect("told");
    [val, test]
}

fn close(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
        (found, expected) => found.is_none() && expected.is_none(),
    }
}

/// The mean of a figure over parts, each for what it has of nodes.
fn weighted(parts: &PartsSummary, figure: &str) -> f64 {
    let all = parts.figures[figure].of.iter().zip(&parts.count);
    all.map(|(of, count)| of.unwrap_or(0.0) * *count as f64).sum::<f64>() / parts.count.iter().sum::<u64>() as f64
}

/// Micro and macro F1 of counts of classes.
fn f1(classes: &[ClassSummary]) -> [f64; 2] {
    let of = |of: fn(&ClassSummary) -> u64| classes.iter().map(of).sum::<u64>() as f64;
    let right = of(|class| class.true_positives);
    let micro = 2.0 * right / (2.0 * right + of(|class| class.false_positives) + of(|class| class.false_negatives));
    let defined: Vec<f64> = classes.iter().filter_map(|class| class.f1).collect();
    [micro, defined.iter().sum::<f64>() / defined.len() as f64]
}

#[test]
fn what_parts_tell_adds_up_to_the_figures_of_all() {
    for keys in METHODS {
        for workers in [1, 3] {
            let outcomes = run(&config(&[keys, &[COUNTED]].concat()), &graph(150, 4), workers);
            let summary = summary(&outcomes);
            let (parts, classes, confusion) = (both(&summary.parts), both(&summary.classes), both(&summary.confusion));
            for (split, whole) in [&summary.metrics.scores.val, &summary.metrics.scores.test].into_iter().enumerate() {
                let (matrix, what) = (confusion[split], format!("{keys:?}, {workers} workers, split {split}"));
                let all: u64 = matrix.iter().flatten().sum();
                let right: u64 = (0..4).map(|class| matrix[class][class]).sum();
                let [micro, macro_f1] = f1(classes[split]);
                assert_eq!(parts[split].count.len(), workers as usize, "{what}");
                assert_eq!(parts[split].count.iter().sum::<u64>(), all, "{what}");
                assert!(close(Some(right as f64 / all as f64), whole["accuracy"]), "{what}: {matrix:?} {whole:?}");
                assert!(close(Some(weighted(parts[split], "accuracy")), whole["accuracy"]), "{what}");
                assert!(close(Some(weighted(parts[split], "loss")), whole["loss"]), "{what}");
                assert!(close(Some(micro), whole["micro_f1"]) && close(Some(macro_f1), whole["macro_f1"]), "{what}");
                for class in classes[split] {
                    let of = class.class as usize;
                    assert_eq!(class.support, matrix[of].iter().sum::<u64>(), "{what}");
                    assert_eq!(class.predicted, matrix.iter().map(|row| row[of]).sum::<u64>(), "{what}");
                }
            }
        }
    }
}

#[test]
fn counts_of_labels_add_up_to_the_figures_of_all() {
    for keys in METHODS {
        let outcomes = run(&config(&[keys, &[COUNTED]].concat()), &multi_label(150, 4), 3);
        let summary = summary(&outcomes);
        assert!(summary.confusion.is_none(), "several labels a node have no matrix");
        for (classes, whole) in
            both(&summary.classes).into_iter().zip([&summary.metrics.scores.val, &summary.metrics.scores.test])
        {
            let right: u64 = classes.iter().map(|class| class.true_positives + class.true_negatives).sum();
            let wrong: u64 = classes.iter().map(|class| class.false_positives + class.false_negatives).sum();
            let [micro, macro_f1] = f1(classes);
            assert!(close(Some(right as f64 / (right + wrong) as f64), whole["accuracy"]), "{keys:?}");
            assert!(close(Some(micro), whole["micro_f1"]) && close(Some(macro_f1), whole["macro_f1"]), "{keys:?}");
        }
    }
}

#[test]
fn one_worker_and_four_have_the_same_matrix() {
    for keys in [&METHODS[0], &METHODS[1], &METHODS[4]] {
        let keys = [keys, &["train.eval_every=0", "train.epsilon=1e-3"][..]].concat();
        let [one, four] = [1, 4].map(|workers| run(&config(&keys), &graph(150, 4), workers));
        assert_eq!(summary(&one).confusion, summary(&four).confusion, "{keys:?}");
        assert_eq!(summary(&one).classes, summary(&four).classes, "{keys:?}");
    }
}

/// What a model that was written down says of each part.
fn predicted(config: &Config, all: Vec<Part>, out: &std::path::Path) -> Vec<Predictions> {
    let weights = weights::read(&out.join(weights::FILE)).expect("a model").weights;
    let widths = [all[0].global.columns, all[0].global.classes];
    predict_parts((&Members::default(), config), Source::of(all), &weights, widths).expect("predictions")
}

/// Nodes of a role with a class that is known: that, and scores.
fn judged(part: &Predictions, role: u8) -> Vec<(usize, &[f32])> {
    let Labels::Single { values, .. } = &part.labels else { panic!("classes") };
    let rows = (0..values.len()).filter(|&row| part.roles[row] & role != 0 && values[row] >= 0);
    rows.map(|row| (values[row] as usize, part.inferred.logits.row(row))).collect()
}

/// Counted anew from scores, by who owns which node: accuracy, decisions, and the area by comparing every pair.
#[test]
fn figures_of_parts_are_what_the_model_says_of_their_own_nodes() {
    let dataset = graph(150, 2);
    for keys in METHODS {
        let (keys, folder) =
            ([keys, &["train.metrics=[\"accuracy\", \"roc_auc_exact\", \"roc_auc\"]"]].concat(), folder());
        let (config, out) = (config(&keys), folder.path().join("run"));
        let outcomes = try_run(&config, &dataset, 3, into_folder(&out)).expect("a run");
        let of_parts = predicted(&config, parts(&config, &dataset, 3), &out);
        let (told, confusion) = (both(&summary(&outcomes).parts), both(&summary(&outcomes).confusion));
        for (split, role) in [Split::VAL, Split::TEST].into_iter().enumerate() {
            let mut matrix = vec![vec![0; 2]; 2];
            for (number, part) in of_parts.iter().enumerate() {
                let all = judged(part, role);
                let guess = |scores: &[f32]| usize::from(scores[1] > scores[0]);
                all.iter().for_each(|(truth, scores)| matrix[*truth][guess(scores)] += 1);
                let count = all.len() as f64;
                let right = all.iter().filter(|(truth, scores)| *truth == guess(scores)).count() as f64;
                let of = |class: usize| all.iter().filter(move |(truth, _)| *truth == class).map(|(_, s)| s[1] - s[0]);
                let above = |up: f32, down: f32| if up > down { 1.0 } else { f64::from(u8::from(up == down)) / 2.0 };
                let pairs = (of(0).count() * of(1).count()) as f64;
                let ordered: f64 = of(1).map(|up| of(0).map(|down| above(up, down)).sum::<f64>()).sum();
                let area = (pairs > 0.0).then(|| ordered / pairs);
                let what = format!("{keys:?}, split {split}, part {number}");
                let found = |figure: &str| told[split].figures[figure].of[number];
                assert_eq!(told[split].count[number], all.len() as u64, "{what}");
                assert!(close(found("accuracy"), (count > 0.0).then(|| right / count)), "{what}");
                assert!(close(found("roc_auc_exact"), area), "{what}: {:?}, {area:?}", found("roc_auc_exact"));
                let near = found("roc_auc").zip(area).is_none_or(|(found, area)| (found - area).abs() < 0.05);
                assert!(near && found("roc_auc").is_some() == area.is_some(), "{what}");
            }
            assert_eq!(confusion[split], &matrix, "{keys:?}, split {split}");
        }
    }
}

#[test]
fn a_run_that_was_stopped_tells_the_same_of_its_parts_as_one_that_was_not() {
    let dataset = graph(150, 4);
    // Trainers of links begin as the others do, with how they are scheduled.
    let of_links: Vec<&str> = TRAINERS_OF_LINKS.into_iter().chain(links::keys(&[])).collect();
    for keys in METHODS.into_iter().chain([&of_links[..]]) {
        // A rate of 1 is best early, before the run is stopped, and a small one late.
        for more in [&["train.lr=1.0"][..], &["train.lr=0.01"], &["train.lr=1.0", "out.checkpoint_every=1"]] {
            let keys = [keys, more, &["train.epochs=6", "train.optimiser=sgd", "train.momentum=0"]].concat();
            let straight = run(&config(&keys), &dataset, 3);
            let out = folder();
            let stopping = if keys[0].contains("averaging") || keys[0].contains("llcg") {
                Options { observer: Box::new(Until(3)), ..into_folder(out.path()) }
            } else {
                stop_after(4, out.path())
            };
            let stopped = try_run(&config(&keys), &dataset, 3, stopping).expect("a run");
            assert!(summary(&stopped).parts.is_some(), "{keys:?}");
            let options = Options { resume: true, ..into_folder(out.path()) };
            let resumed = try_run(&config(&keys), &dataset, 3, options).expect("it goes on");
            assert_eq!(told(&resumed), told(&straight), "{keys:?}");
            // Once more where nothing is left to train.
            let options = Options { resume: true, ..into_folder(out.path()) };
            let again = try_run(&config(&keys), &dataset, 3, options).expect("it goes on");
            assert_eq!(told(&again), told(&straight), "{keys:?}");
        }
    }
}

#[test]
fn workers_tell_once_what_was_predicted_and_nothing_where_they_are_not_to() {
    for (keys, classes) in [(METHODS[0], 4), (METHODS[1], 3), (METHODS[4], 4)] {
        let control = |told: &str| {
            let outcomes = run(&config(&[keys, &[told]].concat()), &graph(150, classes), 3);
            // What batches read is predicted as a bound.
            let exact = outcomes.iter().filter(|outcome| outcome.plan.is_predictable());
            exact.for_each(|outcome| assert_eq!(outcome.sent, outcome.predicted, "{keys:?}"));
            let summary = summary(&outcomes);
            assert_eq!(summary.parts.is_some(), told.ends_with("true"), "{keys:?}");
            assert_eq!(summary.classes.is_some(), told.ends_with("true"), "{keys:?}");
            outcomes.iter().map(|outcome| outcome.sent.totals_by_kind()[Kind::Control].framed).sum::<u64>()
        };
        // Of validation and testing how many, loss and accuracy, and the matrix.
        let told = Count::of(1, 2 * (8 + 2 * 8 + 4 * (classes * classes) as u64)).framed;
        let [with, without] = ["train.part_figures=true", "train.part_figures=false"].map(control);
        assert_eq!(with - without, 2 * told, "{keys:?}");
    }
}

#[test]
fn held_out_edges_of_parts_add_up_to_those_of_all() {
    let metrics_of = "train.metrics=[\"mrr\", \"hits@20\", \"roc_auc\", \"roc_auc_exact\", \"recall@10\"]";
    for more in [&["model.arch=gcn"][..], &["schedule.kind=lazy"], &TRAINERS_OF_LINKS] {
        for workers in [1, 3] {
            let keys = links::keys(&[more, &[metrics_of]].concat());
            let outcomes = run(&config(&keys), &graph(180, 4), workers);
            let found = summary(&outcomes);
            assert!(found.classes.is_none() && found.confusion.is_none());
            for (parts, whole) in
                both(&found.parts).into_iter().zip([&found.metrics.scores.val, &found.metrics.scores.test])
            {
                assert_eq!(parts.count.len(), workers as usize, "{keys:?}");
                assert!(parts.count.iter().all(|count| *count > 0), "{keys:?}: {parts:?}");
                for name in ["mrr", "hits@20", "recall@10"] {
                    assert!(close(Some(weighted(parts, name)), whole[name]), "{keys:?}: {name} {parts:?} {whole:?}");
                }
                if workers == 1 {
                    // The only part is the whole, whatever the figure.
                    assert!(whole.iter().all(|(name, figure)| close(parts.figures[name].of[0], *figure)), "{keys:?}");
                }
                let areas = &parts.figures["roc_auc"];
                assert!(areas.of.iter().all(|area| area.is_some_and(|area| area > 0.0 && area <= 1.0)), "{keys:?}");
            }
        }
    }
    let keys = links::keys(&[&TRAINERS_OF_LINKS[..], &["train.part_figures=false"]].concat());
    assert!(summary(&run(&config(&keys), &graph(180, 4), 3)).parts.is_none(), "nobody tells");
}

/// Counted anew from everybody's embeddings, edge by edge: an edge is of its target's part, whoever judges it. Hits are
/// above the pool of all parts.
#[test]
fn figures_of_links_of_parts_are_what_the_model_says_of_edges_that_end_in_them() {
    let dataset = links::unlabelled();
    let metrics_of = "train.metrics=['mrr', 'hits@10', 'roc_auc', 'roc_auc_exact', 'recall@10', 'ndcg@10', 'ndcg@20']";
    for more in [&["model.arch=sage"][..], &TRAINERS_OF_LINKS] {
        let keys = links::keys(&[more, &["train.eval_every=0", "partition.parts=3", metrics_of]].concat());
        let run = train(&config(&keys), dataset.clone(), Options::default()).expect("a run");
        let (mut embeddings, mut owners) = (vec![Vec::new(); 180], vec![0; 180]);
        for (number, part) in predict(&run, Data::from(dataset.clone())).expect("embeddings").iter().enumerate() {
            for (row, &node) in part.nodes.iter().enumerate() {
                embeddings[node as usize] = part.inferred.logits.row(row).to_vec();
                owners[node as usize] = number;
            }
        }
        let score = |a: u64, b: u64| -> f64 {
            let pairs = embeddings[a as usize].iter().zip(&embeddings[b as usize]);
            pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let told = both(&run.summary.parts);
        for (found, role) in told.into_iter().zip([LinkRole::Val, LinkRole::Test]) {
            let all = Oracle::ending_at(&dataset, role, score, |_| true);
            for part in 0..3 {
                let mut own = Oracle::ending_at(&dataset, role, score, |target| owners[target as usize] == part);
                assert!(own.edges.len() > 5 && own.edges.len() < all.edges.len());
                assert_eq!(found.count[part], own.edges.len() as u64, "{keys:?}, {role:?}, part {part}");
                own.pool.clone_from(&all.pool);
                for (name, expected, near) in own.figures() {
                    let Some(of) = found.figures.get(name).map(|figure| figure.of[part]) else { continue };
                    let what = format!("{keys:?}, {role:?} {name} of part {part}: {of:?}, not {expected:?}");
                    assert!((of.expect("a figure") - expected.expect("a figure")).abs() < near, "{what}");
                }
            }
        }
    }
}

#[test]
fn many_classes_are_told_one_by_one_and_without_a_matrix() {
    let dataset: Dataset = graph(400, 101);
    let outcomes = run(&config(&[COUNTED, "train.epochs=1"]), &dataset, 3);
    let found = summary(&outcomes);
    assert!(found.confusion.is_none());
    let notes = &outcomes[0].summary.as_ref().expect("a summary").notes;
    assert!(notes.iter().any(|note| note.contains("`confusion` is left out")), "{notes:?}");
    let classes = both(&found.classes)[1];
    let [micro, macro_f1] = f1(classes);
    let whole = &found.metrics.scores.test;
    assert!(close(Some(micro), whole["micro_f1"]) && close(Some(macro_f1), whole["macro_f1"]));
    let nodes: u64 = classes.iter().map(|class| class.support).sum();
    let adds_up = |class: &ClassSummary| class.predicted + class.false_negatives + class.true_negatives == nodes;
    assert!(classes.len() == 101 && classes.iter().all(adds_up));
}

#[test]
fn a_part_without_the_split_has_no_figure_and_counts_in_no_mean() {
    let outcomes = run(&config(&[]), &graph(150, 4), 3);
    // The last part has neither training nor validation nodes.
    let [val, test] = both(&summary(&outcomes).parts);
    assert_eq!((val.count[2], val.figures["accuracy"].of[2]), (0, None));
    assert!(test.count[2] > 0 && test.figures["accuracy"].of[2].is_some());
    let two: Vec<f64> = val.figures["accuracy"].of.iter().copied().flatten().collect();
    assert_eq!(two.len(), 2);
    assert!(close(val.figures["accuracy"].mean, Some((two[0] + two[1]) / 2.0)));
    assert!(close(val.figures["accuracy"].spread, Some((two[0] - two[1]).abs() / 2f64.sqrt())));
    let worst = val.figures["accuracy"].worst.expect("two parts");
    assert_eq!((worst.figure, f64::from(worst.part)), (two[0].min(two[1]), f64::from(u8::from(two[1] < two[0]))));
}
