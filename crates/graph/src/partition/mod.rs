//! Partitioners: who owns which node.

mod given;
mod multilevel;
mod quality;
mod random;

use std::path::PathBuf;

use crate::error::{GraphError, Result};
use crate::graph::Graph;

pub use quality::{Quality, quality};

/// Decides who owns which node.
///
/// An assignment of nodes, not of edges: an edge lives with its target, so that folding messages never needs a
/// reduction across owners. A cut by edges (vertex cut) balances hubs better, but every row of a hub would be summed
/// over the network in every layer.
///
/// Called once, before a run, on one machine that holds the graph. Must be deterministic in its input.
pub trait Partitioner: Sync {
    /// The name users know it by.
    fn name(&self) -> &'static str;

    /// The part of each node, below [`PartitionInput::parts`].
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>>;
}

/// What a partitioner is given.
#[derive(Debug, Clone, Copy)]
pub struct PartitionInput<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The flags of [`crate::dataset::Split`] of each node.
    pub roles: Option<&'a [u8]>,
    /// How many parts to make.
    pub parts: u32,
    /// The seed of all random decisions.
    pub seed: u64,
    /// Wishes; partitioners ignore those that mean nothing to them.
    pub options: &'a PartitionOptions,
}

/// Wishes about a partition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionOptions {
    /// What to make small.
    pub objective: Objective,
    /// Whether training nodes are balanced too.
    pub balance_train: bool,
    /// How much larger than the mean the largest part may be; 0.03 allows 3 %.
    pub imbalance: f64,
    /// Where the partitioner `given` reads the assignment.
    pub file: Option<PathBuf>,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        PartitionOptions { objective: Objective::Cut, balance_train: false, imbalance: 0.03, file: None }
    }
}

/// What a partitioner makes small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// The number of edges between parts.
    #[default]
    Cut,
    /// The number of halo rows: what an exchange sends.
    Volume,
}

/// All partitioners.
const ALL: &[&dyn Partitioner] = &[&random::Random, &multilevel::Multilevel, &given::Given];

/// The partitioner called `name`.
pub fn partitioner(name: &str) -> Result<&'static dyn Partitioner> {
    ALL.iter().find(|member| member.name() == name).copied().ok_or_else(|| {
        let known: Vec<_> = names().collect();
        GraphError::invalid(format!("no partitioner is called {name:?}; there are {}", known.join(", ")))
    })
}

/// The names of all partitioners.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|member| member.name())
}
