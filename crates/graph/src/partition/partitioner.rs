//! What a partitioner is and what it is given.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;

use crate::error::GraphError;
use crate::error::Result;
use crate::graph::Graph;
use crate::source::RowSource;

/// Decides who owns which node.
///
/// An assignment of nodes, not of edges: an edge lives with its target, so that folding messages never needs a
/// reduction across owners. A cut by edges (vertex cut) balances hubs better, but every row of a hub would be summed
/// over the network in every layer.
///
/// Built by its [`PartitionerKind`](super::PartitionerKind), which hands it the options. Called once, before a run, on
/// one machine that holds the graph. Must be deterministic in its input; [`crate::laws::partitioners`] tests that.
pub trait Partitioner: Send + Sync {
    /// Refuses counts of nodes and parts that it cannot follow. Whoever a
    /// [`PartitionerKind`](super::PartitionerKind) builds does so before anything else.
    ///
    /// # Errors
    ///
    /// No parts, more of them than nodes, or what else cannot be.
    fn check(&self, nodes: usize, parts: u32) -> Result<()> {
        fits(nodes, parts)
    }

    /// The part of each node, below [`PartitionInput::parts`], in node order.
    ///
    /// # Errors
    ///
    /// As [`Partitioner::check`], and whatever else keeps it from assigning every node: roles or a file of another
    /// length than the graph, a graph larger than it can take.
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>>;

    /// The same without the graph in memory, for those whose [`PartitionerKind::reads`](super::PartitionerKind::reads)
    /// says so. Edges are both directions of what joins nodes, as far as the caller knows of both.
    ///
    /// # Errors
    ///
    /// As [`Partitioner::assign`], if the rows cannot be read, or if it needs a graph in memory.
    fn assign_rows(&self, input: &RowsInput) -> Result<Vec<u32>> {
        let _ = input;
        Err(GraphError::invalid("this partitioner needs the graph in memory"))
    }

    /// The most bytes of memory that [`Partitioner::assign_rows`] takes for so many nodes, without what the rows take.
    fn memory(&self, nodes: u64, parts: u32) -> u64 {
        let _ = parts;
        4 * nodes
    }

    /// Whether parts are as somebody has given them: those that it leaves empty stay so, and get no nodes of others.
    fn is_given(&self) -> bool {
        false
    }
}

/// Refuses to make no parts, or more than there are nodes.
pub(super) fn fits(nodes: usize, parts: u32) -> Result<()> {
    if parts == 0 || parts as usize > nodes.max(1) {
        return Err(GraphError::invalid(format!("cannot make {parts} parts of {nodes} nodes")));
    }
    Ok(())
}

/// Who is asked for nothing that it would refuse, and leaves no part empty where there are enough nodes, unless it is
/// told the parts.
pub(super) struct Checked(pub Box<dyn Partitioner>);

impl Checked {
    fn filled(&self, mut assignment: Vec<u32>, parts: u32) -> Vec<u32> {
        if !self.is_given() {
            fill_empty(&mut assignment, parts);
        }
        assignment
    }
}

impl Partitioner for Checked {
    fn check(&self, nodes: usize, parts: u32) -> Result<()> {
        self.0.check(nodes, parts)
    }

    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
        self.check(input.graph.nodes(), input.parts)?;
        Ok(self.filled(self.0.assign(input)?, input.parts))
    }

    fn assign_rows(&self, input: &RowsInput) -> Result<Vec<u32>> {
        self.check(input.rows.nodes(), input.parts)?;
        Ok(self.filled(self.0.assign_rows(input)?, input.parts))
    }

    fn memory(&self, nodes: u64, parts: u32) -> u64 {
        self.0.memory(nodes, parts)
    }

    fn is_given(&self) -> bool {
        self.0.is_given()
    }
}

/// Gives parts without nodes as many as the mean, one after the other the last node of the part that has most. Nothing
/// moves where every part has a node, there are fewer nodes than parts, or a number is none of a part.
fn fill_empty(assignment: &mut [u32], parts: u32) {
    let mut sizes = vec![0usize; parts as usize];
    for &part in assignment.iter() {
        match sizes.get_mut(part as usize) {
            Some(size) => *size += 1,
            None => return,
        }
    }
    if assignment.len() < sizes.len() || !sizes.contains(&0) {
        return;
    }
    let mut members: Vec<Vec<u32>> = sizes.iter().map(|&size| Vec::with_capacity(size)).collect();
    assignment.iter().enumerate().for_each(|(node, &part)| members[part as usize].push(node as u32));
    let mean = assignment.len() / sizes.len();
    // The largest first, of equal ones the first.
    let mut largest: BinaryHeap<_> =
        members.iter().enumerate().map(|(part, of)| (of.len(), Reverse(part))).filter(|(size, _)| *size > 0).collect();
    for part in (0..sizes.len()).filter(|&part| sizes[part] == 0) {
        for _ in 0..mean {
            let Some((size, Reverse(from))) = largest.pop() else { return };
            let node = members[from].pop().expect("the largest part has a node");
            assignment[node as usize] = part as u32;
            largest.push((size - 1, Reverse(from)));
        }
    }
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

/// What a partitioner is given that needs no graph in memory.
#[derive(Clone, Copy)]
pub struct RowsInput<'a> {
    /// The nodes and their neighbours.
    pub rows: &'a dyn RowSource,
    /// The nodes and the sources of their in-edges, which are the edges that parts will hold.
    pub in_edges: &'a dyn RowSource,
    /// The flags of [`crate::dataset::Split`] of each node; `None` without a split.
    pub roles: Option<&'a [u8]>,
    /// How many parts to make.
    pub parts: u32,
    /// The seed of all random decisions.
    pub seed: u64,
    /// Is told what is being done.
    pub tell: &'a dyn Fn(&str),
    /// Keeps what passes have come to.
    pub kept: &'a dyn Kept,
}

/// Where a partitioner puts what it has after each pass over the rows, so that one that is ended goes on from there.
pub trait Kept {
    /// What was put there last: the number of the step, and a number for each node.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn last(&self) -> Result<Option<(u32, Vec<u32>)>>;

    /// Puts it there.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    fn keep(&self, step: u32, of: &[u32]) -> Result<()>;
}

/// Nothing is kept.
impl Kept for () {
    fn last(&self) -> Result<Option<(u32, Vec<u32>)>> {
        Ok(None)
    }

    fn keep(&self, _step: u32, _of: &[u32]) -> Result<()> {
        Ok(())
    }
}

/// How much larger than the mean the largest part may be where nobody says otherwise: 5 %.
pub const IMBALANCE_DEFAULT: f64 = 0.05;

/// How `streaming` can place nodes, first how it does where nobody says otherwise.
pub const RULES: [&str; 3] = ["clusters", "fennel", "ldg"];

/// How often `streaming` goes through the edges where nobody says otherwise.
pub const PASSES_DEFAULT: u32 = 10;

/// Wishes about a partition, one bag for all partitioners. Each reads what its
/// [`PartitionerKind::options`](super::PartitionerKind::options) lists, and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionOptions {
    /// What to make small.
    pub objective: Objective,
    /// Whether training nodes are balanced too.
    pub balance_train: bool,
    /// Whether the edges that end at a part's nodes are balanced too.
    pub balance_edges: bool,
    /// How much larger than the mean the largest part may be; 0.03 allows 3 %.
    pub imbalance: f64,
    /// Where the partitioner `given` reads the assignment.
    pub file: Option<PathBuf>,
    /// How many clusters `super_node` assigns; 0 for [`super::clusters_default`].
    pub clusters: u32,
    /// What `super_node` clusters by, one of [`super::clusterers`]; the first of them where it is empty.
    pub clusterer: String,
    /// How `streaming` places nodes: `clusters`, `fennel` or `ldg`.
    pub rule: String,
    /// How often `streaming` goes through the edges.
    pub passes: u32,
    /// Options of partitioners that are not of this crate, by name.
    pub own: BTreeMap<String, OptionValue>,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        PartitionOptions {
            objective: Objective::Cut,
            balance_train: false,
            balance_edges: false,
            imbalance: IMBALANCE_DEFAULT,
            file: None,
            clusters: 0,
            clusterer: String::new(),
            rule: RULES[0].to_owned(),
            passes: PASSES_DEFAULT,
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

#[cfg(test)]
mod tests {
    use super::fill_empty;

    fn filled(mut assignment: Vec<u32>, parts: u32) -> Vec<u32> {
        fill_empty(&mut assignment, parts);
        assignment
    }

    #[test]
    fn empty_parts_get_the_mean_from_the_largest_and_no_other_node_moves() {
        assert_eq!(filled(vec![0, 0, 0, 0, 2, 2], 3), [0, 0, 1, 1, 2, 2]);
        assert_eq!(filled(vec![3; 5], 5), [3, 4, 2, 1, 0]);
        assert_eq!(filled(vec![0; 7], 2), [0, 0, 0, 0, 1, 1, 1]);
        // As they are: no part is empty, fewer nodes than parts, a part that is not there, no parts.
        for (assignment, parts) in [(vec![1, 0, 0], 2), (vec![0, 0], 3), (vec![0, 7], 2), (vec![], 1), (vec![0], 0)] {
            assert_eq!(filled(assignment.clone(), parts), assignment);
        }
    }
}
