//! Evaluation: every worker counts its own rows, the counts are summed over all workers, the figures follow from the
//! sums.

use std::collections::BTreeMap;

use laconic_graph::part::GlobalCounts;
use laconic_nn::loss::loss;
use laconic_nn::metric::{Metric, Tally};
use laconic_nn::{Compute, Matrix};
use laconic_wire::{Direction, Kind, Ledger, Rank, Tag, Transport, collectives};
use serde::{Deserialize, Serialize};

use super::areas::{Area, Areas};
use super::local::Local;
use crate::error::Result;
use crate::exchange::shapes::Shapes;

/// The figures of a split: metrics by name, and `loss`. `None` where a figure is not defined, because it would be 0/0;
/// empty where nothing is in the split.
pub type Figures = BTreeMap<String, Option<f64>>;

/// The figures of each split.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Figures of training nodes.
    pub train: Figures,
    /// Figures of validation nodes.
    pub val: Figures,
    /// Figures of test nodes.
    pub test: Figures,
    /// How many pairs Hits@K count against, where they are asked for: `val` and `test`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hits_pool: BTreeMap<String, u64>,
    /// Why figures are not defined, and how far some may be from exact ones: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The splits, as sentences call them.
pub(super) const NAMES: [&str; 3] = ["training", "validation", "test"];

impl Scores {
    /// The figures of training, validation and testing.
    pub fn splits(&self) -> [&Figures; 3] {
        [&self.train, &self.val, &self.test]
    }

    /// Enters how many pairs Hits@K of a split count against.
    pub(super) fn enter_pool(&mut self, split: usize, pairs: u64) {
        self.hits_pool.extend(["train", "val", "test"].get(split).map(|name| ((*name).to_owned(), pairs)));
    }

    /// Enters a figure of a split, with what is to be said of it behind its name.
    pub(super) fn enter(&mut self, split: usize, metric: &str, figure: Option<f64>, said: Option<&str>) {
        let into = [&mut self.train, &mut self.val, &mut self.test];
        if let (Some(said), Some(name)) = (said, NAMES.get(split)) {
            self.notes.push(format!("{metric} of {name} {said}"));
        }
        if let Some(into) = into.into_iter().nth(split) {
            into.insert(metric.to_owned(), figure);
        }
    }
}

/// Why decisions that were counted have no F1.
const NOTHING_POSITIVE: &str = "is not defined: no node has any label, and none is predicted";

/// What is measured in an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluator {
    metrics: Vec<Metric>,
    classes: usize,
    sets: bool,
}

impl Evaluator {
    /// An evaluator of these metrics on data of these counts.
    pub fn new(metrics: &[Metric], counts: &GlobalCounts) -> Evaluator {
        Evaluator { metrics: metrics.to_vec(), classes: counts.classes, sets: counts.multi_label }
    }

    fn per_class(&self) -> bool {
        self.metrics.iter().any(|m| matches!(m, Metric::MicroF1 | Metric::MacroF1))
    }

    fn flat_len(&self) -> usize {
        3 * Tally::flat_len(self.classes, self.per_class())
    }

    fn areas(&self) -> Areas {
        Areas { width: if self.sets { self.classes } else { 1 }, sets: self.sets }
    }

    /// Bytes that evaluations take besides a pass, at most.
    pub fn memory(metrics: &[Metric], classes: usize) -> u64 {
        if metrics.contains(&Metric::RocAuc) { Areas { width: classes, sets: true }.memory() } else { 0 }
    }

    fn tag(round: u32, step: u16) -> Tag {
        Tag { kind: Kind::Evaluation, direction: Direction::Forward, layer: 0, round, step }
    }

    /// Figures over all workers from each one's logits, and the sum of `count` over all workers (bytes sent, for
    /// learning curves).
    ///
    /// # Errors
    /// If another worker does not answer, or sends something else.
    pub fn evaluate(
        &self,
        (transport, compute): (&mut dyn Transport, &Compute),
        local: &Local,
        logits: &Matrix,
        round: u32,
        count: u64,
    ) -> Result<(Scores, u64)> {
        let mut flat = Vec::with_capacity(self.flat_len() + 1);
        for mask in &local.masks {
            let sum = loss(compute, None, logits, (local.targets(), &[]), mask, 1.0);
            Tally::of(logits, local.targets(), mask, sum, self.per_class()).flatten(&mut flat);
        }
        flat.push(count as f64);
        collectives::all_reduce_f64(transport, Self::tag(round, 1), &mut flat)?;
        let count = flat.pop().unwrap_or(0.0) as u64;
        let mut scores = Scores::default();
        let (areas, at) = (self.areas(), (local, logits));
        let (mut binned, mut exact) = (<[Area; 3]>::default(), <[Area; 3]>::default());
        if self.metrics.contains(&Metric::RocAuc) {
            binned = areas.binned(transport, at, round)?;
        }
        if self.metrics.contains(&Metric::RocAucExact) {
            exact = areas.exact(transport, at, round)?;
        }
        for (split, flat) in flat.chunks_exact(self.flat_len() / 3).enumerate() {
            let tally = Tally::unflatten(flat);
            let Some(loss) = tally.mean_loss() else { continue };
            scores.enter(split, "loss", Some(loss), None);
            for &metric in &self.metrics {
                let (figure, said) = match metric {
                    Metric::RocAuc => (binned[split].mean, binned[split].said.as_deref()),
                    Metric::RocAucExact => (exact[split].mean, exact[split].said.as_deref()),
                    counted => {
                        let figure = tally.figure(counted);
                        (figure, figure.is_none().then_some(NOTHING_POSITIVE))
                    }
                };
                scores.enter(split, metric.name(), figure, said);
            }
        }
        Ok((scores, count))
    }

    /// Enters what [`Evaluator::evaluate`] sends of sums; the rest are bins and scores.
    pub fn forecast_sums(&self, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let (rank, size) = (Rank(shapes.rank), shapes.workers());
        collectives::forecast_all_reduce_f64(ledger, Self::tag(round, 1), size, rank, self.flat_len() + 1);
    }

    /// Enters what it sends of counts in bins.
    pub fn forecast_bins(&self, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        if self.metrics.contains(&Metric::RocAuc) {
            self.areas().forecast_binned(shapes, round, ledger);
        }
    }

    /// Enters what it sends of nodes' scores and labels.
    pub fn forecast_scores(&self, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        if self.metrics.contains(&Metric::RocAucExact) {
            self.areas().forecast_exact(shapes, round, ledger);
        }
    }
}
