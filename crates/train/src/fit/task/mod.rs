//! What is learned: how the rows that a network outputs become a loss, and what an evaluation makes of them.
//!
//! The engine knows no task: it runs a network over rows, hands what comes out to the task, and takes a gradient back.
//! A task is one file here.

mod link_prediction;
mod node_classification;

use laconic_nn::Matrix;

use super::pairs::Pairs;
use crate::error::Result;
use crate::plan::Plan;
use crate::schedule::Stage;
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;
use crate::worker::local::Subset;

use link_prediction::LinkPrediction;
pub(super) use node_classification::NodeClassification;

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

/// The task of a stage.
pub(super) fn of(plan: &Plan, stage: &Stage) -> Box<dyn Task> {
    match &plan.links {
        Some(links) => Box::new(LinkPrediction::new(links.clone(), stage.last_layer() + 1)),
        None => Box::new(NodeClassification),
    }
}
