//! What is learned: how the rows that a network outputs become a loss, and what an evaluation makes of them.
//!
//! The engine knows no task: it runs a network over rows, hands what comes out to the task, and takes a gradient back.
//! A task is one file here, and one line in [`TASKS`].

mod link_prediction;
mod node_classification;

use laconic_nn::Matrix;
use laconic_nn::registry::Kind;

use super::pairs::Pairs;
use crate::error::Result;
use crate::plan::{Made, Plan, TaskKind, makes_another};
use crate::schedule::Stage;
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;
use crate::worker::local::Subset;

impl TaskKind {
    /// What is learned where nothing else is said.
    pub const USUAL: TaskKind = node_classification::KIND;
}

/// Every task that this crate has.
pub const TASKS: &[TaskKind] = &[node_classification::KIND, link_prediction::KIND];

impl Kind for TaskKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        TASKS
    }
}

/// What makes the task of a stage.
pub type MakesTask = fn(&Plan, &Stage) -> Box<dyn Task>;

/// What an entry has as [`TaskKind::build`].
pub fn makes(make: MakesTask) -> Made {
    Box::new(make)
}

/// The task of a stage.
///
/// # Errors
/// If the task's entry makes something else.
pub(super) fn of(plan: &Plan, stage: &Stage) -> Result<Box<dyn Task>> {
    let make = (plan.task.build)().downcast::<MakesTask>();
    let make = make.map_err(|_| makes_another(plan.task.name, "fit::task::makes"))?;
    Ok(make(plan, stage))
}

/// What a task is given besides the rows that the network outputs.
#[derive(Clone, Copy)]
pub struct Learning<'a> {
    /// Which own rows these are; `None` for all of them.
    pub rows: Option<&'a Subset>,
    /// A batch's pairs, by row, where these are embeddings of their ends, with what edges weigh and what the loss of a
    /// pair is multiplied by.
    pub pairs: Option<(&'a Pairs, (f32, f32))>,
    /// All parameters, one flat slice.
    pub p: &'a [f32],
    /// The round, counted over stages.
    pub round: u32,
    /// What the loss of one row, or pair, is multiplied by: one over how many the loss is a mean over.
    pub scale: f32,
}

/// What is learned from the rows that a network outputs.
pub trait Task {
    /// The loss of a round of training: sets `gradient`, of as many rows as `outputs`, and adds to `g`, the gradients
    /// of all parameters, those of parameters of the task's own.
    ///
    /// # Errors
    /// If another worker does not answer.
    fn loss(
        &mut self,
        worker: &mut Worker,
        learning: Learning<'_>,
        outputs: &Matrix,
        gradient: &mut Matrix,
        g: &mut [f32],
    ) -> Result<f64>;

    /// The figures of each split over all workers, from what each one's network outputs for its own rows.
    ///
    /// # Errors
    /// If another worker does not answer.
    fn evaluate(&mut self, worker: &mut Worker, p: &[f32], outputs: &Matrix, round: u32) -> Result<Evaluated>;
}
