//! How often predictions are right, where the truth is known.

use std::collections::BTreeMap;

use laconic_graph::dataset::{Labels, Split};
use laconic_nn::loss::Targets;
use laconic_nn::metric::{Metric, Tally};
use laconic_train::run::predict::Predictions;

/// Metrics by split, `None` where one is not defined; `labelled` are all nodes whose label is known.
pub type Figures = BTreeMap<&'static str, BTreeMap<&'static str, Option<f64>>>;

/// The names of splits in [`Figures`], in their usual order.
pub const SPLITS: [&str; 4] = ["train", "val", "test", "labelled"];

/// The figures of what was predicted: those of these metrics that follow from decisions, or the usual one.
pub fn figures(predictions: &[Predictions], names: &[String]) -> Figures {
    let multi_label = predictions.first().is_some_and(|part| part.multi_label);
    let decided = [Metric::Accuracy, Metric::MicroF1, Metric::MacroF1];
    let mut metrics: Vec<Metric> = decided.into_iter().filter(|m| names.iter().any(|name| name == m.name())).collect();
    if metrics.is_empty() {
        metrics.push(if multi_label { Metric::MicroF1 } else { Metric::Accuracy });
    }
    let mut figures = Figures::new();
    for (name, role) in SPLITS.into_iter().zip([Split::TRAIN, Split::VAL, Split::TEST, 0]) {
        let tally = tally(predictions, role);
        if tally.rows > 0.0 {
            figures.insert(name, metrics.iter().map(|&metric| (metric.name(), tally.figure(metric))).collect());
        }
    }
    figures
}

/// Counts over all parts the nodes of this role (of any, for 0) of which a label is known.
fn tally(predictions: &[Predictions], role: u8) -> Tally {
    let mut sums = Vec::new();
    for part in predictions {
        let has_role = |row: usize| role == 0 || part.roles.get(row).is_some_and(|roles| roles & role != 0);
        let counts: Vec<bool> = (0..part.nodes.len()).map(|row| has_role(row) && part.labels.known(row) > 0).collect();
        let targets = match &part.labels {
            Labels::Multi { values, .. } => Targets::Sets(values),
            Labels::Single { values, .. } => Targets::Classes(values),
            // No row counts.
            Labels::None => Targets::Classes(&[]),
        };
        let mut flat = Vec::new();
        Tally::of(&part.inferred.logits, targets, &counts, 0.0, true).flatten(&mut flat);
        sums.resize(flat.len().max(sums.len()), 0.0);
        sums.iter_mut().zip(flat).for_each(|(sum, value)| *sum += value);
    }
    if sums.is_empty() { Tally::default() } else { Tally::unflatten(&sums) }
}
