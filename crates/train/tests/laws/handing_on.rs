//! What stages hand on, against a few lines of double precision that know nothing of workers: whole models of every
//! kind, and losses and gradients of their stages.

use std::collections::BTreeMap;

use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_train::config::Config;
use laconic_train::plan::{Members, Plan};
use laconic_train::record::weights::{Weights, weights};

use crate::defects_of_retexo::logits;
use crate::fixture::{FEATURES, PLAIN, config, graph, parts, run};
use crate::same_bits::bits;

const CLASSES: usize = 4;

/// Every start with everything that can be handed on.
fn ways() -> Vec<[&'static str; 2]> {
    let starts = ["schedule.start=features", "schedule.start=mlp"];
    let handed = ["schedule.hand_on=hidden", "schedule.hand_on=scores", "schedule.hand_on={columns=3}"];
    starts.into_iter().flat_map(|start| handed.map(|handed| [start, handed])).collect()
}

type Rows = Vec<Vec<f64>>;

/// A model of sage layers without norms, by the names of its tensors.
struct Plain<'a> {
    dataset: &'a Dataset,
    tensors: BTreeMap<String, Vec<f64>>,
    from_mlp: bool,
    handed: &'a str,
    layers: usize,
}

fn sum(mut a: Rows, b: Rows) -> Rows {
    a.iter_mut().flatten().zip(b.iter().flatten()).for_each(|(a, b)| *a += b);
    a
}

impl Plain<'_> {
    /// x Wᵀ, and a bias where there is one.
    fn linear(&self, name: &str, x: &Rows) -> Rows {
        let weight = &self.tensors[&format!("{name}.weight")];
        let outputs = weight.len() / x[0].len();
        let none = vec![0.0; outputs];
        let bias = self.tensors.get(&format!("{name}.bias")).unwrap_or(&none);
        let entry = |x: &[f64], row: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        x.iter().map(|x| weight.chunks(x.len()).zip(bias).map(|(row, bias)| bias + entry(x, row)).collect()).collect()
    }

    fn mean_of_neighbours(&self, x: &Rows) -> Rows {
        let of = |node: usize| {
            let sources = self.dataset.graph.in_neighbours(node);
            let column =
                |c: usize| sources.iter().map(|&s| x[s as usize][c]).sum::<f64>() / sources.len().max(1) as f64;
            (0..x[0].len()).map(column).collect()
        };
        (0..x.len()).map(of).collect()
    }

    fn sage(&self, index: usize, x: &Rows) -> Rows {
        let neighbours = self.linear(&format!("convs.{index}.lin_l"), &self.mean_of_neighbours(x));
        sum(neighbours, self.linear(&format!("convs.{index}.lin_r"), x))
    }

    /// What a stage hands on, and its logits.
    fn stage(&self, index: usize, x: &Rows) -> (Rows, Rows) {
        let is_last = index + usize::from(!self.from_mlp) == self.layers;
        let z = match (self.from_mlp, index) {
            (true, 0) => self.linear("mlp.0", x),
            _ => self.sage(index, x),
        };
        if is_last && !self.from_mlp {
            return (Rows::new(), z);
        }
        let hidden: Rows = z.into_iter().map(|row| row.into_iter().map(|v| v.max(0.0)).collect()).collect();
        let narrow = self.handed.contains("columns") && !is_last;
        let read = if narrow { self.linear(&format!("bottlenecks.{index}"), &hidden) } else { hidden };
        let classifier = if self.from_mlp && index == 0 { "mlp.1".to_owned() } else { format!("heads.{index}") };
        let scores = self.linear(&classifier, &read);
        (if self.handed.contains("scores") { scores.clone() } else { read }, scores)
    }

    /// The inputs of a stage.
    fn inputs(&self, index: usize) -> Rows {
        let Features::Dense { values, .. } = &self.dataset.features else { panic!("dense features") };
        let x: Rows = values.chunks(FEATURES).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect();
        (0..index).fold(x, |x, index| self.stage(index, &x).0)
    }

    /// The mean cross-entropy of a stage over training nodes.
    fn loss(&self, index: usize, x: &Rows) -> f64 {
        let Labels::Single { values: labels, .. } = &self.dataset.labels else { panic!("classes") };
        let is_trained = |node: &usize| self.dataset.splits[0].roles[*node] & Split::TRAIN != 0 && labels[*node] >= 0;
        let trained: Vec<usize> = (0..labels.len()).filter(is_trained).collect();
        let (_, logits) = self.stage(index, x);
        let of = |&node: &usize| {
            let normaliser = logits[node].iter().map(|z| z.exp()).sum::<f64>().ln();
            normaliser - logits[node][labels[node] as usize]
        };
        trained.iter().map(of).sum::<f64>() / trained.len() as f64
    }
}

fn named(config: &Config, chosen: &[Vec<f32>]) -> Weights {
    let plan = Plan::for_model(&Members::default(), config, [FEATURES, CLASSES]).expect("a plan");
    weights(&plan.stages, chosen)
}

fn plain<'a>(dataset: &'a Dataset, config: &Config, way: [&'a str; 2], weights: &Weights) -> Plain<'a> {
    let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect();
    let tensors = weights.iter().map(|(name, (_, values))| (name.clone(), wide(values))).collect();
    Plain { dataset, tensors, from_mlp: way[0].contains("mlp"), handed: way[1], layers: config.model.layers }
}

const MODEL: [&str; 6] = [
    "schedule.kind=lazy",
    "model.arch=sage",
    "model.norm=none",
    "model.layers=3",
    "model.hidden=5",
    "train.eval_every=0",
];

#[test]
fn models_of_every_way_are_what_plain_arithmetic_makes_of_their_tensors() {
    let dataset = graph(60, CLASSES);
    for way in ways() {
        let config = config(&[&MODEL[..], &way, &["train.epochs=5"]].concat());
        let weights = named(&config, &run(&config, &dataset, 3)[0].trained.chosen);
        let has_bottleneck = weights.keys().any(|name| name.starts_with("bottlenecks."));
        assert_eq!(has_bottleneck, way[1].contains("columns"), "{way:?}: {:?}", weights.keys());
        let plain = plain(&dataset, &config, way, &weights);
        let last = config.model.layers - usize::from(!plain.from_mlp);
        let (_, expected) = plain.stage(last, &plain.inputs(last));
        let found = logits(&config, parts(&config, &dataset, 3), &weights);
        let largest = expected.iter().flatten().fold(0.0f64, |most, v| most.max(v.abs()));
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((f64::from(*found) - expected).abs() < 1e-5 * largest, "{way:?}: {found} instead of {expected}");
        }
    }
}

/// One step of rate 1 in one stage moves its parameters by their gradient; those of all others stay as they are drawn.
#[test]
fn gradients_of_every_stage_are_finite_differences_of_the_plain_loss() {
    const STEP: f64 = 1e-5;
    let dataset = graph(48, CLASSES);
    for way in ways() {
        let count = 3 + usize::from(way[0].contains("mlp"));
        for stage in 0..count {
            let of = |rounds: usize| {
                let mut each = vec![0; count];
                each[stage] = rounds;
                let rounds = format!("schedule.rounds={each:?}");
                let config = config(&[&PLAIN[..], &MODEL, &way, &[&rounds]].concat());
                let chosen = run(&config, &dataset, 3).swap_remove(0).trained.chosen;
                (named(&config, &chosen), config)
            };
            let ((before, config), (after, _)) = (of(0), of(1));
            let mut plain = plain(&dataset, &config, way, &before);
            let x = plain.inputs(stage);
            let moved = |name: &String| before[name] != after[name];
            let names: Vec<String> = before.keys().filter(|name| moved(name)).cloned().collect();
            let narrow = format!("bottlenecks.{stage}.weight");
            assert_eq!(names.contains(&narrow), before.contains_key(&narrow), "{way:?}, stage {stage}: {names:?}");
            let (mut largest, mut apart) = (0.0f64, 0.0f64);
            for name in &names {
                for at in 0..before[name].1.len() {
                    let value = plain.tensors[name][at];
                    let mut loss = |value: f64| {
                        plain.tensors.get_mut(name).expect("a tensor")[at] = value;
                        plain.loss(stage, &x)
                    };
                    let expected = (loss(value + STEP) - loss(value - STEP)) / (2.0 * STEP);
                    plain.tensors.get_mut(name).expect("a tensor")[at] = value;
                    let found = f64::from(before[name].1[at]) - f64::from(after[name].1[at]);
                    largest = largest.max(expected.abs());
                    apart = apart.max((found - expected).abs());
                }
            }
            // Single precision leaves 1e-7 of parameters that are a hundred times as large as their gradients.
            assert!(apart < 1e-4 * largest, "{way:?}, stage {stage}: {apart:.1e} of {largest:.1e}");
        }
    }
}

#[test]
fn what_is_handed_on_without_a_word_is_hidden_rows_from_features_and_scores_from_an_mlp() {
    let dataset = graph(120, CLASSES);
    for [start, handed] in
        [["schedule.start=features", "schedule.hand_on=hidden"], ["schedule.start=mlp", "schedule.hand_on=scores"]]
    {
        let keys = ["schedule.kind=lazy", "model.layers=3", start];
        let bits_with = |keys: &[&str]| bits(&run(&config(keys), &dataset, 3));
        let without = bits_with(&keys);
        assert!(without == bits_with(&[&keys[..], &[handed]].concat()), "{start} {handed}");
        assert!(without != bits_with(&[&keys[..], &["schedule.hand_on={columns=3}"]].concat()), "{start}");
    }
}

/// Where training goes without the others' rows, evaluations may see them; what is handed on to the next stage's
/// training has not.
#[test]
fn rows_that_evaluations_alone_have_seen_are_handed_on_to_evaluations_alone() {
    let dataset = graph(120, CLASSES);
    let alone = ["schedule.kind=lazy", "model.layers=3", "messages.selection=none", "train.eval_every=0"];
    for way in ways() {
        for arch in ["model.arch=gcn", "model.arch=gat"] {
            let chosen = |evaluation: &str| {
                let keys = [&alone[..], &way, &[arch, evaluation]].concat();
                let trained = run(&config(&keys), &dataset, 3).swap_remove(0).trained;
                (trained.chosen, trained.scores.test["loss"].expect("a figure"))
            };
            let (seeing, blind) = (chosen("messages.evaluation=exact"), chosen("messages.evaluation=none"));
            assert!(seeing.0 == blind.0, "{way:?}, {arch}: what evaluations see has changed the parameters");
            assert!(seeing.1 != blind.1, "{way:?}, {arch}: evaluations see no more");
        }
    }
}
