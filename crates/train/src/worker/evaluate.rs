//! Evaluation: every worker counts its own rows, the counts are summed over all workers, the figures follow from the
//! sums.

use std::collections::BTreeMap;

use laconic_graph::part::GlobalCounts;
use laconic_nn::loss::loss;
use laconic_nn::metric::{Metric, Tally};
use laconic_nn::{Compute, Matrix};
use laconic_wire::{Direction, Kind, Ledger, Rank, Tag, Transport, collectives};
use serde::{Deserialize, Serialize};

use super::areas::Areas;
use super::local::Local;
use crate::error::Result;
use crate::exchange::shapes::Shapes;

/// The figures of each split: metrics by name, and `loss`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Figures of training nodes.
    pub train: BTreeMap<String, f64>,
    /// Figures of validation nodes.
    pub val: BTreeMap<String, f64>,
    /// Figures of test nodes.
    pub test: BTreeMap<String, f64>,
}

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
        Areas { width: if self.sets { self.classes } else { 1 } }
    }

    /// Bytes that evaluations take besides a pass, at most.
    pub fn memory(metrics: &[Metric], classes: usize) -> u64 {
        if metrics.contains(&Metric::RocAuc) { Areas { width: classes }.memory() } else { 0 }
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
        let [mut binned, mut exact] = [[0.0; 3]; 2];
        if self.metrics.contains(&Metric::RocAuc) {
            binned = areas.binned(transport, at, round)?;
        }
        if self.metrics.contains(&Metric::RocAucExact) {
            exact = areas.exact(transport, at, round)?;
        }
        let each = flat.chunks_exact(self.flat_len() / 3).enumerate();
        for (into, (split, flat)) in [&mut scores.train, &mut scores.val, &mut scores.test].into_iter().zip(each) {
            let tally = Tally::unflatten(flat);
            if tally.rows > 0.0 {
                into.insert("loss".to_owned(), tally.mean_loss());
                for &metric in &self.metrics {
                    let figure = match metric {
                        Metric::RocAuc => binned[split],
                        Metric::RocAucExact => exact[split],
                        counted => tally.figure(counted),
                    };
                    into.insert(metric.name().to_owned(), figure);
                }
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
