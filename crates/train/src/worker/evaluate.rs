//! Evaluation: every worker counts its own rows, the counts are summed over all workers, the figures follow from the
//! sums.

use std::collections::BTreeMap;

use laconic_graph::dataset::Labels;
use laconic_graph::part::GlobalCounts;
use laconic_nn::loss::{Targets, loss};
use laconic_nn::metric::{Metric, Tally, roc_auc};
use laconic_nn::{Compute, Matrix};
use laconic_wire::{Direction, Kind, Ledger, Rank, Tag, Transport, WireError, collectives};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;

use crate::worker::local::{Local, SPLITS};

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

const NUMBER: usize = size_of::<f64>();
/// Bytes of one score with its truth.
const SCORED: usize = 5;

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

    /// Scores of one row that AUC looks at.
    fn scores_a_row(&self) -> usize {
        if self.sets { self.classes } else { 1 }
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
            let sum = loss(compute, None, logits, local.targets(), mask, 1.0);
            Tally::of(logits, local.targets(), mask, sum, self.per_class()).flatten(&mut flat);
        }
        flat.push(count as f64);
        collectives::all_reduce_f64(transport, Self::tag(round, 1), &mut flat)?;
        let count = flat.pop().unwrap_or(0.0) as u64;
        let mut scores = Scores::default();
        let areas = if self.metrics.contains(&Metric::RocAuc) {
            self.areas(transport, local, logits, round)?
        } else {
            [0.0; 3]
        };
        let each = flat.chunks_exact(self.flat_len() / 3).zip(areas);
        for (into, (flat, area)) in [&mut scores.train, &mut scores.val, &mut scores.test].into_iter().zip(each) {
            let tally = Tally::unflatten(flat);
            if tally.rows > 0.0 {
                into.insert("loss".to_owned(), tally.mean_loss());
                for &metric in &self.metrics {
                    let figure = if metric == Metric::RocAuc { area } else { tally.figure(metric) };
                    into.insert(metric.name().to_owned(), figure);
                }
            }
        }
        Ok((scores, count))
    }

    /// The area under the ROC curve of each split, from every worker's scores: exact, so all of them travel.
    fn areas(&self, transport: &mut dyn Transport, local: &Local, logits: &Matrix, round: u32) -> Result<[f64; 3]> {
        let width = self.scores_a_row();
        let mut mine = Vec::new();
        for mask in &local.masks {
            for row in (0..logits.rows()).filter(|&row| mask[row]) {
                for class in 0..width {
                    let (score, truth) = match local.targets() {
                        Targets::Sets(sets) => (logits.row(row)[class], sets[row * width + class]),
                        Targets::Classes(classes) => {
                            (logits.row(row)[1] - logits.row(row)[0], u8::from(classes[row] == 1))
                        }
                    };
                    mine.extend(score.to_le_bytes());
                    mine.push(truth);
                }
            }
        }
        let counts: Vec<u8> =
            local.masks.iter().flat_map(|m| (m.iter().filter(|&&k| k).count() as u64).to_le_bytes()).collect();
        mine.splice(0..0, counts);
        let mut scored: Vec<Vec<(f32, bool)>> = vec![Vec::new(); 3 * width];
        for (peer, bytes) in collectives::all_gather(transport, Self::tag(round, 2), &mine)?.iter().enumerate() {
            let (rank, peer) = (transport.rank(), Rank(peer as u32));
            let error = || WireError::malformed("scores of another shape").from_peer(rank, peer, Self::tag(round, 2));
            let malformed = || TrainError::from(error());
            let (counts, rest) = bytes.split_at_checked(3 * NUMBER).ok_or_else(malformed)?;
            let counts: Vec<u64> = counts.as_chunks::<NUMBER>().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
            let total = counts.iter().try_fold(0u64, |sum, &c| sum.checked_add(c)).ok_or_else(malformed)?;
            if total.checked_mul((width * SCORED) as u64) != Some(rest.len() as u64) {
                return Err(malformed());
            }
            let mut entries = rest.as_chunks::<SCORED>().0.iter();
            for (split, &rows) in counts.iter().enumerate() {
                for _ in 0..rows {
                    for class in 0..width {
                        let &[a, b, c, d, truth] = entries.next().ok_or_else(malformed)?;
                        // Unknown entries travel too, so that the number of bytes does not depend on labels.
                        if truth != Labels::UNKNOWN {
                            scored[split * width + class].push((f32::from_le_bytes([a, b, c, d]), truth != 0));
                        }
                    }
                }
            }
        }
        let mut areas = [0.0; 3];
        for (split, area) in areas.iter_mut().enumerate() {
            let each: Vec<f64> =
                scored[split * width..(split + 1) * width].iter_mut().filter_map(|s| roc_auc(s)).collect();
            *area = if each.is_empty() { 0.0 } else { each.iter().sum::<f64>() / each.len() as f64 };
        }
        Ok(areas)
    }

    /// Enters what [`Evaluator::evaluate`] sends.
    pub fn forecast(&self, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let (rank, size) = (Rank(shapes.rank), shapes.workers());
        collectives::forecast_all_reduce_f64(ledger, Self::tag(round, 1), size, rank, self.flat_len() + 1);
        if self.metrics.contains(&Metric::RocAuc) {
            let rows: usize = shapes.split_rows.iter().sum();
            let bytes = SPLITS.len() * NUMBER + rows * self.scores_a_row() * SCORED;
            collectives::forecast_all_gather(ledger, Self::tag(round, 2), size, rank, bytes);
        }
    }
}
