//! Which rows a round of training runs over: all of them, those that read no neighbours any more, or a batch.

mod clusters;
mod ends;
mod full;
mod links;
mod rows;
mod sampled;

use laconic_nn::Network;
use laconic_nn::registry::Kind;

use super::task::Task;
use crate::error::Result;
use crate::pass::context::PassContext;
use crate::pass::inputs::Inputs;
use crate::pass::network::Pass;
use crate::plan::batching::Batching;
use crate::plan::{BatchingKind, Made, makes_another};
use crate::schedule::Stage;
use crate::worker::Worker;

/// One round's pass: what it trains, on what.
pub struct Training<'a> {
    /// The layers that are trained.
    pub network: &'a Network,
    /// All parameters, one flat slice.
    pub p: &'a [f32],
    /// Frozen rows with what is known of their neighbours.
    pub inputs: &'a Inputs,
    /// The memory of passes over all own rows.
    pub pass: &'a mut Pass,
    /// What is learned.
    pub task: &'a mut dyn Task,
    /// Which round it is, of which run.
    pub context: PassContext,
    /// What the loss of one row is multiplied by.
    pub scale: f32,
}

/// Which round of training it is.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Its number, over all stages, from 1.
    pub number: u32,
    /// Rounds of the stage before it.
    pub done: u32,
}

impl Round {
    /// The number of the first round of its epoch, which tells epochs of a run apart.
    pub fn first_of_epoch(self, batches: u32) -> u32 {
        self.number - self.done % batches
    }
}

/// The rows that rounds run over, round by round.
pub trait Batches {
    /// Goes on to a round, and returns what its training rows here count for.
    ///
    /// # Errors
    /// If another worker does not answer.
    fn turn(&mut self, worker: &mut Worker, round: Round, inputs: &Inputs) -> Result<f64>;

    /// The loss of the round's rows; adds its gradient to `g`.
    ///
    /// # Errors
    /// If another worker does not answer, or a codec refuses the rows.
    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64>;

    /// Gives memory back that only rounds need, before an evaluation.
    fn rest(&mut self) {}

    /// Takes up inputs of which more has been revealed.
    fn refresh(&mut self, _inputs: &Inputs) {}
}

/// Every kind of batches that this crate has.
pub const BATCHINGS: &[BatchingKind] = &[sampled::KIND, clusters::KIND];

impl Kind for BatchingKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        BATCHINGS
    }
}

/// What makes the batches of a stage that reads neighbours.
pub type MakesBatches = fn(&Worker, &Stage, &Inputs, &Batching) -> Result<Box<dyn Batches>>;

/// What an entry has as [`BatchingKind::build`].
pub fn makes(make: MakesBatches) -> Made {
    Box::new(make)
}

/// The batches that a kind makes.
///
/// # Errors
/// If its entry makes something else, or the system starts no thread for making batches.
pub fn made_by(
    kind: &BatchingKind,
    worker: &Worker,
    stage: &Stage,
    inputs: &Inputs,
    batching: &Batching,
) -> Result<Box<dyn Batches>> {
    let make = (kind.build)().downcast::<MakesBatches>();
    make.map_err(|_| makes_another(kind.name, "fit::batch::makes"))?(worker, stage, inputs, batching)
}

/// The rows that a stage runs over.
///
/// # Errors
/// As [`made_by`].
pub(super) fn of(worker: &Worker, stage: &Stage, inputs: &Inputs) -> Result<Box<dyn Batches>> {
    let batching = worker.plan.batching.as_ref();
    if let Some(batching) = batching.filter(|_| stage.reads_neighbours()) {
        return made_by(batching.kind, worker, stage, inputs, batching);
    }
    if let Some(rows) = rows::TrainingRows::new(worker, stage, inputs, batching.cloned()) {
        return Ok(Box::new(rows));
    }
    match batching.and_then(|batching| ends::EndRows::new(worker, batching)) {
        Some(ends) => Ok(Box::new(ends)),
        None => Ok(Box::new(full::AllRows::new(worker, stage, inputs))),
    }
}

/// All rows, of which nothing is kept apart.
pub(super) fn nothing_kept() -> Box<dyn Batches> {
    Box::new(full::AllRows::default())
}
