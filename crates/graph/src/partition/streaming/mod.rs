//! Partitioning by passes over the edges: memory for the nodes, never for the edges.
//!
//! Three rules. `ldg` and `fennel` (Stanton and Kliot, 2012; Tsourakakis et al., 2014) put each node where most of its
//! neighbours are, the less so the fuller that part is; passes after the first one move nodes with all others in place
//! (Nishimura and Ugander, 2013). `clusters` first gathers nodes into many small clusters by label propagation with
//! bounded sizes, has `multilevel` cut the graph of the clusters, which is small, and then moves single nodes
//! (Akhremtsev, Sanders and Schulz, 2014): nearly the cut of `multilevel` where a graph has any communities.

mod balance;
mod clusters;
mod contraction;
mod greedy;
mod loads;

use std::ops::RangeInclusive;

use crate::build::both_directions;
use crate::error::{GraphError, Result};
use crate::partition::{PartitionInput, PartitionOptions, Partitioner, PartitionerKind, RULES, Reads, RowsInput};
use balance::Balance;

pub(super) static KIND: PartitionerKind = PartitionerKind {
    name: "streaming",
    options: &["seed", "imbalance", "balance_edges", "rule", "passes"],
    reads: |_| Reads::Rows,
    build: |options| Ok(Box::new(Streaming::new(options)?)),
};

/// How nodes find their parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Ldg,
    Fennel,
    Clusters,
}

impl Rule {
    fn from_name(name: &str) -> Result<Rule> {
        let rules = RULES.into_iter().zip([Rule::Clusters, Rule::Fennel, Rule::Ldg]);
        let found = rules.into_iter().find(|(known, _)| *known == name).map(|(_, rule)| rule);
        found.ok_or_else(|| GraphError::invalid(format!("expected the rule clusters, fennel or ldg, found {name:?}")))
    }
}

/// Wishes that have been checked.
pub(super) struct Streaming {
    rule: Rule,
    passes: u32,
    imbalance: f64,
    balance_edges: bool,
}

/// More would be a mistake.
const PASSES_MAX: u32 = 1000;

/// What no node has been given.
const NOWHERE: u32 = u32::MAX;

impl Streaming {
    pub(super) fn new(options: &PartitionOptions) -> Result<Streaming> {
        let &PartitionOptions { passes, imbalance, balance_edges, .. } = options;
        let rule = Rule::from_name(&options.rule)?;
        if !(0.0..=1000.0).contains(&imbalance) {
            return Err(GraphError::invalid(format!("expected an imbalance from 0 to 1000, found {imbalance}")));
        }
        let fewest = if rule == Rule::Clusters { clusters::PASSES_MIN } else { 1 };
        if !(fewest..=PASSES_MAX).contains(&passes) {
            let what = format!("expected {fewest} to {PASSES_MAX} passes for the rule {:?}", options.rule);
            return Err(GraphError::invalid(format!("{what}, found {passes}")));
        }
        Ok(Streaming { rule, passes, imbalance, balance_edges })
    }
}

impl Partitioner for Streaming {
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
        let PartitionInput { graph, roles, parts, seed } = *input;
        let tell = &|_: &str| ();
        if graph.has_one_way_edges() {
            let both = both_directions(graph);
            return self.assign_rows(&RowsInput { rows: &both, in_edges: graph, roles, parts, seed, tell, kept: &() });
        }
        self.assign_rows(&RowsInput { rows: graph, in_edges: graph, roles, parts, seed, tell, kept: &() })
    }

    fn assign_rows(&self, input: &RowsInput) -> Result<Vec<u32>> {
        let nodes = input.rows.nodes();
        if input.parts == 1 {
            return Ok(vec![0; nodes]);
        }
        let balance = Balance::of(input, self.imbalance, self.balance_edges)?;
        match self.rule {
            Rule::Clusters => clusters::assign(input, self.imbalance, &balance, self.passes),
            Rule::Fennel => greedy::assign(input, greedy::Score::fennel(input, &balance), &balance, 1..=self.passes),
            Rule::Ldg => greedy::assign(input, greedy::Score::ldg(&balance), &balance, 1..=self.passes),
        }
    }

    fn memory(&self, nodes: u64, parts: u32) -> u64 {
        let of_rule = match self.rule {
            Rule::Clusters => clusters::memory(nodes, parts),
            Rule::Fennel | Rule::Ldg => greedy::memory(nodes, parts),
        };
        of_rule + if self.balance_edges { balance::memory(nodes) } else { 0 }
    }
}

/// What was kept of the steps of this range, and how many of them are done: numbers below `most`.
fn kept(input: &RowsInput, steps: RangeInclusive<u32>, most: usize) -> Result<Option<(u32, Vec<u32>)>> {
    let is_sound = |(step, of): &(u32, Vec<u32>)| {
        let in_range = || of.iter().all(|&number| (number as usize) < most);
        steps.contains(step) && of.len() == input.rows.nodes() && in_range()
    };
    let last = input.kept.last()?.filter(is_sound);
    Ok(last.map(|(step, of)| (step + 1 - steps.start(), of)))
}

#[cfg(test)]
mod tests;
