//! Evaluation: every worker counts its own rows, the counts are summed over all workers, the figures follow from the
//! sums.

use std::collections::BTreeMap;

use laconic_graph::part::GlobalCounts;
use laconic_nn::decisions::{Decisions, Form};
use laconic_nn::loss::loss;
use laconic_nn::metric::{Metric, Tally};
use laconic_nn::{Compute, Matrix};
use laconic_wire::{Content, Direction, FramePurpose, Ledger, Rank, Tag, Transport, collectives};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::areas::{Area, Areas, Rows};
use super::local::Local;
use super::parts::{Counted, PartCounts, Shape};
use crate::error::Result;
use crate::exchange::shapes::Shapes;
use crate::plan::Plan;

/// The figures of a split: metrics by name, and `loss`. `None` where a figure is not defined, because it would be 0/0;
/// empty where nothing is in the split.
pub type Figures = BTreeMap<String, Option<f64>>;

/// The figures of each split.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Scores {
    /// Figures of training nodes, `loss` among them; null where one is not defined.
    #[schemars(extend("x-name" = "METRIC"))]
    pub train: Figures,
    /// Figures of validation nodes, or edges.
    #[schemars(extend("x-name" = "METRIC"))]
    pub val: Figures,
    /// Figures of test nodes, or edges.
    #[schemars(extend("x-name" = "METRIC"))]
    pub test: Figures,
    /// (of links, with `hits@K`) How many pairs the pool has that these figures count against, in `val` and `test`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-name" = "SPLIT"))]
    pub hits_pool: BTreeMap<String, u64>,
    /// (where there is something to say) Why figures are not defined, how far areas from bins may be from exact ones,
    /// and at the end of a run what is no better than a fixed answer or the same for all: a sentence each.
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

/// What an evaluation comes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evaluated {
    /// The figures of each split over all workers.
    pub scores: Scores,
    /// The bytes that all have sent so far.
    pub bytes: u64,
    /// What each part that is here comes to; nothing where parts are not told apart.
    pub parts: Vec<PartCounts>,
}

/// What is measured in an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluator {
    metrics: Vec<Metric>,
    classes: usize,
    sets: bool,
    /// What parts tell of themselves, where they do.
    parts: Option<Shape>,
}

impl Evaluator {
    /// What a run measures on data of these counts.
    pub fn of(plan: &Plan, counts: &GlobalCounts) -> Evaluator {
        let (metrics, classes, sets) = (plan.metrics.clone(), counts.classes, counts.multi_label);
        let form = Form::of(if plan.task.of_labels { classes } else { 0 }, sets);
        let shape = Shape { figures: 1 + metrics.len(), form };
        let tells = plan.config.train.part_figures;
        Evaluator { metrics, classes, sets, parts: tells.then_some(shape) }
    }

    /// What parts tell of themselves, where they do.
    pub fn parts(&self) -> Option<Shape> {
        self.parts
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
        let (content, purpose) = (Content::Figures, FramePurpose::Evaluation);
        Tag { content, purpose, direction: Direction::Forward, layer: 0, round, step }
    }

    /// Figures over all workers from each one's logits, and the sum of `count` over all workers (bytes sent, for
    /// learning curves).
    ///
    /// # Errors
    /// If another worker does not answer, or sends something else.
    pub fn evaluate(
        &self,
        transport: &mut dyn Transport,
        compute: &Compute,
        local: &Local,
        logits: &Matrix,
        round: u32,
        count: u64,
    ) -> Result<Evaluated> {
        let (areas, all) = (self.areas(), Rows { local, logits, masks: &local.masks });
        let has = |metric: Metric| self.metrics.contains(&metric);
        let (mut flat, mut parts) = (vec![0.0; self.flat_len()], Vec::with_capacity(local.parts()));
        let mut bins: Option<Vec<[u32; 2]>> = None;
        for part in 0..local.parts() {
            let masks = local.masks_of(part);
            let rows = Rows { masks: &masks, ..all };
            let counts = has(Metric::RocAuc).then(|| areas.count(rows));
            let (own, mut counted) = self.count(compute, rows);
            flat.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            if self.parts.is_some() {
                self.enter_areas(&mut counted, Metric::RocAuc, counts.as_ref().map(|counts| areas.of_counts(counts)));
                // One part of one worker is the whole, whose scores are sorted below.
                let apart = has(Metric::RocAucExact) && (transport.size() > 1 || local.parts() > 1);
                self.enter_areas(&mut counted, Metric::RocAucExact, apart.then(|| areas.exact_here(rows)));
                parts.push(counted);
            }
            match (&mut bins, counts) {
                (Some(sums), Some(counts)) => {
                    sums.as_flattened_mut()
                        .iter_mut()
                        .zip(counts.as_flattened())
                        .for_each(|(sum, count)| *sum += count);
                }
                (none, counts) => *none = counts,
            }
        }
        flat.push(count as f64);
        collectives::all_reduce_f64(transport, Self::tag(round, 1), &mut flat)?;
        let bytes = flat.pop().unwrap_or(0.0) as u64;
        let binned = bins.map_or_else(|| Ok(Default::default()), |bins| areas.binned(transport, &bins, round))?;
        let mut exact = <[Area; 3]>::default();
        if has(Metric::RocAucExact) {
            exact = areas.exact(transport, all, round)?;
            if let ([only], 1) = (&mut parts[..], transport.size()) {
                self.enter_areas(only, Metric::RocAucExact, Some(exact.clone()));
            }
        }
        Ok(Evaluated { scores: self.scores(&flat, (binned, exact)), bytes, parts })
    }

    /// What these rows come to: the sums of all splits, and what there is to tell of a part, areas apart.
    fn count(&self, compute: &Compute, Rows { local, logits, masks }: Rows<'_>) -> (Vec<f64>, PartCounts) {
        let (mut flat, mut counted) = (Vec::with_capacity(self.flat_len()), PartCounts::default());
        for (split, mask) in masks.iter().enumerate() {
            let told = split.checked_sub(1).and_then(|split| counted.get_mut(split)).zip(self.parts);
            let mut decisions = told.as_ref().map(|(_, shape)| Decisions::none(shape.form));
            let sum = loss(compute, None, logits, (local.targets(), &[]), mask, 1.0);
            let how = (sum, self.per_class());
            let tally = Tally::with_decisions(logits, local.targets(), mask, how, decisions.as_mut());
            tally.flatten(&mut flat);
            if let (Some((counted, _)), Some(decisions)) = (told, decisions) {
                let figures = self.metrics.iter().map(|&metric| tally.figure(metric));
                *counted = Counted {
                    count: mask.iter().filter(|&&is_in| is_in).count() as u64,
                    figures: std::iter::once(tally.mean_loss()).chain(figures).collect(),
                    decisions: decisions.counts().to_vec(),
                };
            }
        }
        (flat, counted)
    }

    /// Enters a part's areas, where there are any.
    fn enter_areas(&self, counted: &mut PartCounts, metric: Metric, areas: Option<[Area; 3]>) {
        let place = self.metrics.iter().position(|of| *of == metric);
        let (Some(place), Some([_, areas @ ..])) = (place, areas) else { return };
        for (counted, area) in counted.iter_mut().zip(areas) {
            if let Some(figure) = counted.figures.get_mut(1 + place) {
                *figure = area.mean;
            }
        }
    }

    /// The figures of sums over all workers, and of areas.
    fn scores(&self, flat: &[f64], (binned, exact): ([Area; 3], [Area; 3])) -> Scores {
        let mut scores = Scores::default();
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
        scores
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
