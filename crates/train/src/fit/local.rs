//! A worker that meets nobody as an independent trainer, and as the judge of means.

use laconic_wire::{Frame, Rank};

use super::choice::worth;
use super::inputs::{Handed, StageInputs};
use super::progress::Progress;
use super::stages::hand_on;
use super::trainer::{Fit, StageRun};
use crate::averaging::{Judge, Learner, Taken, check_numbers};
use crate::error::Result;
use crate::exchange::stale::Stale;
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;

/// A stage on one worker's own rows.
struct Own<'a> {
    worker: &'a mut Worker,
    at: StageRun<'a>,
    fit: Fit<'a>,
    progress: Progress,
}

impl<'a> Own<'a> {
    fn new(worker: &'a mut Worker, at: StageRun<'a>, inputs: StageInputs) -> Result<Own<'a>> {
        let progress = Progress::new(&worker.plan, &at.stage.network, at.index);
        let fit = Fit::new(worker, at, inputs)?;
        Ok(Own { worker, at, fit, progress })
    }

    fn step(&mut self) -> Result<f64> {
        Ok(self.fit.advance(self.worker, &mut self.progress)?.0.loss)
    }

    /// Counts steps of stages before and of this one from these, unless more have been taken here.
    fn goes_on_behind(&mut self, before: u64, here: u64) {
        let few = |steps: u64| u32::try_from(steps).unwrap_or(u32::MAX / 2);
        self.at.rounds_before = self.at.rounds_before.max(few(before));
        self.fit.count_from(self.at.rounds_before);
        self.progress.done = self.progress.done.max(few(here));
    }

    fn hand_on(self, chosen: &[f32]) -> Result<Option<Handed>> {
        hand_on(self.worker, self.fit, self.at.stage, chosen, self.at.rounds_before)
    }
}

/// A trainer: its own rows, its own optimiser.
pub struct LocalTrainer<'a>(Own<'a>);

impl<'a> LocalTrainer<'a> {
    /// A trainer of a stage on these inputs.
    ///
    /// # Errors
    /// If the system starts no thread for making batches.
    pub fn new(worker: &'a mut Worker, at: StageRun<'a>, inputs: StageInputs) -> Result<LocalTrainer<'a>> {
        Own::new(worker, at, inputs).map(LocalTrainer)
    }

    /// What goes on to the next stage from the chosen model of this one.
    ///
    /// # Errors
    /// If a codec refuses the rows.
    pub fn hand_on(self, chosen: &[f32]) -> Result<Option<Handed>> {
        self.0.hand_on(chosen)
    }
}

impl Learner for LocalTrainer<'_> {
    fn step(&mut self) -> Result<f64> {
        self.0.step()
    }

    fn parameters(&self) -> &[f32] {
        &self.0.progress.parameters
    }

    fn adopt(&mut self, model: &[f32]) {
        self.0.progress.parameters.copy_from_slice(model);
    }

    fn sets_out(&mut self, number: u32, taken: Taken) {
        self.0.goes_on_behind(taken.before, taken.here);
        self.0.fit.rate_by_share(taken.share);
        if let Some(stale) = &mut self.0.worker.stale {
            stale.set_out(number);
        }
    }

    fn tells(&mut self) -> Vec<(usize, Frame)> {
        let told = self.0.worker.stale.as_mut().map(Stale::take).unwrap_or_default();
        told.into_iter().map(|(to, frame)| (to.index(), frame)).collect()
    }

    fn is_told(&mut self, from: usize, frame: Frame) {
        if let Some(stale) = &mut self.0.worker.stale {
            stale.put(Rank(from as u32), frame);
        }
    }

    fn restart(&mut self) {
        if let Some(stale) = &mut self.0.worker.stale {
            stale.restart();
        }
        self.0.progress = Progress::new(&self.0.worker.plan, &self.0.at.stage.network, self.0.at.index);
    }

    fn rows(&self) -> f64 {
        // Whatever their classes weigh in the loss.
        let Worker { links, own_rows, local, .. } = &*self.0.worker;
        if links.is_some() { own_rows[0] } else { local.split_weights(&[])[0] }
    }

    fn steps_of_epoch(&self) -> u64 {
        self.0.worker.plan.batching.as_ref().map_or(1, |batching| u64::from(batching.batches))
    }
}

/// Who judges means on the whole graph, and takes steps of correction there.
pub struct WholeJudge<'a>(Own<'a>);

impl<'a> WholeJudge<'a> {
    /// The judge of a stage on these inputs.
    ///
    /// # Errors
    /// If the system starts no thread for making batches.
    pub fn new(worker: &'a mut Worker, at: StageRun<'a>, inputs: StageInputs) -> Result<WholeJudge<'a>> {
        Own::new(worker, at, inputs).map(WholeJudge)
    }

    /// What goes on to the next stage from the chosen model of this one.
    ///
    /// # Errors
    /// If a codec refuses the rows.
    pub fn hand_on(self, chosen: &[f32]) -> Result<Option<Handed>> {
        self.0.hand_on(chosen)
    }
}

impl Judge for WholeJudge<'_> {
    type Verdict = Evaluated;

    fn judge(&mut self, number: u32, model: &[f32]) -> Result<Evaluated> {
        let Own { worker, fit, at, .. } = &mut self.0;
        fit.judge(worker, model, at.rounds_before + number)
    }

    fn worth(&self, verdict: &Evaluated) -> Option<f64> {
        worth(&self.0.worker.plan, &verdict.scores)
    }

    fn correct(&mut self, number: u32, model: &[f32], steps: u32, share: f64) -> Result<Vec<f32>> {
        self.0.fit.rate_by_share(Some(share));
        self.0.goes_on_behind(0, u64::from(number.saturating_sub(1)) * u64::from(steps));
        self.0.progress.parameters.copy_from_slice(model);
        for _ in 0..steps {
            self.0.step()?;
        }
        check_numbers(&self.0.progress.parameters, number, "corrected")?;
        Ok(self.0.progress.parameters.clone())
    }
}
