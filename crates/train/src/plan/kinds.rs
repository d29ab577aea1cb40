//! What a plan knows of members that run: facts and words. What makes them is opaque here, because those who run stand
//! above plans; `makes` beside each trait of theirs wraps it.

use std::any::Any;

use laconic_graph::part::GlobalCounts;
use laconic_nn::network::Network;
use laconic_nn::registry::Registry;

use super::{Cadence, Plan};
use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::saved::OwnMemory;

/// What makes a member, wrapped by the room that runs it.
pub type Made = Box<dyn Any>;

/// The error of an entry that was wrapped for another room, with what wraps it.
pub(crate) fn makes_another(name: &str, wrap: &str) -> TrainError {
    TrainError::config(format!("{name:?}: its entry makes something else; wrap what makes it by {wrap}"))
}

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
    /// Makes the task of a stage: `fit::task::makes`.
    pub build: fn() -> Made,
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

/// Tasks by name.
pub type TaskRegistry = Registry<TaskKind>;

/// What batches of nodes with their neighbours are: an entry of a [`BatchingRegistry`].
#[derive(Debug)]
pub struct BatchingKind {
    /// The name in configurations.
    pub name: &'static str,
    /// The keys of `[batch]` that it alone reads.
    pub options: &'static [&'static str],
    /// Whether neighbours are drawn, hop by hop, which may be anybody's nodes; otherwise a batch reads own rows alone.
    pub draws: bool,
    /// Makes the batches of a stage that reads neighbours: `fit::batch::makes`.
    pub build: fn() -> Made,
}

/// Kinds of batches by name.
pub type BatchingRegistry = Registry<BatchingKind>;

/// How workers come to the same parameters: an entry of an [`AgreementRegistry`].
#[derive(Debug)]
pub struct AgreementKind {
    /// What it is called; no key names it.
    pub name: &'static str,
    /// Whether workers of this cadence agree so.
    pub suits: fn(&Cadence) -> bool,
    /// How many values each sum of a round has, first to last. The first sum goes through the codec of parameters and
    /// has what rides along; the others go as they are.
    pub sums: fn(&Plan, &Network) -> Vec<usize>,
    /// How many values a worker keeps of it between rounds, besides parameters, their gradient and the optimiser's.
    pub keeps: fn(&Plan, &Network) -> usize,
    /// What a worker alone remembers of it, if anything, so that checkpoints have a file of each.
    pub remembers: Option<OwnMemory>,
    /// Makes the agreement of a stage: `fit::agreement::makes`.
    pub build: fn() -> Made,
}

/// Agreements by name.
pub type AgreementRegistry = Registry<AgreementKind>;
