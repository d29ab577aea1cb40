//! When workers agree, evaluate and write checkpoints: what running and predicting must see alike.

use laconic_wire::{Content, Direction, FramePurpose, Tag};

use crate::config::Config;
use crate::error::{Result, TrainError};

/// Rounds of a stage at most: logs and ledgers have rows for each, and predictions may walk through all.
pub(crate) const ROUNDS_MAX: usize = 1_000_000;

/// What is expected where models have to be averaged over workers.
const AVERAGED: &str = "it is read where models are averaged, with train.sync_every above 1";

/// The rounds in which something happens besides a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// Rounds between two agreements.
    sync_every: u32,
    /// Rounds after which workers ask each other whether they agree earlier, 0 for never.
    asks_every: u32,
    /// Whether gradients are corrected by what workers say of theirs with each mean.
    corrects: bool,
    /// Whether gradients of matrices are added up as factors.
    factors: bool,
    eval_every: u32,
    checkpoint_every: u32,
    /// Whether a worker agrees with nobody by itself: somebody else takes the mean of models.
    is_alone: bool,
}

impl Cadence {
    /// The cadence of a checked configuration.
    pub fn of(config: &Config) -> Cadence {
        let (train, out) = (&config.train, &config.out);
        Cadence {
            sync_every: train.sync_every,
            asks_every: train.sync_drift.map_or(0, |_| train.sync_least),
            corrects: train.correction.is_some(),
            factors: train.power_sgd.is_some(),
            eval_every: train.eval_every,
            checkpoint_every: out.checkpoint_every,
            is_alone: false,
        }
    }

    /// Checks the keys that say when models are averaged.
    pub(super) fn check(config: &Config) -> Result<()> {
        let train = &config.train;
        let refuse = |what: String| Err(TrainError::config(what));
        if train.correction.is_some() && train.sync_every == 1 {
            return refuse(format!("train.correction: {AVERAGED}"));
        }
        if let Some(outer) = train.outer {
            if train.sync_every == 1 {
                return refuse(format!("train.outer: {AVERAGED}"));
            }
            if !(outer.lr.is_finite() && outer.lr > 0.0) {
                return refuse(format!("train.outer.lr = {}: expected a number above 0", outer.lr));
            }
            if !(0.0..1.0).contains(&outer.momentum) {
                return refuse(format!("train.outer.momentum = {}: expected 0 or more, below 1", outer.momentum));
            }
        }
        match train.sync_drift {
            Some(_) if train.sync_every == 1 => refuse(format!("train.sync_drift: {AVERAGED}")),
            Some(drift) if !(drift.is_finite() && drift > 0.0) => {
                refuse(format!("train.sync_drift = {drift}: expected a number above 0"))
            }
            Some(_) if train.sync_least == 0 || !train.sync_every.is_multiple_of(train.sync_least) => refuse(format!(
                "train.sync_least = {}: expected a number that divides train.sync_every = {}",
                train.sync_least, train.sync_every
            )),
            None if train.sync_least != 1 => {
                refuse(format!("train.sync_least = {}: train.sync_drift alone reads it", train.sync_least))
            }
            _ => Ok(()),
        }
    }

    /// The same where a round is a batch and epochs have so many: evaluations count epochs.
    pub(super) fn in_epochs_of(self, batches: u32) -> Cadence {
        Cadence { eval_every: self.eval_every.saturating_mul(batches), ..self }
    }

    /// The cadence of an independent trainer, which neither agrees nor evaluates.
    pub(super) fn alone(self) -> Cadence {
        Cadence { is_alone: true, ..self }
    }

    /// Whether the worker is an independent trainer.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Whether workers take steps of their own between two agreements, and models are averaged instead of gradients
    /// added up.
    pub fn is_local(&self) -> bool {
        self.sync_every > 1 || self.is_alone
    }

    /// Whether models are averaged and gradients corrected in between.
    pub fn corrects(&self) -> bool {
        self.corrects && self.is_local() && !self.is_alone
    }

    /// Whether gradients are added up, those of matrices as factors.
    pub fn factors(&self) -> bool {
        self.factors && !self.is_local()
    }

    /// Whether workers agree after round `done` of `rounds` (from 1).
    pub fn agrees(&self, done: u32, rounds: u32) -> bool {
        !self.is_alone && (done == rounds || done.is_multiple_of(self.sync_every))
    }

    /// Whether workers ask each other after round `done` of `rounds` whether they agree although it is not time yet.
    pub fn asks(&self, done: u32, rounds: u32) -> bool {
        self.asks_every > 0 && done.is_multiple_of(self.asks_every) && !self.agrees(done, rounds)
    }

    /// Whether workers may agree before it is time, by what their models have come to.
    pub fn is_open(&self) -> bool {
        self.asks_every > 0
    }

    /// Whether something that is due every `every` rounds, 0 for never, is due after round `done`: since the last time
    /// that workers agreed, its time has come.
    fn is_due(&self, every: u32, done: u32, rounds: u32) -> bool {
        let last = (done - 1) / self.sync_every * self.sync_every;
        every > 0 && self.agrees(done, rounds) && done / every > last / every
    }

    /// Whether round `done` of `rounds` (from 1) is evaluated.
    pub fn evaluates(&self, done: u32, rounds: u32) -> bool {
        !self.is_alone && (done == rounds || self.is_due(self.eval_every, done, rounds))
    }

    /// Rounds for each evaluation; very many where there is one at the end.
    pub fn rounds_an_evaluation(&self) -> u32 {
        if self.eval_every > 0 { self.eval_every } else { ROUNDS_MAX as u32 }
    }

    /// Whether a checkpoint is due after round `done` of `rounds` (from 1), besides the one at the end.
    pub fn writes(&self, done: u32, rounds: u32) -> bool {
        self.is_due(self.checkpoint_every, done, rounds)
    }

    /// The tag of a round's reduction: of gradients, or of parameters where several local steps lie between two.
    pub fn reduction_tag(&self, layer: u16, round: u32) -> Tag {
        let content = if self.is_local() { Content::Models } else { Content::ParameterGradients };
        Tag { content, purpose: FramePurpose::Training, direction: Direction::Forward, layer, round, step: 0 }
    }

    /// The tag of the sums that a stage is solved from.
    pub fn sums_tag(&self, layer: u16, round: u32) -> Tag {
        Tag { content: Content::GramMatrices, ..self.reduction_tag(layer, round) }
    }
}
