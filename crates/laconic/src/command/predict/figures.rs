//! How often predictions are right, where the truth is known.

use std::collections::BTreeMap;

use laconic_graph::dataset::{Labels, Split};
use laconic_nn::loss::Targets;
use laconic_nn::metric::{Metric, Tally};
use laconic_nn::roc::roc_auc;
use laconic_train::run::predict::Predictions;

/// Metrics by split, `None` where one is not defined; `labelled` are all nodes whose label is known.
pub type Figures = BTreeMap<&'static str, BTreeMap<&'static str, Option<f64>>>;

/// The names of splits in [`Figures`], in their usual order.
pub const SPLITS: [&str; 4] = ["train", "val", "test", "labelled"];

/// The figures of what was predicted: those of these metrics, or the usual one. All scores are here, so areas under the
/// ROC curve are exact.
pub fn figures(predictions: &[Predictions], names: &[String]) -> Figures {
    let multi_label = predictions.first().is_some_and(|part| part.multi_label);
    let decided = [Metric::Accuracy, Metric::MicroF1, Metric::MacroF1];
    let asked = |of: &[Metric]| -> Vec<Metric> {
        of.iter().copied().filter(|metric| names.iter().any(|name| name == metric.name())).collect()
    };
    let (mut metrics, areas) = (asked(&decided), asked(&[Metric::RocAuc, Metric::RocAucExact]));
    if metrics.is_empty() && areas.is_empty() {
        metrics.push(if multi_label { Metric::MicroF1 } else { Metric::Accuracy });
    }
    let mut figures = Figures::new();
    for (name, role) in SPLITS.into_iter().zip([Split::TRAIN, Split::VAL, Split::TEST, 0]) {
        let tally = tally(predictions, role);
        if tally.rows > 0.0 {
            let area = if areas.is_empty() { None } else { area(predictions, role) };
            let decided = metrics.iter().map(|&metric| (metric.name(), tally.figure(metric)));
            figures.insert(name, decided.chain(areas.iter().map(|metric| (metric.name(), area))).collect());
        }
    }
    figures
}

/// The area under the ROC curve over all parts for the nodes of this role (of any, for 0): that of the second of two
/// classes, or the mean over those labels of which both truths occur.
fn area(predictions: &[Predictions], role: u8) -> Option<f64> {
    let several = predictions.iter().any(|part| part.multi_label);
    let labels = if several { predictions.first()?.inferred.logits.columns() } else { 1 };
    let of_label = |label: usize| {
        let mut scored = Vec::new();
        for part in predictions {
            let logits = &part.inferred.logits;
            for row in (0..part.nodes.len()).filter(|&row| counts(part, row, role)) {
                match &part.labels {
                    Labels::Multi { classes, values } if values[row * classes + label] != Labels::UNKNOWN => {
                        scored.push((logits.row(row)[label], values[row * classes + label] == 1));
                    }
                    Labels::Single { values, .. } => {
                        scored.push((logits.row(row)[1] - logits.row(row)[0], values[row] == 1));
                    }
                    _ => {}
                }
            }
        }
        roc_auc(&mut scored)
    };
    let areas: Vec<f64> = (0..labels).filter_map(of_label).collect();
    (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64)
}

/// Whether a node has this role (any, for 0) and a label that is known.
fn counts(part: &Predictions, row: usize, role: u8) -> bool {
    let has_role = role == 0 || part.roles.get(row).is_some_and(|roles| roles & role != 0);
    has_role && part.labels.known(row) > 0
}

/// Counts over all parts the nodes of this role (of any, for 0) of which a label is known.
fn tally(predictions: &[Predictions], role: u8) -> Tally {
    let mut sums = Vec::new();
    for part in predictions {
        let counts: Vec<bool> = (0..part.nodes.len()).map(|row| counts(part, row, role)).collect();
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
