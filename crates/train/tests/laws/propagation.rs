//! Labels that pass along edges: as a plain program has it over the whole graph, on one worker as on many, for the
//! bytes that were predicted, and with leave alone.

use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_train::record::weights::{self, Weights};
use laconic_train::run::{Options, Outcome};
use laconic_train::{Config, TrainError};

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{config, folder, graph, into_folder, multi_label, parts, try_run, weighted};
use crate::ledger_is_prediction::assert_predicted;
use crate::same_bits::{assert_goes_on, assert_same};

const ALLOWED: &str = r#"policy.allow=["labels"]"#;
const LABELS: [&str; 2] = ["schedule.kind=label_propagation", ALLOWED];
const SCORES: [&str; 4] =
    ["schedule.kind=correct_and_smooth", ALLOWED, "model.arch=mlp", "schedule.normalise=symmetric"];

/// Edges with weights, degrees and labels of a whole graph, in `f64`.
struct Plain {
    edges: Vec<(usize, usize, f64)>,
    roots: Vec<f64>,
    /// The class of each node that is learned from.
    known: Vec<Option<usize>>,
    classes: usize,
}

type Rows = Vec<Vec<f64>>;

impl Plain {
    /// Of a graph in which nodes are their own neighbours, or not.
    fn of(dataset: &Dataset, loops: bool) -> Plain {
        let (graph, nodes) = (&dataset.graph, dataset.splits[0].roles.len());
        let own = if loops { 1.0 } else { 0.0 };
        let mut edges: Vec<(usize, usize, f64)> = (0..nodes).map(|node| (node, node, own)).collect();
        let mut degrees = vec![own; nodes];
        for (target, degree) in degrees.iter_mut().enumerate() {
            for edge in graph.in_edges(target) {
                let weight = graph.data.weights.as_ref().map_or(1.0, |weights| f64::from(weights[edge]));
                *degree += weight;
                edges.push((graph.sources[edge] as usize, target, weight));
            }
        }
        let Labels::Single { classes, values } = &dataset.labels else { panic!("classes") };
        let trains = |node: usize| dataset.splits[0].roles[node] & Split::TRAIN != 0;
        let known = (0..nodes).map(|node| usize::try_from(values[node]).ok().filter(|_| trains(node))).collect();
        let roots = degrees.iter().map(|&degree| if degree > 0.0 { 1.0 / f64::sqrt(degree) } else { 0.0 }).collect();
        Plain { edges, roots, known, classes: *classes }
    }

    fn one_hot(&self, rows: &mut Rows) {
        for (row, class) in rows.iter_mut().zip(&self.known) {
            let Some(class) = class else { continue };
            *row = (0..self.classes).map(|column| f64::from(column == *class)).collect();
        }
    }

    fn zeros(&self) -> Rows {
        vec![vec![0.0; self.classes]; self.known.len()]
    }

    fn steps(&self, start: &Rows, alpha: f64, count: usize, after: impl Fn(&mut Vec<f64>)) -> Rows {
        let mut rows = start.clone();
        for _ in 0..count {
            let mut sums = self.zeros();
            for &(source, target, weight) in &self.edges {
                let by = weight * self.roots[source] * self.roots[target];
                sums[target].iter_mut().zip(&rows[source]).for_each(|(sum, value)| *sum += by * value);
            }
            for (sums, start) in sums.iter_mut().zip(start) {
                sums.iter_mut().zip(start).for_each(|(sum, start)| *sum = alpha * *sum + (1.0 - alpha) * start);
                after(sums);
            }
            rows = sums;
        }
        rows
    }

    fn labels(&self, alpha: f64, count: usize, divides: bool) -> Rows {
        let mut start = self.zeros();
        self.one_hot(&mut start);
        self.steps(&start, alpha, count, |row| {
            if divides {
                let sum = row.iter().sum::<f64>() + 0.05;
                row.iter_mut().for_each(|value| *value /= sum);
            }
        })
    }

    /// From scores: autoscale, as in PyTorch Geometric's `CorrectAndSmooth`.
    fn correct_and_smooth(&self, scores: &[Vec<f32>], alpha: f64, count: usize) -> Rows {
        let soft = |row: &Vec<f32>| {
            let powers: Vec<f64> = row.iter().map(|&score| f64::from(score).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.into_iter().map(|power| power / sum).collect::<Vec<f64>>()
        };
        let mut shares: Rows = scores.iter().map(soft).collect();
        let mut errors = self.zeros();
        self.one_hot(&mut errors);
        for ((errors, shares), known) in errors.iter_mut().zip(&shares).zip(&self.known) {
            if known.is_some() {
                errors.iter_mut().zip(shares).for_each(|(error, share)| *error -= share);
            }
        }
        let size =
            errors.iter().flatten().map(|error| error.abs()).sum::<f64>() / self.known.iter().flatten().count() as f64;
        let spread = self.steps(&errors, alpha, count, |row| {
            row.iter_mut().for_each(|value| *value = value.clamp(-1.0, 1.0));
        });
        for (shares, errors) in shares.iter_mut().zip(&spread) {
            let factor = size / errors.iter().map(|error| error.abs()).sum::<f64>();
            let factor = if factor <= 1000.0 { factor } else { 1.0 };
            shares.iter_mut().zip(errors).for_each(|(share, error)| *share += factor * error);
        }
        self.one_hot(&mut shares);
        self.steps(&shares, alpha, count, |row| row.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0)))
    }
}

/// A run, the weights that it leaves, and the rows that it ends with in the order of nodes.
fn run(config: &Config, dataset: &Dataset, workers: u32) -> (Vec<Outcome>, Weights, Rows) {
    let (folder, out) = (folder(), "run");
    let outcomes = try_run(config, dataset, workers, into_folder(&folder.path().join(out))).expect("a run");
    let weights = weights::read(&folder.path().join(out).join(weights::FILE)).expect("a model").weights;
    let scores = logits(config, parts(config, dataset, workers), &weights);
    let found = accuracy(dataset, &scores, Split::TEST).0;
    assert_eq!(Some(found), outcomes[0].trained.scores.test["accuracy"], "predictions are what was judged");
    let shares = |row: &Vec<f32>| row.iter().map(|&score| f64::from(score).exp()).collect();
    (outcomes, weights, scores.iter().map(shares).collect())
}

/// The largest difference of two sets of rows, of which values below 0 count as 0.
fn apart(found: &Rows, expected: &Rows) -> f64 {
    let pairs = found.iter().flatten().zip(expected.iter().flatten());
    pairs.map(|(found, expected)| (found - expected.max(0.0)).abs()).fold(0.0, f64::max)
}

#[test]
fn labels_pass_along_edges_as_in_a_plain_program() {
    for dataset in [graph(180, 4), weighted(180, 4)] {
        let plain = Plain::of(&dataset, false);
        for (steps, alpha) in [(1, 0.9), (3, 0.9), (6, 0.6)] {
            for (normalise, divides) in [("symmetric", false), ("divided", true)] {
                let keys = [
                    format!("schedule.steps={steps}"),
                    format!("schedule.alpha={alpha}"),
                    format!("schedule.normalise={normalise}"),
                ];
                let keys: Vec<&str> = LABELS.into_iter().chain(keys.iter().map(String::as_str)).collect();
                let expected = plain.labels(f64::from(alpha as f32), steps, divides);
                for workers in [1, 3] {
                    let (_, weights, found) = run(&config(&keys), &dataset, workers);
                    assert!(weights.is_empty(), "nothing is learned");
                    let apart = apart(&found, &expected);
                    assert!(apart < 1e-5, "{keys:?} on {workers} workers: {apart:.1e}");
                }
            }
        }
    }
}

#[test]
fn scores_are_corrected_and_smoothed_as_in_a_plain_program() {
    for dataset in [graph(180, 4), weighted(180, 4)] {
        // Those of the model, where it has layers with self-loops.
        for (arch, loops) in [("model.arch=mlp", false), ("model.arch=sage", false), ("model.arch=gat", true)] {
            let plain = Plain::of(&dataset, loops);
            let config = config(&[&SCORES[..], &[arch, "schedule.alpha=0.8", "train.epochs=6"]].concat());
            let (_, weights, found) = run(&config, &dataset, 3);
            let alone = Config {
                schedule: laconic_train::config::ScheduleConfig::default(),
                policy: laconic_train::config::PolicyConfig::default(),
                ..config.clone()
            };
            let scores = logits(&alone, parts(&alone, &dataset, 3), &weights);
            let apart = apart(&found, &plain.correct_and_smooth(&scores, f64::from(0.8f32), 3));
            assert!(apart < 2e-5, "{arch}: {apart:.1e}");
        }
    }
}

#[test]
fn what_passes_along_edges_between_workers_is_what_does_on_one() {
    let dataset = graph(180, 4);
    let divided = "schedule.normalise=divided";
    for keys in [&LABELS[..], &[LABELS[0], ALLOWED, divided], &SCORES, &[SCORES[0], ALLOWED, "model.arch=gcn", divided]]
    {
        let keys = [keys, &["train.eval_every=0"]].concat();
        let (_, _, one) = run(&config(&keys), &dataset, 1);
        for method in ["partition.method=random", "partition.method=multilevel"] {
            for workers in [2, 4, 7] {
                let (_, _, many) = run(&config(&[&keys[..], &[method]].concat()), &dataset, workers);
                // A trained model may differ by as much as training does.
                let apart = apart(&many, &one);
                let most = if keys.contains(&LABELS[0]) { 1e-5 } else { 1e-4 };
                assert!(apart < most, "{keys:?}, {method}, {workers} workers: {apart:.1e}");
            }
        }
    }
}

const CODECS: [&[&str]; 6] = [
    &[],
    &["messages.forward=half"],
    &[r#"messages.forward={codec="quantised",bits=2}"#],
    &[r#"messages.forward={codec="codewords",pieces=3}"#],
    &[r#"messages.layers.2.forward={codec="quantised",bits=8}"#, "messages.layers.3.forward=half"],
    &["messages.forward=half", "messages.evaluation=half", r#"messages.parameters={codec="quantised",bits=4}"#],
];

/// What the model before it may be trained by.
const TRAINED: [&[&str]; 8] = [
    &["model.arch=mlp"],
    &["model.arch=mlp", "train.sync_every=2", r#"messages.parameters={codec="quantised",bits=4}"#],
    &["model.arch=mlp", "batch.size=20"],
    &["model.arch=gcn", "model.layers=3"],
    &["model.arch=sage", "schedule.cache_inputs=false", "out.checkpoint_every=2"],
    &["model.arch=gat", "messages.evaluation=none"],
    &["model.arch=gcn", r#"messages.selection={kind="boundary_sample",rate=0.4}"#],
    &["model.arch=gcn", r#"model.inputs=["features","labels"]"#, "train.eval_every=0"],
];

#[test]
fn steps_along_edges_send_what_was_predicted() {
    let dataset = graph(150, 3);
    for codec in CODECS {
        for more in [&["schedule.steps=1"][..], &[], &["schedule.steps=4", "schedule.normalise=divided"]] {
            // There is no layer of further steps where there is one.
            if more != ["schedule.steps=1"] || codec.iter().all(|key| !key.contains("layers")) {
                assert_predicted(&dataset, &[&LABELS[..], codec, more].concat(), 3);
            }
        }
        for trained in TRAINED.iter().filter(|keys| !keys.contains(&"batch.size=20")) {
            assert_predicted(&dataset, &[&SCORES[..2], codec, *trained].concat(), 3);
        }
    }
    for metrics in ["train.metrics=[\"roc_auc\", \"roc_auc_exact\"]", "train.metrics=[\"micro_f1\", \"macro_f1\"]"] {
        assert_predicted(&graph(150, 2), &[&LABELS[..], &[metrics, "out.checkpoint_every=1"]].concat(), 4);
    }
    assert_predicted(&dataset, &LABELS, 1);
    assert_predicted(&dataset, &SCORES, 1);
}

/// Messages that lose something still end with shares, and with the same on every run.
#[test]
fn codecs_of_steps_change_what_comes_of_them_and_nothing_else() {
    let dataset = graph(180, 4);
    let (_, _, exact) = run(&config(&LABELS), &dataset, 3);
    for (codec, most) in [(CODECS[1], 1e-2), (CODECS[2], 0.5)] {
        let (_, _, found) = run(&config(&[&LABELS[..], codec].concat()), &dataset, 3);
        let apart = apart(&found, &exact);
        assert!(apart > 0.0 && apart < most, "{codec:?}: {apart:.1e}");
    }
    for keys in [&LABELS[..], &SCORES] {
        let keys = [keys, CODECS[2]].concat();
        assert_same(
            &dataset,
            3,
            &keys,
            &[&["train.threads=2"], &["schedule.overlap=false"], &["train.recompute=true"]],
        );
    }
}

#[test]
fn a_run_that_was_stopped_before_its_steps_goes_on_to_the_same_end() {
    for trained in [TRAINED[0], TRAINED[1], TRAINED[3]] {
        assert_goes_on(&graph(150, 3), &[&SCORES[..2], trained, &["train.epochs=5"]].concat(), &[2, 5]);
    }
}

/// Why a configuration of these keys is refused, before there are data.
fn refusal(keys: &[&str]) -> TrainError {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    Config::parse("", &keys).expect_err(&keys.join(" "))
}

#[test]
fn labels_pass_along_edges_with_leave_alone() {
    for schedule in ["schedule.kind=label_propagation", "schedule.kind=correct_and_smooth"] {
        for (keys, words) in [
            (&[][..], r#"policy.allow = ["labels"]"#),
            (&[r#"policy.allow=["training_labels"]"#], "propagated labels leave"),
            (&[ALLOWED, r#"policy.deny=["propagated_labels"]"#], "policy.deny has it"),
            (&[ALLOWED, r#"policy.deny=["rows"]"#], "policy.deny has it"),
        ] {
            let refused = refusal(&[&[schedule][..], keys].concat());
            assert!(matches!(refused, TrainError::NotAllowed { .. }) && refused.exit_code() == 7, "{refused}");
            assert!(refused.to_string().contains(words), "{refused}");
        }
    }
    let refused = refusal(&[LABELS[0], r#"policy.allow=["propagated_labels"]"#]);
    assert!(refused.exit_code() == 7 && refused.to_string().contains("training labels leave"), "{refused}");
}

#[test]
fn what_labels_cannot_pass_along_is_refused_with_a_reason() {
    for keys in [&LABELS[..], &SCORES[..2]] {
        for (more, words) in [
            ("schedule.steps=0", "schedule.steps = 0"),
            ("schedule.alpha=0", "schedule.alpha"),
            ("schedule.alpha=nan", "schedule.alpha"),
            ("data.inductive=true", "data.inductive"),
            ("messages.selection=none", "takes out"),
            ("task.kind=link_prediction", "learns none"),
            ("schedule.rounds=[1]", "does not read it"),
        ] {
            let error = refusal(&[keys, &[more]].concat()).to_string();
            assert!(error.contains(words), "{keys:?} {more}: {error}");
        }
        for (more, words) in [
            (r#"messages.forward={codec="masked",ratio=2}"#, "exact, half, codewords, or quantised"),
            (r#"messages.forward={codec="quantised",bits="adaptive"}"#, "exact, half, codewords, or quantised"),
            (r#"messages.forward={codec="quantised",bits={from=2,to=8}}"#, "messages.layers."),
            ("model.arch=rgcn", "one relation"),
        ] {
            let error = refusal(&[keys, &[more]].concat()).to_string();
            assert!(error.contains(words), "{keys:?} {more}: {error}");
        }
        let error = try_run(&config(keys), &multi_label(60, 3), 2, Options::default()).err().expect("refused");
        assert!(error.to_string().contains("several classes"), "{error}");
    }
}

/// Neither the kind of layer nor its loops reach a run without layers, and features are not asked for.
#[test]
fn labels_pass_along_edges_without_features_or_a_model() {
    let mut dataset = graph(150, 3);
    let (_, _, expected) = run(&config(&LABELS), &dataset, 2);
    let (_, _, found) = run(&config(&[&LABELS[..], &["model.arch=gcn"]].concat()), &dataset, 2);
    assert_eq!(found, expected);
    dataset.features = laconic_graph::dataset::Features::None;
    let (_, _, found) = run(&config(&LABELS), &dataset, 2);
    assert_eq!(found, expected);
}
