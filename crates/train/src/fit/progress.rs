//! The state of training one network: what a checkpoint keeps.

use laconic_key::{Key, Purpose};
use laconic_nn::Network;
use laconic_nn::optimiser::{self, Optimiser, OptimiserSpec};
use serde::{Deserialize, Serialize};

use crate::config::TrainConfig;
use crate::config::ramp::Reading;
use crate::error::{Result, TrainError};
use crate::worker::evaluate::Scores;

/// The best parameters so far, by the validation metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The round after which they stood.
    pub round: u32,
    /// Their figures.
    pub scores: Scores,
    /// The parameters.
    pub parameters: Vec<f32>,
}

/// The state of training one network: all that a checkpoint must keep.
pub struct Progress {
    /// Rounds of this stage that are done.
    pub done: u32,
    /// Parameters.
    pub parameters: Vec<f32>,
    /// Optimiser.
    pub optimiser: Box<dyn Optimiser>,
    /// The best so far; `None` before the first evaluation.
    pub best: Option<Best>,
    /// Evaluations since the best.
    pub since_best: u32,
    /// Whether patience has run out.
    pub stopped: bool,
    /// Whether the last round still has to be evaluated: the run broke off in between.
    pub unjudged: bool,
    /// What the clocks of controllers show.
    pub clocks: Clocks,
}

/// What controllers of messages see besides the round; the same on every worker.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clocks {
    /// Mean seconds over workers since the stage began, as of the last reduction.
    pub elapsed: f64,
    /// Bytes of rows and parameters that all workers have sent in rounds of training, as of the last reduction.
    pub bytes: f64,
    /// Norm of the first gradient.
    pub first_gradient: f64,
    /// The smallest norm of a gradient.
    pub least_gradient: f64,
}

impl Clocks {
    /// What controllers read before the round after `done` of `rounds`.
    pub fn reading(&self, done: u32, rounds: u32) -> Reading {
        let gradient = if self.first_gradient > 0.0 { self.least_gradient / self.first_gradient } else { 1.0 };
        Reading { done, rounds, elapsed: self.elapsed, bytes: self.bytes, gradient }
    }

    /// Notes the norm of a round's gradient.
    pub fn note_gradient(&mut self, gradient: &[f32]) {
        let norm = gradient.iter().map(|g| f64::from(*g) * f64::from(*g)).sum::<f64>().sqrt();
        if self.first_gradient == 0.0 {
            (self.first_gradient, self.least_gradient) = (norm, norm);
        }
        self.least_gradient = self.least_gradient.min(norm);
    }
}

impl Progress {
    /// A fresh start. Every worker draws the same initial values from the key.
    pub fn new(config: &TrainConfig, network: &Network, stage: usize) -> Result<Progress> {
        let key = Key::new(config.seed, Purpose::Initialise).with(stage as u64);
        let spec = OptimiserSpec { weight_decay: config.weight_decay, momentum: config.momentum };
        let optimiser = optimiser::build(&config.optimiser, network.len(), spec)
            .ok_or_else(|| TrainError::config(format!("train.optimiser = {:?} is unknown", config.optimiser)))?;
        let parameters = network.initial(key);
        Ok(Progress {
            done: 0,
            parameters,
            optimiser,
            best: None,
            since_best: 0,
            stopped: false,
            unjudged: false,
            clocks: Clocks::default(),
        })
    }

    /// The parameters that the stage hands on: the best by validation, or the last where nothing was evaluated.
    pub fn chosen(&self) -> &[f32] {
        self.best.as_ref().map_or(&self.parameters, |best| &best.parameters)
    }
}
