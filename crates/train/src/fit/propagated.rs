//! The rows that a stage begins with where training labels pass along edges: labels alone, or what they make of the
//! scores that the stage before has handed on.

use laconic_graph::dataset::Labels;
use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::{copy_scaled, scale_and_shift};
use laconic_nn::kernels::fold::sum_fold;
use laconic_nn::kernels::propagate::{add_of_size, clamp, divide_by_sums, logarithms, mix, shares};
use laconic_nn::{Matrix, Operand, Precision, Rows};
use laconic_wire::{Tag, collectives};

use crate::config::Normalise;
use crate::config::ramp::Reading;
use crate::error::Result;
use crate::exchange::steps::Step;
use crate::inputs::classes;
use crate::pass::inputs::{LocalGraph, fetch_halo};
use crate::schedule::{Propagated, Propagation, Stage};
use crate::selection::Scope;
use crate::worker::{Handed, Worker};

/// What is added to the sum that a row is divided by: a row of which next to nothing is known does not count in full.
const MORE: f32 = 0.05;

/// Shares below it are as if they were this.
const LEAST: f32 = 1e-30;

/// Sums over the edges that end at own rows, halo messages apart.
struct Walk<'a> {
    worker: &'a mut Worker,
    propagation: Propagation,
}

/// Scores of own rows as the stage begins with them, whose softmax is what has come along the edges. The stage before
/// has handed on scores where these are corrected.
///
/// # Errors
/// If another worker does not answer, or nothing was handed on.
pub fn rows(worker: &mut Worker, stage: &Stage, propagation: Propagation, rounds_before: u32) -> Result<Handed> {
    let handed = worker.take_handed()?;
    let tags = stage.propagation_tags(rounds_before);
    worker.turn(Reading { rounds: stage.span, ..Reading::default() });
    let labels = learned_classes(worker);
    let mut walk = Walk { worker, propagation };
    let mut rows = match (propagation.of, stage.told_labels(rounds_before)) {
        (Propagated::Labels, Some(told)) => walk.labels(&labels, stage.outputs(), (told, &tags))?,
        _ => {
            // What evaluations see is what has been judged.
            let mut scores = handed.evaluation.unwrap_or(handed.training).converted(Precision::F32);
            // Scores that are handed on are dense.
            walk.correct_and_smooth(std::mem::take(scores.dense_mut()), &labels, (&tags, rounds_before))?
        }
    };
    logarithms(&walk.worker.compute, &mut rows, LEAST);
    Ok(Handed::from(Operand::Dense(rows)))
}

/// The class of each own row that is learned from.
fn learned_classes(worker: &Worker) -> Vec<Option<u32>> {
    let local = &worker.local;
    match &local.labels {
        Labels::Single { values, .. } => {
            let trains = local.masks[0].iter();
            values.iter().zip(trains).map(|(&class, &trains)| u32::try_from(class).ok().filter(|_| trains)).collect()
        }
        _ => vec![None; local.ids.len()],
    }
}

/// Sets rows of nodes that are learned from to 1 in the column of their class and 0 elsewhere.
fn put_labels(rows: &mut Matrix, labels: &[Option<u32>]) {
    for (row, class) in labels.iter().enumerate().filter_map(|(row, class)| Some((row, (*class)?))) {
        let row = rows.row_mut(row);
        row.fill(0.0);
        row[class as usize] = 1.0;
    }
}

impl Walk<'_> {
    fn labels(&mut self, labels: &[Option<u32>], classes: usize, (told, tags): (Tag, &[Tag])) -> Result<Matrix> {
        let mut start = Matrix::zeros(labels.len(), classes);
        put_labels(&mut start, labels);
        let halo = {
            let (peers, graph) = self.worker.split_whole();
            let own = (labels, graph.nodes.inverse_root_degree);
            classes::tell(peers.transport, told, peers.halo.links(), own, classes)?
        };
        let mut rows = self.folded(&start, |_, _| Ok(halo))?;
        self.after_sums(&mut rows, &start, None);
        for tag in tags {
            rows = self.step(*tag, &rows)?;
            self.after_sums(&mut rows, &start, None);
        }
        Ok(rows)
    }

    fn correct_and_smooth(
        &mut self,
        mut scores: Matrix,
        labels: &[Option<u32>],
        (tags, round): (&[Tag], u32),
    ) -> Result<Matrix> {
        shares(&self.worker.compute, &mut scores);
        let (correcting, smoothing) = tags.split_at(usize::from(self.propagation.steps));
        let mut start = Matrix::zeros(scores.rows(), scores.columns());
        put_labels(&mut start, labels);
        for (row, _) in labels.iter().enumerate().filter(|(_, class)| class.is_some()) {
            start.row_mut(row).iter_mut().zip(scores.row(row)).for_each(|(error, score)| *error -= score);
        }
        let size = self.mean_size(&start, labels, round)?;
        let errors = Propagation { normalise: Normalise::Symmetric, ..self.propagation };
        let smooth = std::mem::replace(&mut self.propagation, errors);
        let rows = self.steps(correcting, start, (-1.0, 1.0))?;
        add_of_size(&self.worker.compute, &mut scores, &rows, size);
        put_labels(&mut scores, labels);
        self.propagation = smooth;
        self.steps(smoothing, scores, (0.0, 1.0))
    }

    fn steps(&mut self, tags: &[Tag], start: Matrix, range: (f32, f32)) -> Result<Matrix> {
        let mut rows = self.step(tags[0], &start)?;
        self.after_sums(&mut rows, &start, Some(range));
        for tag in &tags[1..] {
            rows = self.step(*tag, &rows)?;
            self.after_sums(&mut rows, &start, Some(range));
        }
        Ok(rows)
    }

    /// The mean over all workers' nodes that are learned from of the sum of what their errors are away from 0.
    fn mean_size(&mut self, errors: &Matrix, labels: &[Option<u32>], round: u32) -> Result<f32> {
        let size: f64 = errors.data().iter().map(|error| f64::from(error.abs())).sum();
        let mut sums = [size, labels.iter().flatten().count() as f64];
        collectives::all_reduce_f64(&mut self.worker.transport, Step::Errors.tag(round), &mut sums)?;
        Ok((sums[0] / sums[1].max(1.0)) as f32)
    }

    /// S · rows, of which the halo's cross.
    fn step(&mut self, tag: Tag, rows: &Matrix) -> Result<Matrix> {
        self.folded(rows, |worker, messages| {
            let (mut peers, _) = worker.split_whole();
            Ok(fetch_halo(&mut peers, messages, (tag, Scope::Whole))?.0)
        })
    }

    /// S · rows, where `halo` makes those of the halo rows, each multiplied by its own root.
    fn folded(&mut self, rows: &Matrix, halo: impl FnOnce(&mut Worker, &Matrix) -> Result<Matrix>) -> Result<Matrix> {
        let mut messages = Matrix::zeros(rows.rows(), rows.columns());
        {
            let (peers, LocalGraph { nodes, .. }) = self.worker.split_whole();
            let roots = Some(nodes.inverse_root_degree);
            copy_scaled(peers.compute, &mut messages, Store::Set, Rows::Dense(rows), 1.0, roots);
        }
        let halo = halo(self.worker, &messages)?;
        let (peers, graph) = self.worker.split_whole();
        let mut folded = Matrix::zeros(rows.rows(), rows.columns());
        sum_fold(peers.compute, &mut folded, Store::Set, graph.own, &messages);
        sum_fold(peers.compute, &mut folded, Store::Add, graph.halo, &halo);
        scale_and_shift(peers.compute, &mut folded, Some(graph.nodes.inverse_root_degree), None);
        Ok(folded)
    }

    /// What follows sums over neighbours: the start's share, the range, and the division by sums of rows.
    fn after_sums(&mut self, rows: &mut Matrix, start: &Matrix, range: Option<(f32, f32)>) {
        let (compute, Propagation { alpha, normalise, .. }) = (&self.worker.compute, self.propagation);
        mix(compute, rows, start, alpha);
        if let Some(range) = range {
            clamp(compute, rows, range);
        }
        if normalise == Normalise::Divided {
            divide_by_sums(compute, rows, MORE);
        }
    }
}
