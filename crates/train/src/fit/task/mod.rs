//! What is learned: how the rows that a network outputs become a loss, and what an evaluation makes of them.
//!
//! The engine knows no task: it runs a network over rows, hands what comes out to the task, and takes a gradient back.
//! A task is one file here, and one line in [`TASKS`].

mod link_prediction;
mod node_classification;

use laconic_graph::part::GlobalCounts;
use laconic_nn::Matrix;
use laconic_nn::registry::{Kind, Registry};

use super::pairs::Pairs;
use crate::config::Config;
use crate::error::Result;
use crate::plan::Plan;
use crate::schedule::Stage;
use crate::worker::Worker;
use crate::worker::evaluate::Evaluated;
use crate::worker::local::Subset;

/// What is learned: an entry of a [`TaskRegistry`].
#[derive(Debug)]
pub struct TaskKind {
    /// The name in configurations.
    pub name: &'static str,
    /// The keys of `[task]` that it alone reads.
    pub options: &'static [&'static str],
    /// Whether rows are embeddings of which pairs are scored, so that targets are edges, whose ends may be anybody's
    /// nodes; such a plan has [`Plan::links`]. Otherwise targets are own nodes.
    pub of_pairs: bool,
    /// Whether labels of nodes are what is learned; otherwise data need none.
    pub of_labels: bool,
    /// What it says of itself.
    pub words: Words,
    /// Refuses data that nothing can be learned from, before there is a model.
    pub check: fn(&Config, &GlobalCounts) -> Result<()>,
    /// The plan of a model with what follows from the data, and how many targets all workers learn from, about.
    pub resolve: fn(Plan, &GlobalCounts) -> Result<(Plan, u64)>,
    /// The task of a stage.
    pub build: fn(&Plan, &Stage) -> Box<dyn Task>,
}

/// What is said of a task to people.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// What is learned from, chosen by and tested on: the word behind "training", "validation" and "test".
    pub noun: &'static str,
    /// Rows between layers that leave a worker.
    pub rows: &'static str,
    /// Gradients of parameters that leave it.
    pub gradients: &'static str,
    /// What batches ask others for.
    pub draws: &'static str,
    /// What figures of an evaluation are computed from.
    pub figures: &'static str,
    /// What leaves where exact areas are asked for, of so many targets.
    pub scored: fn(&str) -> String,
    /// The same of no known number, with all else that evaluations send.
    pub evaluation: &'static str,
    /// What a part tells of itself.
    pub parts: &'static str,
    /// That the data have nothing to learn from.
    pub unlearned: &'static str,
    /// That no target is in validation.
    pub unvalidated: &'static str,
}

impl TaskKind {
    /// What is learned where nothing else is said.
    pub const USUAL: TaskKind = node_classification::KIND;
}

/// Every task that this crate has.
pub const TASKS: &[TaskKind] = &[node_classification::KIND, link_prediction::KIND];

/// Tasks by name.
pub type TaskRegistry = Registry<TaskKind>;

impl Kind for TaskKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        TASKS
    }
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
