//! A worker as an independent trainer, and as one of those who judge means.

use laconic_wire::{Frame, Rank, WireError};

use super::choice::worth;
use super::inputs::StageInputs;
use super::progress::Progress;
use super::questions::Question;
use super::stages::hand_on;
use super::trainer::{Fit, StageRun};
use crate::averaging::{Judge, Learner, Model, Taken, check_numbers};
use crate::error::{Result, TrainError};
use crate::exchange::stale::Stale;
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;
use crate::worker::parts::{self, Known};

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

    fn hand_on(self, chosen: &[f32]) -> Result<()> {
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

    /// Keeps in the worker what goes on to the next stage from the chosen model of this one.
    ///
    /// # Errors
    /// If a codec refuses the rows.
    pub fn hand_on(self, chosen: &[f32]) -> Result<()> {
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
        u64::from(self.0.worker.plan.batches_of_epoch())
    }
}

/// Who evaluates means, and takes steps of correction: one worker on the whole graph, or all workers of a group, each
/// for its own nodes. In a group worker 0, which owns no node, says what is to be done, and the others do it with it.
pub struct MeansJudge<'a> {
    own: Own<'a>,
    /// Whether one of the group is gone, so that nothing can be evaluated any more.
    is_broken: bool,
}

impl<'a> MeansJudge<'a> {
    /// The judge of a stage on these inputs.
    ///
    /// # Errors
    /// If the system starts no thread for making batches.
    pub fn new(worker: &'a mut Worker, at: StageRun<'a>, inputs: StageInputs) -> Result<MeansJudge<'a>> {
        Ok(MeansJudge { own: Own::new(worker, at, inputs)?, is_broken: false })
    }

    fn is_group(&self) -> bool {
        self.own.worker.size() > 1
    }

    /// Keeps in the worker what goes on to the next stage, before which there were so many rounds, from the chosen
    /// model of this one.
    ///
    /// # Errors
    /// If a codec refuses the rows, or one of a group is gone.
    pub fn hand_on(self, chosen: &[f32], rounds: u32) -> Result<()> {
        if self.is_group() && self.own.worker.rank() == Rank(0) {
            Question::Ends { rounds, chosen: Some(chosen.into()) }.ask(&mut self.own.worker.transport)?;
        }
        self.own.hand_on(chosen)
    }

    /// Dismisses the others of a group: no other stage is to come. Who is gone already needs no word.
    pub fn dismiss(self) {
        if self.is_group() {
            let _ = Question::Ends { rounds: 0, chosen: None }.ask(&mut self.own.worker.transport);
        }
    }

    /// Does what worker 0 of the group says until the stage ends; returns the model that the next one goes on from and
    /// the rounds before that, where there is one. `is_over` says that worker 0 will say nothing more.
    ///
    /// # Errors
    /// If another worker of the group is gone, or says something else.
    pub fn serve(&mut self, is_over: &dyn Fn() -> bool) -> Result<Option<(Model, u32)>> {
        let values = self.own.progress.parameters.len();
        loop {
            match Question::hear(&mut self.own.worker.transport, values, is_over)? {
                Some(Question::Evaluate { number, model }) => drop(self.evaluate(number, &model)?),
                Some(Question::Ends { rounds, chosen }) => return Ok(chosen.map(|chosen| (chosen, rounds))),
                None => return Ok(None),
            }
        }
    }

    fn evaluate(&mut self, number: u32, model: &[f32]) -> Result<Evaluated> {
        let Own { worker, fit, at, .. } = &mut self.own;
        let round = at.rounds_before + number;
        let mut evaluated = fit.judge(worker, model, round)?;
        if let (Some(shape), true) = (worker.evaluator.parts(), worker.size() > 1) {
            let mut known = Known::Own(evaluated.parts.pop().unwrap_or_default());
            parts::gather(&mut worker.transport, shape, Some(&mut known), round)?;
            evaluated.parts = known.all().iter().skip(1).cloned().collect();
        }
        Ok(evaluated)
    }
}

impl Judge for MeansJudge<'_> {
    type Verdict = Evaluated;

    fn judge(&mut self, number: u32, model: &[f32]) -> Result<Option<Evaluated>> {
        if !self.is_group() {
            return self.evaluate(number, model).map(Some);
        }
        if self.is_broken {
            return Ok(None);
        }
        let question = Question::Evaluate { number, model: model.into() };
        let asked = question.ask(&mut self.own.worker.transport);
        match asked.and_then(|()| self.evaluate(number, model)) {
            // Who is gone took its nodes along, and figures of the others would be those of another graph.
            Err(TrainError::Wire(error)) if !matches!(error, WireError::Interrupted { .. }) => {
                self.is_broken = true;
                // The others may wait for this one, or for one that waits for it.
                self.own.worker.transport.take_leave();
                Ok(None)
            }
            evaluated => evaluated.map(Some),
        }
    }

    fn loses_trainer(&mut self) {
        self.is_broken |= self.is_group();
    }

    fn worth(&self, verdict: &Evaluated) -> Option<f64> {
        worth(&self.own.worker.plan, &verdict.scores)
    }

    fn correct(&mut self, number: u32, model: &[f32], steps: u32, share: f64) -> Result<Vec<f32>> {
        self.own.fit.rate_by_share(Some(share));
        self.own.goes_on_behind(0, u64::from(number.saturating_sub(1)) * u64::from(steps));
        self.own.progress.parameters.copy_from_slice(model);
        for _ in 0..steps {
            self.own.step()?;
        }
        check_numbers(&self.own.progress.parameters, number, "corrected")?;
        Ok(self.own.progress.parameters.clone())
    }
}
