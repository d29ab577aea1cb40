//! The state of training one network, and of a run between two rounds.

use laconic_key::{Key, Purpose};
use laconic_nn::Network;
use laconic_nn::optimiser::{Optimiser, OptimiserSpec};
use laconic_wire::{Count, PerKind};
use serde::{Deserialize, Serialize};

use super::report::RoundReport;
use crate::config::TrainConfig;
use crate::config::ramp::Reading;
use crate::error::{Result, TrainError};
use crate::plan::Plan;
use crate::schedule::{Position, Stage};
use crate::worker::evaluate::Scores;
use crate::worker::parts::{Known, PartCounts};

/// The best parameters so far, by validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The round after which they stood.
    pub round: u32,
    /// The figures of each split.
    pub scores: Scores,
    /// All values of the network.
    pub parameters: Vec<f32>,
    /// What each part came to.
    pub parts: Known,
}

/// The state of training one network: all that a checkpoint must keep.
pub struct Progress {
    /// Rounds of this stage that are done.
    pub done: u32,
    /// All values of the network.
    pub parameters: Vec<f32>,
    /// What turns gradients into steps.
    pub optimiser: Box<dyn Optimiser>,
    /// The best so far; `None` before the first evaluation.
    pub best: Option<Best>,
    /// Evaluations since the best.
    pub since_best: u32,
    /// Whether patience has run out.
    pub stopped: bool,
    /// The last round, where it still has to be evaluated: the run broke off in between.
    pub unjudged: Option<RoundReport>,
    /// What the clocks of controllers show.
    pub clocks: Clocks,
    /// What independent trainers had done when the last mean was taken.
    pub averaged: Option<Averaged>,
}

/// What independent trainers had done when a mean was taken.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Averaged {
    /// Seconds since they went.
    pub elapsed: f64,
    /// Steps of each that have entered means of the stage.
    pub steps: Vec<u64>,
    /// The same of stages before.
    #[serde(default)]
    pub before: Vec<u64>,
    /// Means, the last among them, that were not written into the log of rounds, because verdicts were still to come.
    #[serde(default)]
    pub unwritten: Vec<RoundReport>,
}

/// What controllers of messages see besides the round; the same on every worker.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clocks {
    /// Mean seconds over workers since the stage began, as of the last reduction.
    pub elapsed: f64,
    /// Norm of the first gradient.
    pub first_gradient: f64,
    /// The smallest norm of a gradient.
    pub least_gradient: f64,
}

impl Clocks {
    /// What controllers read before the round after `done` of `rounds`, but for bytes, which the plan knows.
    pub fn reading(&self, done: u32, rounds: u32) -> Reading {
        let gradient = if self.first_gradient > 0.0 { self.least_gradient / self.first_gradient } else { 1.0 };
        Reading { done, rounds, elapsed: self.elapsed, gradient, ..Reading::default() }
    }

    /// Notes the norm of a round's gradient.
    pub fn note_gradient(&mut self, gradient: &[f32]) {
        let norm = laconic_nn::kernels::measure::norm(gradient);
        if self.first_gradient == 0.0 {
            (self.first_gradient, self.least_gradient) = (norm, norm);
        }
        self.least_gradient = self.least_gradient.min(norm);
    }
}

impl Progress {
    /// A fresh start. Every worker draws the same initial values from the key.
    pub fn new(plan: &Plan, network: &Network, stage: usize) -> Progress {
        let train = &plan.config.train;
        let key = Key::new(train.seed, Purpose::Initialise).with(stage as u64);
        let &TrainConfig { weight_decay, momentum, epsilon, .. } = train;
        let spec = OptimiserSpec { weight_decay, momentum, epsilon };
        let optimiser = (plan.optimiser.build)(network.trained(), spec);
        let parameters = network.initial(key);
        Progress {
            done: 0,
            parameters,
            optimiser,
            best: None,
            since_best: 0,
            stopped: false,
            unjudged: None,
            clocks: Clocks::default(),
            averaged: None,
        }
    }

    /// The parameters that the stage hands on: the best by validation, or the last where nothing was evaluated.
    pub fn chosen(&self) -> &[f32] {
        self.best.as_ref().map_or(&self.parameters, |best| &best.parameters)
    }

    /// Whether `rounds` rounds are done, or patience has ended the stage.
    pub fn is_over(&self, rounds: u32) -> bool {
        self.done >= rounds || self.stopped
    }
}

/// Parameters that a finished stage has chosen, and its rounds.
pub type Finished = (Vec<f32>, u32);

/// The state of a run between two rounds: what all workers know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The stage that was being trained.
    pub stage: usize,
    /// The stages before it.
    pub finished: Vec<Finished>,
    /// Bytes that all workers had sent, by kind.
    pub bytes: PerKind<Count>,
    /// Everything that is no array.
    pub counters: Counters,
    /// Parameters after the last round.
    pub parameters: Vec<f32>,
    /// The best parameters so far.
    pub best: Option<Vec<f32>>,
    /// The optimiser's arrays.
    pub slots: Vec<Vec<f32>>,
}

/// Everything of a [`Snapshot`] that is no array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Rounds of the stage that are done.
    pub done: u32,
    /// Steps of the optimiser.
    pub steps: u64,
    /// Evaluations since the best.
    pub since_best: u32,
    /// Whether patience has run out.
    pub stopped: bool,
    /// The last round, where it still has to be evaluated: the run broke off in between.
    pub unjudged: Option<RoundReport>,
    /// Round and figures of the best.
    pub best: Option<(u32, Scores)>,
    /// What each part came to in that round; nothing where that was not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartCounts>,
    /// What the clocks of controllers show.
    #[serde(default)]
    pub clocks: Clocks,
    /// What independent trainers had done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaged: Option<Averaged>,
}

impl Snapshot {
    /// The state after a round.
    pub fn take(stage: usize, progress: &Progress, finished: Vec<Finished>, bytes: PerKind<Count>) -> Snapshot {
        let (steps, slots) = progress.optimiser.state();
        Snapshot {
            stage,
            finished,
            bytes,
            counters: Counters {
                done: progress.done,
                steps,
                since_best: progress.since_best,
                stopped: progress.stopped,
                unjudged: progress.unjudged.clone(),
                best: progress.best.as_ref().map(|b| (b.round, b.scores.clone())),
                parts: progress.best.as_ref().map(|b| b.parts.all().to_vec()).unwrap_or_default(),
                clocks: progress.clocks,
                averaged: progress.averaged.clone(),
            },
            parameters: progress.parameters.clone(),
            best: progress.best.as_ref().map(|b| b.parameters.clone()),
            slots: slots.into_iter().map(|(_, slot)| slot.to_vec()).collect(),
        }
    }

    /// Refuses the state of other stages.
    ///
    /// # Errors
    /// If these stages have other shapes.
    pub fn check_fits(&self, stages: &[Stage]) -> Result<()> {
        let fits = |(stage, (values, _)): (&Stage, &Finished)| stage.network.len() == values.len();
        if self.finished.len() < stages.len() && stages.iter().zip(&self.finished).all(fits) {
            return Ok(());
        }
        Err(TrainError::checkpoint(format!("expected the state of {} stages of this model", stages.len())))
    }

    /// How far the run had come.
    pub fn position(&self) -> Position {
        Position {
            finished: self.finished.iter().map(|(_, rounds)| *rounds).collect(),
            done: self.counters.done,
            stopped: self.counters.stopped,
        }
    }

    /// Rounds done, counted over stages.
    pub fn rounds(&self) -> u32 {
        self.finished.iter().fold(self.counters.done, |sum, (_, rounds)| sum.saturating_add(*rounds))
    }

    /// The last round whose line is in the log: those that still have to be evaluated are written when they are.
    pub fn logged(&self) -> u32 {
        let owed = u32::from(self.counters.unjudged.is_some());
        let first = self.counters.averaged.as_ref().and_then(|averaged| averaged.unwritten.first());
        let before = first.map_or(u32::MAX, |report| report.round.saturating_sub(1));
        self.rounds().saturating_sub(owed).min(before)
    }

    /// Sets a fresh progress of the same network to this state.
    ///
    /// # Errors
    /// If the network or the optimiser has another shape.
    pub fn restore(self, progress: &mut Progress) -> Result<()> {
        let len = progress.parameters.len();
        let fresh: Vec<usize> = progress.optimiser.state().1.iter().map(|(_, slot)| slot.len()).collect();
        let expected = fresh.len();
        let fits = self.parameters.len() == len
            && self.best.as_ref().is_none_or(|b| b.len() == len)
            && self.slots.iter().map(Vec::len).eq(fresh);
        if !fits {
            let (found, slots) = (self.parameters.len(), self.slots.len());
            let what = format!("{len} parameters and {expected} optimiser slots, found {found} and {slots}");
            return Err(TrainError::checkpoint(format!("expected {what}")));
        }
        progress.done = self.counters.done;
        progress.since_best = self.counters.since_best;
        progress.stopped = self.counters.stopped;
        progress.unjudged = self.counters.unjudged;
        progress.clocks = self.counters.clocks;
        progress.averaged = self.counters.averaged;
        progress.parameters = self.parameters;
        progress.optimiser.restore(self.counters.steps, self.slots);
        progress.best = match (self.best, self.counters.best) {
            (Some(parameters), Some((round, scores))) => {
                Some(Best { round, scores, parameters, parts: Known::All(self.counters.parts) })
            }
            _ => None,
        };
        Ok(())
    }
}
