//! SCAFFOLD (Karimireddy et al., 2020): models averaged over workers whose gradients are corrected in between, so that
//! workers with unlike rows do not drift to minima of their own.

use super::averaged::AveragedModels;
use super::{Agreement, OWN_OPTIMISER, Turn, makes};
use crate::error::Result;
use crate::fit::progress::Progress;
use crate::plan::{AgreementKind, Cadence};
use crate::saved::{Name, Saved};
use crate::worker::Worker;

pub(super) const KIND: AgreementKind = AgreementKind {
    name: "scaffold",
    suits: Cadence::corrects,
    sums: |_, network| vec![network.len() + network.trained()],
    keeps: |_, network| network.len() + 3 * network.trained(),
    remembers: OWN_OPTIMISER,
    build: || makes(|_, _| Box::new(Scaffold::default())),
};

/// To each worker's gradient is added how the mean over workers of their control variates differs from its own. A
/// control variate is the mean of the own gradients, before they were corrected, of the rounds before the last mean: of
/// steps of plain SGD, option II of the paper, and as well defined for any other optimiser.
///
/// Changes of control variates travel behind those of models, weighted like them.
#[derive(Default)]
struct Scaffold {
    averaged: AveragedModels,
    /// The control variate of this worker, and the mean of all workers'.
    own: Vec<f32>,
    all: Vec<f32>,
    /// The sum of own gradients since the last mean, and of how many rounds it is.
    sum: Vec<f32>,
    rounds: u32,
}

/// The names under which control variates are saved.
const OWN: &str = "scaffold.own";
const ALL: &str = "scaffold.all";

impl Agreement for Scaffold {
    fn rows(&self, worker: &Worker, own: f64) -> f64 {
        self.averaged.rows(worker, own)
    }

    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        self.averaged.before_step(turn)?;
        for values in [&mut self.own, &mut self.all, &mut self.sum] {
            values.resize(turn.gradient.len(), 0.0);
        }
        let controls = self.own.iter().zip(&self.all);
        for ((gradient, sum), (own, all)) in turn.gradient.iter_mut().zip(&mut self.sum).zip(controls) {
            *sum += *gradient;
            *gradient += all - own;
        }
        self.rounds += 1;
        Ok(())
    }

    fn is_due(&mut self, turn: &mut Turn<'_>) -> Result<bool> {
        self.averaged.is_due(turn)
    }

    fn after_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        let (trained, weight) = (turn.gradient.len(), turn.worker.weight());
        self.averaged.set_moved(turn);
        let values = turn.gradient.len();
        let rounds = std::mem::take(&mut self.rounds) as f32;
        for (own, sum) in self.own.iter_mut().zip(&mut self.sum) {
            let before = std::mem::replace(own, std::mem::take(sum) / rounds);
            turn.gradient.push((*own - before) * weight);
        }
        turn.reduction.sum(turn.worker, turn.round, turn.gradient, turn.extras)?;
        self.all.iter_mut().zip(turn.gradient.drain(values..)).for_each(|(all, change)| *all += change);
        self.averaged.follow(turn, trained);
        Ok(())
    }

    fn save(&self, progress: &Progress, saved: &mut Saved) {
        self.averaged.save(progress, saved);
        saved.put(Name::one(OWN), &self.own);
        saved.put(Name::one(ALL), &self.all);
    }

    fn restore(&mut self, progress: &mut Progress, saved: &mut Saved) -> Result<()> {
        self.averaged.restore(progress, saved)?;
        self.own = saved.take(&Name::one(OWN))?.unwrap_or_default();
        self.all = saved.take(&Name::one(ALL))?.unwrap_or_default();
        Ok(())
    }
}
