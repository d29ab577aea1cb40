//! Models averaged over workers, which take steps of their own in between.

use laconic_nn::kernels::measure::norm;
use laconic_wire::collectives;

use super::{Agreement, OWN_OPTIMISER, Turn, makes};
use crate::config::OuterConfig;
use crate::error::Result;
use crate::exchange::steps::Step;
use crate::exchange::timeline::Phase;
use crate::fit::progress::Progress;
use crate::plan::AgreementKind;
use crate::saved::{Name, Saved, odd};
use crate::worker::Worker;

pub(super) const KIND: AgreementKind = AgreementKind {
    name: "averaged_models",
    suits: |cadence| cadence.is_local() && !cadence.is_alone() && !cadence.corrects(),
    sums: |_, network| vec![network.len()],
    keeps: |_, network| network.len(),
    remembers: OWN_OPTIMISER,
    build: || makes(|_, _| Box::new(AveragedModels::default())),
};

/// Each worker takes steps of its own; every so many rounds every worker's parameters become the mean over workers,
/// weighted by their training rows. What travels is how far each has moved since they last agreed. With an outer step
/// (DiLoCo, Douillard et al., 2023) the mean of that is a gradient.
#[derive(Default)]
pub(super) struct AveragedModels {
    /// Parameters as they were when workers last agreed.
    agreed: Vec<f32>,
    /// What momentum has made of the outer steps before; the same on all workers.
    velocity: Vec<f32>,
}

/// The name under which it is saved.
const VELOCITY: &str = "outer.velocity";

impl Agreement for AveragedModels {
    fn rows(&self, _worker: &Worker, own: f64) -> f64 {
        if own > 0.0 { own } else { 1.0 }
    }

    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        if self.agreed.is_empty() {
            self.agreed.clone_from(&turn.progress.parameters);
        }
        Ok(())
    }

    fn is_due(&mut self, turn: &mut Turn<'_>) -> Result<bool> {
        let Turn { worker, progress, round, .. } = turn;
        let most = worker.plan.config.train.sync_drift.unwrap_or(f64::INFINITY);
        let mut far = [f64::from(u8::from(is_far(&progress.parameters, &self.agreed, most)))];
        let tag = Step::Drift.tag(*round);
        let from = worker.halo.timeline.now();
        collectives::all_reduce_f64(&mut worker.transport, tag, &mut far)?;
        worker.halo.timeline.note(Phase::Reduce, tag, from);
        Ok(far[0] > 0.0)
    }

    fn after_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        let trained = turn.gradient.len();
        self.set_moved(turn);
        turn.reduction.sum(turn.worker, turn.round, turn.gradient, turn.extras)?;
        self.follow(turn, trained);
        Ok(())
    }

    fn save(&self, progress: &Progress, saved: &mut Saved) {
        for (index, (_, slot)) in progress.optimiser.state().1.into_iter().enumerate() {
            saved.put(slot_name(index), slot);
        }
        if !self.velocity.is_empty() {
            saved.put(Name::one(VELOCITY), &self.velocity);
        }
    }

    fn restore(&mut self, progress: &mut Progress, saved: &mut Saved) -> Result<()> {
        let (steps, mine) = progress.optimiser.state();
        let mut slots = Vec::with_capacity(mine.len());
        for (index, (_, own)) in mine.iter().enumerate() {
            let slot: Vec<f32> = saved.take(&slot_name(index))?.unwrap_or_default();
            if slot.len() != own.len() {
                return Err(odd(&slot_name(index), "values of another model"));
            }
            slots.push(slot);
        }
        progress.optimiser.restore(steps, slots);
        self.velocity = saved.take(&Name::one(VELOCITY))?.unwrap_or_default();
        Ok(())
    }
}

impl AveragedModels {
    /// Makes the gradient what this worker adds to the mean of how far models have moved, and its loss the same of the
    /// mean loss.
    pub(super) fn set_moved(&self, turn: &mut Turn<'_>) {
        let weight = turn.worker.weight();
        turn.gradient.clear();
        let moved = turn.progress.parameters.iter().zip(&self.agreed).map(|(now, then)| (now - then) * weight);
        turn.gradient.extend(moved);
        turn.extras.loss *= f64::from(weight);
    }

    /// Goes on from where the gradient, which is how far models have moved on average, leads. Running statistics stand
    /// behind so many values that are trained, and are averaged as they are.
    pub(super) fn follow(&mut self, turn: &mut Turn<'_>, trained: usize) {
        let Turn { worker, progress, gradient, .. } = turn;
        progress.clocks.note_gradient(gradient);
        if let Some(outer) = worker.plan.config.train.outer {
            self.velocity.resize(trained, 0.0);
            outer_step(outer, &mut gradient[..trained], &mut self.velocity);
        }
        self.agreed.iter_mut().zip(gradient.iter()).for_each(|(agreed, moved)| *agreed += moved);
        progress.parameters.copy_from_slice(&self.agreed);
    }
}

fn slot_name(index: usize) -> Name {
    Name::one(format!("optimiser.{index}"))
}

/// Makes what models have moved what the mean moves: a step of SGD with Nesterov's momentum, as PyTorch has it, for
/// which the opposite of what has moved is the gradient.
fn outer_step(OuterConfig { lr, momentum }: OuterConfig, moved: &mut [f32], velocity: &mut [f32]) {
    for (moved, velocity) in moved.iter_mut().zip(velocity) {
        *velocity = momentum * *velocity + *moved;
        *moved = lr * (*moved + momentum * *velocity);
    }
}

/// Whether a model has moved by more than this share of what it was. One that is no number has, so that the mean says
/// so.
fn is_far(now: &[f32], then: &[f32], most: f64) -> bool {
    let moved = now.iter().zip(then).map(|(now, then)| f64::from(now - then).powi(2)).sum::<f64>().sqrt();
    moved.is_nan() || moved > most * norm(then)
}
