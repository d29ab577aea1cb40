//! What a partitioner is and what it is given.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Result;
use crate::graph::Graph;

/// Decides who owns which node.
///
/// An assignment of nodes, not of edges: an edge lives with its target, so that folding messages never needs a
/// reduction across owners. A cut by edges (vertex cut) balances hubs better, but every row of a hub would be summed
/// over the network in every layer.
///
/// Built by its [`PartitionerKind`](super::PartitionerKind), which hands it the options. Called once, before a run, on
/// one machine that holds the graph. Must be deterministic in its input; [`crate::laws::partitioners`] tests that.
pub trait Partitioner: Send + Sync {
    /// The part of each node, below [`PartitionInput::parts`], in node order.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from assigning every node: no parts, more parts than it can fill, roles or a file of another
    /// length than the graph, a graph larger than it can take.
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>>;
}

/// What a partitioner is given besides its options.
#[derive(Debug, Clone, Copy)]
pub struct PartitionInput<'a> {
    /// The graph whose nodes are assigned.
    pub graph: &'a Graph,
    /// The flags of [`crate::dataset::Split`] of each node; `None` without a split.
    pub roles: Option<&'a [u8]>,
    /// How many parts to make.
    pub parts: u32,
    /// The seed of all random decisions.
    pub seed: u64,
}

/// How much larger than the mean the largest part may be where nobody says otherwise: 5 %.
pub const IMBALANCE_DEFAULT: f64 = 0.05;

/// Wishes about a partition, one bag for all partitioners. Each reads what its
/// [`PartitionerKind::options`](super::PartitionerKind::options) lists, and nothing else.
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
    /// Options of partitioners that are not of this crate, by name.
    pub own: BTreeMap<String, OptionValue>,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        PartitionOptions {
            objective: Objective::Cut,
            balance_train: false,
            imbalance: IMBALANCE_DEFAULT,
            file: None,
            own: BTreeMap::new(),
        }
    }
}

/// The value of an option that this crate knows nothing of.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OptionValue {
    /// A yes or a no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number that need not be whole.
    Number(f64),
    /// A name, a path or any other text.
    Text(String),
}

/// What a partitioner makes small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Objective {
    /// The number of edges between parts.
    #[default]
    Cut,
    /// The number of halo rows: what an exchange sends.
    Volume,
}

impl Objective {
    /// All objectives, in the order of listings.
    pub const ALL: [Objective; 2] = [Objective::Cut, Objective::Volume];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Cut => "cut",
            Objective::Volume => "volume",
        }
    }

    /// The objective of this name.
    pub fn from_name(name: &str) -> Option<Objective> {
        Objective::ALL.into_iter().find(|objective| objective.name() == name)
    }
}
